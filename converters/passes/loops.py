"""Properties of Loops, and their removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    if not _starts(loop.inputs[1]) or (trips is None and loop.inputs[0] is not None):
        return None
    for count, goes_on in _conditions(loop, min([most, *(trips or [])])):
        if goes_on is None:
            return None
        if not goes_on or [count] == trips:
            return count
    return None


def most_iterations(loop: ir.Node, most: int) -> tuple[int, bool] | None:
    """Return a number of iterations, from 1 to ``most``, that a Loop never exceeds, and whether it always reaches it.

    It is the constant trip count, or a counter ends the Loop, whatever the rest of the condition is. ``None`` for another or
    an unknown number.
    """
    trips = None if loop.inputs[0] is None else constant_list(loop.inputs[0])
    is_exact = _starts(loop.inputs[1]) and (loop.inputs[0] is None or trips is not None)
    for count, goes_on in _conditions(loop, min([most, *(trips or [])])):
        is_exact = is_exact and goes_on is not None
        if goes_on is False or [count] == trips:
            return count, is_exact
    return None


def _starts(start: ir.Value | None) -> bool:
    """Return whether the first condition of a Loop is true."""
    return start is None or ((array := constant_array(start)) is not None and bool(array.all()))


def _conditions(loop: ir.Node, most: int) -> Iterator[tuple[int, bool | None]]:
    """Yield the numbers of iterations from 1 to ``most``, and whether the Loop goes on then; ``None`` if it is unknown."""
    body = loop.attributes["body"].as_graph()
    nodes, used = _counting(body)
    carried = {value: constant_array(loop.inputs[2 + index]) for index, value in enumerate(body.inputs[2:]) if value in used}
    for count in range(1, most + 1):
        known = carried | {body.inputs[0]: np.array(count - 1), body.inputs[1]: np.array(True)}
        for node in nodes:
            known |= zip(node.outputs, _results(node, known) or (), strict=False)
        goes_on = known.get(body.outputs[0], constant_array(body.outputs[0]))
        yield count, None if goes_on is None else bool(goes_on.all())
        after = zip(body.inputs[2:], body.outputs[1:], strict=False)
        carried = {value: known.get(new, constant_array(new)) for value, new in after if value in used}


def _results(node: ir.Node, known: Mapping[ir.Value, np.ndarray | None]) -> Sequence[np.ndarray] | None:
    """Return the results of a node with known inputs, or of a logical one that the known inputs decide."""
    arrays = [known.get(value, constant_array(value)) for value in node.inputs if value is not None]
    if node.domain or len(arrays) != len(node.inputs):
        return None
    if any(array is None for array in arrays):
        given = [None if array is None or array.size != 1 else array.item() for array in arrays]
        if (node.op_type == "And" and False in given) or (node.op_type == "Or" and True in given):
            return [np.array(node.op_type == "Or")]
        if node.op_type == "Where" and given[1] is not None and given[1] == given[2]:
            return [np.array(given[1])]
        return None
    try:
        return fold(node.op_type, arrays, attributes_of(node))
    except (ArithmeticError, IndexError, TypeError, ValueError):
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
