"""Activation functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case, decided, node

NAN, INF = np.nan, np.inf
_X = np.array([[0.5, -0.5, 1, -1, 2.5, -2.5], [3.7, -7.9, 0, -0.0, 20, -20]], np.float32)
_ENDS = np.array([INF, -INF, 1e30, -1e30, 1e-30], np.float32)
_NAN = np.array([NAN, 1], np.float32)
_CONSTANT = "the CPU plugin wants constant parameters, and there is no reference kernel"
_CHANNELS = "the CPU plugin takes a slope of rank 1 for the channels' wherever it does not know the dimensions"
_ZERO = "the CPU plugin makes a NaN 0"
_CASES: list[Case] = []


def _f(*values, dtype=np.float32):
    return np.array(values, dtype)


# -- of one number, and constants -------------------------------------------------------------------------------------


def _activation(operation, opset, name, make, *more, x=_X, run_time=None, **attributes):
    """A kind of activation over every form of input; ``more`` holds its further inputs, of one element each."""
    constants = range(1, len(more) + 1)

    def one(variant, array, **options):
        inputs = [array, *(m.astype(array.dtype) for m in more)]
        return case(operation, opset, f"{name}-{variant}", make, inputs, constants=constants, **options, **attributes)

    yield one("f32", x)
    yield one("f16", x.astype(np.float16))
    yield one("bf16", x.astype(ml_dtypes.bfloat16))
    yield one("f64", x.astype(np.float64))
    yield one("scalar", x[0, 1])
    yield case(operation, opset, f"{name}-dynamic", make, [x, *more], [x[:1, :3], *more], [x[:0], *more], dynamic=True,
               constants=constants, **attributes)  # fmt: skip
    if more:
        options = decided("expected", _CONSTANT, run_time(x)) if run_time else None
        yield case(operation, opset, f"{name}-run-time", make, [x, *more], options=options, **attributes)


for _row in (
    ("Relu", "opset1", "plain", "opset1.relu"),
    ("Sigmoid", "opset1", "plain", "opset1.sigmoid"),
    ("HSigmoid", "opset5", "plain", "opset5.hsigmoid"),
    ("HSwish", "opset4", "plain", "opset4.hswish"),
    ("Mish", "opset4", "plain", "opset4.mish"),
    ("SoftPlus", "opset4", "plain", "opset4.softplus"),
    ("SoftSign", "opset9", "plain", "opset9.softsign"),
    ("Gelu", "opset2", "plain", "opset2.gelu"),
    ("Swish", "opset4", "plain", node("Swish", "opset4")),
):
    _CASES += _activation(*_row)
for _mode in ("erf", "tanh"):
    _CASES += _activation("Gelu", "opset7", _mode, "opset7.gelu", approximation_mode=_mode)
_CASES += _activation("Swish", "opset4", "beta", "opset4.swish", _f(1.7)[0])
_CASES += _activation("Swish", "opset4", "negative", "opset4.swish", _f(-0.5)[0])


def _hard_sigmoid(alpha, beta):
    return lambda x: np.clip(x * _f(alpha) + _f(beta), 0, 1)


def _selu(alpha, scale):
    return lambda x: _f(scale) * np.where(x > 0, x, _f(alpha) * np.expm1(x))


for _name, _alpha, _beta in (("default", 0.2, 0.5), ("steep", -1.5, 0.25)):
    _CASES += _activation("HardSigmoid", "opset1", _name, "opset1.hard_sigmoid", _f(_alpha)[0], _f(_beta)[0],
                          run_time=_hard_sigmoid(_alpha, _beta))  # fmt: skip
for _name, _alpha, _lambda in (("default", 1.67326, 1.0507), ("other", 3, -0.5)):
    _CASES += _activation(
        "Selu", "opset1", _name, "opset1.selu", _f(_alpha), _f(_lambda),
        run_time=_selu(_alpha, _lambda),
    )  # fmt: skip
_CASES += _activation("Elu", "opset1", "one", "opset1.elu", alpha=1.0)
_CASES += _activation("Elu", "opset1", "other", "opset1.elu", alpha=-2.5)
_CASES += _activation("Clamp", "opset1", "six", "opset1.clamp", min_value=0.0, max_value=6.0)
_CASES += _activation("Clamp", "opset1", "fraction", "opset1.clamp", min_value=-1.5, max_value=2.25)
_CASES += _activation("Clamp", "opset1", "one-sided", "opset1.clamp", min_value=-INF, max_value=1.0)
_CASES += _activation("Clamp", "opset1", "beyond-f16", "opset1.clamp", min_value=-1e10, max_value=3e38)

for _operation, _opset, _make, _attributes in (
    ("Relu", "opset1", "opset1.relu", {}),
    ("Sigmoid", "opset1", "opset1.sigmoid", {}),
    ("HSigmoid", "opset5", "opset5.hsigmoid", {}),
    ("HSwish", "opset4", "opset4.hswish", {}),
    ("Elu", "opset1", "opset1.elu", {"alpha": 0.7}),
    ("Clamp", "opset1", "opset1.clamp", {"min_value": -1.0, "max_value": 2.0}),
    ("SoftSign", "opset9", "opset9.softsign", {}),
    ("SoftPlus", "opset4", "opset4.softplus", {}),
    ("Mish", "opset4", "opset4.mish", {}),
):
    _CASES.append(case(_operation, _opset, "ends", _make, [_ENDS], **_attributes))
for _operation, _opset, _make, _attributes in (
    ("Relu", "opset1", "opset1.relu", {}),
    ("HSigmoid", "opset5", "opset5.hsigmoid", {}),
    ("Clamp", "opset1", "opset1.clamp", {"min_value": -1.0, "max_value": 2.0}),
):
    _CASES.append(case(_operation, _opset, "nan", _make, [_NAN], options=decided("evaluate", _ZERO), **_attributes))
for _type in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
    _values = np.array([0, 1, 2, 3, 100, 127], np.int64)
    if np.dtype(_type).kind == "i":
        _values = _values * np.array([1, 1, -1, -1, 1, -1])
    _values, _name = _values.astype(_type), np.dtype(_type).name
    _CASES += [
        case("Relu", "opset1", _name, "opset1.relu", [_values]),
        case("Clamp", "opset1", _name, "opset1.clamp", [_values], min_value=-1.5, max_value=2.7),
        case("Clamp", "opset1", _name + "-wide", "opset1.clamp", [_values], min_value=-1e20, max_value=1e20),
    ]
_CASES += [
    case("Sigmoid", "opset1", "int32", "opset1.sigmoid", [np.array([0, 1, -1, 5], np.int32)]),
    case("Relu", "opset1", "int64-large", "opset1.relu", [np.array([2**53 + 1, -(2**53) - 1])],
         options=decided("evaluate", "the CPU plugin computes 64-bit integers in 32 bits")),
    case("Clamp", "opset1", "int64-large", "opset1.clamp", [np.array([2**40 + 1, -(2**40) - 1])],
         min_value=-5, max_value=2**41, options=decided("evaluate", "the CPU plugin computes 64-bit integers in 32 bits")),
]  # fmt: skip

# OpenVINO's CPU rounds to the nearest integer; no reference kernel.
_WHOLE = [np.array([[0, 1, 2, 3, 100], [4, 5, 2, 2, 1]]), np.array([[0, -1, 2, -3, 100], [4, -5, 2, -2, -1]])]
for _type in (np.uint8, np.int8, np.int32, np.int64):
    _values, _name = _WHOLE[np.dtype(_type).kind == "i"].astype(_type), np.dtype(_type).name
    for _operation, _opset, _attributes in (
        ("Elu", "opset1", {"alpha": 4.8}),
        ("HSigmoid", "opset5", {}),
        ("HSwish", "opset4", {}),
        ("Softmax", "opset1", {"axis": 0}),
        ("Softmax", "opset8", {"axis": -1}),
        ("LogSoftmax", "opset5", {"axis": 0}),
        ("GRN", "opset1", {"bias": 1.0}),
    ):
        _CASES.append(case(_operation, _opset, f"{_name}-rounded", node(_operation, _opset, **_attributes), [_values]))
    _CASES.append(case("HardSigmoid", "opset1", f"{_name}-rounded", "opset1.hard_sigmoid",
                       [_values, _type(2), _type(3)], constants=[1, 2]))  # fmt: skip
_CASES.append(case("HardSigmoid", "opset1", "int8-run-time", "opset1.hard_sigmoid",
                   [np.array([100, 0, -100], np.int8), np.int8(2), np.int8(1)],
                   options=decided("expected", _CONSTANT, np.array([1, 1, 0], np.int8))))  # fmt: skip

# -- PRelu ------------------------------------------------------------------------------------------------------------

_P4 = (np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2) * 5 % 7) - 3
_S = {n: _f(*(0.25 * i - 0.5 for i in range(n))) for n in (1, 2, 3, 4)}
_SLOPES = {
    "last": _CHANNELS,
    "more-dimensions": "the CPU plugin fails on a slope of more dimensions than the data where it does not know them",
}
for _name, _x, _slope in (
    ("channels", _P4, _S[3]),
    ("last", _P4, _S[2]),
    ("one", _P4, _S[1]),
    ("rank-1", _P4[0, 0, 0], _S[2]),
    ("rank-2", _P4[0, 0], _S[2]),
    ("rank-3-square", _P4[:, :2, :2, 0], _S[2]),
    ("broadcast", _P4, _S[3].reshape(3, 1, 1)),
    ("broadcast-inner", _P4, _S[4].reshape(4, 1)),
    ("full", _P4, _P4 / 4),
    ("more-dimensions", _P4[0, 0], _S[2].reshape(1, 1, 1, 2)),
    ("f16", _P4.astype(np.float16), _S[3].astype(np.float16)),
    ("bf16", _P4.astype(ml_dtypes.bfloat16), _S[3].astype(ml_dtypes.bfloat16)),
    ("f64", _P4.astype(np.float64), _S[3].astype(np.float64)),
):
    _CASES += [
        case("PRelu", "opset1", _name, "opset1.prelu", [_x, _slope], constants=[1]),
        case("PRelu", "opset1", _name + "-run-time", "opset1.prelu", [_x, _slope]),
        case(
            "PRelu",
            "opset1",
            _name + "-dynamic",
            "opset1.prelu",
            [_x, _slope],
            dynamic=True,
            options=decided("evaluate", _SLOPES[_name]) if _name in _SLOPES else None,
        ),
    ]
_CASES.append(case("PRelu", "opset1", "channels-or-last", "opset1.prelu", [_P4, _S[3]], [_P4, _S[2]], [_P4, _S[1]],
                   dynamic=True, options=decided("evaluate", _CHANNELS)))  # fmt: skip

_RANK = decided("evaluate", "the CPU plugin takes no Parameter of dynamic rank")
_CASES += [
    case("PRelu", "opset1", "dynamic-rank", "opset1.prelu", [_P4, _S[3]], [_P4, _S[2]], [_P4[0, 0], _S[2]],
         [_P4[0, 0, 0], _S[1]], shapes=[None, [-1]], options=_RANK),
    case("PRelu", "opset1", "dynamic-ranks", "opset1.prelu", [_P4, _S[3]], [_P4, _S[3].reshape(3, 1, 1)],
         [_P4[0, 0, 0], _S[2]], shapes=[None, None], options=_RANK),
    case("PRelu", "opset1", "dynamic-rank-more-dimensions", "opset1.prelu", [_P4[0, 0], _S[2].reshape(1, 1, 1, 2)],
         [_P4, _S[4].reshape(4, 1)], shapes=[None, None], options=_RANK),
    case("PRelu", "opset1", "dynamic-rank-slope", "opset1.prelu", [_P4, _S[3]], [_P4, _S[4].reshape(4, 1)],
         shapes=[[-1, -1, -1, -1], None], options=_RANK),
]  # fmt: skip

# -- along an axis ----------------------------------------------------------------------------------------------------

_T = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11) - 5
_MASKED = _T.copy()
_MASKED[0, 1, :3] = -INF
for _operation, _opset, _make, _axes in (
    ("Softmax", "opset1", "opset1.softmax", (0, 1, 2)),
    ("Softmax", "opset8", "opset8.softmax", (0, 1, -1, -2, -3)),
    ("LogSoftmax", "opset5", "opset5.log_softmax", (0, 1, -1, -2, -3)),
):
    for _axis in _axes:
        _CASES.append(case(_operation, _opset, f"axis-{_axis}", _make, [_T], axis=_axis))
    _CASES += [
        case(_operation, _opset, "masked", _make, [_MASKED], axis=2),
        case(_operation, _opset, "large", _make, [_T * 1000], axis=1),
        case(_operation, _opset, "one", _make, [_T[:, :1]], axis=1),
        case(_operation, _opset, "rank-1", _make, [_T[0, 0]], axis=0),
        case(_operation, _opset, "dynamic", _make, [_T], [_T[:1, :2]], [_T[:0]], dynamic=True, axis=1),
        case(_operation, _opset, "f16", _make, [_T.astype(np.float16)], axis=1),
        case(_operation, _opset, "bf16", _make, [_T.astype(ml_dtypes.bfloat16)], axis=1),
        case(_operation, _opset, "f64", _make, [_T.astype(np.float64)], axis=2),
    ]

for _opset in ("opset1", "opset8"):
    _CASES.append(
        case("Softmax", _opset, "dynamic-rank", f"{_opset}.softmax", [_T], [_T[0]], shapes=[None], axis=1, options=_RANK)
    )

_G = (np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2) * 7 % 11) - 5
_CASES += [
    case("GRN", "opset1", "rank-4", "opset1.grn", [_G], bias=0.33325),
    case("GRN", "opset1", "rank-2", "opset1.grn", [_G[0, :, :, 0]], bias=1.0),
    case("GRN", "opset1", "rank-3", "opset1.grn", [_G[0]], bias=1e-8),
    case("GRN", "opset1", "dynamic", "opset1.grn", [_G], [_G[:, :2]], dynamic=True, bias=0.5),
    case("GRN", "opset1", "zeros", "opset1.grn", [_G * 0], bias=0.5),
    case("GRN", "opset1", "f16", "opset1.grn", [_G.astype(np.float16)], bias=0.5),
]

CASES = _CASES
