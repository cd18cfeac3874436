"""The operands of MatMul."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


@rewrite("MatMul", lambda op, a, b: op.MatMul(a, b))
def mat_mul_of_vector(op: Builder, *, a: Value, b: Value) -> Value | None:
    """Return the MatMul with the second input as a matrix of one column, and the column removed."""
    if b.rank != 1 or a.rank is None or a.rank < 2:
        return None
    result: Value = op.Squeeze(op.MatMul(a, op.Unsqueeze(b, [1])), [-1])
    return result


class VectorsToMatrices(PatternPass):
    """Convert vectors to matrices with one column.

    OpenVINO (2026.4.1) and TVM (0.27) multiply a transposed matrix with a vector as if it were not transposed.
    """

    rewrites = (mat_mul_of_vector,)


@rewrite("MatMul", lambda op, a, b: op.MatMul(a, b))
def mat_mul_of_vectors(op: Builder, *, a: Value, b: Value) -> Value | None:
    """Return the MatMul with a first vector as a row and a second one as a column, and these dimensions removed."""
    if None in (a.rank, b.rank) or 1 not in (a.rank, b.rank):
        return None
    removed = [-2] * (a.rank == 1) + [-1] * (b.rank == 1)
    left, right = op.Unsqueeze(a, [0]) if a.rank == 1 else a, op.Unsqueeze(b, [1]) if b.rank == 1 else b
    result: Value = op.Squeeze(op.MatMul(left, right), removed)
    return result


class MatricesOnly(PatternPass):
    """Convert vectors in matrix multiplications to matrices with one row or column. OpenCV (5.0.0) rejects vectors."""

    rewrites = (mat_mul_of_vectors,)


class TransposedBatches(Workaround):
    """Convert a MatMul with constant matrices for a part of the batch to a MatMul of the transposed matrices.

    OpenCV (5.0.0, 4.14.0) computes wrong numbers if the batch of a constant second operand is broadcast, for example for
    relative positions in attention.
    """

    operators = frozenset(("MatMul",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, result = node.inputs[0], constant_array(node.inputs[1]), node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or weights is None or constant_array(x) is not None:
            return None
        batch = [size for size in weights.shape[:-2] if size != 1]
        if not batch or result.dims is None or x.rank is None or x.rank < len("MK"):
            return None
        if [size for size in result.dims[:-2] if size != 1] == batch:
            return None
        product = op.MatMul(np.ascontiguousarray(np.swapaxes(weights, -1, -2)), _turned(op, x, x.rank))
        return [_turned(op, product, len(result.dims))]


def _turned(op: Builder, x: Value, rank: int) -> Value:
    """Swap the last two axes."""
    result: Value = op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])
    return result
