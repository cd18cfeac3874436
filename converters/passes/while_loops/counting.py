"""Loops that end when a counter reaches a limit, as TensorFlow writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.loops import is_endless
from converters.passes.sizes import INTEGERS, size_read
from converters.passes.while_loops.copying import Change, ChangeLoops, Substitute
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, constant_list

_RESHAPES = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze"))
_MAX_LIMITS = 16
_NO_LIMIT = 2**63 - 1


class CountIterations(ChangeLoops):
    """Compute the trip count of a Loop before it, and counters from the iteration number.

    Conditions: each iteration adds 1 to a counter, a carried integer of 32 or 64 bits with a constant initial value
    of at least 0. The Loop
    continues while all counters of its condition, after the addition, are less than their limits, which are equal in all
    iterations. Other Loops with a trip count and without a condition only lose their counters.
    """

    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        body = loop.attributes["body"].as_graph()
        counters = {place: start for place in range(len(loop.inputs) - 2) if (start := _start(loop, place)) is not None}
        trips: Any = loop.inputs[0]
        if not counters or body.outputs[0] in body.outputs[1:]:
            return None
        if not is_endless(loop):
            limits = _limits(loop, body.outputs[0], counters)
            if limits is None:
                return None
            trips = _trips(op, loop, limits)
        elif trips is None:
            return None
        if trips is None:
            return None
        values = {body.inputs[2 + place]: _counter(body, place, start) for place, start in counters.items()}
        last = {place: _last(body.inputs[2 + place], trips, start) for place, start in counters.items()}
        return Change(op.place(trips), values, dropped=list(counters), last=last)


@dataclass(frozen=True)
class _Limit:
    """A comparison of a counter with a limit.

    Attributes:
        start: the number from which the counter counts.
        value: the limit, a value outside of the Loop.
    """

    start: int
    value: ir.Value

    def key(self) -> Any:
        """Return the same object for equal limits."""
        known = constant_list(self.value)
        return self.start, self.value if known is None else known[0]


def _start(loop: ir.Node, place: int) -> int | None:
    """Return the initial value of a counter; ``None`` if the carried value with the number ``place`` is not a counter."""
    body = loop.attributes["body"].as_graph()
    counter, start = body.inputs[2 + place], loop.inputs[2 + place]
    known = None if start is None else constant_list(start)
    if (
        known is None
        or len(known) != 1
        or known[0] < 0
        or counter.dtype not in INTEGERS
        or counter.shape is None
        or len(counter.shape) > 1
    ):
        return None
    return known[0] if _is_next(body.outputs[1 + place], counter) else None


def _is_next(value: ir.Value, counter: ir.Value) -> bool:
    """Return whether a value is a counter plus 1."""
    node = _plain(value).producer()
    if node is None or node.op_type != "Add" or node.domain:
        return False
    terms = [_plain(given) for given in node.inputs if given is not None]
    ones = [constant_list(given) == [1] for given in terms]
    return (terms[0] is counter and ones[1]) or (terms[1] is counter and ones[0])


def _plain(value: ir.Value) -> ir.Value:
    """Return a value of one element before changes of its shape."""
    while (node := value.producer()) is not None and node.op_type in _RESHAPES and not node.domain:
        assert node.inputs[0] is not None
        value = node.inputs[0]
    return value


def _conjuncts(value: ir.Value) -> list[ir.Node] | None:
    """Return the comparisons that are all true if a condition is; ``None`` for another condition."""
    found: list[ir.Node] = []
    remaining = [value]
    for _ in range(_MAX_LIMITS):
        if not remaining:
            return found
        node = _plain(remaining.pop()).producer()
        if node is None or node.domain:
            return None
        given = [value for value in node.inputs if value is not None]
        if node.op_type == "And":
            remaining += given
        elif node.op_type in ("Less", "Greater"):
            found.append(node)
        else:
            return None
    return None


def _ordered(comparison: ir.Node) -> list[ir.Value]:
    """Return the compared values; the condition is that the first is less than the second."""
    given = [_plain(value) for value in comparison.inputs if value is not None]
    return given if comparison.op_type == "Less" else given[::-1]


def _limits(loop: ir.Node, condition: ir.Value, counters: dict[int, int]) -> list[_Limit] | None:
    """Return the limits of the counters in the condition after an iteration."""
    body = loop.attributes["body"].as_graph()
    comparisons = _conjuncts(condition)
    if not comparisons:
        return None
    found: list[_Limit] = []
    for comparison in comparisons:
        less, limit = _ordered(comparison)
        outer = _outer(loop, limit)
        starts = [start for place, start in counters.items() if _is_next(less, body.inputs[2 + place])]
        if outer is None or not starts:
            return None
        found.append(_Limit(starts[0], outer))
    return found


def _outer(loop: ir.Node, limit: ir.Value) -> ir.Value | None:
    """Return a value outside of a Loop that a scalar of its body is equal to in all iterations."""
    body = loop.attributes["body"].as_graph()
    node = limit.producer()
    if limit in body.inputs[:2] or (node is not None and node.graph is body):
        return None
    if limit in body.inputs:
        place = body.inputs.index(limit)
        return loop.inputs[place] if _plain(body.outputs[place - 1]) is limit else None
    return limit


def _trips(op: Builder, loop: ir.Node, limits: Sequence[_Limit]) -> Any:
    """Emit the number of iterations; ``None`` if the initial condition is false."""
    unique = list({limit.key(): limit for limit in limits}.values())
    counts = [_difference(op, limit) for limit in unique]
    count = counts[0] if len(counts) == 1 else reduce(op.Min, counts)
    given = loop.inputs[1]
    first = None if given is None else constant_array(given)
    if given is None or (first is not None and first.all()):
        count = op.Max(count, 1)
    elif first is not None:
        return None
    elif not _is_same_condition(given, unique):
        count = op.Where(op.Reshape(given, np.array([], np.int64)), op.Max(count, 1), 0)
    most = loop.inputs[0]
    return count if most is None or constant_list(most) == [_NO_LIMIT] else op.Min(count, _scalar(op, most))


def _difference(op: Builder, limit: _Limit) -> Value:
    """Emit the number of steps from the initial value of a counter to its limit; 0 if the limit is not greater."""
    value, start = _scalar(op, limit.value), limit.start
    if not start and size_read(limit.value):  # a size is not negative
        return value
    greater: Value = op.Max(value, start)
    return op.Sub(greater, start) if start else greater


def _is_same_condition(first: ir.Value, limits: Sequence[_Limit]) -> bool:
    """Return whether the initial condition compares the initial values of the counters with the limits."""
    found: set[Any] = set()
    for comparison in _conjuncts(first) or ():
        start, limit = _ordered(comparison)
        known = constant_list(start)
        if known is None or len(known) != 1:
            return False
        found.add(_Limit(known[0], limit).key())
    return found == {limit.key() for limit in limits}


def _scalar(op: Builder, value: ir.Value) -> Value:
    assert isinstance(value, Value)
    scalar: Value = op.Cast(value, to=ir.DataType.INT64) if value.dtype != ir.DataType.INT64 else value
    return scalar if scalar.rank == 0 else op.Reshape(scalar, np.array([], np.int64))


def _counter(body: ir.Graph, place: int, start: int) -> Substitute:
    """Return a counter as a function of the iteration number."""
    counter = body.inputs[2 + place]

    def emit(op: Builder, iteration: Value) -> Value:
        return _shaped(op, op.Add(iteration, start) if start else iteration, counter)

    return Substitute([body.inputs[0]], emit)


def _last(counter: ir.Value, trips: Value, start: int) -> Any:
    """Return a function that emits a counter after all iterations."""

    def emit(op: Builder, _: None) -> Value:
        return _shaped(op, op.Add(op.Max(_scalar(op, trips), 0), start), counter)

    return emit


def _shaped(op: Builder, number: Value, counter: ir.Value) -> Value:
    """Return a scalar with the type and shape of a counter."""
    if number.dtype != counter.dtype:
        number = op.Cast(number, to=counter.dtype)
    return op.Reshape(number, [1] * len(counter.shape)) if counter.shape else number
