"""Element by element: arithmetic.

Integers compute in their own type, exactly, and wrap where a result does not fit. (OpenVINO's CPU plugin computes
64-bit integers in 32 bits, some operations in float32, and saturates u8 and i8; its reference kernels do not.)
"""

from __future__ import annotations

from typing import Literal

from converters.openvino.rule import rule
from converters.openvino.rules._elementwise import (
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    AutoBroadcast,
    D,
    align,
    binary,
    through_floats,
)
from onnx_specops.building import Builder, Value

# Functions that ONNX has under a name of its own; each with the opset that OpenVINO gives it in an IR.
_UNARY = {
    "opset1": {
        "Acos": "Acos",
        "Asin": "Asin",
        "Atan": "Atan",
        "Cos": "Cos",
        "Cosh": "Cosh",
        "Erf": "Erf",
        "Exp": "Exp",
        "Log": "Log",
        "Sin": "Sin",
        "Sinh": "Sinh",
        "Sqrt": "Sqrt",
        "Tan": "Tan",
        "Tanh": "Tanh",
    },
    "opset4": {"Acosh": "Acosh", "Asinh": "Asinh", "Atanh": "Atanh"},
}


def _register_unary(operation: str, node: str, since: str) -> None:
    @rule(operation, since=since)
    def emit(op: Builder, x: Value):
        return through_floats(op, x, lambda x: op.node(node, x))


for _since, _operations in _UNARY.items():
    for _operation, _node in _operations.items():
        _register_unary(_operation, _node, _since)


@rule("Abs")
def abs_(op: Builder, x: Value):
    """Abs-1."""
    return op.Abs(x)


@rule("Sign")
def sign(op: Builder, x: Value):
    """Sign-1."""
    return op.Sign(x)


@rule("Negative")
def negative(op: Builder, x: Value):
    """Negative-1."""
    return op.Sub(0, x) if x.dtype in UNSIGNED else op.Neg(x)


@rule("Ceiling")
def ceiling(op: Builder, x: Value):
    """Ceiling-1; integers stay as they are."""
    return x if x.dtype in INTEGERS else op.Ceil(x)


@rule("Floor")
def floor(op: Builder, x: Value):
    """Floor-1; integers stay as they are."""
    return x if x.dtype in INTEGERS else op.Floor(x)


@rule("Round", since="opset5")
def round_(op: Builder, x: Value, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"):
    """Round-5; integers stay as they are."""
    if x.dtype in INTEGERS:
        return x
    if mode == "half_to_even":
        return op.Round(x)
    # Adding a half before the floor would round 0.49999997 up.
    size = op.Abs(x)
    whole = op.Floor(size)
    rounded = op.Where(op.GreaterOrEqual(op.Sub(size, whole), 0.5), op.Add(whole, 1), whole)
    return op.Where(op.Less(x, 0), op.Neg(rounded), rounded)


@binary("Add")
def add(op: Builder, a: Value, b: Value):
    """Add-1."""
    return op.Add(a, b)


@binary("Subtract")
def subtract(op: Builder, a: Value, b: Value):
    """Subtract-1."""
    return op.Sub(a, b)


@binary("Multiply")
def multiply(op: Builder, a: Value, b: Value):
    """Multiply-1."""
    return op.Mul(a, b)


@binary("SquaredDifference")
def squared_difference(op: Builder, a: Value, b: Value):
    """SquaredDifference-1."""
    difference = op.Sub(a, b)
    return op.Mul(difference, difference)


@binary("Maximum")
def maximum(op: Builder, a: Value, b: Value):
    """Maximum-1; a NaN stays NaN. (OpenVINO's CPU takes the second operand then, the reference kernel the first.)"""
    return op.Max(a, b)


@binary("Minimum")
def minimum(op: Builder, a: Value, b: Value):
    """Minimum-1; a NaN stays NaN. (OpenVINO's CPU takes the second operand then, the reference kernel the first.)"""
    return op.Min(a, b)


@rule("Divide")
def divide(
    op: Builder,
    a: Value,
    b: Value,
    *,
    m_pythondiv: bool = True,
    auto_broadcast: AutoBroadcast = "numpy",
    auto_broadcast_axis: int = 0,
):
    """Divide-1: integers round down with ``m_pythondiv``, else towards zero. (OpenVINO's CPU always truncates.)"""
    b = align(op, a, b, auto_broadcast, auto_broadcast_axis)
    quotient = op.Div(a, b)
    if not m_pythondiv or a.dtype not in SIGNED:
        return quotient
    # Mod takes the divisor's sign: where it is not 0 and the operands' signs differ, truncation went up by one.
    inexact = op.Not(op.Equal(op.Mod(a, b), 0))
    opposite = op.Xor(op.Less(a, 0), op.Less(b, 0))
    return op.Sub(quotient, op.Cast(op.And(inexact, opposite), to=a.dtype))


@binary("FloorMod")
def floor_mod(op: Builder, a: Value, b: Value):
    """FloorMod-1: the remainder has the divisor's sign. (OpenVINO's CPU computes 32-bit integers in float32.)"""
    if a.dtype not in FLOATS:
        return op.Mod(a, b)
    remainder = op.Mod(a, b, fmod=1)
    return op.Where(op.Less(op.Mul(op.Sign(remainder), op.Sign(b)), 0), op.Add(remainder, b), remainder)


@binary("Mod")
def mod(op: Builder, a: Value, b: Value):
    """Mod-1: the remainder has the dividend's sign. (OpenVINO's CPU computes 32-bit integers in float32.)"""
    if a.dtype in FLOATS:
        return op.Mod(a, b, fmod=1)
    # ONNX Runtime computes fmod of integers in floats.
    return op.Mod(a, b) if a.dtype in UNSIGNED else op.Mul(op.Sign(a), op.Mod(op.Abs(a), op.Abs(b)))


@binary("Power")
def power(op: Builder, a: Value, b: Value):
    """Power-1."""
    if a.dtype == D.UINT64:
        return op.Cast(op.Pow(op.Cast(a, to=D.INT64), op.Cast(b, to=D.INT64)), to=D.UINT64)
    return op.Pow(a, b)


@rule("ErfInv", since="opset17")
def erf_inv(op: Builder, x: Value):
    """ErfInv-17."""
    return op.specops.ErfInv(x)


@rule("CumSum", since="opset3")
def cum_sum(op: Builder, x: Value, axis: Value | None = None, *, exclusive: bool = False, reverse: bool = False):
    """CumSum-3; ``axis`` is 0 where it is absent."""
    axis = op.const(0) if axis is None else axis
    if axis.dtype not in (D.INT32, D.INT64):
        axis = op.Cast(axis, to=D.INT64)
    return op.CumSum(x, axis, exclusive=int(exclusive), reverse=int(reverse))
