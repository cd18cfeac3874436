"""Products of vectors as products of matrices."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("MatMul", lambda op, a, b: op.MatMul(a, b))
def product_of_vector(op: Builder, *, a: Value, b: Value) -> Value | None:
    """A product whose second input has one dimension."""
    if b.rank != 1 or a.rank is None or a.rank < 2:
        return None
    result: Value = op.Squeeze(op.MatMul(a, op.Unsqueeze(b, [1])), [-1])
    return result


class OfMatrices(PatternPass):
    """A vector is a matrix of one column: OpenVINO (2026.4.1) multiplies it with a transposed matrix as that was before."""

    rewrites = (product_of_vector,)
