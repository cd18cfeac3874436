"""Properties of nodes and constants that the passes match."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnx_specops.building import Value


def produced(value: ir.Value | None, *operators: str) -> ir.Node | None:
    """Return the node that computes a value, if it is one of some standard operators."""
    node = None if value is None else value.producer()
    return node if node is not None and not node.domain and node.op_type in operators else None


def inputs(node: ir.Node) -> list[Value | None]:
    """Return a node's inputs as the builder's values."""
    return [value if isinstance(value, Value) else None for value in node.inputs]


def number(value: ir.Value | None) -> float | None:
    """Return the number in a constant with one element."""
    if value is None or value.is_graph_input() or value.const_value is None or value.const_value.size != 1:
        return None
    return float(value.const_value.numpy().item())


def orders(node: ir.Node) -> Iterator[tuple[Value, Value]]:
    """Yield the two inputs of a commutative node, in both orders."""
    found = inputs(node)
    if len(found) == 2 and found[0] is not None and found[1] is not None:
        yield found[0], found[1]
        yield found[1], found[0]


def size_of(value: Value | None, axis: int = -1) -> int | None:
    """Return a dimension, if it is known."""
    return None if value is None or not value.dims else value.dims[axis]
