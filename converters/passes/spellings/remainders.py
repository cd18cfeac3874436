"""Mod of integers with the sign of the dividend."""

from __future__ import annotations

from converters.passes.integer_division import truncated_remainder
from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Mod", lambda op, a, b: op.Mod(a, b, _outputs=["whole"]))
def of_integers(op: Builder, *, a: Value, b: Value, whole: Value) -> Value | None:
    """Subtract the product of the truncated quotient and the divisor from the dividend."""
    node = whole.producer()
    assert node is not None
    if not node.attributes.get_int("fmod", 0) or a.dtype is None or not a.dtype.is_integer():
        return None
    return truncated_remainder(op, a, b)


class ModToDiv(PatternPass):
    """Convert Mod of integers with ``fmod=1`` to Div, Mul and Sub. tract (0.23) gives 0 for a constant dividend of 1."""

    rewrites = (of_integers,)
