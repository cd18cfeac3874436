"""Integers and booleans in the forms that Qualcomm's HTP computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.spellings.padding import constant_pads
from converters.passes.spellings.qnn_limits import MOST_DIMENSIONS
from converters.passes.workaround import KernelWorkaround, Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, has_full_range, producer_of

_SIGNED = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_CAST = frozenset((*_SIGNED, ir.DataType.UINT32, ir.DataType.FLOAT, ir.DataType.FLOAT16))
_BYTES = 256


class BytesThroughIntegers(Workaround):
    """Cast unsigned bytes to floats by way of 32-bit integers.

    QNN's HTP (2.7) returns 1 for each nonzero byte, as for booleans.
    """

    operators = frozenset(("Cast",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, dtype = node.inputs[0], node.outputs[0].dtype
        if not isinstance(x, Value) or x.dtype != ir.DataType.UINT8 or dtype is None or not dtype.is_floating_point():
            return None
        return [op.Cast(op.Cast(x, to=ir.DataType.INT32), to=dtype)]


class WrappedBytes(Workaround):
    """Cast only the low byte of integers and floats to unsigned bytes, unless a Clip limits them to the range from 0 to 255.

    For numbers out of range, QNN's HTP (2.7) returns the nearest number in the range.
    """

    operators = frozenset(("Cast",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or node.outputs[0].dtype != ir.DataType.UINT8 or _is_byte(x):
            return None
        if x.dtype not in _CAST:
            return None
        integers = x if x.dtype == ir.DataType.INT32 else op.Cast(x, to=ir.DataType.INT32)
        return [op.Cast(_remainder(op, integers, op.const(_BYTES, ir.DataType.INT32)), to=ir.DataType.UINT8)]


def _is_byte(value: ir.Value) -> bool:
    """Return whether a Clip or a Cast of bytes or booleans limits a value to 0 to 255."""
    node = value.producer()
    if node is None or node.domain or node.op_type not in ("Cast", "Clip"):
        return False
    if node.op_type == "Cast":
        source = node.inputs[0]
        return source is not None and (source.dtype in (ir.DataType.BOOL, ir.DataType.UINT8) or _is_byte(source))
    least, most = (None if limit is None else constant_array(limit) for limit in (*node.inputs, None, None)[1:3])
    return least is not None and most is not None and bool((least >= 0).all() and (most < _BYTES).all())


class UnequalTo0(Workaround):
    """Convert Cast of integers to booleans to a comparison with 0.

    QNN's HTP (2.7) casts negative integers to false.
    """

    operators = frozenset(("Cast",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype not in _SIGNED or node.outputs[0].dtype != ir.DataType.BOOL:
            return None
        return [op.Not(op.Equal(x, op.const(0, x.dtype)))]


class ExactQuotients(Workaround):
    """Convert Div of integers by a power of two to the negated quotient by the negative divisor, and Mod to Div, Mul and
    Sub.

    QNN's HTP (2.7) rounds quotients by powers of two down, because it shifts the bits, and truncates other quotients. It
    computes Mod in float16.
    """

    operators = frozenset(("Div", "Mod"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype not in _SIGNED:
            return None
        if node.op_type == "Div":
            return [_quotient(op, a, b)] if _shifts(b) else None
        if node.attributes.get_int("fmod", 0):
            return [op.Sub(a, op.Mul(_quotient(op, a, b), b))]
        return [_remainder(op, a, b)]


def _shifts(divisor: Value) -> bool:
    """Return whether a divisor is a single constant power of two."""
    number = constant_array(divisor)
    return number is not None and number.size == 1 and (found := int(number.item())) > 1 and not found & (found - 1)


def _quotient(op: Builder, a: Value, b: Value) -> Value:
    """Return the truncated quotient."""
    return op.Sub(op.const(0, a.dtype), op.Div(a, op.Neg(b))) if _shifts(b) else op.Div(a, b)


def _remainder(op: Builder, a: Value, b: Value) -> Value:
    """Return the remainder with the sign of the divisor."""
    rest, zero = op.Sub(a, op.Mul(_quotient(op, a, b), b)), op.const(0, a.dtype)
    number = constant_array(b)
    if number is not None and (number > 0).all():
        return op.Where(op.Less(rest, zero), op.Add(rest, b), rest)
    opposite = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(b, zero)))
    return op.Where(opposite, op.Add(rest, b), rest)


class SumsOfParts(KernelWorkaround):
    """Add integers in parts of 4 to 11 bits.

    QNN's HTP (2.7) adds integers in float32, which represents all integers up to 2^24, and has no bitwise operators.
    Condition: at most 2^20 elements are added. Casts of booleans are added as they are.
    """

    operators = frozenset(("ReduceSum",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *axes = node.inputs
        result = node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or not has_full_range(node) or x.dtype not in _SIGNED:
            return None
        if not x.is_static or not result.is_static:
            return None
        count = math.prod(size or 0 for size in x.dims or ()) // max(math.prod(size or 0 for size in result.dims or ()), 1)
        if count > 1 << (_EXACT - _LEAST_BITS):
            return None
        if _is_of_booleans(x):
            return [again(op, node, x, *axes)]
        width = min(_EXACT - max(count - 1, 0).bit_length(), _MOST_BITS)
        unit = op.const(1 << width, x.dtype)
        rest, parts = x, []
        for _ in range(-(-_BITS // width) - 1):
            higher = op.Div(rest, unit)
            parts.append(again(op, node, op.Sub(rest, op.Mul(higher, unit)), *axes))
            rest = higher
        total = again(op, node, rest, *axes)
        for part in reversed(parts):
            total = op.Add(op.Mul(total, unit), part)
        return [total]


_EXACT = 24
"""The largest power of two below which float32 represents all integers."""

_LEAST_BITS, _MOST_BITS, _BITS = 4, 11, 32


def _is_of_booleans(value: ir.Value) -> bool:
    cast = producer_of(value, "Cast")
    return cast is not None and cast.inputs[0] is not None and cast.inputs[0].dtype == ir.DataType.BOOL


class ConcatenatedPads(Workaround):
    """Convert Pad of integers and booleans with a constant to Concat.

    QNN's HTP (2.7) rejects it. Conditions: at most four known dimensions, a constant number, and constant pads that are not
    negative.
    """

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if (padding := constant_pads(node)) is None:
            return None
        ends, number = padding
        if not isinstance(x, Value) or x.dtype not in _SIGNED | {ir.DataType.BOOL} or not x.is_static:
            return None
        dims = [size or 0 for size in x.dims or ()]
        fill = np.zeros((), x.dtype.numpy()) if number is None else constant_array(number)
        if fill is None or not 1 <= len(dims) <= MOST_DIMENSIONS or 0 in dims:
            return None
        result = x
        for axis, pair in enumerate(zip(ends[: len(dims)], ends[len(dims) :], strict=True)):
            before, after = (
                [np.full([*dims[:axis], width, *dims[axis + 1 :]], fill.reshape(()))] * (width > 0) for width in pair
            )
            if any(pair):
                result = op.Concat(*map(op.const, before), result, *map(op.const, after), axis=axis)
            dims[axis] += sum(pair)
        return [result]
