"""Activation functions."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, static, unranked

F16, BF16, F64, I8, I32 = np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int32
NAN, INF = np.nan, np.inf
_X = np.array([[0.5, -0.5, 1, -1, 2.5, -2.5], [3.7, -7.9, 0, -0.0, 20, -20]], np.float32)
_CONSTANT = "the CPU plugin requires constant parameters, and there is no reference kernel"
_CHANNELS = "the CPU plugin applies a slope of rank 1 to the channels if the dimensions are unknown"
_NARROW = decided("evaluate", "the CPU plugin computes 64-bit integers in 32 bits")
_RANK = decided("evaluate", "the CPU plugin does not support a Parameter of dynamic rank")

relu = partial(layer_case, "Relu", "opset1", "relu")
sigmoid = partial(layer_case, "Sigmoid", "opset1", "sigmoid")
hsigmoid = partial(layer_case, "HSigmoid", "opset5", "hsigmoid")
hswish = partial(layer_case, "HSwish", "opset4", "hswish")
mish = partial(layer_case, "Mish", "opset4", "mish")
softplus = partial(layer_case, "SoftPlus", "opset4", "softplus")
softsign = partial(layer_case, "SoftSign", "opset9", "softsign")
swish = partial(layer_case, "Swish", "opset4", "swish")
hard_sigmoid = partial(layer_case, "HardSigmoid", "opset1", "hard_sigmoid")
selu = partial(layer_case, "Selu", "opset1", "selu")
elu = partial(layer_case, "Elu", "opset1", "elu")
clamp = partial(layer_case, "Clamp", "opset1", "clamp")
prelu = partial(layer_case, "PRelu", "opset1", "prelu")
grn = partial(layer_case, "GRN", "opset1", "grn")


def _f(*values, dtype=np.float32):
    return np.array(values, dtype)


def _bounds(low, high):
    return {"min_value": low, "max_value": high}


# -- elementwise, with constants --------------------------------------------------------------------------------------


def _activation(case, name, *more, run_time=None, attributes=None):
    """An activation with every form of input; ``more`` has its further inputs, of one element each."""
    for variant, x in (
        ("f32", _X), ("f16", _X.astype(F16)), ("bf16", _X.astype(BF16)), ("f64", _X.astype(F64)), ("scalar", _X[0, 1]),
    ):  # fmt: skip
        yield case(f"{name}-{variant}", [static(x), *(m.astype(x.dtype) for m in more)], attributes)
    yield case(f"{name}-dynamic", [dynamic(_X, _X[:1, :3], _X[:0]), *more], attributes)
    if more:
        settings = decided("expected", _CONSTANT, run_time(_X)) if run_time else {}
        yield case(f"{name}-run-time", [static(_X), *map(static, more)], attributes, **settings)


def _activations():
    for case in (relu, sigmoid, hsigmoid, hswish, mish, softplus, softsign):
        yield from _activation(case, "plain")
    yield from _activation(partial(layer_case, "Gelu", "opset2", "gelu"), "plain")
    yield from _activation(partial(layer_case, "Swish", "opset4", "Swish"), "plain")
    for mode in ("erf", "tanh"):
        gelu = partial(layer_case, "Gelu", "opset7", "gelu")
        yield from _activation(gelu, mode, attributes={"approximation_mode": mode})
    yield from _activation(swish, "beta", _f(1.7)[0])
    yield from _activation(swish, "negative", _f(-0.5)[0])
    for name, alpha, beta in (("default", _f(0.2), _f(0.5)), ("steep", _f(-1.5), _f(0.25))):

        def clipped(x, alpha=alpha, beta=beta):
            return np.clip(x * alpha + beta, 0, 1)

        yield from _activation(hard_sigmoid, name, alpha[0], beta[0], run_time=clipped)
    for name, alpha, scale in (("default", _f(1.67326), _f(1.0507)), ("other", _f(3), _f(-0.5))):

        def scaled(x, alpha=alpha, scale=scale):
            return scale * np.where(x > 0, x, alpha * np.expm1(x))

        yield from _activation(selu, name, alpha, scale, run_time=scaled)
    yield from _activation(elu, "one", attributes={"alpha": 1.0})
    yield from _activation(elu, "other", attributes={"alpha": -2.5})
    yield from _activation(clamp, "six", attributes=_bounds(0.0, 6.0))
    yield from _activation(clamp, "fraction", attributes=_bounds(-1.5, 2.25))
    yield from _activation(clamp, "one-sided", attributes=_bounds(-INF, 1.0))
    yield from _activation(clamp, "beyond-f16", attributes=_bounds(-1e10, 3e38))


def _corners():
    ends = [static(np.array([INF, -INF, 1e30, -1e30, 1e-30], np.float32))]
    for case in (relu, sigmoid, hsigmoid, hswish, softsign, softplus, mish):
        yield case("ends", ends)
    yield elu("ends", ends, {"alpha": 0.7})
    yield clamp("ends", ends, _bounds(-1.0, 2.0))
    for case, attributes in ((relu, {}), (hsigmoid, {}), (clamp, _bounds(-1.0, 2.0))):
        yield case("nan", [static(_f(NAN, 1))], attributes, **decided("evaluate", "the CPU plugin gives 0 for a NaN"))


def _integers():
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        values, name = np.array([0, 1, 2, 3, 100, 127], np.int64), np.dtype(dtype).name
        if np.dtype(dtype).kind == "i":
            values = values * np.array([1, 1, -1, -1, 1, -1])
        x = static(values.astype(dtype))
        yield relu(name, [x])
        yield clamp(name, [x], _bounds(-1.5, 2.7))
        yield clamp(f"{name}-wide", [x], _bounds(-1e20, 1e20))
    yield sigmoid("int32", [static(_f(0, 1, -1, 5, dtype=I32))])
    yield relu("int64-large", [static(np.array([2**53 + 1, -(2**53) - 1]))], **_NARROW)
    yield clamp("int64-large", [static(np.array([2**40 + 1, -(2**40) - 1]))], _bounds(-5, 2**41), **_NARROW)


def _rounded():
    """OpenVINO's CPU plugin rounds to the nearest integer; there is no reference kernel."""
    whole = [np.array([[0, 1, 2, 3, 100], [4, 5, 2, 2, 1]]), np.array([[0, -1, 2, -3, 100], [4, -5, 2, -2, -1]])]
    for dtype in (np.uint8, np.int8, np.int32, np.int64):
        x, name = static(whole[np.dtype(dtype).kind == "i"].astype(dtype)), f"{np.dtype(dtype).name}-rounded"
        for operation, version, attributes in (
            ("Elu", "opset1", {"alpha": 4.8}),
            ("HSigmoid", "opset5", {}),
            ("HSwish", "opset4", {}),
            ("Softmax", "opset1", {"axis": 0}),
            ("Softmax", "opset8", {"axis": -1}),
            ("LogSoftmax", "opset5", {"axis": 0}),
            ("GRN", "opset1", {"bias": 1.0}),
        ):
            yield layer_case(operation, version, operation, name, [x], attributes)
        yield hard_sigmoid(name, [x, dtype(2), dtype(3)])
    inputs = [static(_f(100, 0, -100, dtype=I8)), static(I8(2)), static(I8(1))]
    yield hard_sigmoid("int8-run-time", inputs, **decided("expected", _CONSTANT, _f(1, 1, 0, dtype=I8)))


def _prelus():
    x = (np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2) * 5 % 7) - 3
    s = {n: _f(*(0.25 * i - 0.5 for i in range(n))) for n in (1, 2, 3, 4)}
    decided_for = {
        "last": _CHANNELS,
        "more-dimensions": "the CPU plugin fails on a slope of more dimensions than the data if these are unknown",
    }
    for name, data, slope in (
        ("channels", x, s[3]),
        ("last", x, s[2]),
        ("one", x, s[1]),
        ("rank-1", x[0, 0, 0], s[2]),
        ("rank-2", x[0, 0], s[2]),
        ("rank-3-square", x[:, :2, :2, 0], s[2]),
        ("broadcast", x, s[3].reshape(3, 1, 1)),
        ("broadcast-inner", x, s[4].reshape(4, 1)),
        ("full", x, x / 4),
        ("more-dimensions", x[0, 0], s[2].reshape(1, 1, 1, 2)),
        ("f16", x.astype(F16), s[3].astype(F16)),
        ("bf16", x.astype(BF16), s[3].astype(BF16)),
        ("f64", x.astype(F64), s[3].astype(F64)),
    ):
        settings = decided("evaluate", decided_for[name]) if name in decided_for else {}
        yield prelu(name, [static(data), slope])
        yield prelu(f"{name}-run-time", [static(data), static(slope)])
        yield prelu(f"{name}-dynamic", [dynamic(data), dynamic(slope)], **settings)
    slopes = dynamic(s[3], s[2], s[1])
    yield prelu("channels-or-last", [dynamic(x, x, x), slopes], **decided("evaluate", _CHANNELS))
    slopes = dynamic(s[3], s[2], s[2], s[1])
    yield prelu("dynamic-rank", [unranked(x, x, x[0, 0], x[0, 0, 0]), slopes], **_RANK)
    slopes = unranked(s[3], s[3].reshape(3, 1, 1), s[2])
    yield prelu("dynamic-ranks", [unranked(x, x, x[0, 0, 0]), slopes], **_RANK)
    slopes = unranked(s[2].reshape(1, 1, 1, 2), s[4].reshape(4, 1))
    yield prelu("dynamic-rank-more-dimensions", [unranked(x[0, 0], x), slopes], **_RANK)
    yield prelu("dynamic-rank-one-slope", [unranked(x, x[0], x[0, 0, 0, 0]), s[1]], **_RANK)
    yield prelu("dynamic-rank-slope", [dynamic(x, x), unranked(s[3], s[4].reshape(4, 1))], **_RANK)
    yield prelu("of-none", [static(np.zeros((0, 0, 0), np.float32)), static(np.float32([-1, 3, 2]))])


# -- along an axis ----------------------------------------------------------------------------------------------------


def _softmaxes():
    x = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11) - 5
    masked = x.copy()
    masked[0, 1, :3] = -INF
    for operation, version, make, axes in (
        ("Softmax", "opset1", "softmax", (0, 1, 2)),
        ("Softmax", "opset8", "softmax", (0, 1, -1, -2, -3)),
        ("LogSoftmax", "opset5", "log_softmax", (0, 1, -1, -2, -3)),
    ):
        case = partial(layer_case, operation, version, make)
        for axis in axes:
            yield case(f"axis-{axis}", [static(x)], {"axis": axis})
        yield case("masked", [static(masked)], {"axis": 2})
        yield case("large", [static(x * 1000)], {"axis": 1})
        yield case("one", [static(x[:, :1])], {"axis": 1})
        yield case("rank-1", [static(x[0, 0])], {"axis": 0})
        yield case("dynamic", [dynamic(x, x[:1, :2], x[:0])], {"axis": 1})
        yield case("f16", [static(x.astype(F16))], {"axis": 1})
        yield case("bf16", [static(x.astype(BF16))], {"axis": 1})
        yield case("f64", [static(x.astype(F64))], {"axis": 2})
        if operation == "Softmax":
            yield case("dynamic-rank", [unranked(x, x[0])], {"axis": 1}, **_RANK)


def _grns():
    x = (np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2) * 7 % 11) - 5
    yield grn("rank-4", [static(x)], {"bias": 0.33325})
    yield grn("rank-2", [static(x[0, :, :, 0])], {"bias": 1.0})
    yield grn("rank-3", [static(x[0])], {"bias": 1e-8})
    yield grn("dynamic", [dynamic(x, x[:, :2])], {"bias": 0.5})
    yield grn("zeros", [static(x * 0)], {"bias": 0.5})
    yield grn("f16", [static(x.astype(F16))], {"bias": 0.5})
    yield grn("f16-zeros", [static(x.astype(F16) * 0)], {"bias": 1e-10})


CASES = [*_activations(), *_corners(), *_integers(), *_rounded(), *_prelus(), *_softmaxes(), *_grns()]
