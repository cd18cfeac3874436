"""Lists of tensors, to which each iteration of a Loop adds one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from converters.passes.loops import is_endless
from converters.passes.sizes import is_size, offset, size_read
from converters.passes.while_loops.copying import Change, ChangeLoops, Substitute, needed_values, symbolic_dims
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list, producer_of


class JoinSteps(ChangeLoops):
    """Replace a carried list of tensors by the tensors of all iterations, or by the last one.

    The first dimension of the list is that of the tensors. Conditions: the Loop has a trip count and no condition. Each
    iteration writes a tensor, either at the place of the iteration number to a list of as many tensors as iterations, or at
    place 0 to a list of one tensor. In the first case, all tensors have one shape. The list may have had dimensions of 1
    instead before. Nothing else reads it in the Loop. Without iterations, the result is the initial list.
    """

    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        body, trips = loop.attributes["body"].as_graph(), loop.inputs[0]
        if trips is None or not is_endless(loop):
            return None
        assert isinstance(trips, Value)
        found = Change(trips)
        for place in range(len(loop.inputs) - 2):
            change = _joined(loop, place, trips, found)
            if change is not None and not _is_read(body, place, change):
                found = change
        return found if found.values or found.scanned else None

    def accepts(self, copy: ir.Node, change: Change) -> bool:
        """Return whether the joined tensors have one shape, which does not depend on the iteration."""
        outputs = copy.attributes["body"].as_graph().outputs[len(copy.inputs) - 1 :]
        shapes = [symbolic_dims(value) for value in outputs[: len(change.scanned)]]
        return all(dims is not None and None not in dims for dims in shapes)


def _joined(loop: ir.Node, place: int, trips: Value, found: Change) -> Change | None:
    """Return a change that replaces one more list; ``None`` if the carried value is not a list."""
    body = loop.attributes["body"].as_graph()
    result, start = body.outputs[1 + place], loop.inputs[2 + place]
    write = producer_of(result, "ScatterND")
    if write is None or write.graph is not body or write.attributes.get_string("reduction", "none") != "none":
        return None
    before, index, update = write.inputs
    unsqueeze = producer_of(update, "Unsqueeze")
    if before is None or index is None or update is None or unsqueeze is None or not isinstance(start, Value):
        return None
    tensor = unsqueeze.inputs[0]
    is_first = constant_list(unsqueeze.inputs[1]) == [0]
    if tensor is None or not is_first or not _has_same_rank(before, update, start) or not _is_one_place(index):
        return None
    if not _keeps_length(before, body.inputs[2 + place], start) or list(body.outputs).count(result) > 1:
        return None
    last = {**found.last, place: _unless_empty(trips, start)}
    if constant_list(index) == [0] and start.dims is not None and start.dims[0] == 1:
        return Change(
            trips, {**found.values, result: Substitute([update], lambda op, update: update)}, (), found.scanned, last
        )
    if offset(index, body.inputs[0]) == 0 and is_size(trips, start, 0):
        return Change(trips, found.values, (), {**found.scanned, place: tensor}, last)
    return None


def _has_same_rank(*values: ir.Value) -> bool:
    ranks = {None if value.shape is None else len(value.shape) for value in values}
    return len(ranks) == 1 and None not in ranks


def _is_one_place(index: ir.Value) -> bool:
    """Return whether the indices of a ScatterND are one place along the first dimension."""
    return index.shape is not None and list(index.shape) == [1, 1]


def _keeps_length(before: ir.Value, carried: ir.Value, start: Value) -> bool:
    """Return whether a list before the write is the carried one, perhaps with other dimensions after the first."""
    if before is carried:
        return True
    expand = producer_of(before, "Expand")
    if expand is None or expand.inputs[0] is not carried or expand.inputs[1] is None:
        return False
    target = expand.inputs[1]
    known = constant_list(target)
    while (cast := producer_of(target, "Cast")) is not None and cast.inputs[0] is not None:
        target = cast.inputs[0]
    concat = producer_of(target, "Concat")
    first = None if concat is None else concat.inputs[0]
    if known is None and first is not None:
        if size_read(first) == (carried, 0) and first.shape is not None and list(first.shape) == [1]:
            return True
        known = constant_list(first)
    return known is not None and start.dims is not None and known[0] in (1, start.dims[0])


def _is_read(body: ir.Graph, place: int, change: Change) -> bool:
    """Return whether something other than the write reads a list that is replaced."""
    count = len(body.inputs) - 2
    others = [body.outputs[1 + other] for other in range(count) if other not in change.scanned]
    results = [*others, *change.scanned.values(), *body.outputs[1 + count :]]
    return body.inputs[2 + place] in needed_values(body, change, results)


def _unless_empty(trips: Value, start: Value) -> Callable[[Builder, Any], Any]:
    """Return a function that emits a result, or the initial list if there are no iterations."""

    def emit(op: Builder, result: Value) -> Any:
        known = constant_list(trips)
        if known is not None:
            return result if known[0] > 0 else start
        return op.if_(op.Greater(trips, 0), lambda op: op.Identity(result), lambda op: op.Identity(start))

    return emit
