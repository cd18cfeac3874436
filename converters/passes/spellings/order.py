"""The order of nodes."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes, nested


class SortByDepth(InPlacePass):
    """Sort nodes by their depth in the graph.

    OpenCV (5.0.0) fuses an attention into one layer at the position of its first node. The nodes that compute its mask must
    be before that.
    """

    def call(self, model: ir.Model) -> PassResult:
        nodes = list(model.graph)
        levels: dict[ir.Value, int] = {}
        found: dict[ir.Node, int] = {}
        for node in nodes:
            taken = [node, *(inner for graph in nested(node) for inner in all_nodes(graph))]
            found[node] = 1 + max(
                (levels.get(value, 0) for one in taken for value in one.inputs if value is not None), default=0
            )
            levels |= dict.fromkeys(node.outputs, found[node])
        order = sorted(nodes, key=found.__getitem__)
        if order == nodes:
            return PassResult(model, modified=False)
        model.graph.remove(nodes)
        model.graph.extend(order)
        return PassResult(model, modified=True)
