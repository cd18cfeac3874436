"""The precision in which OpenVINO's CPU plugin computes types that its kernels lack, and the rounding of results.

Most kernels of the plugin compute in float32. It keeps 16-bit floats in float32 between operations, and computes integers in
floats. 8-bit results saturate, and wider integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.openvino.rule import Departure
from onnx_specops.building import Builder, Value, cast_unrounded

D = ir.DataType

HALVES = {D.FLOAT16, D.BFLOAT16}
BYTES = {D.INT8, D.UINT8}
FLOATS = {D.FLOAT, D.DOUBLE, *HALVES}
SIGNED = {D.INT8, D.INT16, D.INT32, D.INT64}
UNSIGNED = {D.UINT8, D.UINT16, D.UINT32, D.UINT64}
INTEGERS = SIGNED | UNSIGNED
WIDE = {D.INT32, D.INT64, D.UINT32, D.UINT64}

ZERO_WEIGHT = Departure(
    where="a NaN or an infinite number whose weight in a result is 0",
    cpu="ignores it",
    specification="leaves it undefined",
    follows="runtime",
)
INTEGERS_IN_FLOAT32 = Departure(
    name="integers",
    where="integers of 32 bits or more beyond 2^24",
    cpu="computes in f32, which rounds them",
    reference="computes in their type",
    follows="reference",
)


def require_floats(x: Value, action: str) -> None:
    """Raise `Unsupported` for an input of integers that OpenVINO allows and its specification does not define.

    Args:
        x: the input.
        action: the layer's action on it for the message, such as ``"normalizes"``.
    """
    if x.dtype is not None and not x.dtype.is_floating_point():
        raise Unsupported(f"it {action} {x.dtype.name}, which the specification does not define", "convert to f32 before it")


def halves_in_float32(op: Builder, function: Callable[..., Value], *values: Value) -> Value:
    """Apply ``function`` to values of one type. 16-bit floats are computed in float32, and stay float32 for the nodes that
    follow.
    """
    return _in_float32(op, function, values) if values[0].dtype in HALVES else function(*values)


def selected_in_float32(op: Builder, function: Callable[..., Sequence[Value]], *values: Value) -> Sequence[Value]:
    """Apply ``function``, which selects boxes, to values of one type. 16-bit floats are computed in float32: scores that
    differ in float32 can be equal in their type, and their order then determines the boxes.
    """
    dtype = values[0].dtype
    if dtype not in HALVES:
        return function(*values)
    results = function(*(cast_unrounded(op, value, D.FLOAT) for value in values))
    return [cast_unrounded(op, result, dtype) if result.dtype == D.FLOAT else result for result in results]


def mixed_in_float32(op: Builder, function: Callable[..., Value], *values: Value) -> Value:
    """Apply ``function`` to floats. Different types, which OpenVINO allows for some layers, are computed in float32, as are
    16-bit floats.

    The result has the type of the first value.
    """
    types = {value.dtype for value in values}
    return _in_float32(op, function, values) if len(types) > 1 or types & HALVES else function(*values)


def _in_float32(op: Builder, function: Callable[..., Value], values: Sequence[Value]) -> Value:
    result = function(*(cast_unrounded(op, value, D.FLOAT) for value in values))
    return cast_unrounded(op, result, values[0].dtype)


def integers_in_float32(op: Builder, function: Callable[..., Value], *values: Value) -> Value:
    """Apply ``function`` to values of one type. Integers are computed in float32, and the result is converted by
    `saturated_8_bits`.
    """
    dtype = values[0].dtype
    if dtype is None or dtype.is_floating_point():
        return function(*values)
    return saturated_8_bits(op, function(*(op.Cast(value, to=D.FLOAT) for value in values)), dtype)


def integers_rounded(op: Builder, function: Callable[[Value], Value], x: Value) -> Value:
    """Apply ``function`` to ``x``. Integers are computed in floats, and the result is rounded to the nearest integer.

    OpenVINO's specification does not define functions of integers except Sqrt, which rounds. Integers of 8 bits saturate
    after conversion to i32, whose lowest number represents NaN.
    """
    if x.dtype not in INTEGERS:
        return function(x)
    result = op.Round(function(op.Cast(x, to=D.DOUBLE if x.dtype in WIDE else D.FLOAT)))
    if x.dtype not in BYTES:
        return truncated(op, result, x.dtype)
    if x.dtype == D.UINT8:
        result = op.Where(op.IsNaN(result), 255.0, result)
    return op.Cast(op.Clip(op.Cast(result, to=D.INT32), *_limits(x.dtype)), to=x.dtype)


def saturating_8_bits(op: Builder, function: Callable[..., Value], *values: Value) -> Value:
    """Apply ``function`` to values of one type. Integers of 8 bits are computed in 32 bits, and the result saturates.

    Wider integers wrap. The specification defines neither.
    """
    dtype = values[0].dtype
    if dtype not in BYTES:
        return function(*values)
    wide = function(*(op.Cast(value, to=D.INT32) for value in values))
    return op.Cast(op.Clip(wide, *_limits(dtype)), to=dtype)


def saturated_8_bits(op: Builder, x: Value, dtype: ir.DataType) -> Value:
    """Convert floats to integers: 8-bit ones are rounded (ties to even) and saturate, others are truncated."""
    if dtype in BYTES:
        low, high = _limits(dtype)
        x = op.Clip(op.Round(x), float(low), float(high))
    return op.Cast(x, to=dtype)


def truncated(op: Builder, x: Value, to: ir.DataType) -> Value:
    """Truncate a float to an integer. Out of range, the result is that of C++ compilers for x86, which convert through a
    wider type.
    """
    if to == D.UINT64 and x.dtype != D.FLOAT16:  # the signed type represents all f16 numbers
        # Above 2^63, convert the number minus 2^64 to the signed type, which gives the same bits.
        large = op.GreaterOrEqual(x, 2.0**63)
        return op.Cast(op.Cast(op.Where(large, op.Sub(x, 2.0**64), x), to=D.INT64), to=to)
    if to in (D.UINT32, D.UINT64):
        return op.Cast(op.Cast(x, to=D.INT64), to=to)
    if to in (D.INT8, D.INT16, D.UINT8, D.UINT16):
        return op.Cast(op.Cast(x, to=D.INT32), to=to)
    return op.Cast(x, to=to)


def _limits(dtype: ir.DataType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy())
    return int(info.min), int(info.max)
