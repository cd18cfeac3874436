"""Sparse matrices: pairs of row and column, and a value for each pair."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.inference_engine.rule import layer
from converters.inference_engine.rules._checks import checked, outside
from converters.openvino.rule import Context
from onnx_specops.building import Builder, Value

_INT64, _FLOAT = ir.DataType.INT64, ir.DataType.FLOAT


def _stated(context: Context, index: int = 0) -> int:
    """Return the first dimension of an output in the file."""
    dims = context.output_dims(index)
    if not dims or dims[0] is None:
        raise Unsupported("the number of its rows is unknown", "convert it with the shapes in the file")
    return dims[0]


@layer("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    op: Builder, indices: Value, values: Value, dense_shape: Value, default: Value, *, context: Context
):
    """SparseFillEmptyRows: pairs sorted by row, with an additional pair for each empty row.

    Pairs end before the first one outside the matrix. In the result, the pair -1, -1 marks their end.
    """
    places, rows = _stated(context), _stated(context, 2)
    outside = op.Or(op.Less(indices, 0.0), op.GreaterOrEqual(indices, dense_shape))
    ended = op.CumSum(op.ReduceMax(op.Cast(outside, to=ir.DataType.INT32), [1], keepdims=0), 0)
    inside = op.Equal(ended, op.const(0, ir.DataType.INT32))
    row = op.Cast(op.Squeeze(op.Slice(indices, [0], [1], [1]), [1]), to=_INT64)
    broken = op.ReduceMax(op.Cast(op.Not(op.Equal(op.Floor(indices), indices)), to=ir.DataType.INT32), [1], keepdims=0)
    row = checked(op, "pairs_are_fractions", op.And(op.Equal(broken, op.const(1, ir.DataType.INT32)), inside), row)
    numbers = op.const(np.arange(rows, dtype=np.int64))
    filled = op.ReduceMax(
        op.Cast(op.And(op.Equal(op.Unsqueeze(row, [0]), op.Unsqueeze(numbers, [1])), inside), to=ir.DataType.INT32),
        [1],
        keepdims=0,
    )
    height = op.Cast(op.Slice(dense_shape, [0], [1]), to=_INT64)
    height = checked(op, "dimensions_are_fractions", op.Not(op.Equal(op.Floor(dense_shape), dense_shape)), height)
    exists = op.Less(numbers, checked(op, "rows_exceed_the_output", op.Greater(height, np.int64(rows)), height))
    empty = op.And(op.Equal(filled, op.const(0, ir.DataType.INT32)), exists)
    filling = op.ReduceSum(op.Cast(op.Concat(inside, empty, axis=0), to=_INT64))
    row = checked(op, "pairs_exceed_the_output", op.Greater(filling, np.int64(places)), row)
    # The pairs, the pairs for empty rows, and the pair that marks the end.
    end = np.array([rows], np.int64)
    all_rows = op.Concat(
        op.Where(inside, row, np.int64(rows + 1)), op.Where(empty, numbers, np.int64(rows + 1)), end, axis=0
    )
    pairs = op.Concat(
        indices,
        np.stack([np.arange(rows), np.zeros(rows)], 1).astype(np.float32),
        np.full((1, 2), -1, np.float32),
        np.zeros((places, 2), np.float32),
        axis=0,
    )
    defaults = op.Expand(op.Reshape(default, [1]), op.const(np.array([rows], np.int64)))
    contents = op.Concat(values, defaults, np.zeros(1 + places, np.float32), axis=0)
    all_rows = op.Concat(all_rows, np.full(places, rows + 1, np.int64), axis=0)
    count = op.Shape(all_rows)
    order = op.Range(np.int64(0), op.Squeeze(count, [0]), np.int64(1))
    # Sorted by row. Pairs of a row keep their order.
    _, chosen = op.TopK(op.Add(op.Mul(all_rows, count), order), [places], axis=0, largest=0, outputs=2)
    absent = op.Greater(op.Gather(all_rows, chosen, axis=0), np.int64(rows))
    return [
        op.Where(op.Unsqueeze(absent, [1]), 0.0, op.Gather(pairs, chosen, axis=0)),
        op.Where(absent, 0.0, op.Gather(contents, chosen, axis=0)),
        op.Cast(empty, to=_FLOAT),
    ]


@layer("ExperimentalSparseWeightedSum", integers=True)
def sparse_weighted_sum(
    op: Builder,
    indices: Value,
    values: Value,
    dense_shape: Value,
    table: Value,
    default: Value,
    weights: Value | None = None,
    *,
    context: Context,
):
    """ExperimentalSparseWeightedSum: sums of the table's rows, and the default row for empty sums.

    If the pairs of a row are not adjacent, only the last adjacent ones count.
    """
    count = _stated(context)
    row = op.Cast(op.Squeeze(op.Slice(indices, [0], [1], [1]), [1]), to=_INT64)
    row = checked(op, "rows_are_outside_the_output", outside(op, row, op.const([count])), row)
    order = op.Range(np.int64(0), op.Squeeze(op.Shape(row), [0]), np.int64(1))
    before = op.Concat(np.array([-1], np.int64), op.Slice(row, [0], [-1]), axis=0)
    starts = op.Where(op.Equal(row, before), np.int64(-1), order)
    last = op.ScatterND(op.const(np.full(count, -1, np.int64)), op.Unsqueeze(row, [1]), starts, reduction="max")
    counts = op.Cast(op.GreaterOrEqual(order, op.Gather(last, row, axis=0)), to=_FLOAT)
    if weights is not None:
        counts = op.Mul(counts, weights)
    rank, height = table.rank or 2, op.Shape(table, start=0, end=1)
    picked = op.Cast(values, to=_INT64)
    picked = checked(op, "values_are_outside_the_table", outside(op, picked, height), picked)
    added = op.Mul(op.Gather(table, picked, axis=0), op.Unsqueeze(counts, [*range(1, rank)]))
    shape = op.Concat([count], op.Shape(table, start=1), axis=0)
    zeros = op.Expand(op.const(np.zeros(1, np.float32)), shape)
    total = op.ScatterND(zeros, op.Unsqueeze(row, [1]), added, reduction="add")
    present = op.GreaterOrEqual(last, np.int64(0))
    chosen = op.Cast(op.Reshape(default, [1]), to=_INT64)
    beyond = outside(op, chosen, height)
    chosen = checked(op, "default_is_outside_the_table", op.And(beyond, op.Not(present)), chosen)
    fallback = op.Gather(table, op.Where(beyond, np.int64(0), chosen), axis=0)
    return op.Where(op.Unsqueeze(present, [*range(1, rank)]), total, fallback)
