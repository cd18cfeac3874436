"""Search for positions of values: sorted sequences, buckets, segments, empty rows of sparse tensors."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import as_indices, int64, scalar
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value


@rule(
    "SearchSorted",
    since="opset15",
    departs=[
        Departure(
            where="an empty sequence",
            cpu="reads out of bounds",
            specification="finds the position 0",
            follows="specification",
        ),
    ],
)
def search_sorted(
    op: Builder,
    sorted_sequence: Value,
    values: Value,
    *,
    right_mode: bool = False,
    output_type: ElementType = ElementType.I64,
):
    """SearchSorted-15: one sequence for all values, or one for each row of them."""
    if sorted_sequence.rank not in (None, 1) and values.rank is not None:
        rows = [f"D{axis}" for axis in range(values.rank - 1)]
        match_shapes(sorted_sequence=(sorted_sequence, " ".join([*rows, "_"])), values=(values, " ".join([*rows, "_"])))

    def found(op: Builder, sequence: Value) -> Value:
        return op.specops.SearchSorted(sequence, values, right_mode=int(right_mode))

    if sorted_sequence.rank is not None:
        return as_indices(op, found(op, sorted_sequence), output_type)
    one = op.Equal(op.Size(op.Shape(sorted_sequence)), 1)
    flat = op.Reshape(sorted_sequence, [-1])
    either = op.if_(one, lambda op: found(op, flat), lambda op: found(op, sorted_sequence))
    return as_indices(op, either, output_type)


@rule("Bucketize", since="opset3")
def bucketize(
    op: Builder,
    data: Value,
    buckets: Value,
    *,
    output_type: ElementType,
    with_right_bound: bool = True,
):
    """Bucketize-3. OpenVINO rejects a layer without ``output_type``.

    NaN is in the first bucket with right bounds, and in the last one without.
    """
    match_shapes(buckets=(buckets, "N"))
    values, boundaries = data, buckets if buckets.rank == 1 else op.Reshape(buckets, [-1])
    if data.dtype != buckets.dtype:
        common = ir.DataType.DOUBLE
        if data.dtype and buckets.dtype and data.dtype.is_integer() and buckets.dtype.is_integer():
            common = ir.DataType.INT64
        values, boundaries = (op.Cast(x, to=common) for x in (data, boundaries))
    found = op.specops.SearchSorted(boundaries, values, right_mode=int(not with_right_bound))
    if not with_right_bound and data.dtype is not None and data.dtype.is_floating_point():
        found = op.Where(op.IsNaN(data), op.Size(buckets), found)
    return as_indices(op, found, output_type)


@rule(
    "SegmentMax",
    since="opset16",
    departs=[
        Departure(
            where="an empty segment of f16, `fill_mode` `LOWEST`",
            cpu="gives negative infinity",
            specification="gives the lowest finite number of the type",
            follows="specification",
        ),
    ],
)
def segment_max(
    op: Builder,
    data: Value,
    segment_ids: Value,
    num_segments: Value | None = None,
    *,
    fill_mode: Literal["ZERO", "LOWEST"],
):
    """SegmentMax-16."""
    match_shapes(data=(data, "N ..."), segment_ids=(segment_ids, "N"))
    ids = int64(op, segment_ids)
    count = op.const(np.zeros(0, np.int64)) if num_segments is None else scalar(op, num_segments)
    return op.specops.SegmentMax(data, ids, count, fill_mode=fill_mode)


@rule("SparseFillEmptyRows", since="opset16")
def sparse_fill_empty_rows(op: Builder, values: Value, dense_shape: Value, indices: Value, default_value: Value):
    """SparseFillEmptyRows-16: the entries are sorted in row-major order. Equal positions keep their order."""
    match_shapes(values=(values, "N"), dense_shape=(dense_shape, "2"), indices=(indices, "N 2"))
    shape, at = int64(op, dense_shape), int64(op, indices)
    rows, columns = op.Slice(shape, [0], [1]), op.Slice(shape, [1], [2])
    none = op.Expand(op.const(np.array(True)), rows)
    taken = op.Reshape(op.Slice(at, [0], [1], [1]), [-1])
    empty = op.ScatterElements(none, taken, op.Expand(op.const(np.array(False)), op.Shape(taken)), axis=0)
    added = op.Reshape(op.NonZero(empty), [-1])
    at = op.Concat(at, _with_zeros(op, added), axis=0)
    values = op.Concat(values, op.Expand(op.Reshape(default_value, [1]), op.Shape(added)), axis=0)
    keys = op.ReduceSum(op.Mul(at, op.Concat(op.Max(columns, 1), [1], axis=0)), [1], keepdims=0)
    _, order = op.TopK(keys, op.Shape(keys), axis=0, largest=0, sorted=1)
    positions = op.Gather(at, order)
    return op.CastLike(positions, indices), op.Gather(values, order), empty


def _with_zeros(op: Builder, rows: Value) -> Value:
    """Return ``[row, 0]`` for each of the ``rows``."""
    rows = op.Unsqueeze(rows, [1])
    return op.Concat(rows, op.Mul(rows, 0), axis=1)
