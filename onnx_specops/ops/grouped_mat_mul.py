"""GroupedMatMul: multiplies each group of rows by its own matrix."""

from __future__ import annotations

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import INDICES, NUMERIC, operator
from onnx_specops.ops._checks import FLOAT16S


@operator(
    inputs={"mat_a": "T", "mat_b": "T", "offsets": "T_IND"},
    outputs={"output": "T"},
    types={"T": NUMERIC, "T_IND": INDICES},
)
def GroupedMatMul(mat_a, mat_b, offsets):
    """Multiplies the rows of ``mat_a`` by the transposed matrix of their group.

    Group ``g`` contains the rows from ``offsets[g - 1]`` (0 for the first group) up to, but not including,
    ``offsets[g]``.

    Inputs:
        mat_a: ``[rows, K]``.
        mat_b: ``[G, N, K]``.
        offsets: ``[G]``, the ends of the groups; not negative, not decreasing, the last one at least ``rows``.

    Output: ``[rows, N]``. 16-bit floats are summed in float32. Integers wrap around.

    Source: OpenVINO specification, GroupedMatMul-17 (a matrix by a batch of matrices).
    """
    name = "GroupedMatMul"
    if mat_a.ndim != 2 or mat_b.ndim != 3 or mat_a.shape[1] != mat_b.shape[2]:
        raise ValueError(
            f"{name}: mat_a and mat_b have the shapes {list(mat_a.shape)} and {list(mat_b.shape)}"
            "; expected [rows, K] and [groups, N, K]"
        )
    if offsets.shape != mat_b.shape[:1]:
        raise ValueError(f"{name}: offsets has the shape {list(offsets.shape)} instead of [{mat_b.shape[0]}]")
    starts = np.concatenate([offsets[:1] * 0, offsets[:-1]])
    if (bad := np.flatnonzero(offsets < starts)).size:
        at = bad[0]
        raise ValueError(f"{name}: offsets[{at}] = {offsets[at]} is less than {starts[at]}, the start of its group")
    rows = len(mat_a)
    if rows and (not offsets.size or offsets[-1] < rows):
        raise IndexError(f"{name}: offsets: the last of {rows} rows belongs to no group")
    accumulated = np.float32 if mat_a.dtype.name in FLOAT16S else mat_a.dtype
    output = np.zeros((rows, mat_b.shape[1]), accumulated)
    for matrix, start, end in zip(mat_b, starts.tolist(), offsets.tolist(), strict=True):
        if start < min(end, rows):
            output[start:end] = mat_a[start:end].astype(accumulated, copy=False) @ matrix.T.astype(accumulated, copy=False)
    return output.astype(mat_a.dtype, copy=False)


@GroupedMatMul.infer_shapes
def _(node):
    mat_a, mat_b = node.shape(0), node.shape(1)
    return [[mat_a[0] if mat_a else None, mat_b[1] if mat_b and len(mat_b) == 3 else None]]


@GroupedMatMul.body
def _(op, mat_a, mat_b, offsets):
    ends = op.Cast(offsets, to=7)
    starts = op.Concat([0], op.Slice(ends, [0], [-1]), axis=0)
    starts = required(op, "offsets_decrease", op.Less(ends, starts), starts)
    rows, last = op.Shape(mat_a, end=1), op.Slice(op.Concat([0], ends, axis=0), [-1], [2**31])
    starts = required(op, "rows_beyond_the_last_offset", op.Less(last, rows), starts)
    shape = op.Concat([0], op.Shape(mat_b, start=1, end=2), axis=0)

    def step(op, group, condition, done):
        one = op.Reshape(group, [1])
        part = op.Slice(mat_a, op.Gather(starts, one), op.Gather(ends, one), [0])
        product = op.MatMul(part, op.Transpose(op.Gather(mat_b, group), perm=[1, 0]))
        return condition, op.Concat(done, product, axis=0)

    none = op.Expand(op.const(0, mat_a.dtype), shape)
    count = op.Squeeze(op.Shape(mat_b, end=1), [0])
    return op.loop(count, True, step, none, carried_dims=[[None, None]])
