"""EmbeddingBagOffsetsSum: sums (weighted) rows of an embedding table, bag by bag."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type
from onnx.helper import tensor_dtype_to_np_dtype

from onnx_specops.assertions import required
from onnx_specops.domain import INDICES, NUMERIC, operator
from onnx_specops.ops._checks import FLOAT16S, scalar


@operator(
    inputs={
        "emb_table": "T",
        "indices": "T_IND",
        "offsets": "T_IND",
        "default_index": "T_IND",
        "per_sample_weights": "T",
    },
    outputs={"output": "T"},
    types={"T": NUMERIC, "T_IND": INDICES},
)
def EmbeddingBagOffsetsSum(emb_table, indices, offsets, default_index=None, per_sample_weights=None):
    """Sums the rows of ``emb_table`` that ``indices`` selects for each bag, without storing the gathered rows.

    Bag ``b`` contains ``indices[offsets[b]:offsets[b + 1]]``. The last bag extends to the end. Indices before
    ``offsets[0]`` belong to no bag.

    Inputs:
        emb_table: ``[num_emb, emb_dim1, ...]``.
        indices: ``[num_indices]``, in ``[0, num_emb)``.
        offsets: ``[batch]``, not decreasing, in ``[0, num_indices]``.
        default_index: scalar or ``[1]``, the row for an empty bag. If omitted, empty or -1, the result of an empty bag is
            zeros.
        per_sample_weights: ``[num_indices]``, the factor of each row. If omitted or empty, the factors are 1.

    Output: ``[batch, emb_dim1, ...]``. 16-bit floats are summed in float32.

    Source: OpenVINO specification, EmbeddingBagOffsetsSum-3.
    """
    name = "EmbeddingBagOffsetsSum"
    if not emb_table.ndim:
        raise ValueError(f"{name}: emb_table is a scalar; expected at least one dimension")
    for what, given in (("indices", indices), ("offsets", offsets)):
        if given.ndim != 1:
            raise ValueError(f"{name}: {what} has the shape {list(given.shape)}; expected one dimension")
    num_emb, count = emb_table.shape[0], len(indices)
    if (bad := np.flatnonzero((indices < 0) | (indices >= num_emb))).size:
        raise IndexError(f"{name}: indices[{bad[0]}] = {indices[bad[0]]} is out of range [0, {num_emb - 1}]")
    if (bad := np.flatnonzero((offsets < 0) | (offsets > count))).size:
        raise IndexError(f"{name}: offsets[{bad[0]}] = {offsets[bad[0]]} is out of range [0, {count}]")
    if (bad := np.flatnonzero(np.diff(offsets) < 0)).size:
        at = bad[0] + 1
        raise ValueError(f"{name}: offsets[{at}] = {offsets[at]} is less than offsets[{at - 1}] = {offsets[at - 1]}")
    row = -1 if default_index is None else int(scalar(default_index, f"{name}: default_index"))
    if not -1 <= row < num_emb:
        raise IndexError(f"{name}: default_index = {row} is out of range [-1, {num_emb - 1}]")

    accumulated = np.float32 if emb_table.dtype.name in FLOAT16S else emb_table.dtype
    rows = emb_table[indices].astype(accumulated, copy=False)
    if per_sample_weights is not None:
        if per_sample_weights.shape != indices.shape:
            raise ValueError(
                f"{name}: per_sample_weights has the shape {list(per_sample_weights.shape)}, indices {list(indices.shape)}"
            )
        weights = per_sample_weights.astype(accumulated, copy=False)
        rows = rows * weights.reshape(-1, *[1] * (emb_table.ndim - 1))
    output = np.zeros((len(offsets), *emb_table.shape[1:]), accumulated)
    ends = np.append(offsets[1:], count)
    filled = offsets < ends
    if filled.any():
        # Consecutive bags without gaps: each sum ends at the next start.
        output[filled] = np.add.reduceat(rows, offsets[filled], axis=0, dtype=accumulated)
    if row != -1:
        output[~filled] = emb_table[row]
    return output.astype(emb_table.dtype, copy=False)


@EmbeddingBagOffsetsSum.infer_shapes
def _(node):
    table, offsets = node.shape(0), node.shape(2)
    if table is None:
        return [None]
    return [[offsets[0] if offsets else None, *table[1:]]]


@EmbeddingBagOffsetsSum.body
def _(op, emb_table, indices, offsets, default_index, per_sample_weights):
    type_ = Type.FLOAT if emb_table.dtype in (Type.FLOAT16, Type.BFLOAT16) else emb_table.dtype
    count, batch, row_shape = op.Shape(indices), op.Shape(offsets), op.Shape(emb_table, start=1)
    ones = op.ConstantOfShape(op.Shape(row_shape), value=np.ones(1, np.int64))  # broadcasts a value over a row

    indices = required(op, "indices_are_negative", op.Less(indices, 0), indices)
    starts = op.Cast(offsets, to=Type.INT64)
    beyond = op.Or(op.Less(starts, 0), op.Greater(starts, count))
    starts = required(op, "offsets_out_of_range", beyond, starts)
    ends = op.Concat(op.Slice(starts, [1], [2**31]), count, axis=0)
    ends = op.Slice(ends, [0], batch)
    starts = required(op, "offsets_decrease", op.Greater(starts, ends), starts)

    if per_sample_weights is not None:
        weights = op.Cast(per_sample_weights, to=type_)
        if weights.dims is None or weights.dims[0] is None:  # may be empty at run time
            one = op.const(np.ones(1, tensor_dtype_to_np_dtype(type_)))
            empty = op.Equal(op.Size(weights), 0)
            weights = op.if_(empty, lambda op: op.Expand(one, count), lambda op: weights)
        rule = "per_sample_weights_and_indices_differ_in_length"
        indices = required(op, rule, op.Not(op.Equal(op.Shape(weights), count)), indices)
    rows = op.Cast(op.Gather(emb_table, indices, axis=0), to=type_)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Reshape(weights, op.Concat(count, ones, axis=0)))
    sums = sum_of_bags(op, rows, starts, op.Sub(ends, starts))
    if default_index is not None:
        index = op.Reshape(op.Cast(default_index, to=Type.INT64), [-1])
        index = op.Slice(op.Concat(index, [-1], axis=0), [0], [1])  # -1 if it is empty at run time
        index = required(op, "default_index_is_less_than_minus_1", op.Less(index, -1), index)
        row = op.if_(
            op.Squeeze(op.Equal(index, -1), [0]),
            lambda op: _zeros(op, op.Concat([1], row_shape, axis=0), emb_table.dtype),
            lambda op: op.Gather(emb_table, index, axis=0),
        )
        empty = op.Reshape(op.Equal(starts, ends), op.Concat(batch, ones, axis=0))
        sums = op.Where(empty, op.Cast(row, to=type_), sums)
    return op.Cast(sums, to=emb_table.dtype)


def _zeros(op, shape, type_):
    return op.ConstantOfShape(shape, value=np.zeros(1, tensor_dtype_to_np_dtype(type_)))


def sum_of_bags(op, rows, starts, lengths):
    """Emit the sums of bags of consecutive rows, with zeros for empty bags. No two bags share a row.

    Rows are added in pairs until each bag has one left. The number of steps is the number of bits of the longest bag's
    length, and each step handles all bags at once. One ScatterND with the reduction "add" would suffice, but ONNX Runtime
    loses updates of a row when several threads write it.

    Args:
        op: the graph builder.
        rows: ``[n, ...]``.
        starts: int64 ``[bags]``, the first row of each bag, not decreasing.
        lengths: int64 ``[bags]``, the number of rows of each bag.

    Returns:
        ``[bags, ...]``.
    """
    count, row_shape = op.Shape(rows, start=0, end=1), op.Shape(rows, start=1)
    bags = op.Shape(starts)
    # A last bag with one row of zeros, the partner of rows without one.
    rows = op.Concat(rows, _zeros(op, op.Concat([1], row_shape, axis=0), rows.dtype), axis=0)
    starts, lengths = op.Concat(starts, count, axis=0), op.Concat(lengths, [1], axis=0)

    def add_pairs(op, _step, _condition, rows, starts, lengths):
        halves = op.Div(op.Add(lengths, 1), 2)
        ends = op.CumSum(halves, 0)
        new_starts = op.Sub(ends, halves)
        total = op.Gather(ends, op.const([-1]), axis=0)
        begun = op.ScatterElements(
            _zeros(op, total, Type.INT64),
            new_starts,
            op.Expand(op.const([1]), op.Shape(halves)),
            axis=0,
            reduction="add",
        )
        bag = op.Sub(op.CumSum(begun, 0), 1)
        pair = op.Mul(op.Sub(op.Range(0, op.Squeeze(total, [0]), 1), op.Gather(new_starts, bag, axis=0)), 2)
        left = op.Add(op.Gather(starts, bag, axis=0), pair)
        has_right = op.Less(op.Add(pair, 1), op.Gather(lengths, bag, axis=0))
        right = op.Where(has_right, op.Add(left, 1), op.Gather(starts, op.const([-1]), axis=0))
        rows = op.Add(op.Gather(rows, left, axis=0), op.Gather(rows, right, axis=0))
        return op.Greater(op.ReduceMax(halves, keepdims=0), 1), rows, new_starts, halves

    dims = None if rows.shape is None else [None, *list(rows.shape)[1:]]
    longest = op.ReduceMax(lengths, keepdims=0)
    rows, starts, lengths = op.loop(
        None, op.Greater(longest, 1), add_pairs, rows, starts, lengths, carried_dims=[dims, [None], [None]]
    )
    # Empty bags use the row of zeros.
    firsts = op.Where(op.Equal(lengths, 0), op.Gather(starts, op.const([-1]), axis=0), starts)
    return op.Gather(rows, op.Slice(firsts, [0], bags), axis=0)
