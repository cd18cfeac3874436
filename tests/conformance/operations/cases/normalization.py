"""Normalizations."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.conformance.case import Case, IRText
from tests.conformance.models import layer_case, unranked


def _values(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed + sum(shape)).normal(size=shape) * 3).astype(dtype)


def _constant(numbers):
    import openvino as ov

    if numbers:
        return ov.op.Constant(ov.Tensor(np.array(numbers, np.int64)))
    return ov.op.Constant(ov.Type.i64, ov.Shape([0]), [])


def _with_axes(make, shape, axes, dtype=np.float32):
    """A model of ``make(data, axes)``; an int for ``axes`` says how many of them come at run time, -1 any number."""

    def build():
        import openvino as ov
        from openvino import opset1

        x = opset1.parameter(ov.PartialShape(list(shape)), dtype)
        if isinstance(axes, int):
            a = opset1.parameter(ov.PartialShape([axes]), np.int64)
            return ov.Model([make(x, a)], [x, a])
        return ov.Model([make(x, _constant(list(axes)))], [x])

    return build


def _edited(build, old, new):
    """The model with a text of its IR replaced: for what the Python API does not pass on."""

    def text():
        import openvino as ov

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(build(), path, compress_to_fp16=False)
            xml = path.read_text()
            assert old in xml
            return IRText(xml.replace(old, new), path.with_suffix(".bin").read_bytes())

    return text


def _batch_norm(version, shape, dtype=np.float32, run_time=False, epsilon=1e-3):
    channels = shape[1] if shape[1] != -1 else 3

    def build():
        import openvino as ov
        from openvino import opset1, opset5

        x = opset1.parameter(ov.PartialShape(list(shape)), dtype)
        if run_time:
            rest = [opset1.parameter([channels], dtype) for _ in range(4)]
        else:
            rest = [opset1.constant(v) for v in _statistics(channels, dtype)]
        make = opset5 if version == 5 else opset1
        gamma, beta, mean, variance = rest
        node = make.batch_norm_inference(x, gamma, beta, mean, variance, epsilon)
        if version == 5:
            return ov.Model([node], [x, *rest] if run_time else [x])
        return ov.Model([node], [x, *rest] if run_time else [x])

    return build


def _statistics(channels, dtype=np.float32):
    return [*(_values(channels, dtype=dtype, seed=k) for k in range(3)), np.abs(_values(channels, dtype=dtype, seed=3))]


def _batch_norms():
    for version, opset in ((1, "opset1"), (5, "opset5")):
        for name, shape in (("2d", (4, 3)), ("4d", (2, 3, 4, 5)), ("5d", (1, 2, 3, 2, 4)), ("no-batch", (0, 3, 4))):
            data = _values(*shape)
            partial = (-1, *shape[1:]) if name == "no-batch" else shape
            yield Case("BatchNormInference", opset, name, _batch_norm(version, partial), [(data,)])
        yield Case(
            "BatchNormInference",
            opset,
            "dynamic-large-epsilon",
            _batch_norm(version, (-1, 3, -1, -1), epsilon=0.5),
            [(_values(1, 3, 4, 5),), (_values(2, 3, 1, 6),)],
        )
        yield Case(
            "BatchNormInference",
            opset,
            "run-time-statistics",
            _batch_norm(version, (-1, 3, -1), run_time=True),
            [(_values(2, 3, 4), *_statistics(3))],
        )
        yield Case(
            "BatchNormInference",
            opset,
            "float16",
            _batch_norm(version, (2, 3, 4), np.float16),
            [(_values(2, 3, 4, dtype=np.float16),)],
        )


def _mvn_1(shape, across, variance, eps=1e-3, dtype=np.float32):
    def build():
        import openvino as ov
        from openvino import opset2

        x = opset2.parameter(ov.PartialShape(list(shape)), dtype)
        return ov.Model([opset2.mvn(x, across, variance, eps)], [x])

    return build


def _mvns():
    unsized = {"oracle": "cpu", "reason": "Model.evaluate writes beyond outputs of dynamic shape"}
    for across in (True, False):
        for variance in (True, False):
            for shape in ((2, 3, 4, 5), (2, 3, 4), (1, 2, 3, 4, 3)):
                yield Case(
                    "MVN",
                    "opset2",
                    f"{'across' if across else 'within'}-channels-{'variance' if variance else 'mean'}-{len(shape)}d",
                    _mvn_1(shape, across, variance),
                    [(_values(*shape),)],
                )
    yield Case(
        "MVN",
        "opset2",
        "dynamic-large-eps",
        _mvn_1((-1, -1, -1, -1), False, True, 2.5),
        [(_values(2, 3, 4, 5),), (_values(1, 1, 6, 2),)],
        **unsized,
    )
    yield Case(
        "MVN",
        "opset2",
        "float16",
        _mvn_1((2, 3, 4, 5), True, True, dtype=np.float16),
        [(_values(2, 3, 4, 5, dtype=np.float16),)],
    )
    constant = np.full((2, 3, 4, 5), 7, np.float32)
    yield Case("MVN", "opset2", "all-equal", _mvn_1((2, 3, 4, 5), False, True, 1e-9), [(constant,)])
    for mode in ("inside_sqrt", "outside_sqrt"):
        for variance in (True, False):

            def make(x, axes, mode=mode, variance=variance, eps=0.75):
                from openvino import opset6

                return opset6.mvn(x, axes, variance, eps, mode)

            for name, axes in (
                ("last", [-1]),
                ("spatial", [2, 3]),
                ("across", [3, 1, 2]),
                ("channels", [1]),
                ("mixed", [0, -2]),
            ):
                if variance or name == "last":
                    yield Case(
                        "MVN",
                        "opset6",
                        f"{mode}-{name}{'' if variance else '-mean'}",
                        _with_axes(make, (2, 3, 4, 5), axes),
                        [(_values(2, 3, 4, 5),)],
                    )
    yield Case("MVN", "opset6", "all-axes-2d", _with_axes(make_mvn, (4, 5), [0, 1]), [(_values(4, 5),)])
    yield Case("MVN", "opset6", "no-axes", _with_axes(make_mvn, (2, 3, 4), []), [(_values(2, 3, 4),)])
    yield Case(
        "MVN",
        "opset6",
        "dynamic",
        _with_axes(make_mvn, (-1, -1, -1), [-1, 1]),
        [(_values(2, 3, 4),), (_values(1, 5, 2),)],
        **unsized,
    )
    yield Case(
        "MVN",
        "opset6",
        "run-time-axes",
        _with_axes(make_mvn, (-1, -1, -1, -1), 2),
        [(_values(2, 3, 4, 5), np.array([2, -1])), (_values(1, 3, 2, 6), np.array([1, 0]))],
        **unsized,
    )
    yield Case(
        "MVN", "opset6", "float16", _with_axes(make_mvn, (2, 3, 4), [2], np.float16), [(_values(2, 3, 4, dtype=np.float16),)]
    )


def make_mvn(x, axes):
    """MVN-6 with its usual attributes."""
    from openvino import opset6

    return opset6.mvn(x, axes, True, 1e-5, "inside_sqrt")


def _l2(eps):
    def make(x, axes):
        from openvino import opset1

        return opset1.normalize_l2(x, axes, eps, "add")

    return make


def _l2_cases():
    data = _values(2, 3, 4, 5)
    data[0, :, 1, 1] = 0
    for mode in ("add", "max"):
        for eps in (1e-9, 0.5, 1e3):
            for name, axes in (("channels", [1]), ("all-but-batch", [1, 2, 3]), ("last", [-1]), ("none", [])):
                build = _with_axes(_l2(eps), (2, 3, 4, 5), axes)
                if mode == "max":
                    build = _edited(build, 'eps_mode="add"', 'eps_mode="max"')
                if eps == 1e-9 or name in ("channels", "none"):
                    yield Case("NormalizeL2", "opset1", f"{mode}-{eps:g}-{name}", build, [(data,)])
    yield Case(
        "NormalizeL2",
        "opset1",
        "dynamic",
        _with_axes(_l2(1e-3), (-1, -1, -1), [1, 2]),
        [(_values(2, 3, 4),), (_values(1, 5, 1),)],
    )
    yield Case(
        "NormalizeL2",
        "opset1",
        "run-time-axes",
        _with_axes(_l2(1e-3), (-1, -1, -1), -1),
        [(_values(2, 3, 4), np.array([1])), (_values(1, 5, 2), np.array([-1, 0]))],
        oracle="cpu",
        reason="Model.evaluate does not know NormalizeL2",
    )
    yield Case(
        "NormalizeL2",
        "opset1",
        "run-time-axes-none",
        _with_axes(_l2(1e-3), (-1, -1), -1),
        [(np.array([[3, -4], [0, 0.5]], np.float32), np.array([], np.int64))],
        oracle="expected",
        reason="the CPU plugin takes a sum over no axes at run time for a sum over all; the specification: 1 where not 0",
        expected=[[np.array([[1, 1], [0, 1]], np.float32)]],
    )
    yield Case(
        "NormalizeL2",
        "opset1",
        "float16",
        _with_axes(_l2(1e-3), (2, 3, 4), [1], np.float16),
        [(_values(2, 3, 4, dtype=np.float16),)],
    )


def _group_norm(shape, groups, dtype=np.float32, run_time=False, epsilon=1e-3):
    def build():
        import openvino as ov
        from openvino import opset12

        channels = 6 if shape[1] == -1 else shape[1]
        x = opset12.parameter(ov.PartialShape(list(shape)), dtype)
        if run_time:
            rest = [opset12.parameter(ov.PartialShape([shape[1]]), dtype) for _ in range(2)]
        else:
            rest = [opset12.constant(_values(channels, dtype=dtype, seed=k)) for k in range(2)]
        return ov.Model([opset12.group_normalization(x, *rest, groups, epsilon)], [x, *rest] if run_time else [x])

    return build


def _group_norms():
    for groups in (1, 2, 6):
        for shape in ((2, 6, 4, 5), (2, 6, 7), (1, 6, 2, 3, 2)):
            yield Case(
                "GroupNormalization",
                "opset12",
                f"{groups}-groups-{len(shape)}d",
                _group_norm(shape, groups),
                [(_values(*shape),)],
            )
    yield Case(
        "GroupNormalization",
        "opset12",
        "dynamic-large-epsilon",
        _group_norm((-1, 6, -1, -1), 3, epsilon=0.5),
        [(_values(2, 6, 4, 5),), (_values(1, 6, 3, 1),), (_values(0, 6, 3, 1),)],
    )
    data = unranked(_values(2, 6, 4), _values(0, 6), _values(1, 6, 2, 3))
    rest = [_values(6, seed=k) for k in range(2)]
    attributes = {"num_groups": 3, "epsilon": 1e-3}
    yield layer_case("GroupNormalization", "opset12", "group_normalization", "any-rank", [data, *rest], attributes)
    yield Case("GroupNormalization", "opset12", "no-batch", _group_norm((0, 6, 4), 3), [(_values(0, 6, 4),)])
    yield Case(
        "GroupNormalization",
        "opset12",
        "run-time-scale",
        _group_norm((-1, -1, -1), 2, run_time=True),
        [(_values(2, 6, 4), _values(6), _values(6, seed=1)), (_values(1, 4, 3), _values(4), _values(4, seed=1))],
    )
    yield Case(
        "GroupNormalization",
        "opset12",
        "float16",
        _group_norm((2, 6, 4, 5), 3, np.float16),
        [(_values(2, 6, 4, 5, dtype=np.float16),)],
    )


def _lrn(size, alpha=0.5, beta=0.75, bias=2.0):
    def make(x, axes):
        from openvino import opset1

        return opset1.lrn(x, axes, alpha=alpha, beta=beta, bias=bias, size=size)

    return make


def _lrns():
    for name, axes, size in (
        ("channels", [1], 3),
        ("channels-large", [1], 9),
        ("size-1", [1], 1),
        ("even-size", [1], 4),
        ("spatial-even-size", [2, 3], 4),
        ("spatial", [2, 3], 3),
        ("spatial-large", [3, 2], 5),
    ):
        yield Case("LRN", "opset1", name, _with_axes(_lrn(size), (2, 5, 4, 6), axes), [(_values(2, 5, 4, 6),)])
    for name, axes, shape in (("3d", [1], (2, 5, 4)), ("5d", [1], (1, 4, 2, 3, 2)), ("2d", [1], (3, 6))):
        yield Case("LRN", "opset1", name, _with_axes(_lrn(3, 1.5, 0.5, 1.0), shape, axes), [(_values(*shape),)])
    yield Case(
        "LRN",
        "opset1",
        "dynamic",
        _with_axes(_lrn(3), (-1, -1, -1, -1), [1]),
        [(_values(2, 5, 3, 2),), (_values(1, 2, 4, 1),), (_values(0, 2, 4, 1),)],
    )
    yield Case(
        "LRN",
        "opset1",
        "float16",
        _with_axes(_lrn(3), (2, 5, 4, 3), [1], np.float16),
        [(_values(2, 5, 4, 3, dtype=np.float16),)],
    )
    for name, axes, shape in (("channels", [1], (1, 3, 2, 3)), ("spatial", [2], (1, 3, 6))):
        data = unranked(_values(2, 5, 4), _values(*shape))
        attributes = {"alpha": 0.5, "beta": 0.75, "bias": 2.0, "size": 3}
        yield layer_case("LRN", "opset1", "lrn", f"any-rank-{name}", [data, np.array(axes)], attributes)
    # With beta 1, bias 0 and alpha = size ** len(axes) the formula is data / sum(data ** 2).
    ramp = np.arange(1, 9, dtype=np.float32).reshape(1, 2, 2, 2)
    sums_1 = np.array([1 + 25, 4 + 36, 9 + 49, 16 + 64] * 2, np.float32).reshape(ramp.shape)
    total = np.full(ramp.shape, sum(i * i for i in range(1, 9)), np.float32)
    rows = np.array([5, 5, 25, 25, 61, 61, 113, 113], np.float32).reshape(ramp.shape)
    nothing = ramp * ramp
    parts = "the CPU plugin parts from the specification's formula, by which the values are computed"
    for name, axes, size, sums in (
        ("all-but-batch", [1, 2, 3], 3, total),
        ("negative-axis", [-1], 3, rows),
        ("no-axes", [], 3, nothing),
    ):
        yield Case(
            "LRN",
            "opset1",
            name,
            _with_axes(_lrn(size, float(size ** len(axes)), 1.0, 0.0), ramp.shape, axes),
            [(ramp,)],
            oracle="expected",
            reason=parts,
            expected=[[ramp / sums]],
        )
    yield Case(
        "LRN",
        "opset1",
        "run-time-axes",
        _with_axes(_lrn(3, 3.0, 1.0, 0.0), (-1, -1, -1, -1), -1),
        [(ramp, np.array([-3])), (ramp, np.array([3])), (ramp, np.array([1, 3]))],
        oracle="expected",
        reason="the CPU plugin takes constant axes only; values by the specification's formula",
        expected=[[ramp / sums_1], [ramp / rows], [ramp / (_pairs() / 3)]],
    )


def _pairs():
    """Sums of squares over both channels and both elements of each row."""
    return (
        np.array([1 + 4 + 25 + 36] * 2 + [9 + 16 + 49 + 64] * 2, np.float32).repeat(1).reshape(1, 1, 2, 2).repeat(2, axis=1)
    )


CASES = [*_batch_norms(), *_mvns(), *_l2_cases(), *_group_norms(), *_lrns()]
