"""Elementwise arithmetic.

Integers are computed exactly in their own type. If a result overflows, 8-bit integers saturate, and wider types wrap.
"""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np

from converters.openvino.rule import Departure, rule
from converters.openvino.rules._elementwise import PDPD_REJECTED, AutoBroadcast, align, binary, check_types, typed
from converters.openvino.rules._indices import constant_axis, int64
from converters.openvino.rules._precision import (
    BYTES,
    FLOATS,
    INTEGERS,
    INTEGERS_IN_FLOAT32,
    SIGNED,
    UNSIGNED,
    D,
    integers_rounded,
    saturating_8_bits,
)
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import mark_full_range

_ROUNDED = Departure(
    name="integers",
    where="integers of 32 and 64 bits",
    cpu="rounds the result to the nearest integer",
    reference="truncates it",
    follows="cpu",
)
_AS_FLOATS = Departure(
    where="an i32 whose result is beyond the range of its type",
    cpu="gives the largest float in the range",
    reference="gives the lowest i32",
    follows="cpu",
)
_BOUNDED = Departure(where="results beyond the range of i8 and u8", cpu="saturates", reference="wraps", follows="cpu")
_LAID_AND_BOUNDED = Departure(
    where="i8 and u8 with `auto_broadcast=pdpd`, of one rank and known shapes, and i8 of Subtract",
    cpu="saturates these results; all others wrap",
    reference="wraps",
    follows="reference",
)
_LAID_IN_PRODUCTS = Departure(
    where="a constant that `auto_broadcast=pdpd` broadcasts to the result of a MatMul by a constant",
    cpu="aligns it with the last dimension if their sizes match; for i8 and u8, gives zeros or rejects it",
    specification="aligns it with the dimensions from `auto_broadcast_axis` on",
    follows="specification",
)
_LOWEST = "gives the lowest i8, or the bits of the lowest i32"
_BY_0 = Departure(where="an integer divisor of 0", cpu=_LOWEST, reference="fails", follows="cpu")
_BIG_QUOTIENT = Departure(
    where="floats whose quotient is beyond 2^24",
    cpu="subtracts a multiple of the rounded quotient, so that the result has its rounding error",
    specification="gives the remainder",
    follows="specification",
)

# Functions that ONNX has, each with the opset that OpenVINO writes in an IR.
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


_UNARY_DEPARTS = {
    "Asin": [_ROUNDED],
    "Log": [_ROUNDED],
    "Sin": [_ROUNDED],
    "Cosh": [_AS_FLOATS],
    "Sinh": [_AS_FLOATS],
    "Exp": [_ROUNDED, Departure(where="a NaN", cpu="gives infinity", reference="keeps it", follows="reference")],
}


# For integers of up to 32 bits, the CPU plugin clamps these to the last float before 2^31.
_BOUNDED_AS_FLOATS = ("Cosh", "Sinh")
_GREATEST = 2.0**31 - 128


def _register_unary(operation: str, node: str, since: str) -> None:
    @rule(operation, since=since, departs=_UNARY_DEPARTS.get(operation, []))
    def emit(op: Builder, x: Value):
        if operation in _BOUNDED_AS_FLOATS and x.dtype in (D.INT32, *BYTES):
            return integers_rounded(op, lambda x: op.Clip(op.node(node, x), -(2.0**31), _GREATEST), x)
        return integers_rounded(op, lambda x: op.node(node, x), x)


for _since, _operations in _UNARY.items():
    for _operation, _node in _operations.items():
        _register_unary(_operation, _node, _since)


@rule("Abs")
def abs_(op: Builder, x: Value):
    """Abs-1."""
    return saturating_8_bits(op, op.Abs, x)


@rule("Sign")
def sign(op: Builder, x: Value):
    """Sign-1."""
    return op.Sign(x)


@rule(
    "Negative",
    departs=[
        Departure(
            where="unsigned integers", cpu="rejects them", specification="allows any numeric type", follows="specification"
        ),
    ],
)
def negative(op: Builder, x: Value):
    """Negative-1."""
    return saturating_8_bits(op, lambda x: op.Sub(0, x) if x.dtype in UNSIGNED else op.Neg(x), x)


@rule("Ceiling", departs=[INTEGERS_IN_FLOAT32])
def ceiling(op: Builder, x: Value):
    """Ceiling-1; integers do not change."""
    return x if x.dtype in INTEGERS else op.Ceil(x)


@rule("Floor", departs=[INTEGERS_IN_FLOAT32])
def floor(op: Builder, x: Value):
    """Floor-1; integers do not change."""
    return x if x.dtype in INTEGERS else op.Floor(x)


@rule(
    "Round",
    since="opset5",
    departs=[
        Departure(
            where="`half_away_from_zero`, for the largest number below 0.5",
            cpu="rounds it away from zero",
            specification="rounds it to zero",
            follows="specification",
        ),
        INTEGERS_IN_FLOAT32,
    ],
)
def round_(op: Builder, x: Value, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"):
    """Round-5; integers and booleans do not change."""
    if x.dtype not in FLOATS:
        return x
    if mode == "half_to_even":
        return op.Round(x)
    # Adding a half before Floor would round 0.49999997 up.
    size = op.Abs(x)
    whole = op.Floor(size)
    rounded = op.Where(op.GreaterOrEqual(op.Sub(size, whole), 0.5), op.Add(whole, 1), whole)
    return op.Where(op.Less(x, 0), op.Neg(rounded), rounded)


def _register_sum(operation: str, node: str, departs: list[Departure]) -> None:
    @rule(operation, departs=[_BOUNDED, _LAID_AND_BOUNDED, *departs])
    def emit(op: Builder, a: Value, b: Value, *, auto_broadcast: AutoBroadcast = "numpy", auto_broadcast_axis: int = 0):
        b = align(op, a, b, auto_broadcast, auto_broadcast_axis)
        if auto_broadcast == "pdpd":  # the CPU plugin uses the reference kernel
            return op.node(node, a, b)
        return saturating_8_bits(op, functools.partial(op.node, node), a, b)


_register_sum("Add", "Add", [_LAID_IN_PRODUCTS])
_register_sum("Subtract", "Sub", [PDPD_REJECTED])


@binary("Multiply", departs=[_LAID_IN_PRODUCTS])
def multiply(op: Builder, a: Value, b: Value):
    """Multiply-1."""
    return saturating_8_bits(op, op.Mul, a, b)


@binary(
    "SquaredDifference",
    departs=[
        Departure(
            where="i8 and u8", cpu="does not compute squares", specification="computes squares", follows="specification"
        ),
    ],
)
def squared_difference(op: Builder, a: Value, b: Value):
    """SquaredDifference-1."""

    def square(a: Value, b: Value) -> Value:
        difference = op.Sub(a, b)
        return op.Mul(difference, difference)

    return saturating_8_bits(op, square, a, b)


_NAN_AND_NUMBER = [
    Departure(
        where="a NaN in the first operand only", cpu="gives the second", reference="gives the NaN", follows="reference"
    ),
    Departure(where="a NaN in the second operand only", cpu="gives the NaN", reference="gives the first", follows="cpu"),
]


@binary("Maximum", departs=_NAN_AND_NUMBER)
def maximum(op: Builder, a: Value, b: Value):
    """Maximum-1; NaN propagates."""
    return op.Max(a, b)


@binary("Minimum", departs=_NAN_AND_NUMBER)
def minimum(op: Builder, a: Value, b: Value):
    """Minimum-1; NaN propagates."""
    return op.Min(a, b)


@rule(
    "Divide",
    departs=[
        Departure(
            name="integers",
            where="integers with `m_pythondiv`, whose quotient is negative and not an integer",
            cpu="truncates it",
            specification="rounds down",
            follows="specification",
        ),
        Departure(
            name="integers",
            where="i8 and u8, if dimensions are unknown",
            cpu="rounds the quotient to the nearest integer",
            specification="rounds it down, or towards zero without `m_pythondiv`",
            follows="specification",
        ),
        _BY_0,
        INTEGERS_IN_FLOAT32,
        PDPD_REJECTED,
    ],
)
def divide(
    op: Builder,
    a: Value,
    b: Value,
    *,
    m_pythondiv: bool = True,
    auto_broadcast: AutoBroadcast = "numpy",
    auto_broadcast_axis: int = 0,
):
    """Divide-1: integers round down with ``m_pythondiv``, and towards zero otherwise."""
    b = align(op, a, b, auto_broadcast, auto_broadcast_axis)
    if a.dtype in FLOATS:
        return op.Div(a, b)
    return saturating_8_bits(op, lambda a, b: _quotient(op, a, b, m_pythondiv), a, b)


def _quotient(op: Builder, a: Value, b: Value, floor: bool) -> Value:
    divisor, zero, one_less = _divisor(op, b)
    quotient = op.Div(a if one_less is None else op.Where(one_less, op.Neg(a), a), divisor)
    if floor and a.dtype in SIGNED:
        # Mod has the divisor's sign. If it is not 0 and the operands' signs differ, truncation rounded up.
        inexact = op.Not(op.Equal(op.Mod(a, divisor), 0))
        opposite = op.Xor(op.Less(a, 0), op.Less(divisor, 0))
        quotient = op.Sub(quotient, op.Cast(op.And(inexact, opposite), to=a.dtype))
    return _defined(op, quotient, zero)


def _divisor(op: Builder, b: Value) -> tuple[Value, Value | None, Value | None]:
    """Return an integer divisor with 1 instead of 0 and -1, which ONNX leaves undefined, and where it was these."""
    known = b.constant
    if known is not None and (known != 0).all() and (b.dtype in UNSIGNED or (known != -1).all()):
        return b, None, None
    zero = op.Equal(b, 0)
    if b.dtype in UNSIGNED:
        return op.Where(zero, 1, b), zero, None
    one_less = op.Equal(b, -1)
    return op.Where(op.Or(zero, one_less), 1, b), zero, one_less


def _defined(op: Builder, result: Value, zero: Value | None) -> Value:
    """Return ``result``, with the lowest i8, or the bits of the lowest i32, where the divisor was 0."""
    if zero is None:
        return result
    assert result.dtype is not None
    lowest = np.array(-128 if result.dtype == D.INT8 else -(2**31)).astype(result.dtype.numpy())
    return op.Where(zero, lowest, result)


@binary(
    "FloorMod",
    departs=[
        Departure(
            where="an integer divisor of 0, of types other than i32",
            cpu=_LOWEST,
            reference="gives different numbers",
            follows="cpu",
        ),
        INTEGERS_IN_FLOAT32,
        _BIG_QUOTIENT,
    ],
)
def floor_mod(op: Builder, a: Value, b: Value):
    """FloorMod-1: the remainder has the divisor's sign. It is NaN for an infinite divisor."""
    if a.dtype in FLOATS:
        remainder = op.Mod(a, b, fmod=1)
        # The sum also converts -0 to 0.
        remainder = op.Add(remainder, op.Where(op.Less(op.Mul(op.Sign(remainder), op.Sign(b)), 0), b, 0.0))
        if b.constant is not None and np.isfinite(b.constant.astype(np.float64)).all():
            return remainder
        return op.Where(op.IsInf(b), typed(np.nan, a.dtype), remainder)
    divisor, zero, _ = _divisor(op, b)
    return _defined(op, op.Mod(a, divisor), zero)


@binary(
    "Mod",
    departs=[
        _BY_0,
        INTEGERS_IN_FLOAT32,
        _BIG_QUOTIENT,
        Departure(
            where="an infinite divisor of a finite number",
            cpu="gives NaN",
            specification="gives the number, as in C",
            follows="specification",
        ),
    ],
)
def mod(op: Builder, a: Value, b: Value):
    """Mod-1: the remainder has the dividend's sign."""
    if a.dtype in FLOATS:
        return op.Mod(a, b, fmod=1)
    divisor, zero, _ = _divisor(op, b)
    remainder = op.Mod(a, divisor, fmod=None if a.dtype in UNSIGNED else 1)
    return _defined(op, remainder, zero)


@binary(
    "Power",
    departs=[
        INTEGERS_IN_FLOAT32,
        Departure(
            name="integers",
            where="results beyond the range of an integer type other than i32",
            cpu="wraps, saturates or gives 0, depending on the type",
            reference="wraps, or gives the lowest number",
            follows="runtime",
        ),
    ],
)
def power(op: Builder, a: Value, b: Value):
    """Power-1."""
    check_types(a, b)
    if a.dtype == D.UINT64:
        return op.Cast(op.Pow(op.Cast(a, to=D.INT64), op.Cast(b, to=D.INT64)), to=D.UINT64)
    power = saturating_8_bits(op, op.Pow, a, b)
    mark_full_range(power)
    return power


@rule("ErfInv", since="opset17")
def erf_inv(op: Builder, x: Value):
    """ErfInv-17."""
    return op.specops.ErfInv(x)


@rule("CumSum", since="opset3")
def cum_sum(op: Builder, x: Value, axis: Value | None = None, *, exclusive: bool = False, reverse: bool = False):
    """CumSum-3; ``axis`` is 0 by default. For booleans the CPU plugin gives whether a term is true."""
    if x.dtype == D.BOOL:
        return op.Cast(cum_sum(op, op.Cast(x, to=D.INT64), axis, exclusive=exclusive, reverse=reverse), to=D.BOOL)
    axis = op.const(0) if axis is None else axis
    if axis.dtype != D.INT32:
        axis = int64(op, axis)
    if x.rank:
        constant_axis(axis, x.rank)
        return op.CumSum(x, axis, exclusive=int(exclusive), reverse=int(reverse))
    # A scalar is treated as a vector of one element. All data get one more axis at the end.
    rank = op.Max(op.Size(op.Shape(x)), 1)
    axis = op.Cast(axis, to=D.INT64)
    axis = op.Where(op.Less(axis, 0), op.Add(axis, rank), axis)
    return op.Squeeze(op.CumSum(op.Unsqueeze(x, [-1]), axis, exclusive=int(exclusive), reverse=int(reverse)), [-1])
