"""Comparisons of the iteration number that are true in all iterations."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.loops import is_endless
from converters.passes.sizes import is_same_size, is_size, offset, size_read
from converters.passes.while_loops.copying import Change, ChangeLoops, Substitute
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list, producer_of

_SHAPES = frozenset(("Reshape", "Squeeze", "Unsqueeze"))


class DropGuards(ChangeLoops):
    """Replace comparisons that are true in all iterations of a Loop, and the Wheres that they select.

    A Gather of a step has them, because its index could be out of range. Conditions: the Loop has a trip count and no
    condition. The comparisons are between the iteration number, perhaps with a constant added to it, and a limit. A lower
    limit is a constant or a negated size. An upper limit and the trip count are constants, or the same size, and then no
    constant is added. A Where stays if its result would lose dimensions.
    """

    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        body, trips = loop.attributes["body"].as_graph(), loop.inputs[0]
        if trips is None or not is_endless(loop):
            return None
        true: set[ir.Value] = set()
        values: dict[ir.Value, Substitute] = {}
        for node in body:
            if node.domain or len(node.outputs) != 1:
                continue
            (result,) = node.outputs
            if node.op_type in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
                is_true = _is_true(node, body.inputs[0], trips)
            elif node.op_type == "And":
                is_true = true.issuperset(node.inputs)
            else:
                is_true = node.op_type in _SHAPES and node.inputs[0] in true
            if is_true:
                true.add(result)
            elif node.op_type == "Where" and node.inputs[0] in true and _keeps_shape(node):
                taken = node.inputs[1]
                assert taken is not None
                values[result] = Substitute([taken], lambda op, taken: taken)
        assert isinstance(trips, Value)
        return Change(trips, values) if values else None


def _is_true(comparison: ir.Node, iteration: ir.Value, trips: ir.Value) -> bool:
    """Return whether a comparison is true for all numbers of iterations."""
    one, other = comparison.inputs
    if one is None or other is None:
        return False
    if comparison.op_type in ("Less", "LessOrEqual"):
        number, limit = offset(one, iteration), other
        return number is not None and _is_below(number, limit, trips, equal=comparison.op_type == "LessOrEqual")
    number, limit = offset(one, iteration), other
    return number is not None and _is_above(number, limit, equal=comparison.op_type == "GreaterOrEqual")


def _is_below(added: int, limit: ir.Value, trips: ir.Value, *, equal: bool) -> bool:
    """Return whether the iteration number plus a constant is always less than a limit, or perhaps ``equal``."""
    count, most = constant_list(trips), constant_list(limit)
    if count is not None and most is not None:
        return len(most) == 1 and count[0] - 1 + added < most[0] + equal
    read = size_read(limit)
    return added <= 0 and read is not None and (is_same_size(size_read(trips), read) or is_size(trips, *read))


def _is_above(added: int, limit: ir.Value, *, equal: bool) -> bool:
    """Return whether the iteration number plus a constant is always greater than a limit, or perhaps ``equal``."""
    least = constant_list(limit)
    if least is not None:
        return len(least) == 1 and added > least[0] - equal
    negated = producer_of(limit, "Neg")
    size = None if negated is None else negated.inputs[0]
    return equal and added >= 0 and size is not None and size_read(size) is not None


def _keeps_shape(where: ir.Node) -> bool:
    """Return whether the first alternative of a Where has the shape of its result."""
    condition, taken, other = where.inputs
    if condition is None or taken is None or other is None or taken.shape is None:
        return False
    rank = len(taken.shape)
    return all(
        value.shape is not None and len(value.shape) <= rank and all(dim == 1 for dim in value.shape)
        for value in (condition, other)
    )
