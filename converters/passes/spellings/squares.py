"""Squares as products."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, number, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Pow", lambda op, x: op.Pow(x, number(2), _outputs=["square"]))
def square_as_product(op: Builder, *, x: Value, square: Value) -> Value | None:
    """x ** 2, of the dimensions that x has."""
    if x.rank is None or square.rank != x.rank:
        return None
    result: Value = op.Mul(x, x)
    return result


class AsProducts(PatternPass):
    """Pow with the exponent 2 becomes Mul: WebGPU (0.4) fails to compute some of them."""

    rewrites = (square_as_product,)
