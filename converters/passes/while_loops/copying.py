"""Changed copies of Loops.

The types in a copy are inferred again. Assume that all carried values have their initial shapes before an iteration. If they
have the same shapes after it, they have these shapes in all iterations.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.loops import clear, remove_loop
from converters.passes.running import OperatorPass
from converters.passes.sizes import name_sizes, size_read
from onnx_specops.building import Builder, NodeError, Value, new_value
from onnx_specops.graphs import (
    all_nodes,
    attributes_of,
    constant_array,
    constant_list,
    dimension,
    has_full_range,
    mark_full_range,
    nested,
)
from onnx_specops.replacing import may_replace, replace_value, rewriting

Dims = list[int | str | None] | None

_OF_WEIGHTS = frozenset(("Add", "Cast", "DequantizeLinear", "Mul", "Reshape", "Sub", "Transpose", "Unsqueeze"))
"""The operators that are moved out of a Loop if they compute weights from constants."""


@dataclass(frozen=True)
class Substitute:
    """Another computation of a value of a Loop's body.

    Attributes:
        inputs: the values of the original body that it uses.
        emit: emits it, for a builder and the copies of these values.
    """

    inputs: Sequence[ir.Value]
    emit: Callable[..., Any]


@dataclass(frozen=True)
class Change:
    """The differences of a copy of a Loop. The carried values have numbers from 0 on.

    Attributes:
        trips: the trip count of the copy, which has no other condition.
        values: other computations of values of the body, which are its inputs or outputs of its nodes.
        dropped: the carried values that the copy does not carry.
        scanned: carried values that are replaced by the values that an iteration computes, of all iterations together.
        last: for some carried values, a function that emits the final value, for a builder and the result of the copy; the
            result of one in ``dropped`` is ``None``.
        starts: other initial values of some carried values.
    """

    trips: Value
    values: Mapping[ir.Value, Substitute] = field(default_factory=dict)
    dropped: Collection[int] = ()
    scanned: Mapping[int, ir.Value] = field(default_factory=dict)
    last: Mapping[int, Callable[[Builder, Any], Any]] = field(default_factory=dict)
    starts: Mapping[int, Value] = field(default_factory=dict)


class ChangeLoops(OperatorPass):
    """Replaces Loops by changed copies. Bodies with nested graphs stay.

    Attributes:
        finite: whether ONNX Runtime computes the same for finite numbers only.
    """

    operators = frozenset(("Loop",))
    finite: ClassVar[bool] = False

    @abstractmethod
    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        """Return the change of a Loop, or ``None`` if there is none. ``op`` emits before it."""

    def accepts(self, copy: ir.Node, change: Change) -> bool:
        """Return whether a copy is useful."""
        return True

    def can_check(self, copy: ir.Node) -> bool:
        """Return whether ONNX Runtime computes a copy for all inputs that a check may try."""
        return True

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.op_type != "Loop" or node.domain or not isinstance(node.graph, ir.Graph):
                continue
            if any(map(nested, node.attributes["body"].as_graph())):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            for value in _outer_values(node):
                name_sizes(value)
            change = self.change(op, node)
            if change is not None:
                count += self._replace(op, node, change)
        return PassResult(model, modified=count > 0)

    def _replace(self, op: Builder, loop: ir.Node, change: Change) -> bool:
        pairs_of_body: list[tuple[ir.Value, ir.Value]] = []
        try:
            copy, results = copied(op, loop, change, pairs_of_body)
        except NodeError:  # the initial shapes contradict the body, which fails if it runs
            return False
        if not self.accepts(copy, change):
            remove_loop(copy)
            return False
        pairs: list[tuple[ir.Value, ir.Value]] = []
        for place, (old, new) in enumerate(zip(loop.outputs, results, strict=True)):
            if old.uses() or old.is_graph_output():
                final = change.last[place](op, new) if place in change.last else new
                pairs.append((old, op.place(final)))
        with rewriting(type(self).__name__, finite=self.finite):
            if self.can_check(copy) and not may_replace(pairs):
                return False
        for old, new in pairs:
            replace_value(old, new, checked=True)
        copy.name = loop.name
        for old, new in pairs_of_body:
            _swap_names(old, new)
        remove_loop(loop)
        return True


def _outer_values(loop: ir.Node) -> list[ir.Value]:
    """Return the values that nodes outside of a Loop compute and that it reads."""
    body = loop.attributes["body"].as_graph()
    read = [*loop.inputs[2:], *(value for node in body for value in node.inputs)]
    found = dict.fromkeys(value for value in read if value is not None and value.producer() is not None)
    return [value for value in found if cast(ir.Node, value.producer()).graph is not body]


def symbolic_dims(value: ir.Value) -> Dims:
    """Return the dimensions as numbers or names; ``None`` for an unknown one, or if their number is unknown."""
    if value.shape is None:
        return None
    found = [dimension(value, axis) for axis in range(len(value.shape))]
    return [dim if isinstance(dim, (int, str)) else None for dim in found]


def _swap_names(old: ir.Value, new: ir.Value) -> None:
    """Give a value the name of the one that it replaces."""
    one, other = old.producer(), new.producer()
    if one is not None and other is not None:
        has_name = one.name == old.name  # others are those that the graph gave the nodes
        old.name, new.name = new.name, old.name
        if has_name:
            one.name, other.name = other.name, one.name


def copied(op: Builder, loop: ir.Node, change: Change, pairs: list[tuple[ir.Value, ir.Value]]) -> tuple[ir.Node, list[Any]]:
    """Emit a changed copy of a Loop.

    Args:
        op: the builder.
        loop: the Loop.
        change: the change.
        pairs: receives the outputs of the nodes of the body and of their copies.

    Returns:
        The copy, and for each output of the Loop the result of the copy, or ``None``.
    """
    body = loop.attributes["body"].as_graph()
    count = len(loop.inputs) - 2
    kept = [place for place in range(count) if place not in change.dropped and place not in change.scanned]
    starts = [change.starts.get(place, loop.inputs[2 + place]) for place in kept]
    given = [None if start is None else symbolic_dims(start) for start in starts]
    stated = [_numbers(body.inputs[2 + place]) for place in kept]
    dims = [known if own is None else own for own, known in zip(given, stated, strict=True)]
    inner: ir.Graph | None = None
    moved: dict[ir.Value, Value] = {}
    while inner is None:
        pairs.clear()
        inner = _copied_body(op, loop, change, kept, dims, pairs, moved)
        after = [symbolic_dims(value) for value in inner.outputs[1 : 1 + len(kept)]]
        other = [
            known if before is not None and before != known and (now != before or None in before) else before
            for before, now, known in zip(dims, after, stated, strict=True)
        ]
        if other != dims:
            clear(inner)
            dims, inner = other, None
    types = [
        (value.dtype, before if now == before else _common(now, own))
        for value, before, now, own in zip(inner.outputs[1:], dims, after, given, strict=False)
    ]
    for value in inner.outputs[1 + len(kept) :]:
        own = symbolic_dims(value)
        types.append((value.dtype, None if own is None else [_count(change.trips), *own]))
    results = op.node("Loop", change.trips, op.const(np.bool_(True)), *starts, types=types, body=inner)
    results = list(results) if isinstance(results, tuple) else [results]
    found: dict[int, Any] = dict(zip([*kept, *change.scanned, *range(count, len(loop.outputs))], results, strict=True))
    for place, old in enumerate(loop.outputs):
        if (new := found.get(place)) is not None and old.shape is not None:
            new.shape = _merged(new, old)
    return results[0].producer(), [found.get(place) for place in range(len(loop.outputs))]


def _numbers(value: ir.Value) -> Dims:
    """Return the dimensions of a body's input. Names may represent other numbers in the next iteration."""
    found = symbolic_dims(value)
    return None if found is None else [dim if isinstance(dim, int) else None for dim in found]


def _common(one: Dims, other: Dims) -> Dims:
    if one is None or other is None or len(one) != len(other):
        return None
    return [a if a == b else None for a, b in zip(one, other, strict=True)]


def _merged(new: ir.Value, old: ir.Value) -> ir.Shape | None:
    """Return the dimensions of a value, with those of the value that it replaces where they are unknown."""
    mine, given = symbolic_dims(new), symbolic_dims(old)
    if mine is None or given is None or len(mine) != len(given):
        return old.shape if mine is None else new.shape
    return ir.Shape([a if a is not None else b for a, b in zip(mine, given, strict=True)])


def _count(trips: ir.Value) -> int | str | None:
    """Return a trip count as a number or name."""
    if (known := constant_list(trips)) is not None:
        return max(0, known[0]) if known[0] < 2**31 else None
    read = size_read(trips)
    dim = None if read is None else dimension(*read)
    return dim if isinstance(dim, (int, str)) else None


def _copied_body(
    op: Builder,
    loop: ir.Node,
    change: Change,
    kept: Sequence[int],
    dims: Sequence[Dims],
    pairs: list[tuple[ir.Value, ir.Value]],
    moved: dict[ir.Value, Value],
) -> ir.Graph:
    outside = op
    body = loop.attributes["body"].as_graph()
    count = len(loop.inputs) - 2
    carried = [body.outputs[1 + place] for place in kept]
    results = [*carried, *change.scanned.values(), *body.outputs[1 + count :]]
    needed = needed_values(body, change, results)

    def emit(op: Builder, *inputs: Value) -> list[Any]:
        values: dict[ir.Value | None, Any] = {value: op.const(value.const_value) for value in body.initializers.values()}
        values |= dict(zip([*body.inputs[:2], *(body.inputs[2 + place] for place in kept)], inputs, strict=True))

        def substituted(old: ir.Value) -> bool:
            if (other := change.values.get(old)) is None:
                return False
            if old in needed:
                values[old] = other.emit(op, *(values.get(value, value) for value in other.inputs))
            return True

        for value in body.inputs:
            substituted(value)
        for node in body:
            others = [substituted(value) for value in node.outputs]
            if all(others) or needed.isdisjoint(node.outputs):
                continue
            given = [values.get(value, value) for value in node.inputs]
            if _is_weight(node, given, moved.values()):
                (old,) = node.outputs
                if old not in moved:
                    moved[old] = outside.node(node.op_type, *given, **attributes_of(node))
                    _keep_marks(old, moved[old])
                values[old] = moved[old]
                continue
            found = op.node(node.op_type, *given, domain=node.domain, outputs=len(node.outputs), **attributes_of(node))
            for old, new in zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True):
                _keep_marks(old, new)
                pairs.append((old, new))
                if old not in change.values:
                    values[old] = new
        return [op.const(np.bool_(True)), *(values.get(value, value) for value in results)]

    inputs = [new_value(ir.DataType.INT64, [], "iteration"), new_value(ir.DataType.BOOL, [], "condition")]
    inputs += [new_value(body.inputs[2 + place].dtype, own, "carried") for place, own in zip(kept, dims, strict=True)]
    graphs: list[ir.Graph] = []

    def emit_in(op: Builder, *inputs: Value) -> list[Any]:
        graphs.append(op.graph)
        return emit(op, *inputs)

    try:
        return op.subgraph(emit_in, *inputs, name="loop")
    except NodeError:
        clear(graphs[0])
        raise


def _is_weight(node: ir.Node, inputs: Sequence[ir.Value | None], moved: Collection[ir.Value]) -> bool:
    """Return whether a node computes weights from constants, such as float32 from float16, which needs no iteration."""
    return (
        node.op_type in _OF_WEIGHTS
        and not node.domain
        and all(
            value is not None and (constant_array(value) is not None or any(value is one for one in moved))
            for value in inputs
        )
    )


def _keep_marks(old: ir.Value, new: Value) -> None:
    """Copy the properties that rules state about a value and its node."""
    if new.producer() is None:
        return
    if isinstance(old, Value) and old.unrounded:
        new.unrounded = True
    if has_full_range(cast(ir.Node, old.producer())):
        mark_full_range(new)


def needed_values(body: ir.Graph, change: Change, results: Sequence[ir.Value]) -> set[ir.Value]:
    """Return the values that results of a copy are computed from."""
    found: set[ir.Value] = set()
    remaining: list[ir.Value | None] = list(results)
    while remaining:
        value = remaining.pop()
        if value is None or value in found:
            continue
        found.add(value)
        node = value.producer()
        if (other := change.values.get(value)) is not None:
            remaining += other.inputs
        elif node is not None and node.graph is body:
            remaining += node.inputs
    return found
