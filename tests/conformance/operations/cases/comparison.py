"""Element by element: comparisons, Select, what kind of number a float is, logic of booleans and of bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case, decided, text_case
from tests.conformance.operations.cases.arithmetic import INTEGERS, broadcasts, pdpd

NAN, INF = np.nan, np.inf

_CASES: list[Case] = []

# -- comparisons ------------------------------------------------------------------------------------------------------

_COMPARISONS = {
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
}
_A = np.array([1, 2, 3, -1, 0, -0.0, INF, -INF, INF], np.float32)
_B = np.array([1, 3, 2, -2, -0.0, 0, INF, INF, 1], np.float32)
_NANS = [np.array([NAN, 1, NAN], np.float32), np.array([1, NAN, NAN], np.float32)]
_EXACT = "the CPU plugin compares integers of 32 bits and more in float32 or in 32 bits"
_GREATER = "the CPU plugin holds NaN to be greater than a number"

for _operation, _name in _COMPARISONS.items():
    _make = f"opset1.{_name}"
    _CASES += broadcasts(_operation, "opset1", _make)
    _CASES += [
        case(_operation, "opset1", "corners", _make, [_A, _B]),
        case(_operation, "opset1", "nan", _make, _NANS,
             options=decided("evaluate", _GREATER) if "Greater" in _operation else None),
        case(_operation, "opset1", "constant", _make, [_A.reshape(3, 3), _B[:3]], constants=[1], dynamic=True),
        case(_operation, "opset1", "boolean", _make, [np.array([[True], [False]]), np.array([True, False])]),
        case(_operation, "opset1", "int32-large", _make,
             [np.array([16777216, 2**31 - 1], np.int32), np.array([16777217, 2**31 - 2], np.int32)],
             options=decided("evaluate", _EXACT)),
        case(_operation, "opset1", "uint64-large", _make,
             [np.array([2**63, 5, 2**64 - 1], np.uint64), np.array([5, 2**63 + 1, 2**64 - 1], np.uint64)],
             options=decided("evaluate", _EXACT)),
    ]  # fmt: skip
    for _type in (*INTEGERS, np.float16, np.float64, ml_dtypes.bfloat16):
        _CASES.append(case(_operation, "opset1", np.dtype(_type).name, _make,
                           [np.array([1, 2, 3, 4], _type), np.array([1, 3, 2, 4], _type)]))  # fmt: skip

# -- Select -----------------------------------------------------------------------------------------------------------

_C = np.array([[True, False, True], [False, False, True]])
_X, _Y = np.arange(6, dtype=np.float32).reshape(2, 3), -np.arange(6, dtype=np.float32).reshape(2, 3) - 1
for _type in (*INTEGERS, np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.bool_):
    _CASES.append(case("Select", "opset1", np.dtype(_type).name, "opset1.select",
                       [_C, np.abs(_X).astype(_type), np.abs(_Y).astype(_type)]))  # fmt: skip
_PDPD = "the CPU plugin cannot run this operation with auto_broadcast=pdpd"
_CASES += [
    case("Select", "opset1", "broadcast", "opset1.select", [_C[:, :1], _X[0], np.ones((4, 2, 1), np.float32)]),
    case("Select", "opset1", "broadcast-dynamic", "opset1.select", [_C, np.float32(1), _Y],
         [_C[:1], np.float32(7), _Y[:, :1]], shapes=[[-1, -1], [], [-1, -1]]),
    case("Select", "opset1", "none", "opset1.select", [_C, _X, _Y], auto_broadcast="NONE"),
    case("Select", "opset1", "scalars", "opset1.select", [np.array(True), np.float32(1), np.float32(2)]),
    case("Select", "opset1", "constant-branches", "opset1.select", [_C, np.float32(1), np.float32(NAN)], constants=[1, 2]),
    case("Select", "opset1", "pdpd-right", pdpd("Select", "opset1", -1), [_C[0], _X, _Y[0]]),
    case("Select", "opset1", "pdpd-front", pdpd("Select", "opset1", 0), [_C[:, 0], _X, _Y[:, 0]],
         options=decided("evaluate", _PDPD)),
    case("Select", "opset1", "dynamic-rank", "opset1.select", [_C, _X, _Y],
         [_C[0], np.float32(1), _Y], shapes=[None, None, None],
         options=decided("evaluate", "the CPU plugin takes no Parameter of dynamic rank")),
    case("Select", "opset1", "empty", "opset1.select", [_C[:0], _X[:0], _Y[:0]], dynamic=True),
    case("Select", "opset1", "uint64-large", "opset1.select",
         [_C[0], np.array([2**63 + 1, 1, 2**64 - 1], np.uint64), np.zeros(3, np.uint64)],
         options=decided("evaluate", "the CPU plugin computes 64-bit integers in 32 bits")),
]  # fmt: skip

# -- kinds of floats --------------------------------------------------------------------------------------------------

_KINDS = np.array([NAN, INF, -INF, 0, -1, 3e38, -0.0, 1e-37], np.float32)
_CLAMPED = "the CPU plugin turns infinite f64 into the largest f32"
for _operation, _name in (("IsNaN", "is_nan"), ("IsInf", "is_inf"), ("IsFinite", "is_finite")):
    _make = f"opset10.{_name}"
    _CASES += [
        case(_operation, "opset10", "f32", _make, [_KINDS]),
        case(_operation, "opset10", "dynamic", _make, [_KINDS.reshape(2, 4)], [_KINDS[:0].reshape(0, 2)], dynamic=True),
        case(_operation, "opset10", "f16", _make, [_KINDS[:5].astype(np.float16)]),
        case(_operation, "opset10", "bf16", _make, [_KINDS[:5].astype(ml_dtypes.bfloat16)]),
        case(_operation, "opset10", "scalar", _make, [_KINDS[1]]),
    ]
    _expected = {"IsNaN": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}[_operation](_KINDS.astype(np.float64))
    _CASES.append(case(_operation, "opset10", "f64", _make, [_KINDS.astype(np.float64)],
                       options=decided("expected", _CLAMPED, _expected)))  # fmt: skip
for _negative in (False, True):
    for _positive in (False, True):
        _name = f"negative-{_negative}-positive-{_positive}".lower()
        _CASES.append(case("IsInf", "opset10", _name, "opset10.is_inf", [_KINDS],
                           attributes={"detect_negative": _negative, "detect_positive": _positive}))  # fmt: skip

# -- logic ------------------------------------------------------------------------------------------------------------

_P, _Q = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
for _operation, _name, _opset, _since in (
    ("LogicalAnd", "logical_and", "opset1", "opset1"),
    ("LogicalOr", "logical_or", "opset1", "opset1"),
    ("LogicalXor", "logical_xor", "opset1", "opset2"),
):
    _make = f"opset1.{_name}"
    _CASES += [
        case(_operation, _since, "truth-table", _make, [_P, _Q]),
        case(_operation, _since, "broadcast", _make, [_P[:, :1], _Q[0]], [_P[:1], _Q[1]], dynamic=True),
        case(_operation, _since, "none", _make, [_P, _Q], auto_broadcast="NONE"),
        case(_operation, _since, "scalars", _make, [np.array(True), np.array(False)]),
        case(_operation, _since, "empty", _make, [_P[:0], _Q[:0]], dynamic=True),
        case(_operation, _since, "pdpd", pdpd(_operation, _opset, 0), [_P, _Q[1]], options=decided("evaluate", _PDPD)),
    ]
_CASES += [
    case("LogicalNot", "opset1", "matrix", "opset1.logical_not", [_P]),
    case("LogicalNot", "opset1", "scalar", "opset1.logical_not", [np.array(True)]),
    case("LogicalNot", "opset1", "dynamic", "opset1.logical_not", [_P], [_P[:1]], dynamic=True),
    case("LogicalNot", "opset1", "empty", "opset1.logical_not", [_P[:0]], dynamic=True),
    case("LogicalNot", "opset1", "constant", "opset1.logical_not", [_P], constants=[0]),
    case("LogicalNot", "opset1", "float32", "opset1.logical_not", [np.array([0, -0.0, 0.3, NAN], np.float32)]),
    case("LogicalNot", "opset1", "uint8", "opset1.logical_not", [np.array([0, 1, 2, 255], np.uint8)]),
]
for _name, _inputs, _options in (
    ("truth-table", [_P, _Q], {}),
    ("broadcast", [_P[:, :1], _Q[0]], {}),
    ("dynamic", [_P, _Q[:1]], {"dynamic": True}),
    ("none", [_P, _Q], {"auto_broadcast": "NONE"}),
):
    _CASES.append(
        text_case(
            "Xor", "opset1", _name,
            lambda text: text.replace('type="LogicalXor" version="opset2"', 'type="Xor" version="opset1"'),
            case("LogicalXor", "opset2", "", "opset1.logical_xor", _inputs, **_options),
        )
    )  # fmt: skip

# -- bits -------------------------------------------------------------------------------------------------------------

_BITS_A, _BITS_B = np.array([0, 1, -1, 100, -100, 127, -128]), np.array([5, 3, 7, 25, 99, -1, 1])
_PDPD_AB = [np.arange(6, dtype=np.int32).reshape(2, 3), np.array([1, 6], np.int32)]
_PDPD_BITS = _PDPD + ", and there is no reference kernel"
for _operation, _name in (("BitwiseAnd", "bitwise_and"), ("BitwiseOr", "bitwise_or"), ("BitwiseXor", "bitwise_xor")):
    _expected = getattr(np, _name)(_PDPD_AB[0], _PDPD_AB[1][:, None])
    _make = f"opset13.{_name}"
    for _type in INTEGERS:
        _CASES.append(
            case(_operation, "opset13", np.dtype(_type).name, _make, [_BITS_A.astype(_type), _BITS_B.astype(_type)])
        )
    _CASES += [
        case(_operation, "opset13", "boolean", _make, [_P, _Q]),
        case(_operation, "opset13", "broadcast", _make, [_BITS_A.reshape(7, 1), _BITS_B[:3]],
             [_BITS_A.reshape(1, 7), _BITS_B[:1]], dynamic=True),
        case(_operation, "opset13", "none", _make, [_BITS_A, _BITS_B], auto_broadcast="NONE"),
        case(_operation, "opset13", "pdpd", pdpd(_operation, "opset13", 0), _PDPD_AB,
             options=decided("expected", _PDPD_BITS, _expected)),
        case(_operation, "opset13", "empty", _make, [_BITS_A[:0], _BITS_B[:1]], dynamic=True),
    ]  # fmt: skip
for _type in (*INTEGERS, np.bool_):
    _CASES.append(case("BitwiseNot", "opset13", np.dtype(_type).name, "opset13.bitwise_not", [_BITS_A.astype(_type)]))
_CASES += [
    case(
        "BitwiseNot", "opset13", "dynamic", "opset13.bitwise_not", [_BITS_A.reshape(7, 1)], [_BITS_A[:0, None]], dynamic=True
    ),
    case("BitwiseNot", "opset13", "scalar", "opset13.bitwise_not", [np.array(5, np.int32)]),
]

_SHIFTS = np.array([0, 1, 2, 3, 7, 6, 1])
_SIGNED_SHIFT = "the CPU plugin shifts u32 and u64 as signed numbers; there is no reference kernel"
for _operation, _name in (("BitwiseLeftShift", "bitwise_left_shift"), ("BitwiseRightShift", "bitwise_right_shift")):
    _make = f"opset15.{_name}"
    for _type in INTEGERS:
        _values, _shifts = _BITS_A.astype(_type), _SHIFTS.astype(_type)
        _right = "Right" in _operation and _type in (np.uint32, np.uint64)
        _options = decided("expected", _SIGNED_SHIFT, _values >> _shifts) if _right else None
        _CASES.append(case(_operation, "opset15", np.dtype(_type).name, _make, [_values, _shifts], options=_options))
    _CASES += [
        case(_operation, "opset15", "broadcast", _make, [np.array([[5], [-9]], np.int32), np.array([1, 30], np.int32)],
             [np.array([[-(2**31)]], np.int32), np.array([31, 0], np.int32)], dynamic=True),
        case(_operation, "opset15", "constant", _make, [np.array([[5], [-9]]), np.array(2)], constants=[1]),
        case(_operation, "opset15", "none", _make, [np.array([5, -9]), np.array([1, 2])], auto_broadcast="NONE"),
        case(_operation, "opset15", "pdpd", pdpd(_operation, "opset15", 0), _PDPD_AB, options=decided("evaluate", _PDPD)),
    ]  # fmt: skip

CASES = _CASES
