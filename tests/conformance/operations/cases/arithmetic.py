"""Elementwise arithmetic."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, replaced, shaped, static, statics, unranked

F16, BF16, F32, F64, I8, I32 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int32
NAN, INF = np.nan, np.inf
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)

_EXACT = decided(
    "evaluate",
    "the CPU plugin computes integers of 32 and 64 bits in fewer, the reference kernels as the specification has them",
)
_RANK = decided("evaluate", "the CPU plugin does not support a Parameter of dynamic rank")


def _floats(*values, dtype=np.float32):
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(dtype)


def _small(dtype, *shape):
    """Nonzero numbers whose sums and products fit every type."""
    values = np.arange(int(np.prod(shape))) * 7 % 9 + 1
    if np.dtype(dtype).kind != "u":
        values = values * np.where(np.arange(values.size) % 3 == 1, -1, 1)
    return values.astype(dtype).reshape(shape)


# -- unary functions --------------------------------------------------------------------------------------------------

_ANY = _floats(0.5, -0.5, 1, -1, 2.5, -2.5, 3.7, -7.9, 0, -0.0, 20, -20, INF, -INF)
_UNIT = _floats(0, -0.0, 0.5, -0.5, 0.9999, -0.9999, 1, -1, 1.5, -2, NAN, INF)
_POSITIVE = _floats(0, 1, 0.25, 2, 1e-30, 1e30, 3.7, -1, NAN, INF)
# operation, version, factory, floats, integers on which both oracles agree
_UNARY = [
    ("Abs", "opset1", "abs", np.append(_ANY, NAN), [-5, 0, 3, 127, -127]),
    ("Acos", "opset1", "acos", _UNIT, [0, 1, -1]),
    ("Acosh", "opset4", "acosh", np.append(_POSITIVE, 1.0).astype(np.float32), [1, 2, 3, 100]),
    ("Asin", "opset1", "asin", _UNIT, [0]),
    ("Asinh", "opset4", "asinh", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Atan", "opset1", "atan", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Atanh", "opset4", "atanh", _UNIT, [0]),
    ("Ceiling", "opset1", "ceiling", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Cos", "opset1", "cos", np.append(_ANY, NAN), [0, 1, 2, -1, 3, 10, -5, 100]),
    ("Cosh", "opset1", "cosh", np.append(_ANY, NAN), [0, 1, 2, -1, 3, 4, -4]),
    ("Erf", "opset1", "erf", np.append(_ANY, NAN), [0, 1, 2, -3]),
    ("Exp", "opset1", "exp", _ANY, [0, 2, -1, 3]),
    ("Floor", "opset1", "floor", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Log", "opset1", "log", _POSITIVE, [1, 3, 10]),
    ("Negative", "opset1", "negative", np.append(_ANY, NAN), [0, 1, -3, 100]),
    ("Sign", "opset1", "sign", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
    ("Sin", "opset1", "sin", np.append(_ANY, NAN), [0, 3]),
    ("Sinh", "opset1", "sinh", np.append(_ANY, NAN), [0, 1, 2, -1, 3]),
    ("Sqrt", "opset1", "sqrt", _POSITIVE, [0, 1, 2, 3, 7, 10, 100]),
    ("Tan", "opset1", "tan", np.append(_ANY[:12], NAN), [0, 1, 2, -1, 3, 10, -5]),
    ("Tanh", "opset1", "tanh", np.append(_ANY, NAN), [0, 1, 2, -3, 100]),
]
# If the oracles differ on integers, the CPU plugin decides: the specification only mentions Sqrt, which rounds.
# Inputs whose result does not fit the type or is undefined.
_BEYOND = {
    "Acos": [2, 100],
    "Acosh": [0, -3],
    "Asin": [2, -2],
    "Cosh": [30, 100],
    "Exp": [30, 100],
    "Log": [0, -1],
    "Sinh": [30, 100, -100],
    "Sqrt": [-3, -100, 4],
}
_LOWEST = (
    "the CPU plugin gives the largest float for Cosh and Sinh and rounds the others; the reference gives the lowest integer"
)
_ALONE = "the reference kernel has no integers of 8 bits"
_ROUNDED_INTEGERS = {"Asin": [1, -1], "Exp": [1], "Log": [2, 100], "Sin": [1, 2, -1, 10, -5, 100]}
_ROUNDED = "the CPU plugin rounds functions of integers to the nearest, the reference kernel truncates this one"


def _unary(operation, version, make, floats, integers):
    case = partial(layer_case, operation, version, make)
    floats = np.asarray(floats, F32)
    finite = floats[np.isfinite(floats) & (np.abs(floats) < 1e4) & (np.abs(floats) > 1e-4)]
    yield case("f32", [static(floats)])
    yield case("f32-dynamic", [dynamic(floats[:6].reshape(2, 3), floats[:4].reshape(4, 1))])
    yield case("f16-scalar", [static(finite[:1].reshape(()).astype(F16))])
    yield case("f16", [static(finite.astype(F16))])
    yield case("bf16", [static(finite[:5].astype(BF16))])
    yield case("f64", [static(finite[np.abs(finite) != 1].astype(F64))])
    yield case("empty", [dynamic(np.zeros((2, 0, 3), F32))])
    for dtype in (np.int32, np.int64, np.int8, np.uint8):
        if operation != "Negative" or dtype != np.uint8:
            chosen = [v for v in integers if v >= 0 or np.dtype(dtype).kind == "i"]
            yield case(np.dtype(dtype).name, [static(np.array(chosen, dtype))])
    if operation in _BEYOND:
        for dtype in (np.int8, np.uint8, np.int32):
            chosen = np.array([v for v in _BEYOND[operation] if v >= 0 or dtype != np.uint8], dtype)
            # There is no reference kernel for 8 bits.
            yield case(f"{np.dtype(dtype)}-beyond", [static(chosen)], **decided("cpu", _LOWEST if dtype == I32 else _ALONE))
    if decided_for := _ROUNDED_INTEGERS.get(operation):
        yield case("int32-rounded", [static(np.array(decided_for, I32))], **decided("cpu", _ROUNDED))


def _unaries():
    for row in _UNARY:
        yield from _unary(*row)
    for operation, make in (("Negative", "negative"), ("Abs", "abs")):
        yield layer_case(operation, "opset1", make, "int8-lowest", [static(np.array([-128, 127], I8))])
    yield layer_case("Abs", "opset1", "abs", "int64-large", [static(np.array([-(2**40) - 1, 2**62 + 1]))], **_EXACT)
    for name, dtype in (("f16", F16), ("bf16", BF16)):
        yield layer_case("Sign", "opset1", "sign", f"{name}-nan", [static(_floats(NAN, -2, 0, dtype=dtype))])


def _rounds():
    case = partial(layer_case, "Round", "opset5", "round")
    halves = _floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.3, -0.7, NAN, INF, -INF, -0.0, 7)
    for mode in ("half_to_even", "half_away_from_zero"):
        yield case(mode, [static(halves)], {"mode": mode})
        yield case(f"{mode}-dynamic-f16", [dynamic(halves.astype(F16))], {"mode": mode})
        yield case(f"{mode}-f64", [static(halves[:8].astype(F64))], {"mode": mode})
        yield case(f"{mode}-i32", [static(_small(I32, 5))], {"mode": mode})
        yield case(f"{mode}-scalar", [static(F32(-2.5))], {"mode": mode})
    yield case("boolean", [static(np.array([True, False]))], {"mode": "half_to_even"})
    up = decided("evaluate", "the CPU plugin adds a half before the floor, which rounds 0.49999997 up")
    below = static(_floats(0.49999997, -0.49999997, 8388609))
    yield case("just-below-a-half", [below], {"mode": "half_away_from_zero"}, **up)


# -- binary functions -------------------------------------------------------------------------------------------------

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


def pdpd(axis: int) -> dict[str, object]:
    """Return the attributes of a binary operation whose second input is broadcast from ``axis`` on."""
    return {"auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": axis}


PDPD = "the CPU plugin cannot run this operation with auto_broadcast=pdpd"
NO_PDPD = decided("evaluate", PDPD)
# Operations whose reference kernels lack pdpd, or broadcast the first input.
_WITHOUT_PDPD = {"Mod": np.fmod, "Greater": np.greater, "GreaterEqual": np.greater_equal}


def broadcasts(operation: str, make: str):
    """Every kind of broadcasting, for any binary operation of opset1."""
    case, with_axis = partial(layer_case, operation, "opset1", make), partial(layer_case, operation, "opset1", operation)
    a = _small(F32, 2, 3, 4)
    settings = {}
    if operation not in ("Add", "Multiply", "FloorMod", "Power", "SquaredDifference", "Maximum", "Minimum"):
        settings = NO_PDPD
    for name, shape, onto, axis in (
        ("pdpd-axis", (3,), (3, 1), 1),
        ("pdpd-right", (3, 4), (3, 4), -1),
        ("pdpd-front", (2,), (2, 1, 1), 0),
        ("pdpd-trailing-ones", (2, 1), (2, 1, 1), 0),
        ("pdpd-scalar", (), (), 0),
        ("pdpd-inner-one", (2, 1, 4), (2, 1, 4), 0),
    ):
        b = _small(F32, *shape)
        if operation in _WITHOUT_PDPD:
            reason = "neither the CPU plugin nor the reference kernel runs this operation with auto_broadcast=pdpd"
            settings = decided("expected", reason, _WITHOUT_PDPD[operation](a, b.reshape(onto)))
        yield with_axis(name, [static(a), static(b)], pdpd(axis), **settings)
    if operation not in _WITHOUT_PDPD:
        inputs = [dynamic(a, _small(F32, 1, 5, 2)), dynamic(_small(F32, 3), _small(F32, 5))]
        yield with_axis("pdpd-dynamic", inputs, pdpd(1), **settings)
    yield case("none", [static(a), static(a[::-1])], {"auto_broadcast": "NONE"})
    yield case("numpy", [dynamic(a[:, :1], a), dynamic(_small(F32, 5, 1, 3, 1), np.ones((1, 1, 3, 4), F32))])
    yield case("scalars", [static(_small(F32)), static(_small(F32))])
    yield case("empty", [dynamic(np.ones((0, 3), F32)), dynamic(np.ones((1, 3), F32))])


def _binary(operation, make):
    case = partial(layer_case, operation, "opset1", make)
    yield from broadcasts(operation, make)
    if operation not in _REMAINDERS:
        yield case("f32-values", [static(_A), static(_B)])
    for name, dtype in (("f16", F16), ("bf16", BF16), ("f64", F64)):
        yield case(name, [static(_A[:8].astype(dtype)), static(_B[:8].astype(dtype))])
    yield case("constant-scalar", [static(_A[:8]), F32(2)])
    for dtype in INTEGERS:
        settings = {}
        a, b = _small(dtype, 3, 4), np.array([1, 2, 3, 1], dtype)
        if operation in ("Subtract", "SquaredDifference"):
            a = np.abs(a.astype(np.int64)).astype(dtype) + b
        if operation == "SquaredDifference" and dtype in (np.int8, np.uint8):
            reason = "the CPU plugin returns other numbers than squares for u8 and i8; there is no reference kernel"
            settings = decided("expected", reason, ((a - b) ** 2).astype(dtype))
        if operation == "Divide":
            a = np.abs(a.astype(np.int64)).astype(dtype)
        if operation == "Power":
            a = np.clip(a, dtype(0) if np.dtype(dtype).kind == "u" else -5, 5).astype(dtype)
        yield case(np.dtype(dtype).name, [static(a), static(b)], **settings)


def _of_two(operation, name, dtype, a, b, **settings):
    inputs = statics([np.array(a, dtype), np.array(b, dtype)])
    return layer_case(operation, "opset1", _BINARY[operation], f"{np.dtype(dtype).name}-{name}", inputs, **settings)


def _signs():
    i, j = np.array([7, -7, 7, -7, 6, -6, 0, 1000000007]), np.array([2, 2, -2, -2, 3, 3, 5, 10])
    python = "the CPU plugin truncates integer quotients regardless of m_pythondiv; the specification rounds them down"
    for dtype in (np.int8, np.int32, np.int64):
        name, last = np.dtype(dtype).name, 7 if dtype == np.int8 else 8
        a, b = i[:last].astype(dtype), j[:last].astype(dtype)
        floor = decided("expected", python, a // b) if dtype == np.int8 else decided("evaluate", python)
        yield _of_two("Divide", "floor", dtype, a, b, **floor)
        truncating = {"m_pythondiv": False, "auto_broadcast": "NUMPY"}
        yield layer_case("Divide", "opset1", "Divide", f"{name}-truncate", statics([a, b]), truncating)
        for operation in ("Mod", "FloorMod"):
            yield _of_two(operation, "signs", dtype, a[:7], b[:7])


def _ends_of_ranges():
    large = [1000000007, -1000000007, 16777217, 2**31 - 1]
    for operation, dtype, a, b in (
        ("Mod", np.int32, large, [10]),
        ("Mod", np.uint32, [2**32 - 1, 2**31 + 7], [10]),
        ("Mod", np.int64, [-(2**62) - 1, 2**53 + 1], [10]),
        ("Mod", np.uint64, [2**64 - 1, 2**63 + 7], [10]),
        ("FloorMod", np.int32, large, [10]),
        ("Add", np.int64, [2**40 + 1, -(2**62)], [2**40, 5]),
        ("Subtract", np.uint64, [2**63, 2**64 - 1], [7, 2**63]),
        ("Multiply", np.int64, [2**40 + 1, -5], [2**20, 2**40]),
        ("Divide", np.uint32, [2**32 - 1, 2**31], [2]),
        ("Divide", np.uint64, [2**64 - 1, 2**63], [2]),
        ("Maximum", np.uint64, [2**64 - 1, 3], [2**63, 5]),
        ("Maximum", np.int64, [2**40 + 1, -5], [2**40, -(2**62)]),
        ("Minimum", np.uint32, [2**32 - 1, 3], [2**31, 5]),
    ):
        yield _of_two(operation, "large", dtype, a, b, **_EXACT)
    yield _of_two("Add", "wraps", I32, [2**31 - 1], [1])
    yield _of_two("Multiply", "wraps", I32, large, [10])
    wraps = decided("cpu", "the reference kernels of Add and Subtract wrap 8 bits, which the specification does not define")
    for operation, dtype, a, b in (
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
        yield _of_two(operation, "bounded", dtype, a, b, **(wraps if operation in ("Add", "Subtract") else {}))
    for dtype in (np.uint8, np.int8):
        lowest = np.iinfo(dtype).min
        laid = np.array([[lowest, 100], [127, lowest + 1]], dtype), np.array([60, 2], dtype)
        for operation in ("Add", "Subtract"):
            name, settings = f"pdpd-{np.dtype(dtype)}", {}
            if (operation, dtype) == ("Subtract", np.int8):
                reason = "the CPU plugin lays the second operand on the last dimension of the first, and bounds the results"
                settings = decided("evaluate", reason)
            yield layer_case(operation, "opset1", operation, name, statics(laid), pdpd(0), **settings)
    zero = decided("cpu", "the reference kernel fails at a divisor of 0, the specification does not define the result")
    for operation in ("Divide", "Mod", "FloorMod"):
        for dtype in INTEGERS:
            yield _of_two(operation, "by-zero", dtype, [7, 0, 9, 100], [0, 0, 3, 7], **zero)
    for dtype in (np.int32, np.int64):
        lowest = np.iinfo(dtype).min
        yield _of_two("Mod", "by-lowest", dtype, [7, -7, 0, lowest], [lowest], **_EXACT)
        for operation, result in (("Divide", lowest), ("Mod", 0), ("FloorMod", 0)):
            crash = decided("expected", "both oracles crash", np.array([result, -5 if result else 0], dtype))
            yield _of_two(operation, "lowest", dtype, [lowest, 5], [-1, -1], **crash)


def _of_the_remainder(ops, a, b):
    """1 divided by the remainder: infinity with the sign of a zero remainder."""
    return ops.divide(F32(1), ops.floor_mod(a, b))


def _of_erf(ops, a, b):
    """A dividend that only depends on constants."""
    return ops.mod(ops.erf(a), b)


def _floats_of_two():
    floor_mod = partial(layer_case, "FloorMod", "opset1", "floor_mod")
    off = decided("evaluate", "the CPU plugin subtracts a rounded quotient's multiple, which is off by its rounding")
    yield floor_mod("f32-large", [static(_floats(1e9, -1e9)), static(_floats(3, 3))], **off)
    yield floor_mod("f32-infinite", [static(_floats(1, -1, 0, INF)), static(_floats(INF, INF, -INF, 2))])
    multiples = statics([_floats(-4, 4, 4, -4, -0.0, 0), _floats(2, -2, 2, -2, 3, -3)])
    yield layer_case("FloorMod", "opset1", _of_the_remainder, "f32-multiples", multiples)
    yield floor_mod("f16-infinite", [static(_floats(1, 5, dtype=F16)), _floats(INF, -3, dtype=F16)])
    yield floor_mod("f32-signs", [static(_A[:6]), static(_B[:6])])
    for dtype in (np.int32, np.int64):
        divisors = static(np.array([3, -2, 1, -1, 7], dtype))
        yield layer_case("Mod", "opset1", "mod", f"one-by-each-{np.dtype(dtype)}", [np.array(1, dtype), divisors])
        two = np.array(2, dtype)
        yield layer_case("Mod", "opset1", _of_erf, f"computed-one-by-each-{np.dtype(dtype)}", [two, divisors])
    yield layer_case("Mod", "opset1", "mod", "f32-signs", [static(_A[:6]), static(_B[:6])])
    power = partial(layer_case, "Power", "opset1", "power")
    exponents = _floats(1 / 3, 3, 0, -1, 2, 0.5, 0.5, NAN, 0, -2)
    yield power("corners", [static(_floats(-8, -8, 0, 0, 0, 2, -2, 1, INF, 2)), static(exponents)])
    yield _of_two("Power", "negative", I32, [2, 1, -1, -2, 3], [-1, -3, -3, 3, 4])
    wrapped = decided("evaluate", "the CPU plugin gives the bits of the lowest i32, the specification does not define it")
    yield _of_two("Power", "wraps", np.uint32, [10, 7, 3, 100], [10, 15, 20, 5], **wrapped)
    large = np.array([32768, 46341, -46341, 65536, 2**31 - 1, -(2**31), -1024, -1291], np.int32)
    for exponent in (2, 3, 4, -1):  # a power out of range is the lowest number
        yield power(f"out-of-range-{exponent}", [static(large), np.array(exponent, np.int32)])
    yield power("out-of-range-run-time", [static(large), static(np.array([2], np.int32))])
    for exponent in (2, 0.5, -1, 3, 0):
        yield power(f"constant-{exponent}", [static(_floats(-8, 0.25, 2, INF, 9)), F32(exponent)])


def _ranks():
    f = partial(_small, F32)
    yield layer_case("Add", "opset1", "add", "dynamic-rank", [unranked(f(2, 3), f()), unranked(f(3), f(4, 1))], **_RANK)
    multiply = partial(layer_case, "Multiply", "opset1", "Multiply")
    yield multiply("pdpd-empty", [static(f(4, 0, 2)), f(0)], pdpd(1))
    yield multiply("pdpd-to-none", [static(f(1, 2)), static(f(0))], pdpd(0))
    for axis, runs in (
        (1, [[f(2, 3, 4), f(3)], [f(2, 3, 4, 2), f(3, 4, 1)]]),
        (-1, [[f(2, 3, 4), f(3, 4)], [f(2, 3), f(2, 1)], [f(3, 0), f(0)]]),
        (0, [[f(2, 3, 4), f(2)], [f(2, 3), f()], [f(0, 2), f(0, 1)]]),
    ):
        yield multiply(f"pdpd-dynamic-rank-axis-{axis}", shaped([None, None], *runs), pdpd(axis), **_RANK)


def _texts():
    axis = layer_case("Add", "opset1", "Add", "pdpd-without-axis", statics([_small(F32, 2, 3, 4), _small(F32, 2)]), pdpd(0))
    yield replaced(axis, ' auto_broadcast.auto_broadcast_axis="0"', "")
    none = {"auto_broadcast": "NONE"}
    explicit = layer_case("Multiply", "opset1", "multiply", "explicit-is-none", [static(_A), static(_B)], none)
    yield replaced(explicit, 'auto_broadcast="none"', 'auto_broadcast="explicit"')


# -- CumSum, ErfInv ---------------------------------------------------------------------------------------------------


def _sums():
    case = partial(layer_case, "CumSum", "opset3", "cum_sum")
    x = _floats(1, -2, 3, 4, 5.5, -6, 7, 8, 9, 10, 11, 12).reshape(2, 3, 2)
    for exclusive in (False, True):
        for reverse in (False, True):
            attributes = {"exclusive": exclusive, "reverse": reverse}
            name = f"exclusive-{exclusive}-reverse-{reverse}".lower()
            yield case(name, [static(x, x), static(np.array(-2), np.array(0))], attributes)
    for dtype in (*INTEGERS, np.float16, np.float64):
        yield case(np.dtype(dtype).name, [static(_small(dtype, 2, 5)), I32(1)], {"exclusive": True})
    booleans = decided("cpu", "the reference kernel does not run on booleans")
    flags = np.array([[0, 1, 0, 1, 0], [0, 0, 0, 1, 1]], bool)
    yield case("bool", [static(flags), np.array(1)], **booleans)
    yield case(
        "bool-backward", [dynamic(flags, flags[:, :0]), np.array(-1)], {"exclusive": True, "reverse": True}, **booleans
    )
    scalar = decided("cpu", "the reference kernel does not run on scalars, or crashes")
    yield case("dynamic", [dynamic(x, x[:1, :2]), dynamic(np.array(1), np.array(-1))])
    yield case("empty", [dynamic(np.zeros((0, 3), F32)), dynamic(np.array(1))])
    yield case("scalar", [static(np.int64(3)), np.array(0)], {"reverse": True}, **scalar)
    yield case("scalar-exclusive", [static(F32(3)), static(np.array(0))], {"exclusive": True}, **scalar)
    yield case("dynamic-rank", [unranked(x, x[0]), static(np.array(-2), np.array(1))], **_RANK)
    yield case("vector", [static(x[0, 0]), np.array(0)], {"reverse": True})


def _erf_invs():
    case = partial(layer_case, "ErfInv", "opset17", "ErfInv")
    p = _floats(0, 0.5, -0.5, 0.9, -0.9, 0.99, -0.999, 0.9999, -0.999999, 1, -1, 1.5, -2, NAN, 1e-10, INF)
    yield case("f32", [static(p)])
    yield case("dynamic", [dynamic(p.reshape(4, 4), p[:0].reshape(0, 2))])
    yield case("scalar", [static(p[1])])
    yield case("f16", [static(p.astype(F16))])
    yield case("bf16", [static(p.astype(BF16))])
    yield case("f64", [static(np.delete(p, [9, 10, 15]).astype(F64))])
    yield case("constant", [p])


CASES = [
    *_unaries(), *_rounds(), *(case for row in _BINARY.items() for case in _binary(*row)), *_signs(), *_ends_of_ranges(),
    *_floats_of_two(), *_ranks(), *_texts(), *_sums(), *_erf_invs(),
]  # fmt: skip
