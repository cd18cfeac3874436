"""Layers that gather, search and scatter elements."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.inference_engine.rule import layer
from converters.inference_engine.rules._checks import checked, outside
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Context
from converters.openvino.rules import scatter, searching, sequences
from onnx_specops.building import Builder, Value

_INT64, _FLOAT, _INT32 = ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.INT32


def _whole(op: Builder, x: Value) -> Value:
    if x.constant is not None:
        return op.const(x.constant.astype(np.int64))
    return x if x.dtype == _INT64 else op.Cast(x, to=_INT64)


@layer("Gather", integers=True)
def gather(op: Builder, data: Value, indices: Value, *, axis: int = 0):
    """Gather: indices out of range give zeros."""
    places = _whole(op, indices)
    size = op.Gather(op.Shape(data), axis)
    inside = op.And(op.GreaterOrEqual(places, 0), op.Less(places, size))
    known, count = places.constant, None if data.dims is None else data.dims[axis]
    if known is not None and count is not None and ((known >= 0) & (known < count)).all():
        return op.Gather(data, places, axis=axis)
    if data.rank is None or places.rank is None:
        raise Unsupported("the rank of its inputs is unknown", "set the shape of the model's input with --input-shape")
    axis %= data.rank
    found = op.Gather(data, op.Where(inside, places, op.const(0, _INT64)), axis=axis)
    after = data.rank - axis - 1
    mask = op.Unsqueeze(inside, [*range(places.rank, places.rank + after)]) if after else inside
    return op.Where(mask, found, op.const(0, data.dtype))


@layer("TopK", integers=True)
def top_k(
    op: Builder,
    data: Value,
    k: Value,
    *,
    axis: int = -1,
    mode: Literal["max", "min"] = "max",
    sort: Literal["value", "index", "none"] = "index",
    context: Context,
):
    """TopK: sorted by value if ``sort`` states it, else by index."""
    count = op.Reshape(_whole(op, k), [1])
    values, indices = op.node("TopK", data, count, axis=axis, largest=int(mode == "max"), sorted=1, outputs=2)
    if sort != "value":
        indices, order = op.node("TopK", indices, count, axis=axis, largest=0, sorted=1, outputs=2)
        values = op.GatherElements(values, order, axis=axis)
    results = [values, op.Cast(indices, to=_INT32)]
    if len(context.layer.outputs) == 1:
        return results[1] if context.layer.outputs[0].element_type is ElementType.I32 else results[0]
    return results


@layer("ArgMax")
def arg_max(op: Builder, data: Value, *, top_k: int, out_max_val: bool = False, axis: int | None = None):
    """ArgMax: the positions of the largest elements along an axis, or in each image, with or without their values."""
    if data.rank is None:
        raise Unsupported("the rank of its data is unknown", "set the shape of the model's input with --input-shape")
    if axis is not None:
        values, indices = op.node("TopK", data, [top_k], axis=axis, largest=1, sorted=1, outputs=2)
        return values if out_max_val else op.Cast(indices, to=_FLOAT)
    flat = op.Reshape(data, [0, -1])
    values, indices = op.node("TopK", flat, [top_k], axis=1, largest=1, sorted=1, outputs=2)
    both = [op.Cast(indices, to=_FLOAT)] + ([values] if out_max_val else [])
    rows = op.Concat(*[op.Unsqueeze(x, [1]) for x in both], axis=1) if out_max_val else op.Unsqueeze(both[0], [1])
    return op.Unsqueeze(rows, [3]) if data.rank == 4 else rows


@layer("OneHot", integers=True)
def one_hot(op: Builder, indices: Value, *, depth: int, on_value: str = "1.0", off_value: str = "0.0", axis: int = -1):
    """OneHot."""
    numbers = []
    for text in (off_value, on_value):
        try:
            numbers.append({"True": 1.0, "False": 0.0}.get(text.strip()) if text.strip() in _TRUTHS else float(text))
        except ValueError:
            raise Malformed(f"its value {text!r} is not a number") from None
    if depth < 1:
        raise Malformed(f"its depth is {depth}; it must be 1 or more")
    places = _whole(op, indices)
    values = op.const(np.array(numbers, np.float32))
    return _hot(op, places, depth, values, axis, indices.rank)


_TRUTHS = ("True", "False")


def _hot(op: Builder, places: Value, depth: int, values: Value, axis: int, rank: int | None) -> Value:
    if rank is None:
        raise Unsupported("the rank of its indices is unknown", "set the shape of the model's input with --input-shape")
    axis = axis + rank + 1 if axis < 0 else axis
    shape = [1] * (rank + 1)
    shape[axis] = depth
    hit = op.Equal(op.Unsqueeze(places, [axis]), op.const(np.arange(depth, dtype=np.int64).reshape(shape)))
    return op.Where(hit, op.Slice(values, [1], [2]), op.Slice(values, [0], [1]))


@layer("Range", integers=True)
def range_(op: Builder, start: Value, limit: Value, delta: Value):
    """Range."""
    kinds = {start.dtype, limit.dtype, delta.dtype}
    values = (start, limit, delta) if len(kinds) == 1 else tuple(op.Cast(x, to=_FLOAT) for x in (start, limit, delta))
    return op.Range(*(op.Reshape(x, np.zeros(0, np.int64)) for x in values))


@layer("Fill", integers=True)
def fill(op: Builder, dims: Value, value: Value):
    """Fill: a tensor of a shape with one number."""
    return op.Expand(op.Reshape(value, [1]), op.Reshape(_whole(op, dims), [-1]))


@layer("ScatterUpdate", integers=True)
def scatter_update(op: Builder, data: Value, indices: Value, updates: Value, place: Value | None = None, *, axis: int = 0):
    """ScatterUpdate: along the axis of an attribute or of the last input."""
    along = op.const(np.int64(axis)) if place is None else _whole(op, place)
    return scatter.scatter_update(op, data, _whole(op, indices), updates, along)


@layer("Bucketize", integers=True)
def bucketize(op: Builder, data: Value, buckets: Value, *, with_right_bound: bool = True):
    """Bucketize."""
    if buckets.constant is not None and (np.diff(buckets.constant.reshape(-1)) < 0).any():
        raise Malformed("its buckets are not sorted", "check that the file is intact")
    return searching.bucketize(op, data, buckets, output_type=ElementType.I32, with_right_bound=with_right_bound)


@layer("GatherTree", integers=True)
def gather_tree(op: Builder, step_ids: Value, parent_ids: Value, max_seq_len: Value, end_token: Value):
    """GatherTree."""
    end = op.Reshape(end_token, np.zeros(0, np.int64))
    inputs = [x if x.dtype == _INT32 else op.Cast(x, to=_INT32) for x in (step_ids, parent_ids, max_seq_len, end)]
    result = sequences.gather_tree(op, *inputs)
    return op.CastLike(result, step_ids)


@layer("CTCGreedyDecoder")
def ctc_greedy_decoder(op: Builder, data: Value, sequence_mask: Value, *, ctc_merge_repeated: bool = True):
    """CTCGreedyDecoder: the mask of the first step counts as 1. Repeated classes are merged regardless of the attribute."""
    ones = op.Expand(op.const(np.ones(1, np.float32)), op.Concat([1], op.Shape(sequence_mask, start=1), axis=0))
    mask = op.Concat(ones, op.Slice(sequence_mask, [1], [2**31]), axis=0)
    return sequences.ctc_greedy_decoder(op, data, mask, ctc_merge_repeated=True)


@layer("Unique")
def unique(op: Builder, data: Value, *, sorted: bool, return_inverse: bool, return_counts: bool):
    """Unique: padded to the size of the data with the last element and counts of 0."""
    values, _, inverse, counts = op.node("Unique", data, axis=0, sorted=int(sorted), outputs=4)
    size = op.Shape(data)
    rest = op.Sub(size, op.Shape(values))
    last = op.Expand(op.Slice(values, [-1], [2**31]), rest)
    results = [op.Reshape(op.Concat(values, last, axis=0), size)]
    if return_inverse:
        results.append(op.Cast(inverse, to=_FLOAT))
    if return_counts:
        zeros = op.Expand(op.const(np.zeros(1, np.int64)), rest)
        results.append(op.Cast(op.Reshape(op.Concat(counts, zeros, axis=0), size), to=_FLOAT))
    return results


@layer("Convert", integers=True)
def convert(op: Builder, x: Value, *, destination_type: ElementType):
    """Convert: the type is ``precision`` in the file."""
    return op.Cast(x, to=_CONVERTED.get(destination_type, _FLOAT))


_CONVERTED = {
    ElementType.I32: _INT32,
    ElementType.I64: _INT32,
    ElementType.U8: ir.DataType.UINT8,
    ElementType.I8: ir.DataType.INT8,
}


def _segments(kind: str) -> None:
    @layer(f"SparseSegment{kind}")
    def emit(op: Builder, data: Value, indices: Value, segment_ids: Value, *, context: Context):
        taken, ids = _whole(op, indices), _whole(op, segment_ids)
        taken = checked(op, "indices_are_outside_the_data", outside(op, taken, op.Shape(data, start=0, end=1)), taken)
        counted = op.GreaterOrEqual(ids, np.int64(0))  # rows of negative segments do not count
        ids = op.Max(ids, np.int64(0))
        stated = context.output_dims()
        if stated is None or stated[0] is None:
            raise Unsupported("the number of its segments is unknown", "convert it with the shapes in the file")
        ones = op.Cast(counted, to=_FLOAT)
        rank = data.rank or 1
        rows = op.Where(
            op.Unsqueeze(counted, [*range(1, rank)]) if rank > 1 else counted, op.Gather(data, taken, axis=0), 0.0
        )
        zeros = op.Expand(op.const(np.zeros(1, np.float32)), op.Concat([stated[0]], op.Shape(data, start=1), axis=0))
        places = op.Unsqueeze(ids, [1])
        total = op.ScatterND(zeros, places, rows, reduction="add")
        if kind == "Sum":
            return total
        counts = op.ScatterND(op.const(np.zeros(stated[0], np.float32)), places, ones, reduction="add")
        divisor = op.Max(counts if kind == "Mean" else op.Sqrt(counts), 1.0)
        return op.Div(total, op.Reshape(divisor, [stated[0], *[1] * (rank - 1)]))


for _kind in ("Sum", "Mean", "SqrtN"):
    _segments(_kind)


@layer("SparseToDense", integers=True)
def sparse_to_dense(op: Builder, indices: Value, dense_shape: Value, values: Value, default: Value | None = None):
    """SparseToDense."""
    empty = op.const(0, values.dtype) if default is None else default
    whole = op.Expand(op.CastLike(op.Reshape(empty, [1]), values), op.Reshape(_whole(op, dense_shape), [-1]))
    return op.ScatterND(whole, _whole(op, indices), values)
