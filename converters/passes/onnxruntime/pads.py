"""Protection of Pads before poolings from ONNX Runtime's fusion."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import Value, constant_value
from onnx_specops.graphs import all_nodes, constant_array, producer_of
from onnx_specops.naming import Names

_POOLINGS = {("", "MaxPool"), ("", "AveragePool")}


class KeepPads(OperatorPass):
    """Keep ONNX Runtime from fusing a Pad into the pooling that follows it.

    The fused pooling would differ: MaxPool pads with the lowest number instead of zero, and AveragePool does not count the
    padding. It also rejects pads that are not smaller than its kernel. If the input of MaxPool is not negative, the results
    are equal and the fusion is allowed. Pads that are not constant may become so in ONNX Runtime, by dimensions that a
    session fixes.

    From opset 18, the Pad gets the input ``axes``. Below opset 18, Pad has no such input, and a Clip without limits is
    inserted after it. Below opset 12, ONNX Runtime's Clip (1.32) supports only float32, so a Max of one input is inserted.

    Args:
        opset: the opset of the model.
    """

    operators = frozenset(("Pad",))

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def call(self, model: ir.Model) -> PassResult:
        pads = [node for node in all_nodes(model.graph) if _is_fused(node)]
        names = Names.of(model.graph) if pads else Names()
        for node in pads:
            if self.opset >= 18:
                _name_axes(model.graph, node, names)
            else:
                _follow(node, "Clip" if self.opset >= 12 else "Max", names)
        return PassResult(model, modified=bool(pads))


def _is_fused(node: ir.Node) -> bool:
    """Return whether ONNX Runtime would fuse a Pad with a different result."""
    if (node.domain, node.op_type) != ("", "Pad") or len(node.inputs) > 3:
        return False
    if node.attributes.get_string("mode", "constant") != "constant":
        return False
    pads, poolings = constant_array(node.inputs[1]), _poolings(node)
    if pads is None:
        return bool(poolings)
    return not all(_is_same(node, pads, pooling) for pooling in poolings)


def _name_axes(root: ir.Graph, node: ir.Node, names: Names) -> None:
    rank = 2 + len(_poolings(node)[0].attributes.get_ints("kernel_shape", ()))
    axes = constant_value(ir.tensor(np.arange(rank)), name=f"{node.outputs[0].name}_axes")
    names.register(root, axes)
    node.resize_inputs(4)
    node.replace_input_with(3, axes)


def _follow(node: ir.Node, operator: str, names: Names) -> None:
    """Insert an operator that returns its input after the node."""
    assert node.graph is not None
    padded = node.outputs[0]
    result = Value(name=names.unique(f"{padded.name}_kept"), type=padded.type, shape=padded.shape)
    padded.replace_all_uses_with(result)
    node.graph.insert_after(node, ir.Node("", operator, [padded], outputs=[result], name=result.name))


def _poolings(node: ir.Node) -> list[ir.Node]:
    """Return the poolings of a Pad's result, including those after a Cast."""
    users = list(node.outputs[0].consumers())
    casts = [user for user in users if (user.domain, user.op_type) == ("", "Cast")]
    users += [after for cast in casts for after in cast.outputs[0].consumers()]
    return [user for user in users if (user.domain, user.op_type) in _POOLINGS]


def _is_same(node: ir.Node, pads: np.ndarray, pooling: ir.Node) -> bool:
    """Return whether zeros around a pooling's input do not affect the result."""
    kernel = pooling.attributes.get_ints("kernel_shape", ())
    begin, end = np.split(pads, 2)
    return (
        pooling.op_type == "MaxPool"
        and producer_of(node.inputs[0], "Relu") is not None
        and bool((begin[2:] < kernel).all() and (end[2:] < kernel).all())
    )
