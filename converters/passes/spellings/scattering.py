"""Scattered updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


class LastOfEqualIndices(Workaround):
    """Apply only the last of several updates of an element.

    In ONNX, the result is undefined for equal indices. OpenVINO and ONNX Runtime's CPU provider apply the last update, and
    the CUDA provider (1.31.1) an arbitrary one. The rewrite first scatters the positions of the updates and keeps the
    largest position of each element, which then selects the update. Nodes with constant, distinct indices are not changed.
    """

    operators = frozenset(("ScatterElements", "ScatterND"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        data, indices, updates = node.inputs
        if not isinstance(data, Value) or not isinstance(indices, Value) or not isinstance(updates, Value):
            return None
        if node.attributes.get_string("reduction", "none") != "none" or not data.rank or indices.rank is None:
            return None
        if updates.dtype is None or updates.dtype == ir.DataType.STRING:
            return None
        elements = node.op_type == "ScatterElements"
        axis = node.attributes.get_int("axis", 0) % max(data.rank, 1) if elements else 0
        if (known := constant_array(indices)) is not None and _differ(known, data, axis, elements=elements):
            return None
        if elements:
            return [_of_elements(op, data, indices, updates, axis)]
        depth = indices.dims[-1] if indices.dims else None
        return None if depth is None or depth == 0 else [_of_slices(op, data, indices, updates, depth)]


def _differ(indices: np.ndarray, data: Value, axis: int, *, elements: bool) -> bool:
    """Return whether all indices refer to different elements, or slices."""
    if not elements:
        sizes = (data.dims or [])[: indices.shape[-1]]
        if (indices < 0).any():
            if not all(isinstance(size, int) for size in sizes):
                return False
            indices = np.where(indices < 0, indices + np.array(sizes, np.int64), indices)
        rows = indices.reshape(-1, indices.shape[-1])
        return len(np.unique(rows, axis=0)) == len(rows)
    size = (data.dims or [None])[axis]
    if (indices < 0).any():
        if not isinstance(size, int):
            return False
        indices = np.where(indices < 0, indices + size, indices)
    ordered = np.sort(indices, axis=axis)
    return not (np.diff(ordered, axis=axis) == 0).any()


def _of_elements(op: Builder, data: Value, indices: Value, updates: Value, axis: int) -> Value:
    last = _last(op, op.Shape(data), indices, op.Reshape(_count(op, updates), op.Shape(updates), allowzero=1), axis)
    # One more element, because Gather selects one even if there are no updates.
    every = op.Concat(op.Reshape(updates, [-1]), op.const([0], updates.dtype), axis=0)
    chosen = op.Gather(every, op.Max(last, op.const(0)), axis=0)
    return op.Where(op.Less(last, op.const(0)), data, chosen)


def _of_slices(op: Builder, data: Value, indices: Value, updates: Value, depth: int) -> Value:
    leading, rest = op.Shape(data, end=depth), op.Shape(data, start=depth)
    places = places_of_slices(op, indices, leading, depth)
    last = _last(op, op.ReduceProd(leading, keepdims=1), places, _count(op, places), 0)
    slices = op.Reshape(updates, op.Concat(op.Shape(places), rest, axis=0), allowzero=1)
    none = op.Expand(op.const([0], updates.dtype), op.Concat([1], rest, axis=0))
    chosen = op.Gather(op.Concat(slices, none, axis=0), op.Max(last, op.const(0)), axis=0)
    chosen = op.Reshape(chosen, op.Shape(data), allowzero=1)
    ones = op.Expand(op.const([1]), op.Reshape(op.Shape(rest), [1]))
    kept = op.Reshape(op.Less(last, op.const(0)), op.Concat(leading, ones, axis=0), allowzero=1)
    return op.Where(kept, data, chosen)


def places_of_slices(op: Builder, indices: Value, leading: Value, depth: int) -> Value:
    """Return the place of each slice of a ScatterND among all slices of the data, in one dimension.

    Args:
        op: the builder.
        indices: the indices of the leading dimensions.
        leading: the sizes of these dimensions.
        depth: their number.
    """
    index = op.Cast(indices, to=ir.DataType.INT64)
    index = op.Where(op.Less(index, op.const(0)), op.Add(index, leading), index)
    # The products of the sizes of the following dimensions.
    steps = [op.ReduceProd(op.Slice(leading, [place + 1], [depth]), keepdims=1) for place in range(depth)]
    return op.Reshape(op.ReduceSum(op.Mul(index, op.Concat(*steps, axis=0)), [-1], keepdims=0), [-1])


def _count(op: Builder, values: Value) -> Value:
    """Return the numbers from 0 to the number of elements."""
    return op.Range(op.const(0), op.Squeeze(op.ReduceProd(op.Shape(values), keepdims=1), [0]), op.const(1))


def _last(op: Builder, shape: Value, indices: Value, positions: Value, axis: int) -> Value:
    """Return the position of the last update of each element, -1 if there is none."""
    nothing = op.Expand(op.const(-1), shape)
    return op.ScatterElements(nothing, indices, positions, axis=axis, reduction="max")


class ScatterWithinData(Workaround):
    """Append elements to the data of a ScatterElements that has, or may have, more updates than data along its axis.

    OpenCV (5.0.0) rejects it otherwise.
    """

    operators = frozenset(("ScatterElements",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        data, indices, updates = node.inputs
        if not isinstance(data, Value) or not isinstance(indices, Value) or not isinstance(updates, Value):
            return None
        if not data.dims or not indices.dims or data.dtype is None or indices.dtype is None:
            return None
        axis = node.attributes.get_int("axis", 0) % len(data.dims)
        size, count = data.dims[axis], indices.dims[axis]
        if size is not None and count is not None and count <= size:
            return None
        added = op.Shape(indices, start=axis, end=axis + 1)  # as many as updates, if a size is unknown
        if size is not None and count is not None:
            added = op.const([count - size])
        before, after = op.Shape(data, end=axis), op.Shape(data, start=axis + 1)
        more = op.Expand(op.const(0, data.dtype), op.Concat(before, added, after, axis=0))
        whole = op.Concat(data, more, axis=axis)
        end = op.Shape(data, start=axis, end=axis + 1)
        # Negative indices refer to the end of the data.
        within = op.Where(
            op.Less(indices, op.const(0, indices.dtype)), op.Add(indices, op.Cast(end, to=indices.dtype)), indices
        )
        reduction = node.attributes.get_string("reduction", "none")
        scattered = op.ScatterElements(whole, within, updates, axis=axis, reduction=reduction)
        result = op.Slice(scattered, [0], end, [axis])
        result.shape = data.shape
        return [result]
