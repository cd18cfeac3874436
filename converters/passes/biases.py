"""Biases of products as vectors, which ONNX Runtime makes part of the product (Gemm) or of what follows it (BiasGelu).

OpenVINO's have the rank of the product.
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
    """x @ weights + bias, [1, ..., 1, N]."""
    if bias.const_value is None or bias.dims is None or len(bias.dims) < 2 or any(size != 1 for size in bias.dims[:-1]):
        return None
    # A bias that broadcasts the product, or of higher rank, is none.
    if product.dims is None or product.dims[-1:] != bias.dims[-1:] or whole.rank != product.rank:
        return None
    return op.Add(product, op.Reshape(bias, bias.dims[-1:]))


class FlattenBiases(PatternPass):
    """Products with a bias."""

    rewrites = (as_vector,)
