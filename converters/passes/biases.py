"""Biases of MatMul as vectors, which ONNX Runtime fuses into Gemm or BiasGelu.

In OpenVINO, a bias has the rank of the result.
"""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite(
    "Add",
    lambda op, x, weights, bias: op.Add(op.MatMul(x, weights, _outputs=["product"]), bias, _outputs=["whole"]),
    commute=True,
)
def as_vector(op: Builder, *, x: Value, weights: Value, bias: Value, product: Value, whole: Value) -> Value | None:
    """Convert the bias of x @ weights + bias from ``[1, ..., 1, N]`` to ``[N]``."""
    if bias.constant is None or bias.dims is None or len(bias.dims) < 2 or any(size != 1 for size in bias.dims[:-1]):
        return None
    # A constant that broadcasts the result, or has a higher rank, is not a bias.
    if product.dims is None or product.dims[-1:] != bias.dims[-1:] or whole.rank != product.rank:
        return None
    return op.Add(product, op.Reshape(bias, bias.dims[-1:]))


class FlattenBiases(PatternPass):
    """Convert biases of MatMul to vectors."""

    rewrites = (as_vector,)
