"""Comparisons and Where with inputs of equal shapes."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, all_values

_COMPARED = frozenset(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"))


class EqualShapes(InPlacePass):
    """Expand the inputs of Where, and of comparisons of floats that broadcast in both directions, to the shape of the
    result. Less of floats becomes Greater.

    MNN (3.6) selects wrong elements of such inputs, reads out of bounds, and computes Less of floats incorrectly.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [node for node in all_nodes(model.graph) if not node.domain and node.op_type in (*_COMPARED, "Where")]
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        return PassResult(model, modified=sum(_respelled(node, root) for node in found) > 0)


def _respelled(node: ir.Node, root: Builder) -> bool:
    x = node.inputs[0]
    is_of_floats = x is not None and x.dtype is not None and x.dtype.is_floating_point()
    if not isinstance(node.graph, ir.Graph) or (node.op_type != "Where" and not is_of_floats):
        return False
    changed = _expand(node, root)
    if node.op_type == "Less":
        inputs = list(node.inputs)
        node.replace_input_with(0, inputs[1])
        node.replace_input_with(1, inputs[0])
        node.op_type = "Greater"
        changed = True
    return changed


def _expand(node: ir.Node, root: Builder) -> bool:
    whole = node.outputs[0]
    if not isinstance(whole, Value) or whole.dims is None or not whole.is_static:
        return False
    small = [
        index
        for index, value in enumerate(node.inputs)
        if isinstance(value, Value) and value.is_static and value.dims != whole.dims
    ]
    if not small or (node.op_type != "Where" and len(small) < len(node.inputs)):
        return False
    op = Builder.before_node(node, root)
    for index in small:
        value = node.inputs[index]
        # One element is computed correctly.
        if isinstance(value, Value) and any(dim != 1 for dim in value.dims or ()):
            node.replace_input_with(index, op.place(op.Expand(value, whole.dims)))
    return True


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

    MNN (3.6) distinguishes 0 and -0, and its booleans keep the number.
    """

    rewrites = (equal_floats, truth)
