"""Element by element: arithmetic."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case, decided, node, text_case

NAN, INF = np.nan, np.inf
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)

EXACT = "the CPU plugin computes integers of 32 and 64 bits in fewer, the reference kernels as the specification has them"
_EXACT = decided("evaluate", EXACT)
ROUNDED = "the CPU plugin rounds functions of integers to the nearest, the reference kernel truncates this one"


def _floats(*values, dtype=np.float32):
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(dtype)


def _small(dtype, *shape):
    """Numbers, none of them 0, whose sums and products fit every type."""
    values = np.arange(int(np.prod(shape))) * 7 % 9 + 1
    if np.dtype(dtype).kind != "u":
        values = values * np.where(np.arange(values.size) % 3 == 1, -1, 1)
    return values.astype(dtype).reshape(shape)


# -- functions of one number ------------------------------------------------------------------------------------------

_ANY = _floats(0.5, -0.5, 1, -1, 2.5, -2.5, 3.7, -7.9, 0, -0.0, 20, -20, INF, -INF)
_UNIT = _floats(0, -0.0, 0.5, -0.5, 0.9999, -0.9999, 1, -1, 1.5, -2, NAN, INF)
_POSITIVE = _floats(0, 1, 0.25, 2, 1e-30, 1e30, 3.7, -1, NAN, INF)
# operation, opset, factory, floats, integers that both oracles agree on
_UNARY = [
    ("Abs", "opset1", "opset1.abs", np.append(_ANY, NAN), [-5, 0, 3, 127, -127]),
    ("Acos", "opset1", "opset1.acos", _UNIT, [0, 1, -1]),
    ("Acosh", "opset4", "opset4.acosh", np.append(_POSITIVE, 1.0).astype(np.float32), [1, 2, 3, 100]),
    ("Asin", "opset1", "opset1.asin", _UNIT, [0]),
    ("Asinh", "opset4", "opset4.asinh", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Atan", "opset1", "opset1.atan", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Atanh", "opset4", "opset4.atanh", _UNIT, [0]),
    ("Ceiling", "opset1", "opset1.ceiling", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Cos", "opset1", "opset1.cos", np.append(_ANY, NAN), [0, 1, 2, -1, 3, 10, -5, 100]),
    ("Cosh", "opset1", "opset1.cosh", np.append(_ANY, NAN), [0, 1, 2, -1, 3, 4, -4]),
    ("Erf", "opset1", "opset1.erf", np.append(_ANY, NAN), [0, 1, 2, -3]),
    ("Exp", "opset1", "opset1.exp", _ANY, [0, 2, -1, 3]),
    ("Floor", "opset1", "opset1.floor", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Log", "opset1", "opset1.log", _POSITIVE, [1, 3, 10]),
    ("Negative", "opset1", "opset1.negative", np.append(_ANY, NAN), [0, 1, -3, 100]),
    ("Sign", "opset1", "opset1.sign", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Sin", "opset1", "opset1.sin", np.append(_ANY, NAN), [0, 3]),
    ("Sinh", "opset1", "opset1.sinh", np.append(_ANY, NAN), [0, 1, 2, -1, 3]),
    ("Sqrt", "opset1", "opset1.sqrt", _POSITIVE, [0, 1, 2, 3, 7, 10, 100]),
    ("Tan", "opset1", "opset1.tan", np.append(_ANY[:12], NAN), [0, 1, 2, -1, 3, 10, -5]),
    ("Tanh", "opset1", "opset1.tanh", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
]
# Where the oracles part on integers the CPU plugin decides: the specification has a word on Sqrt alone, which rounds.
_ROUNDED_INTEGERS = {"Asin": [1, -1], "Exp": [1], "Log": [2, 100], "Sin": [1, 2, -1, 10, -5, 100]}


def _unary(operation, opset, make, floats, integers):
    floats = np.asarray(floats, np.float32)
    finite = floats[np.isfinite(floats) & (np.abs(floats) < 1e4) & (np.abs(floats) > 1e-4)]
    yield case(operation, opset, "f32", make, [floats])
    yield case(operation, opset, "f32-dynamic", make, [floats[:6].reshape(2, 3)], [floats[:4].reshape(4, 1)], dynamic=True)
    yield case(operation, opset, "f16-scalar", make, [finite[:1].reshape(()).astype(np.float16)])
    yield case(operation, opset, "f16", make, [finite.astype(np.float16)])
    yield case(operation, opset, "bf16", make, [finite[:5].astype(ml_dtypes.bfloat16)])
    yield case(operation, opset, "f64", make, [finite[np.abs(finite) != 1].astype(np.float64)])
    yield case(operation, opset, "empty", make, [np.zeros((2, 0, 3), np.float32)], dynamic=True)
    for dtype in (np.int32, np.int64, np.int8, np.uint8):
        chosen = [v for v in integers if v >= 0 or np.dtype(dtype).kind == "i"]
        if operation == "Negative" and dtype == np.uint8:
            continue
        yield case(operation, opset, np.dtype(dtype).name, make, [np.array(chosen, dtype)])
    if parted := _ROUNDED_INTEGERS.get(operation):
        yield case(
            operation,
            opset,
            "int32-rounded",
            make,
            [np.array(parted, np.int32)],
            options=decided("cpu", ROUNDED),
        )


_CASES: list[Case] = [c for row in _UNARY for c in _unary(*row)]
_CASES += [
    case("Negative", "opset1", "int8-lowest", "opset1.negative", [np.array([-128, 127], np.int8)]),
    case("Abs", "opset1", "int8-lowest", "opset1.abs", [np.array([-128, 127], np.int8)]),
    case("Abs", "opset1", "int64-large", "opset1.abs", [np.array([-(2**40) - 1, 2**62 + 1])],
         options=_EXACT),
    case("Sign", "opset1", "f16-nan", "opset1.sign", [_floats(NAN, -2, 0, dtype=np.float16)]),
    case("Sign", "opset1", "bf16-nan", "opset1.sign", [_floats(NAN, -2, 0, dtype=ml_dtypes.bfloat16)]),
    case("Round", "opset5", "boolean", "opset5.round", [np.array([True, False])], mode="half_to_even"),
]  # fmt: skip

_HALVES = _floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.3, -0.7, NAN, INF, -INF, -0.0, 7)
_BELOW = _floats(0.49999997, -0.49999997, 8388609)
for _mode in ("half_to_even", "half_away_from_zero"):
    _CASES += [
        case("Round", "opset5", _mode, "opset5.round", [_HALVES], mode=_mode),
        case(
            "Round", "opset5", _mode + "-dynamic-f16", "opset5.round", [_HALVES.astype(np.float16)], dynamic=True, mode=_mode
        ),
        case("Round", "opset5", _mode + "-f64", "opset5.round", [_HALVES[:8].astype(np.float64)], mode=_mode),
        case("Round", "opset5", _mode + "-i32", "opset5.round", [_small(np.int32, 5)], mode=_mode),
        case("Round", "opset5", _mode + "-scalar", "opset5.round", [np.array(-2.5, np.float32)], mode=_mode),
    ]
_CASES.append(
    case("Round", "opset5", "just-below-a-half", "opset5.round", [_BELOW], mode="half_away_from_zero", options=decided(
        "evaluate", "the CPU plugin adds a half before it takes the floor, which rounds 0.49999997 up"))
)  # fmt: skip

# -- functions of two numbers -----------------------------------------------------------------------------------------

_A = _floats(7.5, -7.5, 7.5, -7.5, 3, -3, 0, -0.0, 1, INF, 1e30)
_B = _floats(2, 2, -2, -2, 3, 3, 2, 2, 0, 2, 1e30)
_BINARY = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Divide": "divide",
    "FloorMod": "floor_mod",
    "Mod": "mod",
    "Power": "power",
    "SquaredDifference": "squared_difference",
    "Maximum": "maximum",
    "Minimum": "minimum",
}
_REMAINDERS = ("FloorMod", "Mod")


def pdpd(kind: str, opset: str, axis: int):
    """A binary operation whose second input lies on the first from ``axis`` on."""
    return node(kind, opset, **{"auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": axis})


# Operations whose reference kernels have no pdpd, or lay the first input on the second.
_NO_PDPD = {"Mod": np.fmod, "Greater": np.greater, "GreaterEqual": np.greater_equal}


def broadcasts(operation: str, opset: str, make: str, dtype=np.float32):
    """Every kind of broadcasting, for any binary operation."""
    a = _small(dtype, 2, 3, 4)
    options = {}
    if operation not in ("Add", "Multiply", "FloorMod", "Power", "SquaredDifference", "Maximum", "Minimum"):
        options = decided("evaluate", "the CPU plugin cannot run this operation with auto_broadcast=pdpd")
    for name, shape, onto, axis in (
        ("pdpd-axis", (3,), (3, 1), 1), ("pdpd-right", (3, 4), (3, 4), -1), ("pdpd-front", (2,), (2, 1, 1), 0),
        ("pdpd-trailing-ones", (2, 1), (2, 1, 1), 0), ("pdpd-scalar", (), (), 0),
        ("pdpd-inner-one", (2, 1, 4), (2, 1, 4), 0),
    ):  # fmt: skip
        b = _small(dtype, *shape)
        if operation in _NO_PDPD:
            reason = "neither the CPU plugin nor the reference kernel runs this operation with auto_broadcast=pdpd"
            options = decided("expected", reason, _NO_PDPD[operation](a, b.reshape(onto)))
        yield case(operation, opset, name, pdpd(operation, opset, axis), [a, b], options=options)
    if operation not in _NO_PDPD:
        yield case(
            operation, opset, "pdpd-dynamic", pdpd(operation, opset, 1), [a, _small(dtype, 3)],
            [_small(dtype, 1, 5, 2), _small(dtype, 5)], dynamic=True, options=options,
        )  # fmt: skip
    yield case(operation, opset, "none", make, [a, a[::-1].copy()], auto_broadcast="NONE")
    yield case(
        operation,
        opset,
        "numpy",
        make,
        [a[:, :1], _small(dtype, 5, 1, 3, 1)],
        [a, np.ones((1, 1, 3, 4), dtype)],
        dynamic=True,
    )
    yield case(operation, opset, "scalars", make, [_small(dtype), _small(dtype)])
    yield case(operation, opset, "empty", make, [np.ones((0, 3), dtype), np.ones((1, 3), dtype)], dynamic=True)


def _binary(operation, name):
    make = f"opset1.{name}"
    yield from broadcasts(operation, "opset1", make)
    if operation not in _REMAINDERS:
        yield case(operation, "opset1", "f32-values", make, [_A, _B])
    yield case(operation, "opset1", "f16", make, [_A[:8].astype(np.float16), _B[:8].astype(np.float16)])
    yield case(operation, "opset1", "bf16", make, [_A[:8].astype(ml_dtypes.bfloat16), _B[:8].astype(ml_dtypes.bfloat16)])
    yield case(operation, "opset1", "f64", make, [_A[:8].astype(np.float64), _B[:8].astype(np.float64)])
    yield case(operation, "opset1", "constant-scalar", make, [_A[:8], np.array(2, np.float32)], constants=[1])
    for dtype in INTEGERS:
        a, b = _small(dtype, 3, 4), np.array([1, 2, 3, 1], dtype)
        if operation in ("Subtract", "SquaredDifference"):
            a, b = np.abs(a.astype(np.int64)).astype(dtype) + b, b
        if operation == "SquaredDifference" and dtype in (np.int8, np.uint8):
            reason = "the CPU plugin returns other numbers than squares for u8 and i8; there is no reference kernel"
            options = decided("expected", reason, ((a - b) ** 2).astype(dtype))
            yield case(operation, "opset1", np.dtype(dtype).name, make, [a, b], options=options)
            continue
        if operation == "Divide":
            a = np.abs(a.astype(np.int64)).astype(dtype)
        if operation == "Power":
            a = np.clip(a, dtype(0) if np.dtype(dtype).kind == "u" else -5, 5).astype(dtype)
        yield case(operation, "opset1", np.dtype(dtype).name, make, [a, b])


for _operation, _name in _BINARY.items():
    _CASES += _binary(_operation, _name)

_I, _J = np.array([7, -7, 7, -7, 6, -6, 0, 1000000007]), np.array([2, 2, -2, -2, 3, 3, 5, 10])
_PYTHON = "the CPU plugin truncates integer quotients whatever m_pythondiv says, which the specification rounds down"
for _type in (np.int8, np.int32, np.int64):
    _i, _j = _I[: 7 if _type == np.int8 else 8].astype(_type), _J[: 7 if _type == np.int8 else 8].astype(_type)
    _t = np.dtype(_type).name
    _floor = decided("expected", _PYTHON, _i // _j) if _type == np.int8 else decided("evaluate", _PYTHON)
    _truncating = node("Divide", "opset1", m_pythondiv=False, auto_broadcast="NUMPY")
    _CASES += [
        case("Divide", "opset1", _t + "-floor", "opset1.divide", [_i, _j], options=_floor),
        case("Divide", "opset1", _t + "-truncate", _truncating, [_i, _j]),
        case("Mod", "opset1", _t + "-signs", "opset1.mod", [_i[:7], _j[:7]]),
        case("FloorMod", "opset1", _t + "-signs", "opset1.floor_mod", [_i[:7], _j[:7]]),
    ]  # fmt: skip
_LARGE = [1000000007, -1000000007, 16777217, 2**31 - 1]
_WRAPS = "the reference kernels of Add and Subtract wrap 8 bits, which the specification leaves open"
for _operation, _type, _a, _b in (
    ("Mod", np.int32, _LARGE, [10]),
    ("Mod", np.uint32, [2**32 - 1, 2**31 + 7], [10]),
    ("Mod", np.int64, [-(2**62) - 1, 2**53 + 1], [10]),
    ("Mod", np.uint64, [2**64 - 1, 2**63 + 7], [10]),
    ("FloorMod", np.int32, _LARGE, [10]),
    ("Add", np.int64, [2**40 + 1, -(2**62)], [2**40, 5]),
    ("Subtract", np.uint64, [2**63, 2**64 - 1], [7, 2**63]),
    ("Multiply", np.int64, [2**40 + 1, -5], [2**20, 2**40]),
    ("Divide", np.uint32, [2**32 - 1, 2**31], [2]),
    ("Divide", np.uint64, [2**64 - 1, 2**63], [2]),
    ("Maximum", np.uint64, [2**64 - 1, 3], [2**63, 5]),
    ("Maximum", np.int64, [2**40 + 1, -5], [2**40, -(2**62)]),
    ("Minimum", np.uint32, [2**32 - 1, 3], [2**31, 5]),
):
    _large = [np.array(_a, _type), np.array(_b, _type)]
    _name = f"{np.dtype(_type).name}-large"
    _CASES.append(case(_operation, "opset1", _name, f"opset1.{_BINARY[_operation]}", _large, options=_EXACT))
_CASES += [
    case("FloorMod", "opset1", "f32-large", "opset1.floor_mod", [_floats(1e9, -1e9), _floats(3, 3)], options=decided(
        "evaluate", "the CPU plugin subtracts a rounded quotient's multiple, which is off by its rounding")),
    case("Mod", "opset1", "f32-signs", "opset1.mod", [_A[:6], _B[:6]]),
    case("FloorMod", "opset1", "f32-infinite", "opset1.floor_mod", [_floats(1, -1, 0, INF), _floats(INF, INF, -INF, 2)]),
    case("FloorMod", "opset1", "f16-infinite", "opset1.floor_mod",
         [_floats(1, 5, dtype=np.float16), _floats(INF, -3, dtype=np.float16)], constants=[1]),
    case("FloorMod", "opset1", "f32-signs", "opset1.floor_mod", [_A[:6], _B[:6]]),
    case("Add", "opset1", "int32-wraps", "opset1.add", [np.array([2**31 - 1], np.int32), np.array([1], np.int32)]),
    case("Multiply", "opset1", "int32-wraps", "opset1.multiply", [np.array(_LARGE, np.int32), np.array([10], np.int32)]),
    case("Power", "opset1", "corners", "opset1.power", [_floats(-8, -8, 0, 0, 0, 2, -2, 1, INF, 2),
                                                       _floats(1 / 3, 3, 0, -1, 2, 0.5, 0.5, NAN, 0, -2)]),
    case("Power", "opset1", "int32-negative", "opset1.power", [np.array([2, 1, -1, -2, 3], np.int32),
                                                              np.array([-1, -3, -3, 3, 4], np.int32)]),
]  # fmt: skip
for _operation, _type, _a, _b in (
    ("Add", np.uint8, [200, 255, 3], [100, 2, 4]),
    ("Add", np.int8, [100, -100, 3], [100, -100, 4]),
    ("Subtract", np.uint8, [3, 255, 3], [100, 2, 4]),
    ("Subtract", np.int8, [100, -100, 3], [-100, 100, 4]),
    ("Multiply", np.uint8, [200, 255, 3], [100, 2, 4]),
    ("Multiply", np.int8, [100, -100, 3], [100, 100, -4]),
    ("Divide", np.int8, [-128, 100, 6], [-1, 7, -3]),
    ("Power", np.uint8, [2, 7, 3], [7, 3, 5]),
    ("Power", np.int8, [2, -7, 3, 2], [7, 3, 5, -1]),
):
    _arrays = [np.array(_a, _type), np.array(_b, _type)]
    _options = decided("cpu", _WRAPS) if _operation in ("Add", "Subtract") else None
    _name = f"{np.dtype(_type).name}-bounded"
    _CASES.append(case(_operation, "opset1", _name, f"opset1.{_BINARY[_operation]}", _arrays, options=_options))
_ZERO = "the reference kernel fails at a divisor of 0, the specification leaves the result open"
for _operation in ("Divide", "Mod", "FloorMod"):
    for _type in INTEGERS:
        _arrays = [np.array([7, 0, 9, 100], _type), np.array([0, 0, 3, 7], _type)]
        _name = f"{np.dtype(_type).name}-by-zero"
        _CASES.append(case(_operation, "opset1", _name, f"opset1.{_BINARY[_operation]}", _arrays,
                           options=decided("cpu", _ZERO)))  # fmt: skip
_CRASH = "both oracles crash"
for _type in (np.int32, np.int64):
    _lowest = np.iinfo(_type).min
    _CASES.append(case("Mod", "opset1", f"{np.dtype(_type).name}-by-lowest", "opset1.mod",
                       [np.array([7, -7, 0, _lowest], _type), np.array([_lowest], _type)],
                       options=decided("evaluate", EXACT)))  # fmt: skip
    for _operation, _result in (("Divide", _lowest), ("Mod", 0), ("FloorMod", 0)):
        _name, _expected = f"{np.dtype(_type).name}-lowest", np.array([_result, -5 if _result else 0], _type)
        _CASES.append(case(_operation, "opset1", _name, f"opset1.{_BINARY[_operation]}",
                           [np.array([_lowest, 5], _type), np.array([-1, -1], _type)],
                           options=decided("expected", _CRASH, _expected)))  # fmt: skip
for _exponent in (2, 0.5, -1, 3, 0):
    _CASES.append(case("Power", "opset1", f"constant-{_exponent}", "opset1.power",
                       [_floats(-8, 0.25, 2, INF, 9), np.array(_exponent, np.float32)], constants=[1]))  # fmt: skip
_RANK = "the CPU plugin takes no Parameter of dynamic rank"
_F = functools.partial(_small, np.float32)
_CASES += [
    case("Add", "opset1", "dynamic-rank", "opset1.add", [_F(2, 3), _F(3)], [_F(), _F(4, 1)],
         shapes=[None, None], options=decided("evaluate", _RANK)),
    case("Multiply", "opset1", "pdpd-empty", pdpd("Multiply", "opset1", 1), [_F(4, 0, 2), _F(0)], constants=[1]),
    *(
        case("Multiply", "opset1", f"pdpd-dynamic-rank-axis-{axis}", pdpd("Multiply", "opset1", axis), *runs,
             shapes=[None, None], options=decided("evaluate", _RANK))
        for axis, runs in (
            (1, [[_F(2, 3, 4), _F(3)], [_F(2, 3, 4, 2), _F(3, 4, 1)]]),
            (-1, [[_F(2, 3, 4), _F(3, 4)], [_F(2, 3), _F(2, 1)], [_F(3, 0), _F(0)]]),
            (0, [[_F(2, 3, 4), _F(2)], [_F(2, 3), _F()], [_F(0, 2), _F(0, 1)]]),
        )
    ),
    text_case("Add", "opset1", "pdpd-without-axis", lambda text: text.replace(' auto_broadcast.auto_broadcast_axis="0"', ""),
              case("Add", "opset1", "", pdpd("Add", "opset1", 0), [_small(np.float32, 2, 3, 4), _small(np.float32, 2)])),
    text_case("Multiply", "opset1", "explicit-is-none",
              lambda text: text.replace('auto_broadcast="none"', 'auto_broadcast="explicit"'),
              case("Multiply", "opset1", "", "opset1.multiply", [_A, _B], auto_broadcast="NONE")),
]  # fmt: skip

# -- CumSum -----------------------------------------------------------------------------------------------------------

_X = _floats(1, -2, 3, 4, 5.5, -6, 7, 8, 9, 10, 11, 12).reshape(2, 3, 2)
for _exclusive in (False, True):
    for _reverse in (False, True):
        _CASES.append(
            case("CumSum", "opset3", f"exclusive-{_exclusive}-reverse-{_reverse}".lower(), "opset3.cum_sum",
                 [_X, np.array(-2)], [_X, np.array(0)], exclusive=_exclusive, reverse=_reverse))  # fmt: skip
for _type in (*INTEGERS, np.float16, np.float64):
    _CASES.append(case("CumSum", "opset3", np.dtype(_type).name, "opset3.cum_sum",
                       [_small(_type, 2, 5), np.array(1, np.int32)], constants=[1], exclusive=True))  # fmt: skip
_SCALAR = decided("cpu", "the reference kernel does not run on scalars, or crashes")
_CASES += [
    case("CumSum", "opset3", "dynamic", "opset3.cum_sum", [_X, np.array(1)], [_X[:1, :2], np.array(-1)], dynamic=True),
    case("CumSum", "opset3", "empty", "opset3.cum_sum", [np.zeros((0, 3), np.float32), np.array(1)], dynamic=True),
    case(
        "CumSum",
        "opset3",
        "scalar",
        "opset3.cum_sum",
        [np.int64(3), np.array(0)],
        constants=[1],
        reverse=True,
        options=_SCALAR,
    ),
    case(
        "CumSum",
        "opset3",
        "scalar-exclusive",
        "opset3.cum_sum",
        [np.float32(3), np.array(0)],
        exclusive=True,
        options=_SCALAR,
    ),
    case(
        "CumSum",
        "opset3",
        "dynamic-rank",
        "opset3.cum_sum",
        [_X, np.array(-2)],
        [_X[0], np.array(1)],
        shapes=[None, []],
        options=decided("evaluate", _RANK),
    ),
    case("CumSum", "opset3", "vector", "opset3.cum_sum", [_X[0, 0], np.array(0)], constants=[1], reverse=True),
]

# -- ErfInv -----------------------------------------------------------------------------------------------------------

_P = _floats(0, 0.5, -0.5, 0.9, -0.9, 0.99, -0.999, 0.9999, -0.999999, 1, -1, 1.5, -2, NAN, 1e-10, INF)
_CASES += [
    case("ErfInv", "opset17", "f32", node("ErfInv", "opset17"), [_P]),
    case(
        "ErfInv", "opset17", "dynamic", node("ErfInv", "opset17"), [_P.reshape(4, 4)], [_P[:0].reshape(0, 2)], dynamic=True
    ),
    case("ErfInv", "opset17", "scalar", node("ErfInv", "opset17"), [_P[1]]),
    case("ErfInv", "opset17", "f16", node("ErfInv", "opset17"), [_P.astype(np.float16)]),
    case("ErfInv", "opset17", "bf16", node("ErfInv", "opset17"), [_P.astype(ml_dtypes.bfloat16)]),
    case("ErfInv", "opset17", "f64", node("ErfInv", "opset17"), [np.delete(_P, [9, 10, 15]).astype(np.float64)]),
    case("ErfInv", "opset17", "constant", node("ErfInv", "opset17"), [_P], constants=[0]),
]

CASES = _CASES
