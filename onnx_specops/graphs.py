"""Going through graphs and the graphs nested in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir

ORIGIN = "origin"
"""The key in a node's ``meta`` of what it was emitted for, such as a layer. Nodes that take its place inherit it."""


def origin(node: ir.Node) -> object | None:
    """What a node was emitted for; ``None`` where that is not known."""
    return node.meta.get(ORIGIN)


def nested(node: ir.Node) -> Sequence[ir.Graph]:
    """The graphs among a node's attributes."""
    # Passes ask this of every node. The dictionary itself is several times as quick as the mapping around it.
    if not (attributes := node.attributes.data):
        return ()
    return [attribute.as_graph() for attribute in attributes.values() if attribute.type == _GRAPH]


_GRAPH = ir.AttributeType.GRAPH


def all_nodes(holder: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """The nodes of a graph or function, or some nodes, and those of the graphs nested in them."""
    for node in holder:
        yield node
        for graph in nested(node):
            yield from all_nodes(graph)


def all_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """Every value of a graph, those of nested graphs included."""
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
        for inner in nested(node):
            yield from all_values(inner)
