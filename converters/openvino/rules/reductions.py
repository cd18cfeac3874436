"""Reductions over axes, which may be computed at run time.

Without axes, the input does not change (L1 and L2 return absolute values). Over an empty axis, a sum is 0, a product 1, and
a mean 0. ONNX Runtime agrees with OpenVINO.
"""

from __future__ import annotations

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import vector
from converters.openvino.rules._precision import INTEGERS_IN_FLOAT32, D, halves_in_float32, saturating_8_bits
from onnx_specops.building import Builder, Value

_LOWEST = float(np.finfo(np.float32).min)
_WIDE = {D.INT64, D.UINT64}
_WRAPPING = {D.INT32, D.UINT32, *_WIDE}

_NO_AXES = Departure(
    where="no axes, without `keep_dims`, of data of two dimensions or more",
    cpu="rejects it",
    reference="leaves the data unchanged",
    follows="reference",
)
_AXES_AT_RUN_TIME = Departure(
    where="axes that are not constant", cpu="rejects them", reference="takes them", follows="reference"
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
    return saturating_8_bits(op, lambda x: _reduce(op, "ReduceL1", x, axes, keep_dims), x)


@rule("ReduceL2", since="opset4", departs=[_NO_AXES])
def reduce_l2(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceL2-4: the root of integers is truncated."""
    return _reduce(op, "ReduceL2", x, axes, keep_dims)


@rule("ReduceProd", departs=[_NO_AXES])
def reduce_prod(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceProd-1."""
    if x.dtype not in (D.INT32, *_WIDE):
        return _reduce(op, "ReduceProd", x, axes, keep_dims)
    # ONNX Runtime's ReduceProd multiplies integers in doubles. Its ScatterElements uses their own type, which wraps, so each
    # element is scattered to its position in the result.
    axes = _distinct(op, x, axes)
    shape = op.Shape(x)
    if x.rank is not None and axes.constant is not None:
        kept = op.Where(np.isin(np.arange(x.rank), axes.constant), 1, shape)
    else:
        kept = op.ScatterElements(shape, axes, op.Expand(op.const(1), op.Shape(axes)), axis=0)
    count = op.ReduceProd(kept, keepdims=0)
    places = op.Expand(op.Reshape(op.Range(0, count, 1), kept, allowzero=1), shape)
    ones = op.Expand(op.const(1, x.dtype), op.Reshape(count, [1]))
    product = op.ScatterElements(ones, op.Reshape(places, [-1]), op.Reshape(x, [-1]), axis=0, reduction="mul")
    product = op.Reshape(product, kept, allowzero=1)
    # ReduceMax of single elements removes the axes, of which there may be none.
    return product if keep_dims else _reduce(op, "ReduceMax", product, axes, keep_dims)


@rule("ReduceMean", departs=[_NO_AXES, INTEGERS_IN_FLOAT32])
def reduce_mean(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMean-1: the mean of integers is truncated, and their sum wraps."""
    if x.dtype not in _WRAPPING:
        return _reduce(op, "ReduceMean", x, axes, keep_dims)
    total = _sum(op, x, axes, keep_dims)
    count = op.Div(op.Size(x), op.Max(op.Size(total), 1))
    return op.Div(total, op.Cast(op.Max(count, 1), to=x.dtype))


def _sum(op: Builder, x: Value, axes: Value, keep_dims: bool) -> Value:
    """Sum integers exactly. ONNX Runtime adds them in doubles, so those of 32 bits become int64, and wider ones are split in
    halves.
    """
    if x.dtype in _WRAPPING - _WIDE:
        return op.Cast(_reduce(op, "ReduceSum", op.Cast(x, to=D.INT64), axes, keep_dims), to=x.dtype)
    if x.dtype not in _WIDE:
        return saturating_8_bits(op, lambda x: _reduce(op, "ReduceSum", x, axes, keep_dims), x)
    x, to = (x, None) if x.dtype == D.INT64 else (op.Cast(x, to=D.INT64), x.dtype)
    low = op.BitwiseAnd(x, 2**32 - 1)
    high = op.Div(op.Sub(x, low), 2**32)
    upper, lower = (_reduce(op, "ReduceSum", half, axes, keep_dims) for half in (high, low))
    total = op.Add(op.Mul(upper, 2**32), lower)
    return total if to is None else op.Cast(total, to=to)


@rule("ReduceMax", departs=[_NO_AXES, INTEGERS_IN_FLOAT32, _NAN])
def reduce_max(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMax-1. OpenVINO starts from the lowest finite float32, which is the maximum of only -inf or nothing."""

    def maximum(x: Value) -> Value:
        result = _extreme(op, "ReduceMax", x, axes, keep_dims)
        return op.Max(result, _LOWEST) if x.dtype == D.FLOAT else result

    return halves_in_float32(op, maximum, x)


@rule(
    "ReduceMin",
    departs=[
        Departure(
            where="nothing, or infinities only",
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
    return _extreme(op, "ReduceMin", x, axes, keep_dims)


def _extreme(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    if x.dtype != D.UINT64:
        return _reduce(op, operation, x, axes, keep_dims)
    # Flipping the top bit maps the order of signed integers to that of unsigned ones.
    top = op.const(-(2**63))
    flipped = op.BitwiseXor(op.Cast(x, to=D.INT64), top)
    return op.Cast(op.BitwiseXor(_reduce(op, operation, flipped, axes, keep_dims), top), to=D.UINT64)


@rule("ReduceLogicalAnd", departs=[_NO_AXES, _AXES_AT_RUN_TIME])
def reduce_logical_and(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalAnd-1; true over an empty axis."""
    return _logical(op, "ReduceMin", x, axes, keep_dims)


@rule("ReduceLogicalOr", departs=[_NO_AXES, _AXES_AT_RUN_TIME])
def reduce_logical_or(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalOr-1; false over an empty axis."""
    return _logical(op, "ReduceMax", x, axes, keep_dims)


def _logical(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    """Reduce through uint8 if an axis may be empty, because ONNX Runtime has no maximum or minimum of empty booleans."""
    if x.dtype != D.BOOL:
        raise Malformed(f"its input is {x.dtype and x.dtype.name}, the operation takes booleans")
    known = None if x.dims is None else _distinct(op, x, axes).constant
    if known is not None and x.dims is not None and all(x.dims[axis] for axis in known):
        return _reduce(op, operation, x, axes, keep_dims)
    return op.Cast(_reduce(op, operation, op.Cast(x, to=D.UINT8), axes, keep_dims), to=D.BOOL)


def _reduce(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    return op.node(operation, x, _distinct(op, x, axes), keepdims=int(keep_dims), noop_with_empty_axes=1)


def _distinct(op: Builder, x: Value, axes: Value) -> Value:
    """Return the normalized axes without repetitions. With others, ONNX Runtime reduces an empty tensor to an incorrect
    shape.
    """
    axes = vector(op, axes)
    known = axes.constant
    if known is None or (x.rank is None and (known < 0).any()):
        rank = op.Shape(op.Shape(x))
        return op.Unique(op.Where(op.Less(axes, 0), op.Add(axes, rank), axes))
    if x.rank is None:
        return op.const(np.unique(known))
    limit = max(x.rank, 1)
    if ((known < -limit) | (known >= limit)).any():
        raise Malformed(f"its axes {known.tolist()} leave the range of an input of rank {x.rank}")
    return op.const(np.unique(known % limit)[: x.rank])
