"""Normalizations."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, replaced, static, statics, unranked

F16, F32 = np.float16, np.float32
_UNSIZED = decided("cpu", "Model.evaluate writes out of bounds for dynamic shapes")


def _values(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed + sum(shape)).normal(size=shape) * 3).astype(dtype)


def _statistics(channels, dtype=np.float32):
    return [*(_values(channels, dtype=dtype, seed=k) for k in range(3)), np.abs(_values(channels, dtype=dtype, seed=3))]


def _batch_norms():
    for version in ("opset1", "opset5"):

        def case(name, data, statistics=None, epsilon=1e-3, version=version):
            channels, dtype = data.arrays[0].shape[1], data.arrays[0].dtype
            inputs = [data, *(statistics or _statistics(channels, dtype))]
            make = "batch_norm_inference"
            return layer_case("BatchNormInference", version, make, name, inputs, {"epsilon": epsilon})

        for name, shape in (("2d", (4, 3)), ("4d", (2, 3, 4, 5)), ("5d", (1, 2, 3, 2, 4))):
            yield case(name, static(_values(*shape)))
        yield case("no-batch", dynamic(_values(0, 3, 4), dims=[-1, 3, 4]))
        data = dynamic(_values(1, 3, 4, 5), _values(2, 3, 1, 6), dims=[-1, 3, -1, -1])
        yield case("dynamic-large-epsilon", data, epsilon=0.5)
        data = dynamic(_values(2, 3, 4), dims=[-1, 3, -1])
        yield case("run-time-statistics", data, statics(_statistics(3)))
        yield case("float16", static(_values(2, 3, 4, dtype=F16)))


def _mvns():
    for across in (True, False):
        for variance in (True, False):
            for shape in ((2, 3, 4, 5), (2, 3, 4), (1, 2, 3, 4, 3)):
                name = f"{'across' if across else 'within'}-channels-{'variance' if variance else 'mean'}-{len(shape)}d"
                yield _mvn_2(name, static(_values(*shape)), across, variance)
    data = dynamic(_values(2, 3, 4, 5), _values(1, 1, 6, 2))
    yield _mvn_2("dynamic-large-eps", data, False, eps=2.5, **_UNSIZED)
    yield _mvn_2("float16", static(_values(2, 3, 4, 5, dtype=F16)), True)
    yield _mvn_2("all-equal", static(np.full((2, 3, 4, 5), 7, F32)), False, eps=1e-9)
    axes = {"last": [-1], "spatial": [2, 3], "across": [3, 1, 2], "channels": [1], "mixed": [0, -2]}
    for mode in ("inside_sqrt", "outside_sqrt"):
        for variance in (True, False):
            for name in axes if variance else ("last",):
                full = f"{mode}-{name}{'' if variance else '-mean'}"
                yield _mvn_6(full, static(_values(2, 3, 4, 5)), np.array(axes[name]), variance, 0.75, mode)
    yield _mvn_6("all-axes-2d", static(_values(4, 5)), np.array([0, 1]))
    yield _mvn_6("no-axes", static(_values(2, 3, 4)), np.zeros(0, np.int64))
    yield _mvn_6("dynamic", dynamic(_values(2, 3, 4), _values(1, 5, 2)), np.array([-1, 1]), **_UNSIZED)
    data = dynamic(_values(2, 3, 4, 5), _values(1, 3, 2, 6))
    yield _mvn_6("run-time-axes", data, static(np.array([2, -1]), np.array([1, 0])), **_UNSIZED)
    yield _mvn_6("float16", static(_values(2, 3, 4, dtype=F16)), np.array([2]))
    equal = static(np.full((2, 3, 4, 5), 7, F16))  # eps would be 0 in float16
    yield _mvn_6("float16-all-equal", equal, np.array([2, 3]), eps=1e-9, mode="outside_sqrt")


def _mvn_2(name, data, across, variance=True, eps=1e-3, **settings):
    attributes = {"across_channels": across, "normalize_variance": variance, "eps": eps}
    return layer_case("MVN", "opset2", "mvn", name, [data], attributes, **settings)


def _mvn_6(name, data, axes, variance=True, eps=1e-5, mode="inside_sqrt", **settings):
    attributes = {"normalize_variance": variance, "eps": eps, "eps_mode": mode}
    return layer_case("MVN", "opset6", "mvn", name, [data, axes], attributes, **settings)


def _l2_cases():
    def case(name, data, axes, eps=1e-3, **settings):
        attributes = {"eps": eps, "eps_mode": "add"}
        return layer_case("NormalizeL2", "opset1", "normalize_l2", name, [data, axes], attributes, **settings)

    data = _values(2, 3, 4, 5)
    data[0, :, 1, 1] = 0
    for mode in ("add", "max"):
        for eps in (1e-9, 0.5, 1e3):
            for name, axes in (("channels", [1]), ("all-but-batch", [1, 2, 3]), ("last", [-1]), ("none", [])):
                if eps == 1e-9 or name in ("channels", "none"):
                    added = case(f"{mode}-{eps:g}-{name}", static(data), np.array(axes, np.int64), eps)
                    yield replaced(added, 'eps_mode="add"', 'eps_mode="max"') if mode == "max" else added
    yield case("dynamic", dynamic(_values(2, 3, 4), _values(1, 5, 1)), np.array([1, 2]))
    axes = dynamic(np.array([1]), np.array([-1, 0]))
    unknown = decided("cpu", "Model.evaluate does not support NormalizeL2")
    yield case("run-time-axes", dynamic(_values(2, 3, 4), _values(1, 5, 2)), axes, **unknown)
    reason = "the CPU plugin sums over all axes if there are no run-time axes; the specification: 1 for nonzero numbers"
    data, axes = dynamic(np.array([[3, -4], [0, 0.5]], F32)), dynamic(np.array([], np.int64))
    yield case("run-time-axes-none", data, axes, **decided("expected", reason, np.array([[1, 1], [0, 1]], F32)))
    yield case("float16", static(_values(2, 3, 4, dtype=F16)), np.array([1]))
    yield case("float16-zeros", static(np.zeros((2, 3, 4), F16)), np.array([1]), eps=1e-10)


def _group_norms():
    def case(name, data, groups, epsilon=1e-3, rest=None):
        if rest is None:
            channels, dtype = data.arrays[0].shape[1], data.arrays[0].dtype
            rest = [_values(channels, dtype=dtype, seed=k) for k in range(2)]
        attributes, make = {"num_groups": groups, "epsilon": epsilon}, "group_normalization"
        return layer_case("GroupNormalization", "opset12", make, name, [data, *rest], attributes)

    for groups in (1, 2, 6):
        for shape in ((2, 6, 4, 5), (2, 6, 7), (1, 6, 2, 3, 2)):
            yield case(f"{groups}-groups-{len(shape)}d", static(_values(*shape)), groups)
    data = dynamic(_values(2, 6, 4, 5), _values(1, 6, 3, 1), _values(0, 6, 3, 1), dims=[-1, 6, -1, -1])
    yield case("dynamic-large-epsilon", data, 3, epsilon=0.5)
    yield case("any-rank", unranked(_values(2, 6, 4), _values(0, 6), _values(1, 6, 2, 3)), 3)
    yield case("no-batch", static(_values(0, 6, 4)), 3)
    rest = [dynamic(_values(6), _values(4)), dynamic(_values(6, seed=1), _values(4, seed=1))]
    yield case("run-time-scale", dynamic(_values(2, 6, 4), _values(1, 4, 3)), 2, rest=rest)
    yield case("float16", static(_values(2, 6, 4, 5, dtype=F16)), 3)


def _lrns():
    def case(name, data, axes, size=3, alpha=0.5, beta=0.75, bias=2.0, **settings):
        attributes = {"alpha": alpha, "beta": beta, "bias": bias, "size": size}
        axes = np.array(axes, np.int64) if isinstance(axes, list) else axes
        return layer_case("LRN", "opset1", "lrn", name, [data, axes], attributes, **settings)

    for name, axes, size in (
        ("channels", [1], 3),
        ("channels-large", [1], 9),
        ("size-1", [1], 1),
        ("even-size", [1], 4),
        ("spatial-even-size", [2, 3], 4),
        ("spatial", [2, 3], 3),
        ("spatial-large", [3, 2], 5),
    ):
        yield case(name, static(_values(2, 5, 4, 6)), axes, size)
    for name, shape in (("3d", (2, 5, 4)), ("5d", (1, 4, 2, 3, 2)), ("2d", (3, 6))):
        yield case(name, static(_values(*shape)), [1], 3, 1.5, 0.5, 1.0)
    outlier = _values(2, 8, 3, 2)
    outlier[0, 1, 1] = [1e4, -3e5]
    yield case("outlier", static(outlier), [1], alpha=1.0, bias=1.0)
    yield case("dynamic", dynamic(_values(2, 5, 3, 2), _values(1, 2, 4, 1), _values(0, 2, 4, 1)), [1])
    yield case("float16", static(_values(2, 5, 4, 3, dtype=F16)), [1])
    for name, axes, shape in (("channels", [1], (1, 3, 2, 3)), ("spatial", [2], (1, 3, 6))):
        yield case(f"any-rank-{name}", unranked(_values(2, 5, 4), _values(*shape)), axes)
    # With beta 1, bias 0 and alpha = size ** len(axes) the formula is data / sum(data ** 2).
    ramp = np.arange(1, 9, dtype=F32).reshape(1, 2, 2, 2)
    sums_1 = np.array([1 + 25, 4 + 36, 9 + 49, 16 + 64] * 2, F32).reshape(ramp.shape)
    total = np.full(ramp.shape, sum(i * i for i in range(1, 9)), F32)
    rows = np.array([5, 5, 25, 25, 61, 61, 113, 113], F32).reshape(ramp.shape)
    nothing = ramp * ramp
    parts = "the CPU plugin differs from the specification's formula, which gives the values"
    for name, axes, sums in (("all-but-batch", [1, 2, 3], total), ("negative-axis", [-1], rows), ("no-axes", [], nothing)):
        yield case(name, static(ramp), axes, 3, 3.0 ** len(axes), 1.0, 0.0, **decided("expected", parts, ramp / sums))
    reason = "the CPU plugin requires constant axes; values by the specification's formula"
    expected = [[ramp / sums_1], [ramp / rows], [ramp / (_pairs() / 3)]]
    axes = dynamic(np.array([-3]), np.array([3]), np.array([1, 3]))
    settings = decided("expected", reason, runs=expected)
    yield case("run-time-axes", dynamic(ramp, ramp, ramp), axes, 3, 3.0, 1.0, 0.0, **settings)


def _pairs():
    """Return sums of squares over both channels and both elements of each row."""
    return (
        np.array([1 + 4 + 25 + 36] * 2 + [9 + 16 + 49 + 64] * 2, np.float32).repeat(1).reshape(1, 1, 2, 2).repeat(2, axis=1)
    )


CASES = [*_batch_norms(), *_mvns(), *_l2_cases(), *_group_norms(), *_lrns()]
