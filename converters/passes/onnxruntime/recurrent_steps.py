"""The steps of GRU and LSTM in other operators, which keep NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.recurrent_nodes import BACKWARD, GATES, functions_of, lstm_states
from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.graphs import attributes_of


def inside(op: Builder, x: Value, lengths: Value) -> Value:
    """Return which steps are within the lengths of the sequences, ``[steps, batch, 1]``."""
    every = op.Unsqueeze(op.Range(0, op.Gather(op.Shape(x), 0), 1), [1])
    return cast(Value, op.Unsqueeze(op.Less(every, op.Cast(lengths, to=ir.DataType.INT64)), [2]))


def has_steps(node: ir.Node) -> bool:
    """Return whether `emit_steps` supports a GRU or LSTM.

    It supports Relu, Sigmoid and Tanh, the same in both directions, and neither coupled gates nor another layout.
    """
    functions = functions_of(node)
    return functions is not None and functions[0] == functions[-1]


def emit_steps(op: Builder, node: ir.Node) -> list[Value]:
    """Emit the steps of a GRU or LSTM in float32, in a Loop if there may be several; return the node's results.

    The products of float16 numbers could be infinite. Data and states are columns. ONNX Runtime would store transposed
    weights, and weights as the second operand of a MatMul, again.
    """
    inputs = [in_float32(op, cast(Value | None, value)) for value in (*node.inputs, *[None] * 8)]
    layer, x, lengths = _Layer.of(op, node, inputs), cast(Value, inputs[0]), inputs[4]
    valid = None if lengths is None else inside(op, x, lengths)
    last = op.Sub(op.Gather(op.Shape(x), 0), 1)

    def one(op: Builder, step: Value, states: Sequence[Value]) -> list[Value]:
        """Return the states after a step, and its result."""
        places = [op.Sub(last, step) if backward else step for backward in layer.backward]
        after = layer.step(op, _columns(op, x, places), states)
        if valid is None:
            return [*after, after[0]]
        kept = _columns(op, valid, places)
        new = [op.Where(kept, a, b) for a, b in zip(after, states, strict=True)]
        return [*new, op.Where(kept, after[0], np.float32(0))]

    def body(op: Builder, step: Value, condition: Value, *states: Value) -> list[Value]:
        return [op.Identity(condition), *one(op, step, states)]

    start = layer.start(op, x, inputs[5:7])
    if x.dims is not None and x.dims[0] == 1:
        *states, every = one(op, op.const(0), start)
        every = op.Unsqueeze(every, [0])
    else:
        *states, every = op.loop(op.Add(last, 1), op.const(np.array(True)), body, *start)
    if any(layer.backward):
        parts = op.Split(every, [1, 1], axis=1, outputs=2) if len(layer.backward) > 1 else [every]
        backward = op.Slice(parts[-1], [-1], [-(2**63)], [0], [-1])
        every = op.Concat(parts[0], backward, axis=1) if len(parts) > 1 else backward
    return [op.Transpose(every, perm=[0, 1, 3, 2]), *(op.Transpose(state, perm=[0, 2, 1]) for state in states)]


def in_float32(op: Builder, value: Value | None) -> Value | None:
    """Return a value, float32 if it is float16."""
    if value is None or value.dtype != ir.DataType.FLOAT16:
        return value
    return cast(Value, op.at(OPSET).Cast(value, to=ir.DataType.FLOAT))  # weights stay 16 bits, however few they are


def _columns(op: Builder, value: Value, places: Sequence[Value]) -> Value:
    """Return steps of ``[steps, batch, size]`` as columns, ``[places, size, batch]``."""
    parts = [op.Unsqueeze(op.Transpose(op.Gather(value, place), perm=[1, 0]), [0]) for place in places]
    return cast(Value, op.Concat(*parts, axis=0) if len(parts) > 1 else parts[0])


@dataclass(frozen=True)
class _Layer:
    """A GRU or LSTM. Columns are ``[directions, size, batch]``.

    Attributes:
        kind: its operator.
        weights, recurrence: ``[directions, gates * hidden, size]``.
        biases: those of the input and those of the state, as columns of one sequence; none if the node has none.
        peepholes: the factors of the cell state in the gates i, o and f, as columns of one sequence.
        backward: whether each direction begins at the last step.
        hidden: the size of a state.
        functions: the operators of its functions.
        clip: the limit of the functions' inputs, or 0.
        before: whether a GRU multiplies before it resets.
    """

    kind: str
    weights: Value
    recurrence: Value
    biases: Sequence[Value]
    peepholes: Sequence[Value]
    backward: Sequence[bool]
    hidden: int
    functions: Sequence[str]
    clip: float
    before: bool

    @classmethod
    def of(cls, op: Builder, node: ir.Node, inputs: Sequence[Value | None]) -> _Layer:
        """Return the layer of a node with the given inputs, ``None`` for omitted ones."""
        attributes = attributes_of(node)
        functions = functions_of(node)
        assert functions is not None
        hidden, gates = attributes["hidden_size"], GATES[node.op_type]

        def split(value: Value | None, count: int, size: int) -> list[Value]:
            parts = [] if value is None else op.Split(value, [size] * count, axis=1, outputs=count)
            return [op.Unsqueeze(part, [2]) for part in parts]

        return cls(
            node.op_type,
            cast(Value, inputs[1]),
            cast(Value, inputs[2]),
            split(inputs[3], 2, gates * hidden),
            split(inputs[7], 3, hidden) if node.op_type == "LSTM" else (),
            BACKWARD[attributes.get("direction", "forward")],
            hidden,
            functions[0],
            float(attributes.get("clip", 0.0)),
            bool(attributes.get("linear_before_reset", 0)),
        )

    def start(self, op: Builder, x: Value, given: Sequence[Value | None]) -> list[Value]:
        """Return the initial states as columns."""
        batch = op.Shape(x, start=1, end=2)
        states = given[: 2 if self.kind == "LSTM" else 1]
        zeros = op.Expand(np.float32(0), op.Concat([len(self.backward), self.hidden], batch, axis=0))
        return [zeros if state is None else op.Transpose(state, perm=[0, 2, 1]) for state in states]

    def step(self, op: Builder, x: Value, states: Sequence[Value]) -> list[Value]:
        """Return the states after a step."""
        of_input, of_state = op.MatMul(self.weights, x), op.MatMul(self.recurrence, states[0])
        if self.biases:
            of_input, of_state = op.Add(of_input, self.biases[0]), op.Add(of_state, self.biases[1])
        return (self._lstm if self.kind == "LSTM" else self._gru)(op, of_input, of_state, *states)

    def _lstm(self, op: Builder, of_input: Value, of_state: Value, _hidden: Value, cell: Value) -> list[Value]:
        return lstm_states(
            op,
            op.Add(of_input, of_state),
            cell,
            self.hidden,
            self.peepholes,
            lambda index, x: self._function(op, index, x) if index < 2 else _keeping_nan(op, self.functions[index], x),
        )

    def _gru(self, op: Builder, of_input: Value, of_state: Value, hidden: Value) -> list[Value]:
        size = [self.hidden] * 3
        (z, r, new), (own_z, own_r, own) = (op.Split(value, size, axis=1, outputs=3) for value in (of_input, of_state))
        z, r = self._function(op, 0, op.Add(z, own_z)), self._function(op, 0, op.Add(r, own_r))
        if self.before:
            own = op.Mul(r, own)
        else:
            product = op.MatMul(self.recurrence, op.Mul(r, hidden))
            own = op.Split(op.Add(product, self.biases[1]) if self.biases else product, size, axis=1, outputs=3)[2]
        new = self._function(op, 1, op.Add(new, own))
        return [op.Add(op.Mul(op.Sub(1, z), new), op.Mul(z, hidden))]

    def _function(self, op: Builder, index: int, x: Value) -> Value:
        """Return a function of clipped numbers."""
        clipped = op.Clip(x, np.float32(-self.clip), np.float32(self.clip)) if self.clip else x
        return _keeping_nan(op, self.functions[index], x, clipped)


def _keeping_nan(op: Builder, name: str, x: Value, clipped: Value | None = None) -> Value:
    """Return a function, by default of ``x``. ONNX Runtime's kernels may give a number for NaN, and 1.5e-8 for Sigmoid of
    minus infinity.
    """
    given = x if clipped is None else clipped
    result = op.Reciprocal(op.Add(op.Exp(op.Neg(given)), 1)) if name == "Sigmoid" else op.node(name, given)
    return cast(Value, op.Where(op.IsNaN(x), x, result))
