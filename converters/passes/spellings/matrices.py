"""MatMul of matrices instead of vectors."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("MatMul", lambda op, a, b: op.MatMul(a, b))
def mat_mul_of_vector(op: Builder, *, a: Value, b: Value) -> Value | None:
    """Return the MatMul with the second input as a matrix of one column, and the column removed."""
    if b.rank != 1 or a.rank is None or a.rank < 2:
        return None
    result: Value = op.Squeeze(op.MatMul(a, op.Unsqueeze(b, [1])), [-1])
    return result


class VectorsToMatrices(PatternPass):
    """Convert vectors to matrices of one column. OpenVINO (2026.4.1) multiplies a transposed matrix with a vector as
    if it were not transposed.
    """

    rewrites = (mat_mul_of_vector,)
