"""Merging of nodes that compute the same."""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.simplification.constants import RANDOM
from onnx_specops.graphs import all_nodes, nested
from onnx_specops.replacing import replace_value

_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)
_SINGLE = (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING)


class MergeDuplicates(InPlacePass):
    """Replace a node by an earlier one of the same graph with the same operator, inputs and attributes.

    Nodes with random results, nested graphs or tensors as attributes remain, and nodes with a graph's output.
    """

    def call(self, model: ir.Model) -> PassResult:
        graphs = {node.graph: None for node in all_nodes(model.graph) if isinstance(node.graph, ir.Graph)}
        return PassResult(model, modified=sum(_merged(graph) for graph in graphs) > 0)


def _merged(graph: ir.Graph) -> int:
    alone: dict[Hashable, ir.Node] = {}  # the first node of an operator and inputs
    several: dict[Hashable, dict[Hashable, ir.Node]] = {}  # the same by all that distinguishes them, if there are others
    count = 0
    for node in list(graph):
        key = node.op_identifier(), tuple([id(value) for value in node.inputs])
        first = alone.setdefault(key, node)
        if first is node:
            continue
        found = several.setdefault(key, {_identity(first): first})
        identity = _identity(node)
        first = found.setdefault(identity, node)
        if identity is None or first is node or any(value.is_graph_output() for value in node.outputs):
            continue
        pairs = [(old, new) for old, new in zip(node.outputs, first.outputs, strict=True) if old.uses()]
        count += sum(replace_value(old, new) for old, new in pairs)
    return count


def _identity(node: ir.Node) -> Hashable | None:
    """Return a key that only nodes of the same operator and inputs with equal results share; ``None`` if equal nodes may
    have different results.
    """
    if node.op_type in RANDOM or nested(node) or any(value.name == "" for value in node.outputs):
        return None
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        if attribute.type in _LISTS:
            attributes.append((name, attribute.type, tuple(repr(item) for item in attribute.value)))
        elif attribute.type in _SINGLE:
            attributes.append((name, attribute.type, (repr(attribute.value),)))
        else:
            return None
    types = tuple((value.dtype, None if value.shape is None else len(value.shape)) for value in node.outputs)
    return tuple(attributes), types
