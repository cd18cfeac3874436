"""Pads before poolings stay as they are in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import constant_value

_POOLINGS = {("", "MaxPool"), ("", "AveragePool")}


class KeepPads(InPlacePass):
    """A Pad before a pooling names its axes, which keeps ONNX Runtime from making it the pooling's own padding.

    That would not be the same: MaxPool's padding is less than every number, not zero, and AveragePool's does not count.
    Where MaxPool's input is not negative it is the same, and stays to be fused.
    """

    def call(self, model: ir.Model) -> PassResult:
        count = sum(_keep(model.graph, node) for node in list(ir.traversal.RecursiveGraphIterator(model.graph)))
        return PassResult(model, modified=count > 0)


def _keep(root: ir.Graph, node: ir.Node) -> bool:
    if (node.domain, node.op_type) != ("", "Pad") or len(node.inputs) > 3:
        return False
    if node.attributes.get_string("mode", "constant") != "constant":
        return False
    pads = node.inputs[1].const_value if node.inputs[1] is not None else None
    poolings = [user for user in _users(node) if (user.domain, user.op_type) in _POOLINGS]
    if pads is None or not poolings or all(_is_same(node, pads.numpy(), pooling) for pooling in poolings):
        return False
    axes = constant_value(ir.tensor(np.arange(pads.size // 2)), name=f"{node.outputs[0].name}_axes")
    root.register_initializer(axes)
    node.resize_inputs(4)
    node.replace_input_with(3, axes)
    return True


def _users(node: ir.Node) -> list[ir.Node]:
    """The nodes that take what a Pad gives, also those behind a Cast."""
    users = list(node.outputs[0].consumers())
    return users + [behind for user in users if user.op_type == "Cast" for behind in user.outputs[0].consumers()]


def _is_same(node: ir.Node, pads: np.ndarray, pooling: ir.Node) -> bool:
    """Whether zeros around a pooling's input make no difference to it."""
    producer = node.inputs[0].producer() if node.inputs[0] is not None else None
    kernel = pooling.attributes.get_ints("kernel_shape", ())
    begin, end = np.split(pads, 2)
    return (
        pooling.op_type == "MaxPool"
        and producer is not None
        and producer.op_type == "Relu"
        and bool((begin[2:] < kernel).all() and (end[2:] < kernel).all())
    )
