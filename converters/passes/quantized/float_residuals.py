"""Additions of floats to the results of integer convolutions, as in residual networks whose sums are not quantized.

NNCF does not quantize the sums of transformers (`ModelType.TRANSFORMER`), including DETR and its ResNet. A separate addition
reads two tensors and writes one.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.columns import adds_tensor
from converters.passes.dequantization import static
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, attributes_of
from onnx_specops.replacing import replace_value

_Y_ZERO_POINT, _SUM_SLOPE, _RESIDUAL = 5, 13, 17
_PROGRAMS = {"add 0 1": False, "add 0 1;relu 10": True}
"""Programs of Elementwise that are sums, and whether they end with Relu."""


class AddFloatResiduals(InPlacePass):
    """Add floats, and compute a Relu after it, in the QuantizedConv that computes one of the addends.

    Conditions: both addends have the known shape of the sum; the convolution's result is float, is not an output, has no
    other consumer, and nothing is added to it yet; the Relu is part of the same Elementwise, or the only consumer of the
    sum.
    """

    def call(self, model: ir.Model) -> PassResult:
        root, count = Builder.of_existing(model.graph), 0
        for node in list(all_nodes(model.graph)):
            count += node.graph is not None and _added(node, root)
        return PassResult(model, modified=count > 0)


def _added(node: ir.Node, root: Builder) -> bool:
    addends, has_relu = _sum_of(node)
    shape = static(node.outputs[0]) if addends else None
    if shape is None or any(one is None or static(one) != shape or one.dtype != ir.DataType.FLOAT for one in addends):
        return False
    pairs = ((addends[0], addends[1]), (addends[1], addends[0]))
    found = next(((one, other) for one, other in pairs if one is not None and _is_plain(one)), None)
    if found is None:
        return False
    result, residual = found
    convolution = result.producer()
    assert convolution is not None
    total, relu = node.outputs[0], _relu_after(node)
    if not has_relu and relu is not None:
        total, has_relu = relu, True
    op = Builder.before_node(node, root)
    inputs: list[ir.Value | None] = [*convolution.inputs, *[None] * (_RESIDUAL - len(convolution.inputs))][:_RESIDUAL]
    if has_relu:
        inputs[_SUM_SLOPE] = op.const(np.zeros(shape[-1], np.float32))
    summed: Value = op.node("QuantizedConv", *inputs, residual, domain=DOMAIN, **attributes_of(convolution))
    summed.shape, summed.dtype = ir.Shape(shape), ir.DataType.FLOAT
    return replace_value(total, summed)


def _sum_of(node: ir.Node) -> tuple[list[ir.Value | None], bool]:
    """Return the addends of a node that is a sum, and whether it ends with Relu."""
    if node.op_type == "Add" and not node.domain:
        return list(node.inputs), False
    if node.domain != DOMAIN or node.op_type != "Elementwise":
        return [], False
    program = node.attributes.get_string("program", "")
    zero = node.inputs[1]
    if program not in _PROGRAMS or zero is None or zero.dtype != ir.DataType.FLOAT:
        return [], False
    return [node.inputs[0], node.inputs[3]], _PROGRAMS[program]


def _is_plain(value: ir.Value) -> bool:
    """Return whether a value is the float result of a convolution to which nothing is added, and has one consumer."""
    node = value.producer()
    if node is None or node.domain != DOMAIN or node.op_type != "QuantizedConv":
        return False
    if value.is_graph_output() or len(value.uses()) != 1 or adds_tensor(node):
        return False
    zero = node.inputs[_Y_ZERO_POINT]
    return zero is not None and zero.dtype == ir.DataType.FLOAT


def _relu_after(node: ir.Node) -> ir.Value | None:
    """Return the result of the Relu that is the only consumer of a node's result."""
    total = node.outputs[0]
    users = list(total.consumers())
    if total.is_graph_output() or len(users) != 1:
        return None
    user = users[0]
    return user.outputs[0] if user.op_type == "Relu" and not user.domain else None
