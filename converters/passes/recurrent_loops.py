"""Loops over the steps of one recurrent cell as one LSTM, GRU or RNN.

A TensorIterator with an LSTMCell is emitted as a Loop with an LSTM of one step. One node for all steps multiplies all inputs
by the weights at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.loops import is_endless, remove_loop
from converters.passes.running import OperatorPass
from converters.passes.simplification.constants import RANDOM
from converters.passes.sizes import INTEGERS, is_same_size, size_read
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of, computed_before, constant_array, constant_list, nested
from onnx_specops.replacing import may_replace, replace_value

_STATES = {"GRU": 1, "LSTM": 2, "RNN": 1}
"""The number of states: inputs from the sixth on, outputs from the second on."""

_FIRST_STATE = 5
_INVARIANT = (1, 2, 3, 7)
"""The inputs with weights, biases and peepholes."""

_MAX_STEPS = 8
"""The maximum number of consecutive operators that compute the position of a step."""

_BEFORE_ALL = -(2**31)
"""The end of a Slice with a negative step that takes all elements: before the first element of any axis."""


class FuseRecurrentLoops(OperatorPass):
    """Replace Loops by recurrent nodes.

    Conditions: the Loop runs once for each step of a tensor of three dimensions, forward or backward, along the first or
    second. Its body is one LSTM, GRU or RNN of that step, whose weights are equal in all iterations and whose states are the
    carried values. The results of the Loop are the hidden states of all steps and the last states. Other nodes of the body
    only change shapes, and keep the order of elements.
    """

    operators = frozenset(("Loop",))

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.op_type != "Loop" or node.domain or not isinstance(node.graph, ir.Graph):
                continue
            if (found := _Recurrence.of(node)) is None:
                continue
            root = root or Builder.of_existing(model.graph)
            count += found.replace(Builder.before_node(node, root))
        return PassResult(model, modified=count > 0)


def is_recurrence(loop: ir.Node) -> bool:
    """Return whether `FuseRecurrentLoops` replaces a Loop."""
    return _Recurrence.of(loop) is not None


@dataclass(frozen=True)
class _Path:
    """Nodes that change the shape of a value, but not the order of its elements.

    Attributes:
        source: the value before them.
        nodes: the nodes, in order.
    """

    source: ir.Value
    nodes: Sequence[ir.Node]

    @classmethod
    def to(cls, value: ir.Value) -> Self:
        """Return the longest path to a value."""
        nodes: list[ir.Node] = []
        while (node := value.producer()) is not None and _keeps_order(node):
            nodes.insert(0, node)
            assert node.inputs[0] is not None
            value = node.inputs[0]
        return cls(value, nodes)

    def apply(self, op: Builder, value: Value, *, stacked: bool = False) -> Value:
        """Emit the nodes for another value, which has one more leading dimension if it is ``stacked``."""
        lead = int(stacked)
        for node in self.nodes:
            numbers = constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
            if node.op_type == "Reshape":
                assert numbers is not None
                keeps_zeros = node.attributes.get_int("allowzero", 0)
                value = op.Reshape(value, [0] * lead + numbers, **({"allowzero": 1} if keeps_zeros and not lead else {}))
            elif node.op_type in ("Squeeze", "Unsqueeze"):
                assert numbers is not None
                value = op.node(node.op_type, value, [axis + lead if axis >= 0 else axis for axis in numbers])
        return value


def _keeps_order(node: ir.Node) -> bool:
    """Return whether a node only changes the shape, by numbers that are known and are also correct for stacked values."""
    if node.domain or node.op_type not in ("Identity", "Reshape", "Squeeze", "Unsqueeze"):
        return False
    if node.op_type == "Identity":
        return True
    numbers = constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
    if numbers is None:
        return False
    return node.op_type != "Reshape" or 0 not in numbers or not node.attributes.get_int("allowzero", 0)


@dataclass(frozen=True)
class _Recurrence:
    """A Loop of a recurrent cell.

    Attributes:
        loop: the node.
        cell: the recurrent node of its body.
        data: the tensor of all steps.
        axis: the dimension of the steps, 0 or 1.
        backward: whether the steps are taken from the last to the first.
        starts: for each state, the path from the carried value, and the value before the first step.
        lasts: for each output of the Loop with a last value: the number of the cell's output, and the path from there.
        joined: for each output of the Loop with the values of all steps, the path from the hidden state.
        weights: the cell's inputs that are equal in all steps, each after those that it is computed from; ``None`` for an
            omitted one.
    """

    loop: ir.Node
    cell: ir.Node
    data: ir.Value
    axis: int
    backward: bool
    starts: Sequence[tuple[_Path, ir.Value]]
    lasts: Sequence[tuple[int, _Path]]
    joined: Sequence[_Path]
    weights: Sequence[Sequence[ir.Value] | None]

    @classmethod
    def of(cls, loop: ir.Node) -> Self | None:
        """Return the recurrence that a Loop computes, if it is one."""
        body = loop.attributes["body"].as_graph()
        cells = [node for node in body if node.op_type in _STATES and not node.domain]
        if len(cells) != 1 or any(map(nested, body)) or not _is_plain(cells[0]) or not is_endless(loop):
            return None
        (cell,) = cells
        weights = [None if value is None else _invariant(value, body) for value in _weights(cell)]
        if any(value is not None and order is None for value, order in zip(_weights(cell), weights, strict=True)):
            return None
        if (steps := _steps(loop, cell, body.inputs[0])) is None:
            return None
        carried = len(loop.inputs) - 2
        starts: dict[int, tuple[_Path, ir.Value]] = {}  # by carried value
        for state in range(_STATES[cell.op_type]):
            given = cell.inputs[_FIRST_STATE + state] if len(cell.inputs) > _FIRST_STATE + state else None
            path = None if given is None else _Path.to(given)
            if path is None or path.source not in body.inputs[2:]:
                return None
            place = body.inputs.index(path.source) - 2
            start, end = loop.inputs[2 + place], _Path.to(body.outputs[1 + place])
            if start is None or place in starts or end.source is not cell.outputs[1 + state]:
                return None
            starts[place] = path, start
        lasts: list[tuple[int, _Path]] = []
        for place in range(carried):
            path = _Path.to(body.outputs[1 + place])
            is_read = place not in starts and (body.inputs[2 + place].uses() or body.inputs[2 + place] in body.outputs)
            if path.source not in cell.outputs[1:] or is_read:
                return None
            lasts.append((cell.outputs.index(path.source), path))
        joined = [_Path.to(value) for value in body.outputs[1 + carried :]]
        if any(path.source is not cell.outputs[1] for path in joined):
            return None
        return cls(loop, cell, *steps, list(starts.values()), lasts, joined, weights)

    def replace(self, op: Builder) -> bool:
        """Replace the Loop. Return false if a check rejects it."""
        attributes = attributes_of(self.cell)
        attributes.pop("direction", None)
        if self.backward:
            attributes["direction"] = "reverse"
        data = op.Transpose(self.data, perm=[1, 0, 2]) if self.axis == 1 else self.data
        weights = [None if order is None else _moved(op, order, self.cell.graph) for order in self.weights]
        states: list[Any] = [path.apply(op, _value(start)) for path, start in self.starts]
        results = op.node(
            self.cell.op_type, data, *weights[:3], None, *states, *weights[3:], outputs=1 + len(states), **attributes
        )
        pairs: list[tuple[ir.Value, Value]] = []
        for old, (output, path) in zip(self.loop.outputs, self.lasts, strict=False):
            pairs.append((old, path.apply(op, results[output])))
        for old, path in zip(self.loop.outputs[len(self.lasts) :], self.joined, strict=True):
            every = path.apply(op, results[0], stacked=True)
            if not self.backward:
                pairs.append((old, every))
            elif (reversed_again := _reversed_users(old)) is not None:
                pairs += [(value, every) for value in reversed_again]
            else:
                pairs.append((old, op.Slice(every, [-1], [_BEFORE_ALL], [0], [-1])))
        # ONNX Runtime cannot compute recurrent nodes of no steps or an empty batch, which a check would try.
        if all(_size(self.data, axis) for axis in (0, 1)) and not may_replace(pairs):
            return False
        for old, new in pairs:
            replace_value(old, new, equal=False)
        for old, _ in pairs:  # the Slices that reversed results
            node = old.producer()
            if node is not None and node is not self.loop and node.graph is not None:
                node.graph.remove(node, safe=True)
        remove_loop(self.loop)
        return True


def _value(value: ir.Value) -> Value:
    assert isinstance(value, Value)
    return value


def _weights(cell: ir.Node) -> list[ir.Value | None]:
    found = [cell.inputs[index] if index < len(cell.inputs) else None for index in _INVARIANT]
    return found if found[-1] is not None else found[:-1]


def _is_plain(cell: ir.Node) -> bool:
    """Return whether a recurrent node computes one direction and complete sequences."""
    attributes = cell.attributes
    if attributes.get_string("direction", "forward") == "bidirectional" or attributes.get_int("layout", 0) != 0:
        return False
    return (len(cell.inputs) <= 4 or cell.inputs[4] is None) and len(cell.outputs) == 1 + _STATES[cell.op_type]


def _invariant(value: ir.Value, body: ir.Graph | ir.Function | None) -> list[ir.Value] | None:
    """Return a value that is equal in all iterations, and those that it is computed from in the body, which come first.

    The result is ``None`` if the value depends on the iteration, on random numbers, on nodes with several outputs, or on too
    many values.
    """
    iterated = set(body.inputs) if isinstance(body, ir.Graph) else set()

    def inputs_of(one: ir.Value) -> list[ir.Value] | None:
        node = one.producer()
        if one in iterated:
            return None
        if node is None or node.graph is not body:
            return []
        if len(node.outputs) != 1 or node.op_type in RANDOM:
            return None
        return [given for given in node.inputs if given is not None]

    return computed_before(value, inputs_of)


def _is_outer(value: ir.Value, loop: ir.Node) -> bool:
    """Return whether a value is one of the graph around a Loop."""
    body = loop.attributes["body"].as_graph()
    node = value.producer()
    return value not in body.inputs and (node is None or node.graph is not body)


def _moved(op: Builder, order: Sequence[ir.Value], body: ir.Graph | ir.Function | None) -> Value:
    """Emit the nodes of an invariant value, the last of ``order``, outside of the body."""
    moved: dict[ir.Value, Value] = {}
    for one in order:
        node = one.producer()
        if node is None or node.graph is not body:
            moved[one] = _value(one)
            continue
        inputs = [None if given is None else moved[given] for given in node.inputs]
        moved[one] = op.node(node.op_type, *inputs, domain=node.domain, **attributes_of(node))
    return moved[order[-1]]


def _steps(loop: ir.Node, cell: ir.Node, iteration: ir.Value) -> tuple[ir.Value, int, bool] | None:
    """Return the tensor of all steps, their dimension, and whether they are taken backward."""
    x, w = cell.inputs[:2]
    gather = None if x is None else _Path.to(x).source.producer()
    if x is None or w is None or gather is None or gather.op_type != "Gather" or gather.domain:
        return None
    data, index = gather.inputs
    if data is None or index is None or data.shape is None or len(data.shape) != 3 or not _is_outer(data, loop):
        return None
    axis = gather.attributes.get_int("axis", 0) % 3
    is_one = index.shape is not None and list(index.shape) in ([], [1])
    line = _line(index, lambda value: value is iteration)
    if axis == 2 or not is_one or line not in ((1, 0), (-1, -1)) or not _takes_all(loop.inputs[0], data, axis):
        return None
    # The step has the elements of a slice in order. It has the same shape, apart from a 1 in another place, if it is one
    # step and its rows are as long.
    sizes = {_size(data, 2), _size(x, 2) or _size(w, 2)}
    if x.shape is None or len(x.shape) != 3 or _size(x, 0) != 1 or len(sizes) != 1 or None in sizes:
        return None
    return data, axis, line == (-1, -1)


def _size(value: ir.Value, axis: int) -> int | None:
    size = None if value.shape is None or len(value.shape) <= axis else value.shape[axis]
    return size if isinstance(size, int) else None


def _takes_all(count: ir.Value | None, data: ir.Value, axis: int) -> bool:
    """Return whether a trip count is the size of a dimension."""
    if count is None:
        return False
    if (known := constant_array(count)) is not None:
        return known.size == 1 and int(known.reshape(-1)[0]) == _size(data, axis)
    return _line(count, lambda value: is_same_size(size_read(value), (data, axis))) == (1, 0)


def _line(value: ir.Value, is_variable: Callable[[ir.Value], bool], steps: int = _MAX_STEPS) -> tuple[int, int] | None:
    """Return slope and offset of an integer that depends on a variable.

    Return ``None`` if other operators compute it, or more than ``steps`` consecutive ones.
    """
    if is_variable(value):
        return 1, 0
    if (known := constant_array(value)) is not None:
        return (0, int(known.reshape(-1)[0])) if known.size == 1 else None
    node = value.producer()
    if node is None or node.domain or node.inputs[0] is None or not steps:
        return None
    if node.op_type in ("Identity", "Reshape", "Squeeze", "Unsqueeze"):
        return _line(node.inputs[0], is_variable, steps - 1)
    if node.op_type == "Cast":
        return _line(node.inputs[0], is_variable, steps - 1) if value.dtype in INTEGERS else None
    parts = [None if given is None else _line(given, is_variable, steps - 1) for given in node.inputs]
    if len(parts) == 1 and node.op_type == "Neg" and parts[0] is not None:
        return -parts[0][0], -parts[0][1]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    (slope, offset), (other_slope, other) = parts[0], parts[1]
    if node.op_type == "Add":
        return slope + other_slope, offset + other
    if node.op_type == "Sub":
        return slope - other_slope, offset - other
    if node.op_type == "Mul" and not slope * other_slope:
        return slope * other + other_slope * offset, offset * other
    return (slope, offset) if node.op_type == "Div" and (other_slope, other) == (0, 1) else None


def _reversed_users(value: ir.Value) -> list[ir.Value] | None:
    """Return the results of the Slices that reverse a value, if nothing else uses it."""
    found: list[ir.Value] = []
    for node, _ in value.uses():
        starts, ends, axes, steps = [*map(constant_list, node.inputs[1:]), *[None] * 4][:4]
        if (
            node.op_type != "Slice"
            or node.domain
            or [starts, axes, steps] != [[-1], [0], [-1]]
            or node.inputs[0] is not value
        ):
            return None
        if ends is None or ends[0] > _BEFORE_ALL:
            return None
        found.append(node.outputs[0])
    return None if value.is_graph_output() else found
