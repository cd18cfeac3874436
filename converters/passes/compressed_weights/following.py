"""What follows a product and becomes part of it: a factor, a bias, a function."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.dequantization import static
from onnx_specops.building import Builder, Value

D = ir.DataType


def with_factor(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the number that it is multiplied by, as the scale of weights without one;
    returns the last node that it replaces."""
    multiplied = product.producer()
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or multiplied.inputs[2] is not None:
        return node
    user, other = _joined(node, "Mul")
    if user is None or other is None or other.const_value is None or other.const_value.size != 1:
        return node
    multiplied.replace_input_with(2, op.place(op.const(other.const_value.numpy().reshape(1, 1))))
    return user


def with_bias(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the vector that is added to it; returns the last node that it replaces."""
    multiplied = product.producer()
    if multiplied is None or multiplied.op_type != "MatMulCompressed":
        return node
    n = multiplied.attributes.get_int("N")
    found = added_bias(node.outputs[0], -1, n) if node.outputs[0].dtype == D.FLOAT else None
    if found is None:
        return node
    user, other = found
    multiplied.resize_inputs(6)
    multiplied.replace_input_with(5, other if static(other) == (n,) else op.place(op.const(elements(other, n))))
    return user


def _joined(node: ir.Node, op_type: str) -> tuple[ir.Node | None, ir.Value | None]:
    """The only user of a node if it joins what the node gives with another float32 value of no more dimensions; and that."""
    value = node.outputs[0]
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None, None
    user, index = uses[0]
    if (user.op_type, user.domain) != (op_type, "") or user.graph is not node.graph:
        return None, None
    other = user.inputs[1 - index]
    shape = None if other is None else static(other)
    if other is None or shape is None or other.dtype != D.FLOAT or value.shape is None or len(shape) > len(value.shape):
        return None, None
    return user, other


def with_function(node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the function that follows it; returns the last node that it replaces."""
    value, multiplied = node.outputs[0], product.producer()
    uses = list(value.uses())
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or len(uses) != 1 or value.is_graph_output():
        return node
    user = uses[0][0]
    if (user.op_type, user.domain) != ("Gelu", "") or user.graph is not node.graph or value.dtype != D.FLOAT:
        return node
    if user.attributes.get_string("approximate", "none") != "none":
        return node
    multiplied.attributes.add(ir.AttrString("function", "gelu"))
    return user
