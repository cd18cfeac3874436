"""Cubes as powers."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Mul", lambda op, x: op.Mul(op.Mul(x, x), x), commute=True)
def cube(op: Builder, *, x: Value) -> Value | None:
    """Return the third power of a product of three equal floats."""
    if x.dtype is None or not x.dtype.is_floating_point():
        return None
    result: Value = op.Pow(x, op.const(3, x.dtype))
    return result


class MulToPow(PatternPass):
    """Convert the product of three equal factors to Pow.

    OpenCV (5.0.0, 4.14.0) crashes if a Gelu with this product precedes another one.
    """

    rewrites = (cube,)
