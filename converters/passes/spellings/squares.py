"""Mul instead of Pow for squares."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, number, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Pow", lambda op, x: op.Pow(x, number(2), _outputs=["square"]))
def square_as_mul(op: Builder, *, x: Value, square: Value) -> Value | None:
    """Return x * x, unless the exponent adds dimensions."""
    if x.rank is None or square.rank != x.rank:
        return None
    result: Value = op.Mul(x, x)
    return result


class PowToMul(PatternPass):
    """Convert Pow with the exponent 2 to Mul. WebGPU (0.4) fails for some of these nodes."""

    rewrites = (square_as_mul,)
