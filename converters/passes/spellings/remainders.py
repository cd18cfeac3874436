"""Remainders with the sign of the dividend, and of dividends that broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.integer_division import truncated_remainder
from converters.passes.patterns import PatternPass, rewrite
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


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


class WholeDividends(Workaround):
    """Select the dividend of Mod by a condition that has the shape of the result.

    tract (0.23) swaps the operands if the dividend is a constant, or has fewer elements than the divisor.
    """

    operators = frozenset(("Mod",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        result = node.outputs[0]
        if not isinstance(a, Value) or not isinstance(b, Value) or not isinstance(result, Value) or result.rank == 0:
            return None
        if constant_array(a) is None and a.is_static and a.dims == result.dims:
            return None
        zero = op.const([0], b.dtype)
        never = op.And(op.Less(b, zero), op.Greater(b, zero))
        return [op.Mod(op.Where(never, b, a), b, fmod=node.attributes.get_int("fmod", 0))]


class AbsoluteRemainders(Workaround):
    """Compute Mod of floats from absolute values, and apply the sign of the dividend to the result.

    In MNN (3.6), the result of Mod has the sign of the divisor. MNN subtracts a product, which can exceed the dividend
    because of rounding.
    """

    operators = frozenset(("Mod",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype is None or not a.dtype.is_floating_point():
            return None
        divisor = op.Abs(b)
        remainder = op.Mod(op.Abs(a), divisor, fmod=1)
        zero = op.const([0] if node.outputs[0].shape else 0, a.dtype)
        return [op.Mul(op.Sign(a), op.Where(op.Less(remainder, zero), op.Add(remainder, divisor), remainder))]
