"""The oldest opset that represents each node of a graph by one node."""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir

from onnx_specops.building import OPSET, Builder
from onnx_specops.graphs import all_nodes, nested
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, adapters
from onnx_specops.lowering.checking import form_problem, least_opset, type_problem
from onnx_specops.lowering.types import least_opset_of_ports
from onnx_specops.lowering.versions import OLDEST

_SMALL = 64
"""The maximum number of elements of constants for axes and lengths."""

_QUANTIZATIONS = ("DequantizeLinear", "QuantizeLinear")
"""Operators that are not replaced by other nodes, because runtimes look for them."""


def least_opset_of(model: ir.Model, oldest: int = OLDEST) -> int:
    """Return the oldest opset, not below ``oldest``, that represents a model's inputs, outputs, and each node by one node.

    Args:
        model: in the builder's opset, except for nodes with a newer version; it is not changed.
        oldest: the lowest result.
    """
    known: dict[Hashable, int] = {}
    least = max(oldest, least_opset_of_ports(model.graph))
    nodes = list(all_nodes(model.graph))
    newest = max((node.version or 0 for node in nodes if not node.domain), default=0)
    if newest > OPSET:
        return newest
    for node in nodes:
        if node.domain:
            continue
        key = _cache_key(node)
        if key is None or key not in known:
            found = _least(node, least)
            if key is not None:
                known[key] = found
        else:
            found = known[key]
        least = max(least, found)
        if least >= OPSET:
            break
    return min(least, OPSET)


def _cache_key(node: ir.Node) -> Hashable:
    """Return a key for nodes that need the same opset; ``None`` for a node that must be checked individually."""
    if node.op_type in ("Reshape", "If", "Loop", "Scan"):
        return None
    attributes = tuple(sorted((name, repr(attribute.value)) for name, attribute in node.attributes.items()))
    return node.op_type, attributes, tuple(map(_given, node.inputs)), len(node.outputs)


def _given(value: ir.Value | None) -> Hashable:
    if value is None:
        return None
    constant = None if value.is_graph_input() else value.const_value
    is_small = constant is not None and constant.size <= _SMALL and constant.dtype != ir.DataType.STRING
    number = constant.tobytes() if constant is not None and is_small and constant.dtype.itemsize >= 1 else None
    return value.dtype, None if value.shape is None else len(value.shape), constant is None, number


def _least(node: ir.Node, oldest: int) -> int:
    """Return the oldest opset for one node."""
    changes = {adapter.opset for adapter in adapters(node.op_type)}
    changes |= {least_opset(node, opset) for opset in range(oldest - 1, OPSET)}
    for opset in sorted({oldest, *(opset for opset in changes if oldest < opset < OPSET)}):
        if _is_one_node(node, opset):
            return opset
    return OPSET


def _is_one_node(node: ir.Node, opset: int) -> bool:
    """Whether an opset has the node, or one equivalent node, for its element types."""
    if type_problem(node, opset):
        return False
    for adapter in adapters(node.op_type):
        if adapter.opset <= opset:
            break
        assert isinstance(node.graph, ir.Graph)
        op = _Trial(opset, node)
        try:
            if adapter(op, node) is not SAME:
                if node.op_type in _QUANTIZATIONS:  # constants would become floats, without a node
                    return [emitted.op_type for emitted in op.emitted] == [node.op_type]
                return len(op.emitted) <= 1
        except NotRepresentableError:
            return False
        finally:
            for emitted in reversed(op.emitted):
                for inner in [inner for graph in nested(emitted) for inner in all_nodes(graph)]:
                    for index in range(len(inner.inputs)):
                        inner.replace_input_with(index, None)
                node.graph.remove(emitted, safe=True)
    return not form_problem(node, opset)


class _Trial(LoweringBuilder):
    """A builder whose nodes are removed afterwards. It does not add constants to the graph."""

    def __init__(self, opset: int, node: ir.Node) -> None:
        super().__init__(opset, node, Builder(ir.Graph([], [], nodes=[], name="trial")))
