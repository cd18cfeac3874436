"""Traversal of graphs and their nested graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.domain import DOMAIN

ORIGIN = "origin"
"""The key in a node's ``meta`` for the object, such as a layer, that the node was emitted for. Replacement nodes inherit it.
"""

FULL_RANGE = "full range"
"""The key in a node's ``meta`` that `mark_full_range` sets."""

RESHAPES = frozenset(("Expand", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators that change the shape of their first input."""

MOVES = RESHAPES | {"Concat", "Gather", "Slice", "Split"}
"""Operators that move or select elements of their first input."""

RANDOM = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"))
"""Operators whose results depend on how often they run."""


def origin(node: ir.Node) -> object | None:
    """Return the object that a node was emitted for; ``None`` if unknown."""
    return node.meta.get(ORIGIN)


def mark_full_range(value: ir.Value) -> None:
    """State that the integers that the node of a value computes with may be any of their type.

    Indices and dimensions, which are small, need no mark: an approximation by doubles is exact for them.
    """
    if (node := value.producer()) is not None:
        node.meta[FULL_RANGE] = True


def has_full_range(node: ir.Node) -> bool:
    """Whether `mark_full_range` was called for an output of the node."""
    return bool(node.meta.get(FULL_RANGE))


def is_constant(value: ir.Value | None) -> bool:
    """Return whether a value is a constant that no caller can replace."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def constant_array(value: ir.Value | None) -> np.ndarray | None:
    """Return the elements of a constant that no caller can replace; ``None`` for any other value."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def constant_list(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a constant with integers, such as axes, as a list; ``None`` for any other value."""
    array = constant_array(value)
    return None if array is None or array.dtype.kind not in "biu" else [int(element) for element in array.reshape(-1)]


def producer_of(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node that computes a value if it has the given standard operator; otherwise ``None``."""
    node = None if value is None else value.producer()
    return node if node is not None and (node.op_type, node.domain) == (op_type, "") else None


def before_cast(value: ir.Value) -> ir.Value | None:
    """Return the input of the Cast that computes a value; the value itself if there is none."""
    cast = producer_of(value, "Cast")
    return value if cast is None else cast.inputs[0]


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """Return a node's attributes as the builder takes them."""
    return {name: attribute.value for name, attribute in node.attributes.items()}


def dimension(value: ir.Value, axis: int) -> Hashable:
    """Return a dimension as its number or name; a new object, which equals nothing else, if it is unknown."""
    dim = None if value.shape is None else value.shape[axis]
    found = dim.value if isinstance(dim, ir.SymbolicDim) else dim
    return object() if found is None else found


def nested(node: ir.Node) -> Sequence[ir.Graph]:
    """Return the graphs among a node's attributes."""
    # Passes call this for every node, so it reads the attributes of few.
    if node.domain in _DOMAINS and node.op_type not in _HOLDERS:
        return ()
    return [attribute.as_graph() for attribute in node.attributes.data.values() if attribute.type == _GRAPH]


_GRAPH = ir.AttributeType.GRAPH
_DOMAINS = frozenset(("", DOMAIN))
_HOLDERS = frozenset(("If", "Loop", "Scan", "SequenceMap"))
"""The operators of `_DOMAINS` with graphs as attributes."""


def computed_before(
    value: ir.Value, inputs_of: Callable[[ir.Value], Sequence[ir.Value] | None], most: int = 256
) -> list[ir.Value] | None:
    """Return the values that a value is computed from, each once and after its own inputs; the value itself is the last.

    A recursive search would visit a value once for each path to it, and graphs are deeper than Python's stack.

    Args:
        value: the value where the search starts.
        inputs_of: returns the inputs of a value that the search continues with, or ``None`` for a value that must not occur.
        most: the maximum number of values.

    Returns:
        The values; ``None`` if one must not occur, or there are more.
    """
    found: dict[ir.Value, None] = {}
    waiting: dict[ir.Value, Sequence[ir.Value]] = {}
    pending = [value]
    while pending:
        one = pending[-1]
        if one in found:
            pending.pop()
            continue
        if one not in waiting:
            inputs = inputs_of(one)
            if inputs is None or len(waiting) == most:
                return None
            waiting[one] = inputs
        unknown = [given for given in waiting[one] if given not in found]
        if unknown:
            pending += unknown
        else:
            found[one] = None
            pending.pop()
    return list(found)


def all_nodes(holder: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Iterate over the nodes of a graph or function, or over given nodes, including the nodes of nested graphs."""
    for node in holder:
        yield node
        for graph in nested(node):
            yield from all_nodes(graph)


def all_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """Iterate over the values of a graph, including those of nested graphs."""
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
        for inner in nested(node):
            yield from all_values(inner)
