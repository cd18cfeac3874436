"""Writing and reduction of elements and slices by index."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import (
    INT64_MAX,
    constant_axis,
    flat_range,
    int64,
    product,
    rank_of,
    strides,
    vector,
)
from converters.openvino.rules._slice_assignments import assigned_slice
from onnx_specops.building import Builder, Value

_REDUCED = {
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
    ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64,
}  # fmt: skip
"""The types that are reduced in their own precision. 16-bit floats are reduced in float32 and rounded once."""

_REDUCTIONS = {"none": "none", "sum": "add", "sub": "add", "prod": "mul", "min": "min", "max": "max"}


@rule("ScatterElementsUpdate", since="opset3")
def scatter_elements_update_3(op: Builder, data: Value, indices: Value, updates: Value, axis: Value):
    """ScatterElementsUpdate-3."""
    return scatter_elements_update(op, data, indices, updates, axis)


@rule(
    "ScatterElementsUpdate",
    since="opset12",
    departs=[
        Departure(
            where="the mean of integers, if it is negative and not an integer",
            cpu="truncates it",
            specification="rounds down",
            follows="specification",
        ),
        Departure(
            where="`min` and `max` of a NaN",
            cpu="keeps a NaN in the data, and ignores a NaN in the updates",
            reference="uses the update if either value is a NaN",
            follows="runtime",
        ),
    ],
)
def scatter_elements_update(
    op: Builder,
    data: Value,
    indices: Value,
    updates: Value,
    axis: Value,
    *,
    reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = "none",
    use_init_val: bool = True,
):
    """ScatterElementsUpdate-12: ONNX's ScatterElements if it is equivalent, and otherwise the custom operator."""
    at = constant_axis(axis, data.rank)
    if _is_nothing(data, updates):
        return op.Identity(data)
    _check_elements(data, indices, updates, at)
    if reduction == "mean" and data.dtype == ir.DataType.BOOL:
        raise Malformed("it computes the mean of booleans")
    plain = reduction == "none" or (use_init_val and reduction != "mean" and data.dtype in _REDUCED)
    if at is not None and plain:
        if indices.dtype != ir.DataType.INT32:
            indices = int64(op, indices)
        return op.ScatterElements(data, indices, updates, axis=at, reduction=_REDUCTIONS[reduction])
    return op.specops.ScatterElementsUpdate(
        data, indices, updates, vector(op, axis), reduction=reduction, use_init_val=int(use_init_val)
    )


def _check_elements(data: Value, indices: Value, updates: Value, axis: int | None) -> None:
    """Reject indices whose rank differs from the data, whose shape differs from the updates, or that are larger than the
    data.
    """
    if data.dims is None or indices.dims is None:
        return
    if len(indices.dims) != len(data.dims) or (updates.dims is not None and not same_dims(indices.dims, updates.dims)):
        raise Malformed(f"its data {data.dims}, indices {indices.dims} and updates {updates.dims} are inconsistent")
    for place, (size, count) in enumerate(zip(data.dims, indices.dims, strict=True)):
        if axis is not None and place != axis and size is not None and count is not None and count > size:
            raise Malformed(f"its indices {indices.dims} reach beyond the data {data.dims}")


@rule(
    "ScatterUpdate",
    since="opset3",
    departs=[
        Departure(
            where="a scalar index into data of unknown dimensions",
            cpu="rejects it",
            specification="allows it",
            follows="specification",
        )
    ],
)
def scatter_update(op: Builder, data: Value, indices: Value, updates: Value, axis: Value):
    """ScatterUpdate-3: of updates with equal indices, the last one applies.

    OpenVINO rejects negative indices. Here, those computed at run time count from the end.
    """
    place = constant_axis(axis, data.rank)
    if indices.constant is not None and (indices.constant < 0).any():
        raise Malformed("one of its indices is negative")
    if place is not None and data.dims is not None and indices.dims is not None:
        _check_updates(updates, [*data.dims[:place], *indices.dims, *data.dims[place + 1 :]])
    if _is_nothing(data, updates):
        return op.Identity(data)
    if place == 0:
        return scatter_nd_update(op, data, op.Unsqueeze(int64(op, indices), [-1]), updates)
    dims, at = op.Shape(data), vector(op, axis)
    at = op.Where(op.Less(at, 0), op.Add(at, rank_of(op, data)), at)
    before, after = product(op, op.Slice(dims, [0], at)), product(op, op.Slice(dims, op.Add(at, 1), [INT64_MAX]))
    shape = op.Concat(before, op.Reshape(op.Size(indices), [-1]), after, axis=0)
    blocks = op.Reshape(data, op.Concat(before, op.Gather(dims, at), after, axis=0), allowzero=1)
    where = op.Expand(op.Reshape(int64(op, indices), [1, -1, 1]), shape)
    result = op.ScatterElements(blocks, where, op.Reshape(updates, shape, allowzero=1), axis=1)
    return op.Reshape(result, dims, allowzero=1)


@rule("ScatterNDUpdate", since="opset3")
def scatter_nd_update_3(op: Builder, data: Value, indices: Value, updates: Value):
    """ScatterNDUpdate-3: of updates with equal indices, the last one applies."""
    return scatter_nd_update(op, data, indices, updates)


@rule("ScatterNDUpdate", since="opset15")
def scatter_nd_update(
    op: Builder,
    data: Value,
    indices: Value,
    updates: Value,
    *,
    reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none",
):
    """ScatterNDUpdate-15: updates of the same element are applied in order. Booleans are added with OR and subtracted with
    XOR.

    ONNX does not define a ScatterND with equal indices. It is used only if the indices differ, and ScatterElements
    otherwise. Updates of a slice are concatenated with the other elements.
    """
    indices = int64(op, indices)
    tuples = indices.dims[-1] if indices.dims else None
    if tuples is not None and data.rank is not None and tuples > data.rank:
        raise Malformed(f"it has {tuples} indices for each update of a tensor of rank {data.rank}")
    if tuples is not None and data.dims is not None and indices.dims is not None:
        _check_updates(updates, [*indices.dims[:-1], *data.dims[tuples:]])
    if _is_nothing(data, updates):
        return op.Identity(data)
    if reduction == "none" and (assigned := assigned_slice(data, indices)) is not None:
        return assigned.replaced(op, data, updates)
    if reduction == "none" and _are_distinct(indices, data):
        return op.ScatterND(data, indices, updates)
    depth = op.Shape(indices, start=-1)
    dims = op.Shape(data)
    leading, inner = op.Slice(dims, [0], depth), op.Slice(dims, depth, [INT64_MAX])
    rows = op.Where(op.Less(indices, 0), op.Add(indices, leading), indices)
    rows = op.Reshape(op.ReduceSum(op.Mul(rows, strides(op, leading)), [-1], keepdims=0), [-1])
    elements = tuples is not None and tuples == data.rank
    if reduction == "none" and not elements:
        # Replace each update by the last one for its slice, so that the order of writing does not matter.
        count = op.Shape(rows)
        last = op.ScatterElements(op.Expand(op.const([0]), product(op, leading)), rows, flat_range(op, count), axis=0)
        flat = op.Reshape(updates, op.Concat(count, inner, axis=0), allowzero=1)
        return op.ScatterND(
            data, op.Reshape(indices, op.Concat([-1], depth, axis=0)), op.Gather(flat, op.Gather(last, rows))
        )
    size = product(op, inner)
    updates = op.Reshape(updates, op.Concat(op.Shape(rows), size, axis=0), allowzero=1)
    blocks = op.Reshape(data, op.Concat(product(op, leading), size, axis=0), allowzero=1)
    rows = op.Unsqueeze(rows, [1])
    if not elements:
        rows = op.Expand(rows, op.Shape(updates))
    return op.Reshape(_scattered(op, blocks, rows, updates, reduction), dims, allowzero=1)


def _is_nothing(data: Value, updates: Value) -> bool:
    """Return whether the data or the updates are empty. OpenVINO then ignores the indices."""
    return any(x.dims is not None and 0 in x.dims for x in (data, updates))


def _check_updates(updates: Value, expected: list[int | None]) -> None:
    if updates.dims is not None and not same_dims(updates.dims, expected):
        raise Malformed(f"its updates have the shape {updates.dims} instead of {expected}")


def _scattered(op: Builder, data: Value, rows: Value, updates: Value, reduction: str) -> Value:
    """Emit ScatterElements along axis 0 with OpenVINO's reductions, for all types."""
    dtype = data.dtype
    if reduction == "none":
        return op.ScatterElements(data, rows, updates, axis=0)
    if dtype == ir.DataType.BOOL:
        data, updates = (op.Cast(x, to=ir.DataType.UINT8) for x in (data, updates))
        kind = {"sum": "max", "sub": "add", "prod": "min"}.get(reduction, reduction)
        result = op.ScatterElements(data, rows, updates, axis=0, reduction=kind)
        if reduction == "sub":
            result = op.BitwiseAnd(result, op.const(np.uint8(1)))
        return op.Cast(result, to=dtype)
    wide = dtype if dtype in _REDUCED else ir.DataType.FLOAT
    data, updates = (x if wide == dtype else op.Cast(x, to=wide) for x in (data, updates))
    if reduction == "sub":
        updates = op.Sub(0, updates)
    extreme = reduction in ("min", "max") and wide.is_floating_point()
    if extreme:  # NaN in the data is kept, and NaN in the updates is ignored; ONNX leaves both undefined
        none = op.const(np.inf if reduction == "min" else -np.inf, wide)
        updates = op.Where(op.IsNaN(updates), none, updates)
    result = op.ScatterElements(data, rows, updates, axis=0, reduction=_REDUCTIONS[reduction])
    if extreme:
        result = op.Where(op.IsNaN(data), data, result)
    return result if wide == dtype else op.Cast(result, to=dtype)


def _are_distinct(indices: Value, data: Value) -> bool:
    """Return whether all index tuples are known to differ."""
    dims, constant = indices.dims, indices.constant
    if dims is not None and dims and all(d == 1 for d in dims[:-1]):
        return True
    if constant is None or not constant.size or data.dims is None or None in data.dims[: constant.shape[-1]]:
        return False
    rows = constant.reshape(-1, constant.shape[-1])
    rows = np.where(rows < 0, rows + np.array(data.dims[: constant.shape[-1]]), rows)
    return len(np.unique(rows, axis=0)) == len(rows)
