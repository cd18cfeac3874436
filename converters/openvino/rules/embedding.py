"""Bags of embeddings: sums and means of rows of a table."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import rule
from converters.openvino.rules._indices import INT64_MAX, flat_range, int64, scalar, vector
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

Reduction = Literal["sum", "mean"]

_FLOAT16S = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@rule("EmbeddingBagOffsetsSum", since="opset3")
def embedding_bag_offsets_sum(
    op: Builder,
    emb_table: Value,
    indices: Value,
    offsets: Value,
    default_index: Value | None = None,
    per_sample_weights: Value | None = None,
):
    """EmbeddingBagOffsetsSum-3."""
    match_shapes(
        emb_table=(emb_table, "_ ..."),
        indices=(indices, "N"),
        offsets=(offsets, "_"),
        default_index=(default_index, "| 1"),
        per_sample_weights=(per_sample_weights, "N"),
    )
    kind = indices.dtype if indices.dtype == offsets.dtype == ir.DataType.INT32 else ir.DataType.INT64
    indices, offsets = (x if x.dtype == kind else op.Cast(x, to=kind) for x in (indices, offsets))
    if default_index is None:
        default_index = op.const(np.zeros(0, np.int64), kind)
    elif default_index.dtype != kind:
        default_index = op.Cast(default_index, to=kind)
    if per_sample_weights is None:
        per_sample_weights = op.const(np.zeros(0, np.float32), emb_table.dtype)
    return op.specops.EmbeddingBagOffsetsSum(emb_table, indices, offsets, default_index, per_sample_weights)


@rule("EmbeddingBagOffsets", since="opset15")
def embedding_bag_offsets(
    op: Builder,
    emb_table: Value,
    indices: Value,
    offsets: Value,
    default_index: Value | None = None,
    per_sample_weights: Value | None = None,
    *,
    reduction: Reduction = "sum",
):
    """EmbeddingBagOffsets-15: the mean of integers is truncated."""
    if reduction == "sum":
        return embedding_bag_offsets_sum(op, emb_table, indices, offsets, default_index, per_sample_weights)
    if per_sample_weights is not None:
        raise Malformed("it has per_sample_weights, which the mean does not support")
    table, places, default = _rows(op, emb_table, indices, default_index)
    sums, to = embedding_bag_offsets_sum(op, table, places, offsets, default), emb_table.dtype
    starts = vector(op, offsets)
    ends = op.Concat(op.Slice(starts, [1], [INT64_MAX]), op.Shape(indices), axis=0)
    return _divided(op, sums, op.Sub(ends, starts), to)


@rule("EmbeddingBagPackedSum", since="opset3")
def embedding_bag_packed_sum(op: Builder, emb_table: Value, indices: Value, per_sample_weights: Value | None = None):
    """EmbeddingBagPackedSum-3."""
    return embedding_bag_packed(op, emb_table, indices, per_sample_weights)


@rule("EmbeddingBagPacked", since="opset15")
def embedding_bag_packed(
    op: Builder,
    emb_table: Value,
    indices: Value,
    per_sample_weights: Value | None = None,
    *,
    reduction: Reduction = "sum",
):
    """EmbeddingBagPacked-15: bags of equal size."""
    match_shapes(indices=(indices, "B N"), per_sample_weights=(per_sample_weights, "B N"))
    size = op.Shape(indices, start=1)
    starts = op.Mul(flat_range(op, op.Shape(indices, end=1)), size)
    offsets = starts if indices.dtype == ir.DataType.INT64 else op.Cast(starts, to=indices.dtype)
    indices = op.Reshape(indices, [-1])
    weights = None if per_sample_weights is None else op.Reshape(per_sample_weights, [-1])
    return embedding_bag_offsets(op, emb_table, indices, offsets, None, weights, reduction=reduction)


@rule("EmbeddingSegmentsSum", since="opset3")
def embedding_segments_sum(
    op: Builder,
    emb_table: Value,
    indices: Value,
    segment_ids: Value,
    num_segments: Value,
    default_index: Value | None = None,
    per_sample_weights: Value | None = None,
):
    """EmbeddingSegmentsSum-3: sorted segments are bags. Ids outside ``[0, num_segments)`` are ignored."""
    match_shapes(indices=(indices, "N"), segment_ids=(segment_ids, "N"), per_sample_weights=(per_sample_weights, "N"))
    count, ids = scalar(op, num_segments), int64(op, segment_ids)
    # The number of ids of each segment. Ids below the first and above the last segment are counted separately.
    places = op.Add(op.Min(op.Max(ids, -1), count), 1)
    none = op.Expand(op.const([0]), op.Reshape(op.Add(count, 2), [1]))
    sizes = op.ScatterElements(none, places, op.Expand(op.const([1]), op.Shape(ids)), axis=0, reduction="add")
    ends = op.CumSum(sizes, 0)
    last = op.Reshape(count, [1])
    used = op.Gather(ends, last)
    return embedding_bag_offsets_sum(
        op,
        emb_table,
        op.Slice(indices, [0], used),
        op.CastLike(op.Slice(ends, [0], last), indices),
        default_index,
        None if per_sample_weights is None else op.Slice(per_sample_weights, [0], used),
    )


def _rows(op: Builder, emb_table: Value, indices: Value, default_index: Value | None) -> tuple[Value, Value, Value | None]:
    """Return the used rows and the default row, in float32 to avoid rounding to 16 bits, with their indices."""
    if emb_table.dtype not in _FLOAT16S:
        return emb_table, indices, default_index
    count, rows = op.Shape(indices), int64(op, indices)
    places = op.CastLike(flat_range(op, count), indices)
    if default_index is not None:
        default = vector(op, default_index)
        is_row = op.GreaterOrEqual(default, 0)
        rows = op.Concat(rows, op.Slice(default, [0], op.Cast(is_row, to=ir.DataType.INT64)), axis=0)
        default_index = op.Where(is_row, count, default)
    return op.Cast(op.Gather(emb_table, rows), to=ir.DataType.FLOAT), places, default_index


def _divided(op: Builder, sums: Value, sizes: Value, to: ir.DataType | None) -> Value:
    """Divide sums of bags by their sizes. An empty bag does not change."""
    sizes = op.CastLike(op.Max(sizes, 1), sums)
    trailing = op.Expand(op.const([1]), op.Sub(op.Shape(op.Shape(sums)), 1))
    mean = op.Div(sums, op.Reshape(sizes, op.Concat([-1], trailing, axis=0)))
    return mean if mean.dtype == to else op.Cast(mean, to=to)
