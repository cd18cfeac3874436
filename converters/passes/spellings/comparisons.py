"""Comparisons and Where with inputs of equal shapes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

_COMPARED = frozenset(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"))


class EqualShapes(Workaround):
    """Expand the inputs of Where, and of comparisons of floats that broadcast in both directions, to the shape of the
    result. Less of floats becomes Greater.

    For such inputs, MNN (3.6) selects wrong elements and reads out of bounds. It also computes Less of floats incorrectly.
    """

    operators = _COMPARED | {"Where"}

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        is_of_floats = x is not None and x.dtype is not None and x.dtype.is_floating_point()
        if node.op_type != "Where" and not is_of_floats:
            return None
        small, result = _small_inputs(node), node.outputs[0]
        if not small and node.op_type != "Less":
            return None
        inputs = list(node.inputs)
        for index in small:
            inputs[index] = op.Expand(inputs[index], list(result.shape or ()))
        if node.op_type == "Less":
            return [op.Greater(*reversed(inputs))]
        return [op.node(node.op_type, *inputs)]


def _small_inputs(node: ir.Node) -> list[int]:
    """Return the numbers of the inputs that are expanded."""
    whole = node.outputs[0]
    if not isinstance(whole, Value) or whole.dims is None or not whole.is_static:
        return []
    small = [
        (index, value)
        for index, value in enumerate(node.inputs)
        if isinstance(value, Value) and value.is_static and value.dims != whole.dims
    ]
    if node.op_type != "Where" and len(small) < len(node.inputs):
        return []
    # One element is computed correctly.
    return [index for index, value in small if any(dim != 1 for dim in value.dims or ())]


@rewrite("Equal", lambda op, a, b: op.Equal(a, b), finite=True)
def equal_floats(op: Builder, *, a: Value, b: Value) -> Value | None:
    """Return whether neither of two floats is greater."""
    if a.dtype is None or not a.dtype.is_floating_point():
        return None
    result: Value = op.Not(op.Or(op.Greater(a, b), op.Greater(b, a)))
    return result


@rewrite("Cast", lambda op, x: op.Cast(x, _outputs=["whole"]), finite=True)
def truth(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Return whether a number differs from 0."""
    if whole.dtype != ir.DataType.BOOL or x.dtype is None or x.dtype == ir.DataType.BOOL or x.rank is None:
        return None
    zero = op.const([0] if x.rank else 0, x.dtype)
    if x.dtype.is_floating_point():
        result: Value = op.Greater(op.Abs(x), zero)
        return result
    result = op.Not(op.Equal(x, zero))
    return result


class ComparedNumbers(PatternPass):
    """Convert Equal of floats to Greater, and a Cast to booleans to a comparison.

    MNN (3.6) distinguishes 0 from -0, and its booleans keep the original number.
    """

    rewrites = (equal_floats, truth)
