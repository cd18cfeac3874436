"""Division of integers in standard operators."""

from __future__ import annotations

from onnx_specops.building import Builder, Value


def truncated_remainder(op: Builder, a: Value, b: Value) -> Value:
    """Subtract the product of the truncated quotient and the divisor from the dividend."""
    # Neg prevents programs from converting ``1 / a * b`` to ``b / a``, which ONNX Runtime also does for integers and a
    # folded 1.
    return op.Add(a, op.Mul(op.Neg(op.Div(a, b)), b))
