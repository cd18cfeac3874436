"""Fusion of the factor, bias and function that follow a MatMul."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.activations import gelu_function
from converters.passes.added_bias import added_bias, elements
from converters.passes.dequantization import static
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

D = ir.DataType


def with_factor(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Use the number by which a MatMul is multiplied as the scale of weights without one. Return the last replaced node."""
    multiplied = product.producer()
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or multiplied.inputs[2] is not None:
        return node
    user, other = _joined(node, "Mul")
    factor = constant_array(other)
    if user is None or factor is None or factor.size != 1:
        return node
    multiplied.replace_input_with(2, op.place(op.const(factor.reshape(1, 1))))
    return user


def with_bias(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Use the vector that is added to a MatMul as its bias. Return the last replaced node."""
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
    """Return the only consumer of a node if it combines the result with a float32 value of at most the same rank, and that
    value.
    """
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
    """Add the function that follows a MatMul to it. Return the last replaced node."""
    value, multiplied = node.outputs[0], product.producer()
    uses = list(value.uses())
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or len(uses) != 1 or value.is_graph_output():
        return node
    user = uses[0][0]
    if (user.op_type, user.domain) != ("Gelu", "") or user.graph is not node.graph or value.dtype != D.FLOAT:
        return node
    if gelu_function(user) != "gelu":
        return node
    multiplied.attributes.add(ir.AttrString("function", "gelu"))
    return user
