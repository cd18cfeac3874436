"""Recurrent cells in the operators of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.loops import is_endless
from converters.passes.recurrent_loops import is_recurrence
from converters.passes.recurrent_nodes import GATES
from converters.passes.while_loops.copying import Change, ChangeLoops, Substitute, symbolic_dims
from converters.passes.while_loops.sums import Columns, Sum, is_outside, sum_of
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, constant_list, producer_of

_FUNCTIONS = ("Relu", "Sigmoid", "Tanh")


class FuseCells(ChangeLoops):
    """Replace the operators of a recurrent cell by an LSTM, GRU or RNN of one step.

    Conditions: `FuseRecurrentLoops` replaces the resulting Loop. Matrices and biases are values outside of the Loop, of
    float32. The gates may have any order. Their functions are Relu, Sigmoid or Tanh, the same for all gates. The data of a
    step and the states have the same number of rows, so that none of them is repeated.
    """

    finite = True

    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        body, trips = loop.attributes["body"].as_graph(), loop.inputs[0]
        if trips is None or not is_endless(loop):
            return None
        assert isinstance(trips, Value)
        cell = next((cell for cell in _cells(body) if cell.has_equal_rows()), None)
        return None if cell is None else Change(trips, cell.substitutes(op))

    def accepts(self, copy: ir.Node, change: Change) -> bool:
        return is_recurrence(copy)

    def can_check(self, copy: ir.Node) -> bool:
        """Return whether the batch size is known. ONNX Runtime (1.32) divides by the batch size, which can be 0 in a
        check.
        """
        cells = [node for node in copy.attributes["body"].as_graph() if node.op_type in GATES and not node.domain]
        data = [node.inputs[0] for node in cells]
        return all(x is not None and x.shape is not None and isinstance(x.shape[1], int) and x.shape[1] for x in data)


class RepeatRows(ChangeLoops):
    """Repeat the data and the initial states of a recurrent cell, so that all of them have the same number of rows.

    The operators of a cell repeat a tensor of one row, but LSTM, GRU and RNN do not. Conditions: the numbers of rows may
    differ, as those of several inputs, and there is at least one iteration, after which all states have the same number of
    rows. A step is gathered from a tensor outside of the Loop.
    """

    def change(self, op: Builder, loop: ir.Node) -> Change | None:
        body, trips = loop.attributes["body"].as_graph(), loop.inputs[0]
        count = None if trips is None else constant_list(trips)
        if count is None or count[0] < 1 or not is_endless(loop):
            return None
        assert isinstance(trips, Value)
        for cell in _cells(body):
            if not cell.has_equal_rows() and (repeated := _repeated(op, loop, cell)) is not None:
                return Change(trips, repeated[0], starts=repeated[1])
        return None


def _repeated(op: Builder, loop: ir.Node, cell: _Cell) -> tuple[dict[ir.Value, Substitute], dict[int, Value]] | None:
    """Return the gathered step and the initial states of a cell, of the same number of rows."""
    body = loop.attributes["body"].as_graph()
    gather = producer_of(cell.x, "Gather")
    data, index = (None, None) if gather is None else gather.inputs
    places = [body.inputs.index(state) - 2 for state in cell.states]
    starts = [loop.inputs[2 + place] for place in places]
    axis = 0 if gather is None else gather.attributes.get_int("axis", 0)
    if not isinstance(data, Value) or index is None or not is_outside(data, body) or data.rank != 3 or axis not in (0, 1):
        return None
    if any(not isinstance(start, Value) or start.rank != 2 or start.dtype != data.dtype for start in starts):
        return None
    rows = 1 - axis
    sizes = {axis: [1], rows: [1], 2: [1]}
    counts = [op.Shape(start, start=0, end=1) for start in starts]
    own = op.Shape(data, start=rows, end=rows + 1)
    wide: Any = data
    for count in counts:
        wide = op.Expand(wide, op.Concat(*({**sizes, rows: count}[place] for place in range(3)), axis=0))
    found: dict[int, Value] = {}
    for number, place in enumerate(places):
        tall: Any = starts[number]
        for count in (own, *counts[:number], *counts[number + 1 :]):
            tall = op.Expand(tall, op.Concat(count, [1], axis=0))
        found[place] = tall
    _name_rows(op.unique(f"{op.scope}/rows"), [(wide, rows), *((tall, 0) for tall in found.values())])
    return {cell.x: Substitute([index], lambda op, index: op.Gather(wide, index, axis=axis))}, found


def _name_rows(name: str, dimensions: Sequence[tuple[Value, int]]) -> None:
    """Give equal dimensions one name, unless their size is known."""
    if all(isinstance((value.dims or [])[axis], int) for value, axis in dimensions):
        return
    for value, axis in dimensions:
        dims = symbolic_dims(value) or []
        value.shape = ir.Shape([name if place == axis else dim for place, dim in enumerate(dims)])


@dataclass(frozen=True)
class _Gate:
    """The operands of one gate.

    Attributes:
        weights, recurrence: the columns that multiply the data and the hidden state.
        biases: those that are added.
        own_biases: those of the last gate of a GRU, which are added to the product with the state before the reset.
    """

    weights: Columns
    recurrence: Columns
    biases: Sequence[Columns]
    own_biases: Sequence[Columns] = ()


@dataclass(frozen=True)
class _Cell:
    """A recurrent cell.

    Attributes:
        kind: its operator.
        x: the data of a step.
        states: the states before the step.
        results: the states after the step.
        gates: the gates in ONNX's order.
        activations: the functions in ONNX's order.
        before: whether a GRU multiplies before it resets.
    """

    kind: str
    x: ir.Value
    states: Sequence[ir.Value]
    results: Sequence[ir.Value]
    gates: Sequence[_Gate]
    activations: Sequence[str]
    before: bool = False

    def has_equal_rows(self) -> bool:
        """Return whether data and states are matrices of the same known number of rows, and of the sizes of the weights."""
        weights, recurrence = self.gates[0].weights, self.gates[0].recurrence
        hidden = weights.count
        x, *states = [symbolic_dims(value) for value in (self.x, *self.states)]
        if x is None or len(x) != 2 or x[0] is None:
            return False
        sizes = [(one.rows, other.rows) for one, other in ((gate.weights, gate.recurrence) for gate in self.gates)]
        return (
            all(size == (weights.rows, hidden) for size in sizes)
            and recurrence.rows == hidden
            and x[1] == weights.rows
            and all(state == [x[0], hidden] for state in states)
            and all(value.dtype == ir.DataType.FLOAT for value in (self.x, *self.states))
        )

    def substitutes(self, op: Builder) -> dict[ir.Value, Substitute]:
        """Return a node that computes the results. Its weights are emitted by ``op``."""
        hidden = self.gates[0].weights.count
        weights = _stacked(op, [gate.weights for gate in self.gates])
        recurrence = _stacked(op, [gate.recurrence for gate in self.gates])
        biases = [_total(op, gate.biases, hidden) for gate in self.gates]
        biases += [_total(op, gate.own_biases, hidden) for gate in self.gates]
        bias = op.Unsqueeze(op.Concat(*biases, axis=0), [0])
        attributes: dict[str, Any] = {"hidden_size": hidden, "activations": list(self.activations)}
        if self.before:
            attributes["linear_before_reset"] = 1
        emitted: dict[Builder, Sequence[Value]] = {}

        def emit(inner: Builder, number: int, x: Value, *states: Value) -> Value:
            if inner not in emitted:
                given = [inner.Unsqueeze(value, [0]) for value in (x, *states)]
                results = inner.node(
                    self.kind, given[0], weights, recurrence, bias, None, *given[1:], outputs=1 + len(states), **attributes
                )
                emitted[inner] = [inner.Squeeze(result, [0]) for result in results[1:]]
            return emitted[inner][number]

        def of(number: int) -> Callable[..., Value]:
            return lambda inner, *given: emit(inner, number, *given)

        return {result: Substitute([self.x, *self.states], of(number)) for number, result in enumerate(self.results)}


def _cells(body: ir.Graph) -> Iterator[_Cell]:
    """Iterate over the recurrent cells of a Loop's body."""
    for place in range(len(body.inputs) - 2):
        for match in (_lstm, _gru, _rnn):
            cell = match(body, place)
            if cell is not None:
                yield cell


def _stacked(op: Builder, columns: Sequence[Columns]) -> Value:
    """Emit columns of matrices as rows, with one more leading dimension."""
    joined: list[Columns] = []
    for one in columns:
        if joined and joined[-1].value is one.value and joined[-1].stop == one.start:
            joined[-1] = Columns(one.value, joined[-1].start, one.stop)
        else:
            joined.append(one)
    parts = [one.emit(op) for one in joined]
    matrix = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=1)
    result: Value = op.Unsqueeze(op.Transpose(matrix, perm=[1, 0]), [0])
    return result


def _total(op: Builder, biases: Sequence[Columns], count: int) -> Value:
    """Emit the sum of biases as a vector."""
    total: Value = op.const(np.zeros(count, np.float32))
    for number, one in enumerate(biases):
        vector = op.Reshape(one.emit(op), [count])
        total = op.Add(total, vector) if number else vector
    return total


def _operands(value: ir.Value | None, op_type: str) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Iterate over the two orders of the inputs of a commutative node."""
    node = producer_of(value, op_type)
    if node is not None and len(node.inputs) == 2:
        one, other = node.inputs
        if one is not None and other is not None:
            yield one, other
            yield other, one


def _activated(value: ir.Value) -> tuple[str, ir.Value] | None:
    """Return the function of a value, and its input."""
    node = value.producer()
    if node is None or node.domain or node.op_type not in _FUNCTIONS or node.inputs[0] is None:
        return None
    return node.op_type, node.inputs[0]


def _gate(total: Sum | None, x: ir.Value | None, state: ir.Value, count: int) -> tuple[ir.Value, _Gate] | None:
    """Return the data and the gate that a sum of a product with the data, one with the state and biases computes."""
    if total is None or len(total.products) != 2:
        return None
    of_state = [product for product in total.products if product.source is state]
    others = [product for product in total.products if product.source is not state]
    if len(of_state) != 1 or (x is not None and others[0].source is not x):
        return None
    if any(product.columns.count != count for product in total.products):
        return None
    return others[0].source, _Gate(others[0].columns, of_state[0].columns, total.biases)


def _gates(body: ir.Graph, values: Sequence[ir.Value], state: ir.Value, count: int) -> tuple[ir.Value, list[_Gate]] | None:
    """Return the data and the gates of the inputs of several functions."""
    x: ir.Value | None = None
    gates: list[_Gate] = []
    for value in values:
        found = _gate(sum_of(value, body), x, state, count)
        if found is None:
            return None
        x, gate = found
        gates.append(gate)
    return None if x is None else (x, gates)


def _hidden_size(value: ir.Value) -> int | None:
    dims = symbolic_dims(value)
    return dims[1] if dims is not None and len(dims) == 2 and isinstance(dims[1], int) else None


def _lstm(body: ir.Graph, place: int) -> _Cell | None:
    """Return the LSTM whose hidden state is a carried value."""
    state, hidden = body.inputs[2 + place], body.outputs[1 + place]
    for of_o, of_cell in _operands(hidden, "Mul"):
        o, last = _activated(of_o), _activated(of_cell)
        if o is None or last is None or last[1] not in body.outputs[1 : len(body.inputs) - 1]:
            continue
        cell = last[1]
        before = body.inputs[2 + list(body.outputs[1:]).index(cell)]
        for kept, new in _operands(cell, "Add"):
            for of_f, carried in _operands(kept, "Mul"):
                for of_i, of_c in _operands(new, "Mul"):
                    f, i, c = (_activated(value) for value in (of_f, of_i, of_c))
                    if carried is not before or f is None or i is None or c is None or not o[0] == f[0] == i[0]:
                        continue
                    count = _hidden_size(state)
                    found = count and _gates(body, [i[1], o[1], f[1], c[1]], state, count)
                    if found:
                        x, gates = found
                        return _Cell("LSTM", x, [state, before], [hidden, cell], gates, [f[0], c[0], last[0]])
    return None


def _rnn(body: ir.Graph, place: int) -> _Cell | None:
    """Return the RNN whose state is a carried value."""
    state, hidden = body.inputs[2 + place], body.outputs[1 + place]
    function, count = _activated(hidden), _hidden_size(state)
    found = function and count and _gates(body, [function[1]], state, count)
    if not function or not found:
        return None
    x, gates = found
    return _Cell("RNN", x, [state], [hidden], gates, [function[0]])


def _gru(body: ir.Graph, place: int) -> _Cell | None:
    """Return the GRU whose state is a carried value."""
    state, hidden = body.inputs[2 + place], body.outputs[1 + place]
    count = _hidden_size(state)
    if count is None:
        return None
    for kept, new in _operands(hidden, "Add"):
        for of_z, carried in _operands(kept, "Mul"):
            z = _activated(of_z)
            if carried is not state or z is None:
                continue
            for rest, of_h in _operands(new, "Mul"):
                h = _activated(of_h)
                if h is None or not _is_rest(rest, of_z):
                    continue
                found = _reset_after(body, z[1], h[1], state, count, z[0]) or _reset_before(
                    body, z[1], h[1], state, count, z[0]
                )
                if found is not None:
                    x, gates, before = found
                    return _Cell("GRU", x, [state], [hidden], gates, [z[0], h[0]], before)
    return None


def _is_rest(value: ir.Value, gate: ir.Value) -> bool:
    """Return whether a value is 1 minus a gate."""
    node = producer_of(value, "Sub")
    if node is None or node.inputs[1] is not gate:
        return False
    ones = constant_array(node.inputs[0])
    return ones is not None and ones.size == 1 and bool(ones.reshape(-1)[0] == 1)


_Gru = tuple[ir.Value, list[_Gate], bool]


def _reset_after(body: ir.Graph, z: ir.Value, h: ir.Value, state: ir.Value, count: int, function: str) -> _Gru | None:
    """Return data and gates if the gate r multiplies the product of the state and the weights."""
    for of_input, of_state in _operands(h, "Add"):
        for of_r, product in _operands(of_state, "Mul"):
            r, first, own = _activated(of_r), sum_of(of_input, body), sum_of(product, body)
            if r is None or r[0] != function or first is None or own is None:
                continue
            found = _gates(body, [z, r[1]], state, count)
            if found is None or len(first.products) != 1 or len(own.products) != 1:
                continue
            x, gates = found
            if first.products[0].source is not x or own.products[0].source is not state:
                continue
            last = _Gate(first.products[0].columns, own.products[0].columns, first.biases, own.biases)
            if last.weights.count == last.recurrence.count == count:
                return x, [*gates, last], True
    return None


def _reset_before(body: ir.Graph, z: ir.Value, h: ir.Value, state: ir.Value, count: int, function: str) -> _Gru | None:
    """Return data and gates if the gate r multiplies the state."""
    total = sum_of(h, body)
    for product in () if total is None else total.products:
        for of_r, carried in _operands(product.source, "Mul"):
            r = _activated(of_r)
            if r is None or r[0] != function or carried is not state:
                continue
            found = _gates(body, [z, r[1]], state, count)
            last = None if found is None else _gate(total, found[0], product.source, count)
            if found is not None and last is not None:
                return found[0], [*found[1], last[1]], False
    return None
