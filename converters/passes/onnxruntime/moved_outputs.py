"""Outputs of a model that are transposed and quantized afterwards.

ONNX Runtime (1.32) moves a quantization before the preceding Transpose. If the Transpose is the only consumer of an output
of the model, the output then contains the quantized numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.copied_nodes import copy_output
from converters.passes.quantized.graph import is_node
from onnx_specops.captured_values import MOVERS
from onnx_specops.graphs import all_nodes, nested
from onnx_specops.naming import Names


class CopyMovedOutputs(InPlacePass):
    """Return a copy of such an output, by an Identity.

    Conditions: a Transpose is the only consumer, and a QuantizeLinear is after it, perhaps after further nodes that move
    numbers.
    """

    def call(self, model: ir.Model) -> PassResult:
        graphs = [model.graph, *(graph for node in all_nodes(model.graph) for graph in nested(node))]
        found = [(graph, index) for graph in graphs for index, value in enumerate(graph.outputs) if _is_moved(value, graph)]
        names = Names.of(model.graph) if found else Names()
        for graph, index in found:
            copy_output(graph, index, names, "moved")
        return PassResult(model, modified=bool(found))


def _is_moved(value: ir.Value, graph: ir.Graph) -> bool:
    node, users = value.producer(), [use.node for use in value.uses()]
    if node is None or node.graph is not graph or len(users) != 1 or not is_node(users[0], "Transpose"):
        return False
    return any(is_node(user, "QuantizeLinear") for user in _after(users[0]))


def _after(node: ir.Node) -> Iterator[ir.Node]:
    """Iterate over the nodes after one that moves numbers, also after further such nodes."""
    pending = list(node.outputs[0].consumers())
    while pending:
        user = pending.pop()
        yield user
        if not user.domain and user.op_type in MOVERS:
            pending += user.outputs[0].consumers()
