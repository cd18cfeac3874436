"""Values that are dequantized, moved and used in nested graphs.

ONNX Runtime (1.31) moves a DequantizeLinear after the nodes that only move numbers, up to all users of the result. If one of
them uses the result in a nested graph (Loop, If, Scan), it accesses an input that does not exist, and the process ends. It
does so after it has replaced nodes by their function bodies.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from onnx_specops.building import new_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names

MOVERS = frozenset(("Flatten", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators through which ONNX Runtime moves quantization."""

_SKIPPED = MOVERS | {"Cast", "Identity"}
_COPIED = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE))


def is_dequantized(value: ir.Value) -> bool:
    """Return whether a value is the result of a DequantizeLinear, perhaps after nodes that move numbers.

    This includes the results of operators with function bodies, which may end with a DequantizeLinear.
    """
    node = _source(value).producer()
    return node is not None and (bool(node.domain) or node.op_type == "DequantizeLinear")


def copy_captured_values(graph: ir.Graph, inputs: Collection[ir.Value] = ()) -> bool:
    """Copy dequantized and moved values for their users in nested graphs, by a Max of one input, which ONNX Runtime keeps.

    Args:
        graph: the graph of a model or function, changed in place.
        inputs: the inputs of a function that are dequantized, and perhaps moved, before it.

    Returns:
        Whether there are such values.
    """
    moved = [node.outputs[0] for node in all_nodes(graph) if not node.domain and node.op_type in _SKIPPED]
    found = [value for value in moved if _nested_uses(value) and (_source(value) in inputs or is_dequantized(value))]
    found += [value for value in inputs if _nested_uses(value)]
    found = [value for value in found if value.dtype in _COPIED]
    names = Names.of(graph) if found else Names()
    for value in found:
        uses = _nested_uses(value)
        copy = new_value(value.dtype, value.shape, names.unique(f"{value.name}_captured"))
        node = ir.Node("", "Max", [value], outputs=[copy], name=copy.name)
        producer = value.producer()
        if producer is None:
            graph.insert_before(graph[0], node)
        else:
            assert producer.graph is not None
            producer.graph.insert_after(producer, node)
        for user, index in uses:
            user.replace_input_with(index, copy)
    return bool(found)


def _source(value: ir.Value) -> ir.Value:
    """Return the value from which nodes that move numbers compute a value."""
    node = value.producer()
    while node is not None and not node.domain and node.op_type in _SKIPPED and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    return value


def _nested_uses(value: ir.Value) -> list[tuple[ir.Node, int]]:
    """Return the uses of a value in graphs within its own."""
    node = value.producer()
    graph = value.graph if node is None else node.graph
    return [(use.node, use.idx) for use in value.uses() if use.node.graph is not graph]
