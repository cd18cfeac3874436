"""Arithmetic, comparison and bitwise operators: integers where older opsets only have floats, and missing operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.graphs import constant_array
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, below

D = ir.DataType


def _is_integer(x: Value) -> bool:
    return x.dtype is not None and x.dtype.is_integer()


@below(12, "Max", "Min")
def extreme(op: LoweringBuilder, *values: Value, node):
    """Compare integers instead of casting them to floats, which would round large ones."""
    if not _is_integer(values[0]):
        return SAME
    first = op.Greater if node.op_type == "Max" else op.Less
    return reduce(lambda a, b: op.Where(first(a, b), a, b), values)


@below(12, "Clip")
def clip(op: LoweringBuilder, x: Value, low: Value | None = None, high: Value | None = None):
    if not _is_integer(x):
        return SAME
    bounded = x if low is None else op.Max(x, low)
    return bounded if high is None else op.Min(bounded, high)


@below(14, "Relu")
def relu(op: LoweringBuilder, x: Value):
    return op.Max(x, 0) if _is_integer(x) else SAME


@below(12, "Pow")
def power(op: LoweringBuilder, x: Value, exponent: Value):
    """Cast both inputs to one float type. A power beyond the range of uint32 wraps, as in newer opsets."""
    if x.dtype == exponent.dtype and not _is_integer(x):
        return SAME
    if x.dtype is None:
        raise NotRepresentableError("Pow of an unknown type")
    wide = D.DOUBLE if _is_integer(x) else x.dtype
    result = op.old.Pow(op.Cast(x, to=wide) if wide != x.dtype else x, op.Cast(exponent, to=wide))
    if x.dtype == D.UINT32:  # ONNX Runtime (1.32) gives 0 for a number beyond the range
        result = op.Mod(op.Cast(result, to=D.INT64), 2**32)
    return op.Cast(result, to=x.dtype) if wide != x.dtype else result


@below(12, "LessOrEqual", "GreaterOrEqual")
def or_equal(op: LoweringBuilder, a: Value, b: Value, *, node):
    """Combine two comparisons. Both are false for NaN."""
    first = op.Less if node.op_type.startswith("Less") else op.Greater
    return op.Or(first(a, b), op.Equal(a, b))


@below(19, "Equal")
def equal_strings(op: LoweringBuilder, a: Value, b: Value):
    """Compare strings by their indices among the unique strings."""
    if a.dtype != D.STRING:
        return SAME
    together = op.Concat(*(op.Reshape(x, [-1]) for x in (a, b)), axis=0)
    _, _, numbers = op.Unique(together, outputs=3)
    count = op.Reshape(op.Size(a), [1])
    parts = (op.Slice(numbers, [0], count), op.Slice(numbers, count, [2**31 - 1]))
    return op.Equal(*(op.Reshape(part, op.Shape(x), allowzero=1) for part, x in zip(parts, (a, b), strict=True)))


# -- bits -----------------------------------------------------------------------------------------------------------------


@below(18, "BitwiseNot")
def bitwise_not(op: LoweringBuilder, x: Value):
    dtype = _known_type(x)
    if dtype.is_signed():
        return op.Sub(op.Neg(x), 1)
    return op.Sub(op.const(np.array(2**dtype.bitwidth - 1, dtype.numpy())), x)


@below(18, "BitwiseAnd")
def bitwise_and(op: LoweringBuilder, a: Value, b: Value):
    for mask, x in ((b, a), (a, b)):
        if (number := constant_array(mask)) is not None and number.size == 1:
            if (mask.rank or 0) > (x.rank or 0):
                x = op.Expand(x, op.Shape(mask))
            return _masked(op, x, int(number.reshape(-1)[0]))
    parts = [_both(op, *pair) for pair in zip(_bytes(op, a), _bytes(op, b), strict=True)]
    return _from_bytes(op, parts, _known_type(a))


def _masked(op: LoweringBuilder, x: Value, mask: int) -> Value:
    dtype = _known_type(x)
    if mask == 0:
        return op.Mul(x, 0)
    if mask > 0 and mask & (mask + 1) == 0 and mask.bit_length() < dtype.bitwidth - dtype.is_signed():
        return op.Mod(x, mask + 1)  # result has the divisor's sign, so these are the low bits of negative numbers too
    every = np.arange(256)
    parts: list[Value | None] = []
    for index, part in enumerate(_bytes(op, x)):
        bits = mask >> 8 * index & 255
        parts.append(None if not bits else part if bits == 255 else op.Gather(op.const(every & bits), part))
    return _from_bytes(op, parts, dtype)


@below(18, "BitwiseOr")
def bitwise_or(op: LoweringBuilder, a: Value, b: Value):
    return op.Sub(op.Add(a, b), op.BitwiseAnd(a, b))


@below(18, "BitwiseXor")
def bitwise_xor(op: LoweringBuilder, a: Value, b: Value):
    both = op.BitwiseAnd(a, b)
    return op.Sub(op.Sub(op.Add(a, b), both), both)


def _known_type(x: Value) -> ir.DataType:
    if x.dtype is None:
        raise NotRepresentableError("bitwise operations on an unknown type")
    return x.dtype


def _bytes(op: LoweringBuilder, x: Value) -> list[Value]:
    """Return the bytes of integers as int64, lowest byte first."""
    count = _known_type(x).bitwidth // 8
    wide = op.Cast(x, to=D.INT64) if x.dtype != D.INT64 else x
    # Floor division shifts the bits of negative numbers in the same way as those of positive ones.
    parts = []
    for _ in range(count):
        low = op.Mod(wide, 256)
        parts.append(low)
        wide = op.Div(op.Sub(wide, low), 256)
    return parts


def _both(op: LoweringBuilder, a: Value, b: Value) -> Value:
    every = np.arange(256, dtype=np.uint8)
    table = op.const((every[:, None] & every[None, :]).reshape(-1))
    return op.Cast(op.Gather(table, op.Add(op.Mul(a, 256), b)), to=D.INT64)


def _from_bytes(op: LoweringBuilder, parts: Sequence[Value | None], dtype: ir.DataType) -> Value:
    terms = [op.Mul(part, 256**index) if index else part for index, part in enumerate(parts) if part is not None]
    whole = reduce(op.Add, terms)
    return op.Cast(whole, to=dtype) if dtype != D.INT64 else whole
