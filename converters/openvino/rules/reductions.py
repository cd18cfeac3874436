"""Reductions over axes, which may be computed at run time.

Without axes, the input does not change (L1 and L2 return absolute values). Over an empty axis, a sum is 0, a product 1, and
a mean 0. ONNX agrees with OpenVINO.
"""

from __future__ import annotations

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import vector
from converters.openvino.rules._precision import (
    BYTES,
    INTEGERS_IN_FLOAT32,
    D,
    halves_in_float32,
    saturated_8_bits,
    saturating_8_bits,
)
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import mark_full_range

_LOWEST = float(np.finfo(np.float32).min)
_WIDE = {D.INT64, D.UINT64}
_NARROW = {D.INT16, D.UINT16}
_WRAPPING = {D.INT32, D.UINT32, *_WIDE}

_NO_AXES = Departure(
    where="no axes, without `keep_dims`, of data of two dimensions or more",
    cpu="rejects it",
    reference="leaves the data unchanged",
    follows="reference",
)
_AXES_AT_RUN_TIME = Departure(
    where="axes that are not constant", cpu="rejects them", reference="allows them", follows="reference"
)
_NAN = Departure(
    where="a NaN among the elements",
    cpu="gives the NaN, or the extreme of some other elements, depending on their positions",
    reference="gives the extreme of the elements after the last NaN",
    follows="runtime",
)


@rule("ReduceSum", departs=[_NO_AXES, INTEGERS_IN_FLOAT32])
def reduce_sum(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceSum-1. Sums of 8-bit integers saturate."""
    return _sum(op, x, axes, keep_dims)


@rule("ReduceL1", since="opset4", departs=[_NO_AXES, INTEGERS_IN_FLOAT32])
def reduce_l1(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceL1-4, for 8-bit integers like ReduceSum."""
    if x.dtype in _WRAPPING:
        return _sum(op, op.Abs(x), axes, keep_dims)
    return saturating_8_bits(op, lambda x: _norm(op, "ReduceL1", x, axes, keep_dims), x)


@rule(
    "ReduceL2",
    since="opset4",
    departs=[
        _NO_AXES,
        Departure(
            where="i8 and u8 with a sum of squares beyond the range of the type",
            cpu="gives the root of the largest number",
            specification="gives the root of the sum",
            follows="specification",
        ),
    ],
)
def reduce_l2(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceL2-4: the root of integers is truncated."""
    return _norm(op, "ReduceL2", x, axes, keep_dims)


@rule(
    "ReduceProd",
    departs=[
        _NO_AXES,
        Departure(
            name="integers",
            where="u8 with a product beyond 32,767, and i8 with one beyond the range of i32",
            cpu="gives 0 for u8, and the highest or lowest number for i8, regardless of the sign",
            specification="does not define them; the nearest number of the type is expected",
            follows="specification",
        ),
    ],
)
def reduce_prod(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceProd-1. Products of 8-bit integers saturate, those of wider integers wrap."""

    def product(x: Value) -> Value:
        return _of_full_range(_reduce(op, "ReduceProd", x, axes, keep_dims))

    if x.dtype in BYTES:  # in float32, because the product may be beyond the range of i32
        return saturated_8_bits(op, product(op.Cast(x, to=D.FLOAT)), x.dtype)
    if x.dtype in _NARROW:
        return op.Cast(product(op.Cast(x, to=D.INT32)), to=x.dtype)
    return product(x)


@rule(
    "ReduceMean",
    departs=[
        _NO_AXES,
        INTEGERS_IN_FLOAT32,
        Departure(
            where="i8 and u8 whose sum is beyond the range of the type",
            cpu="divides the largest or the lowest number",
            specification="gives the mean",
            follows="specification",
        ),
    ],
)
def reduce_mean(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMean-1: the mean of integers is truncated, and their sum wraps."""
    if x.dtype not in _WRAPPING:
        return _reduce(op, "ReduceMean", x, axes, keep_dims)
    total = _sum(op, x, axes, keep_dims)
    count = op.Div(op.Size(x), op.Max(op.Size(total), 1))
    return op.Div(total, op.Cast(op.Max(count, 1), to=x.dtype))


def _norm(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    """Without axes, some programs return the data (ONNX Runtime's CUDA, 1.31), others its absolute value (the CPU)."""
    may_be_empty = axes.constant is None or not axes.constant.size or x.rank == 0
    return _reduce(op, operation, op.Abs(x) if may_be_empty else x, axes, keep_dims)


def _sum(op: Builder, x: Value, axes: Value, keep_dims: bool) -> Value:
    if x.dtype in _WRAPPING:
        return _of_full_range(_reduce(op, "ReduceSum", x, axes, keep_dims))
    return saturating_8_bits(op, lambda x: _reduce(op, "ReduceSum", x, axes, keep_dims), x)


def _of_full_range(value: Value) -> Value:
    mark_full_range(value)
    return value


@rule("ReduceMax", departs=[_NO_AXES, INTEGERS_IN_FLOAT32, _NAN])
def reduce_max(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMax-1. OpenVINO starts from the lowest finite float32, which is the maximum of only -inf or nothing."""

    def maximum(x: Value) -> Value:
        result = _reduce(op, "ReduceMax", x, axes, keep_dims)
        return op.Max(result, _LOWEST) if x.dtype == D.FLOAT else result

    return halves_in_float32(op, maximum, x)


@rule(
    "ReduceMin",
    departs=[
        Departure(
            where="no elements, or infinities only",
            cpu="gives the largest finite number",
            reference="gives infinity",
            follows="reference",
        ),
        _NO_AXES,
        INTEGERS_IN_FLOAT32,
        _NAN,
    ],
)
def reduce_min(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMin-1; inf over an empty axis."""
    return _reduce(op, "ReduceMin", x, axes, keep_dims)


@rule("ReduceLogicalAnd", departs=[_NO_AXES, _AXES_AT_RUN_TIME])
def reduce_logical_and(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalAnd-1; true over an empty axis."""
    return _logical(op, "ReduceMin", x, axes, keep_dims)


@rule("ReduceLogicalOr", departs=[_NO_AXES, _AXES_AT_RUN_TIME])
def reduce_logical_or(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalOr-1; false over an empty axis."""
    return _logical(op, "ReduceMax", x, axes, keep_dims)


def _logical(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    if x.dtype != D.BOOL:
        raise Malformed(f"its input is {x.dtype and x.dtype.name}; expected booleans")
    return _reduce(op, operation, x, axes, keep_dims)


def _reduce(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    return op.node(operation, x, _distinct(op, x, axes), keepdims=int(keep_dims), noop_with_empty_axes=1)


def _distinct(op: Builder, x: Value, axes: Value) -> Value:
    """Return the normalized axes without repetitions, which ONNX does not define."""
    axes = vector(op, axes)
    known = axes.constant
    if known is None or (x.rank is None and (known < 0).any()):
        rank = op.Shape(op.Shape(x))
        return op.Unique(op.Where(op.Less(axes, 0), op.Add(axes, rank), axes))
    if x.rank is None:
        return op.const(np.unique(known))
    limit = max(x.rank, 1)
    if ((known < -limit) | (known >= limit)).any():
        raise Malformed(f"its axes {known.tolist()} are out of range for an input of rank {x.rank}")
    return op.const(np.unique(known % limit)[: x.rank])
