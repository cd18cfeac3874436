"""Inverse: inverses of square matrices."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator


@operator(inputs={"input": "T"}, outputs={"output": "T"}, types={"T": FLOATS})
def Inverse(input, *, adjoint: int = 0):
    """Inverts square matrices by Gaussian elimination with partial pivoting.

    Input: ``[..., n, n]``.

    Attributes:
        adjoint: whether the inverses are transposed.

    Output: the shape of ``input``, computed in float32 for every type. The result for a singular matrix contains
    infinities or NaNs.

    Source: OpenVINO specification, Inverse-14.
    """
    name = "Inverse"
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ValueError(f"{name}: input has the shape {list(input.shape)}; expected square matrices")
    size = input.shape[-1]
    matrices = input.astype(np.float32).reshape(int(np.prod(input.shape[:-2], dtype=np.int64)), size, size)
    unit = np.broadcast_to(np.eye(size, dtype=np.float32), matrices.shape)
    joined = np.concatenate([matrices, unit], axis=2)
    batch, rows = np.arange(len(joined)), np.arange(size)[:, None]
    with np.errstate(all="ignore"):
        for column in range(size):
            pivot = np.argmax(np.abs(joined[:, column:, column]), axis=1) + column
            swapped = joined[batch, pivot]
            joined[batch, pivot] = joined[:, column]
            swapped = swapped / swapped[:, column : column + 1]
            joined = np.where(
                rows == column, swapped[:, None], joined - joined[:, :, column : column + 1] * swapped[:, None]
            )
    result = joined[:, :, size:]
    return (result.swapaxes(1, 2) if adjoint else result).reshape(input.shape).astype(input.dtype)


@Inverse.infer_shapes
def _(node):
    return [node.shape(0)]


@Inverse.body
def _(op, input, *, adjoint):
    matrices = op.Cast(input, to=Type.FLOAT)
    shape, size = op.Shape(input), op.Shape(input, start=-1)
    count = op.Squeeze(size, [0])
    batch = op.ReduceProd(op.Slice(shape, [0], [-2]))
    matrices = op.Reshape(matrices, op.Concat(batch, size, size, axis=0), allowzero=1)
    rows = op.Range(0, count, 1)
    unit = op.Cast(op.Equal(op.Unsqueeze(rows, [1]), rows), to=Type.FLOAT)
    joined = op.Concat(matrices, op.Expand(unit, op.Shape(matrices)), axis=2)

    def eliminate(op, column, _condition, joined):
        values = op.Where(op.Less(rows, column), -1.0, op.Abs(op.Gather(joined, column, axis=2)))
        pivot = op.ArgMax(values, axis=1)
        # Swap the pivot's row with the column's row, divide it by the pivot, and eliminate the column in the other rows.
        order = op.Where(op.Equal(rows, column), pivot, op.Where(op.Equal(rows, pivot), column, rows))
        joined = op.GatherElements(joined, op.Expand(op.Unsqueeze(order, [2]), op.Shape(joined)), axis=1)
        row = op.Gather(joined, op.Unsqueeze(column, [0]), axis=1)
        row = op.Div(row, op.Gather(row, op.Unsqueeze(column, [0]), axis=2))
        others = op.Sub(joined, op.Mul(op.Gather(joined, op.Unsqueeze(column, [0]), axis=2), row))
        return op.const(True), op.Where(op.Unsqueeze(op.Equal(rows, column), [1]), row, others)

    joined = op.loop(count, True, eliminate, joined)
    result = op.Slice(joined, size, [np.iinfo(np.int64).max], [2])
    if adjoint:
        result = op.Transpose(result, perm=[0, 2, 1])
    return op.Cast(op.Reshape(result, shape, allowzero=1), to=input.dtype)
