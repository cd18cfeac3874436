"""The order of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.fused_attention import fused_attentions
from onnx_specops.graphs import all_nodes, nested


class SortByDepth(InPlacePass):
    """Sort nodes by their depth in the graph if the projections of attention depend on its mask.

    OpenCV (5.0.0) fuses attention into one layer at the position of its first node. The nodes that compute the mask must
    precede it.
    """

    def call(self, model: ir.Model) -> PassResult:
        nodes = list(model.graph)
        masks = {node: one.mask for one in fused_attentions(model.graph) for node in one.projections}
        found: dict[ir.Node, int] = {}
        for node in _after_masks(nodes, masks):
            found[node] = 1 + max((found.get(one, 0) for one in _before(node, masks)), default=0)
        order = sorted(nodes, key=found.__getitem__)
        if order == nodes:
            return PassResult(model, modified=False)
        model.graph.remove(nodes)
        model.graph.extend(order)
        return PassResult(model, modified=True)


def _before(node: ir.Node, masks: Mapping[ir.Node, ir.Value | None]) -> Iterator[ir.Node]:
    """Yield the nodes that compute a node's inputs, those of its nested graphs, and its mask."""
    taken = [node, *(inner for graph in nested(node) for inner in all_nodes(graph))]
    for value in (*(value for one in taken for value in one.inputs), masks.get(node)):
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer


def _after_masks(nodes: Sequence[ir.Node], masks: Mapping[ir.Node, ir.Value | None]) -> Iterator[ir.Node]:
    """Yield nodes after those that compute their inputs and masks."""
    own, done = set(nodes), set()
    pending = list(reversed(nodes))
    while pending:
        node = pending[-1]
        missing = [one for one in _before(node, masks) if one in own and one not in done]
        pending += missing
        if not missing:
            pending.pop()
            if node not in done:
                done.add(node)
                yield node
