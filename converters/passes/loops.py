"""Properties of Loops, and their removal."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx_specops.folding import fold
from onnx_specops.graphs import attributes_of, constant_array, constant_list

_RESHAPES = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze"))


def is_endless(loop: ir.Node) -> bool:
    """Return whether the condition of a Loop is always true, so that it ends after its trip count."""
    body = loop.attributes["body"].as_graph()
    return all(_is_true(value, body.inputs[1]) for value in (loop.inputs[1], body.outputs[0]))


def remove_loop(loop: ir.Node) -> None:
    """Remove a Loop without consumers, so that its body uses no values of the graph."""
    assert loop.graph is not None
    loop.graph.remove(loop, safe=True)
    clear(loop.attributes["body"].as_graph())


def clear(body: ir.Graph) -> None:
    """Detach the nodes of an unused graph, so that it uses no values of other graphs."""
    body.outputs.clear()
    for node in body:
        for index in range(len(node.inputs)):
            node.replace_input_with(index, None)


def _is_true(value: ir.Value | None, before: ir.Value) -> bool:
    """Return whether a condition is omitted, true, or that of the previous iteration."""
    while value is not None and (node := value.producer()) is not None and node.op_type in _RESHAPES and not node.domain:
        value = node.inputs[0]
    return value is None or value is before or ((known := constant_array(value)) is not None and bool(known.all()))


def iterations(loop: ir.Node, most: int) -> int | None:
    """Return the number of iterations of a Loop, from 1 to ``most``; ``None`` for another or an unknown number.

    It is the constant trip count, or the condition depends on constants and counters only, as in TensorFlow's loops.
    """
    trips = None if loop.inputs[0] is None else constant_list(loop.inputs[0])
    if is_endless(loop):
        return trips[0] if trips and 0 < trips[0] <= most else None
    first = loop.inputs[1]
    start = constant_array(first)
    if (first is not None and (start is None or not start.all())) or (trips is None and loop.inputs[0] is not None):
        return None
    body = loop.attributes["body"].as_graph()
    nodes, used = _counting(body)
    carried = {value: constant_array(loop.inputs[2 + index]) for index, value in enumerate(body.inputs[2:]) if value in used}
    for count in range(1, min([most, *(trips or [])]) + 1):
        known = carried | {body.inputs[0]: np.array(count - 1), body.inputs[1]: np.array(True)}
        for node in nodes:
            arrays = [known.get(value, constant_array(value)) for value in node.inputs if value is not None]
            found = None
            if not node.domain and len(arrays) == len(node.inputs) and all(array is not None for array in arrays):
                try:
                    found = fold(node.op_type, arrays, attributes_of(node))
                except (ArithmeticError, IndexError, TypeError, ValueError):
                    return None
            known |= zip(node.outputs, found or (), strict=False)
        goes_on = known.get(body.outputs[0], constant_array(body.outputs[0]))
        if goes_on is None:
            return None
        if not goes_on.all() or [count] == trips:
            return count
        after = zip(body.inputs[2:], body.outputs[1:], strict=False)
        carried = {value: known.get(new, constant_array(new)) for value, new in after if value in used}
    return None


def _counting(body: ir.Graph) -> tuple[list[ir.Node], set[ir.Value]]:
    """Return the nodes of a Loop's body that its condition depends on, in order, and the values that these use."""
    updates = dict(zip(body.inputs[2:], body.outputs[1:], strict=False))
    used: set[ir.Value] = set()
    remaining: list[ir.Value | None] = [body.outputs[0]]
    while remaining:
        value = remaining.pop()
        if value is None or value in used:
            continue
        used.add(value)
        node = value.producer()
        remaining += [updates.get(value), *(node.inputs if node is not None and node.graph is body else ())]
    return [node for node in body if any(output in used for output in node.outputs)], used
