"""Gathering of elements and slices by index."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import (
    INT64_MAX,
    constant_axis,
    dim,
    int64,
    integers,
    normal_axis,
    product,
    rank_of,
    scalar,
    vector,
)
from converters.openvino.rules._value_ranges import bounds
from onnx_specops.building import Builder, Value

_NEGATIVE = Departure(
    where="several or run-time negative indices into data that are not constant",
    cpu="gives zeros, as for all indices out of range",
    reference="counts them from the end",
    follows="cpu",
)

_NEGATIVE_IN_VECTOR = Departure(
    where="negative indices into an integer vector of up to 64 elements, such as a shape, several of them or at run time",
    cpu="returns uninitialized memory",
    reference="counts them from the end",
    follows="reference",
)

_OF_NONE = Departure(
    where="an axis that is known to have no elements",
    cpu="returns uninitialized memory",
    reference="gives zeros, as for all indices that are out of range",
    follows="reference",
)

_BATCH_OF_ONE = Departure(
    where="`batch_dims` of known dimensions that are all 1 before the axis",
    cpu="returns uninitialized memory for the first elements, or crashes",
    specification="gathers",
    follows="specification",
)


@rule("Gather", departs=[_NEGATIVE, _NEGATIVE_IN_VECTOR, _OF_NONE])
def gather_1(op: Builder, data: Value, indices: Value, axis: Value):
    """Gather-1: negative indices are out of range, except those of `_counts_back`."""
    return _gather(op, data, indices, axis, 0, negative=False)


@rule("Gather", since="opset7", departs=[_NEGATIVE, _NEGATIVE_IN_VECTOR, _OF_NONE, _BATCH_OF_ONE])
def gather_7(op: Builder, data: Value, indices: Value, axis: Value, *, batch_dims: int = 0):
    """Gather-7: negative indices are out of range, except those of `_counts_back`."""
    return _gather(op, data, indices, axis, batch_dims, negative=False)


@rule("Gather", since="opset8", departs=[_OF_NONE, _BATCH_OF_ONE])
def gather(op: Builder, data: Value, indices: Value, axis: Value, *, batch_dims: int = 0):
    """Gather-8: negative indices count from the end, and those out of range give zeros."""
    return _gather(op, data, indices, axis, batch_dims, negative=True)


def _gather(op: Builder, data: Value, indices: Value, axis: Value, batch_dims: int, *, negative: bool) -> Value:
    if indices.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        indices = int64(op, indices)
    if batch_dims < 0 and indices.rank is not None:
        batch_dims = normal_axis(batch_dims, indices.rank, "batch_dims")
    batches = [value.dims[:batch_dims] for value in (data, indices) if value.dims is not None and batch_dims > 0]
    if len(batches) > 1 and not same_dims(*batches):
        raise Malformed(f"its data {data.dims} and indices {indices.dims} differ in their {batch_dims} batch_dims")
    at = constant_axis(axis, data.rank)
    if at is not None and at >= 0 and at < batch_dims:
        raise Malformed(f"its axis {at} is one of its {batch_dims} batch_dims")
    if at is not None and data.dims is not None and data.dims[at] == 0:
        shape = op.Concat(op.Shape(data, end=at), op.Shape(indices, start=batch_dims), op.Shape(data, start=at + 1), axis=0)
        return op.Expand(_zero(op, data), shape)  # no index is valid
    negative = negative or _counts_back(data, indices, at)
    if at is None or batch_dims not in (0, at) or batch_dims < 0 or (data.rank is None and at >= 0):
        return _gather_flattened(op, data, indices, axis, batch_dims, negative)
    size = dim(op, data, at)
    valid = _valid(op, indices, size, negative)
    if valid is not None:
        indices = op.Where(valid, indices, op.CastLike(0, indices))
    if batch_dims:
        result = op.GatherND(data, op.Unsqueeze(int64(op, indices), [-1]), batch_dims=batch_dims)
    else:
        result = op.Gather(data, indices, axis=at)
    after = (-1 if data.rank is None else data.rank - 1) - at if at >= 0 else -1 - at
    return _zeroed(op, result, valid, after)


def _counts_back(data: Value, indices: Value, at: int | None) -> bool:
    """Return whether OpenVINO counts negative indices from the end although the operation's version does not.

    OpenVINO folds constants with its reference kernel. It normalizes a single constant index if it knows the size of the
    axis. Importers use this for the last dimension of a shape.
    """
    if data.constant is not None:
        return True
    size = None if data.dims is None or at is None else data.dims[at]
    if size is None:
        return False
    known = integers(indices)
    shape_like = data.rank == 1 and size <= _SHORT and data.dtype in (ir.DataType.INT32, ir.DataType.INT64)
    return shape_like or (known is not None and len(known) == 1)


# For shorter integer vectors, OpenVINO's CPU plugin does not check the range.
_SHORT = 64


def _valid(op: Builder, indices: Value, size: Value, negative: bool) -> Value | None:
    """Return which ``indices`` are within the ``size`` elements of their axis; ``None`` if all are."""
    # For an unknown size, assume one element.
    limit = 1 if size.constant is None else int(size.constant[0])
    low, high = bounds(indices)
    if (-limit if negative else 0) <= low and high < limit:
        return None
    size = op.CastLike(scalar(op, size), indices)
    min_index = op.Neg(size) if negative else op.CastLike(0, indices)
    return op.And(op.GreaterOrEqual(indices, min_index), op.Less(indices, size))


def _zeroed(op: Builder, gathered: Value, valid: Value | None, after: int) -> Value:
    """Replace the results of invalid indices by zeros. The dimensions of ``valid`` end ``after`` dimensions before those of
    ``gathered``.
    """
    if valid is None:
        return gathered
    if after:
        valid = op.Unsqueeze(valid, [-1 - i for i in range(after)])
    return op.Where(valid, gathered, _zero(op, gathered))


def _zero(op: Builder, like: Value) -> Value:
    """Return the value of a missing element, in the type of ``like``."""
    return op.const(np.array("", dtype=object)) if like.dtype == ir.DataType.STRING else op.CastLike(0, like)


def _gather_flattened(op: Builder, data: Value, indices: Value, axis: Value, batch_dims: int, negative: bool) -> Value:
    """Gather along any axis, also one known at run time only, after any number of batch dimensions.

    The data become ``[batches, before, axis, after]``, and the indices ``[batches, indices]``.
    """
    dims, shape = op.Shape(data), op.Shape(indices)
    at = vector(op, axis)
    at = op.Where(op.Less(at, 0), op.Add(at, rank_of(op, data)), at)
    next_ = op.Add(at, 1)
    batch = op.const([batch_dims]) if batch_dims >= 0 else op.Add(rank_of(op, indices), batch_dims)
    before, after = op.Slice(dims, batch, at), op.Slice(dims, next_, [INT64_MAX])
    batches, size = op.Slice(dims, [0], batch), op.Gather(dims, at)
    own = op.Slice(shape, batch, [INT64_MAX])
    blocks = op.Concat(product(op, batches), product(op, before), size, product(op, after), axis=0)
    blocks = op.Transpose(op.Reshape(data, blocks, allowzero=1), perm=[0, 2, 1, 3])
    indices = op.Reshape(int64(op, indices), op.Concat(product(op, batches), product(op, own), axis=0), allowzero=1)
    valid = _valid(op, indices, size, negative)
    if valid is not None:
        indices = op.Where(valid, indices, 0)
    gathered = op.GatherND(blocks, op.Unsqueeze(indices, [2]), batch_dims=1)
    gathered = op.Transpose(_zeroed(op, gathered, valid, 2), perm=[0, 2, 1, 3])
    return op.Reshape(gathered, op.Concat(batches, before, own, after, axis=0), allowzero=1)


@rule("GatherElements", since="opset6")
def gather_elements(op: Builder, data: Value, indices: Value, *, axis: int):
    """GatherElements-6: ONNX's GatherElements."""
    at = normal_axis(axis, data.rank)
    if data.dims is not None and indices.dims is not None:
        dims = [None if place == at else d for place, d in enumerate(data.dims)]
        if not same_dims(indices.dims, dims):
            raise Malformed(f"its indices have the shape {indices.dims} instead of {dims}")
    return op.GatherElements(data, indices, axis=at)


@rule("GatherND", since="opset5")
def gather_nd_5(op: Builder, data: Value, indices: Value, *, batch_dims: int = 0):
    """GatherND-5: several batch dimensions become one."""
    gathered = gather_nd(op, data, indices, batch_dims=batch_dims)
    if batch_dims < 2:
        return gathered
    batches = product(op, op.Shape(gathered, end=batch_dims))
    return op.Reshape(gathered, op.Concat(batches, op.Shape(gathered, start=batch_dims), axis=0), allowzero=1)


@rule("GatherND", since="opset8")
def gather_nd(op: Builder, data: Value, indices: Value, *, batch_dims: int = 0):
    """GatherND-8: ONNX's GatherND."""
    if batch_dims < 0:
        raise Malformed(f"its batch_dims is {batch_dims}; it must be 0 or more")
    return op.GatherND(data, int64(op, indices), batch_dims=batch_dims)
