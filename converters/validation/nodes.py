"""The nodes of a conversion that compute each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class LayerNode:
    """A node of the outermost graph, and the layers' outputs for which it is computed.

    Attributes:
        name: the node's name, or that of its first output.
        operator: its operator, prefixed by the domain unless that is ONNX's own.
        layers: ``(layer id, output index)`` of each.
    """

    name: str
    operator: str
    layers: tuple[tuple[int, int], ...]


def nodes_by_layer(graph: onnx.GraphProto, values: Mapping[str, Sequence[tuple[int, int]]]) -> list[LayerNode]:
    """Return the graph's nodes in order.

    A node belongs to the layers whose value it computes. Other nodes belong to the layers of their first consumer.

    Args:
        graph: the outermost graph of a conversion.
        values: the name of each value that is a layer's output -> ``(layer id, output index)``.
    """
    owners: dict[str, tuple[tuple[int, int], ...]] = {}
    found = []
    for node in reversed(graph.node):
        layers = tuple(dict.fromkeys(layer for name in node.output for layer in values.get(name, ())))
        if not layers:
            layers = next((owners[name] for name in node.output if owners.get(name)), ())
        owners |= dict.fromkeys(node.input, layers)
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        found.append(LayerNode(node.name or node.output[0], operator, layers))
    return found[::-1]
