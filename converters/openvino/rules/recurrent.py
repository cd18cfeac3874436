"""Recurrent cells and sequences as ONNX's RNN, GRU and LSTM, with other layouts and orders of gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import AttributeGroup, Departure, rule
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

Direction = Literal["forward", "reverse", "bidirectional"]
Activation = Literal["sigmoid", "tanh", "relu"]

_LENGTHS_OVERLOOKED = Departure(
    where="sequences shorter than the data, if the number of sequences or of steps is unknown",
    cpu="ignores their lengths",
    specification="computes the steps within each length",
    follows="specification",
)

_BIASES_LEFT_OUT = Departure(
    where="a constant `x` of one row, with `clip` or, in GRUCell and LSTMCell, activations other than the defaults",
    cpu="ignores the biases",
    specification="adds them",
    follows="specification",
)

_NAN_CLIPPED = Departure(
    where="a NaN in the data or states, or infinities whose weighted sums are NaN, with `clip`, or a GRU with two `relu`",
    cpu="computes with -`clip`, or with 0",
    specification="leaves it undefined",
    follows="runtime",
)

_NO_STEPS = Departure(
    where="data that have no steps at run time",
    cpu="leaves the states uninitialized",
    specification="gives the initial states",
    follows="specification",
)

_NAMES = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


@dataclass(frozen=True, kw_only=True)
class Recurrent(AttributeGroup):
    """The attributes that recurrent cells and sequences share. No activation has an alpha or beta."""

    gates: ClassVar[int]
    usual: ClassVar[tuple[Activation, ...]]

    hidden_size: int
    activations: tuple[Activation, ...]
    activations_alpha: tuple[float, ...] = ()
    activations_beta: tuple[float, ...] = ()
    clip: float = 0.0

    @property
    def bias_gates(self) -> int:
        """The number of gates with biases."""
        return self.gates

    def onnx(self, direction: Direction = "forward") -> dict[str, Any]:
        """Return the attributes of ONNX's node, without defaults."""
        if self.clip < 0:
            raise Malformed(f"its clip is {self.clip}; it must be 0 (no clipping) or more")
        if len(self.activations) != len(self.usual):
            raise Malformed(f"it has {len(self.activations)} activations instead of {len(self.usual)}")
        node: dict[str, Any] = {"hidden_size": self.hidden_size}
        if direction != "forward":
            node["direction"] = direction
        if self.activations != self.usual:
            directions = 2 if direction == "bidirectional" else 1
            node["activations"] = [_NAMES[name] for name in self.activations] * directions
        if self.clip:
            node["clip"] = self.clip
        return node


@dataclass(frozen=True, kw_only=True)
class RNN(Recurrent):
    """The attributes of RNNCell and RNNSequence."""

    gates = 1
    usual = ("tanh",)

    activations: tuple[Activation, ...] = usual


@dataclass(frozen=True, kw_only=True)
class GRU(Recurrent):
    """The attributes of GRUCell and GRUSequence."""

    gates = 3
    usual = ("sigmoid", "tanh")

    activations: tuple[Activation, ...] = usual
    linear_before_reset: bool = False

    def onnx(self, direction: Direction = "forward") -> dict[str, Any]:
        return super().onnx(direction) | {"linear_before_reset": int(self.linear_before_reset)}

    @property
    def bias_gates(self) -> int:
        """The number is four if one gate adds the biases of the input and the hidden state at different points."""
        return 4 if self.linear_before_reset else 3


@dataclass(frozen=True, kw_only=True)
class LSTM(Recurrent):
    """The attributes of LSTMCell and LSTMSequence."""

    gates = 4
    usual = ("sigmoid", "tanh", "tanh")

    activations: tuple[Activation, ...] = usual


@rule("RNNCell", departs=[_BIASES_LEFT_OUT, _NAN_CLIPPED])
def rnn_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None = None,
    *,
    attributes: RNN,
):
    """RNNCell-1: a sequence of one step."""
    _check(attributes, x, weights, recurrence, biases, hidden)
    node = attributes.onnx()
    inputs = [op.Unsqueeze(value, [0]) for value in (x, weights, recurrence)]
    biases = None if biases is None else op.Unsqueeze(biases, [0])
    _, last = op.RNN(*inputs, _with_zeros(op, biases), None, op.Unsqueeze(hidden, [0]), outputs=2, **node)
    return op.Squeeze(last, [0])


@rule("GRUCell", since="opset3", departs=[_BIASES_LEFT_OUT, _NAN_CLIPPED])
def gru_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None = None,
    *,
    attributes: GRU,
):
    """GRUCell-3: a sequence of one step."""
    _check(attributes, x, weights, recurrence, biases, hidden)
    node = attributes.onnx()
    inputs = [op.Unsqueeze(value, [0]) for value in (x, weights, recurrence)]
    biases = None if biases is None else op.Unsqueeze(biases, [0])
    _, last = op.GRU(*inputs, _gru_biases(op, biases, attributes), None, op.Unsqueeze(hidden, [0]), outputs=2, **node)
    return op.Squeeze(last, [0])


@rule(
    "LSTMCell",
    departs=[
        Departure(
            where="peepholes and `input_forget`, which the specification does not define",
            cpu="ignores them",
            reference="computes with them",
            follows="reference",
        ),
        _BIASES_LEFT_OUT,
        _NAN_CLIPPED,
    ],
)
def lstm_cell_1(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None = None,
    peepholes: Value | None = None,
    *,
    attributes: LSTM,
    input_forget: bool = False,
    weights_format: Literal["fico", "icof", "ifco", "ifoc", "iofc"] = "fico",
):
    """LSTMCell-1. The order of the gates is f, i, c, o, regardless of ``weights_format``.

    Peepholes (of f, i, o) and ``input_forget`` follow OpenVINO's reference kernel.
    """
    hidden, cell = (_for_each_row(op, x, state) for state in (hidden, cell))
    _check(attributes, x, weights, recurrence, biases, hidden, cell)
    match_shapes(peepholes=(peepholes, f"{3 * attributes.hidden_size}"))
    node = attributes.onnx()
    if input_forget:
        return _coupled(op, x, hidden, cell, weights, recurrence, biases, peepholes, attributes.activations, attributes.clip)
    if peepholes is not None and peepholes.constant is not None and not peepholes.constant.any():
        peepholes = None
    return _lstm_cell(op, x, hidden, cell, weights, recurrence, biases, peepholes, node)


@rule("LSTMCell", since="opset4", departs=[_BIASES_LEFT_OUT, _NAN_CLIPPED])
def lstm_cell_4(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    weights: Value,
    recurrence: Value,
    biases: Value,
    *,
    attributes: LSTM,
):
    """LSTMCell-4: the order of the gates is f, i, c, o."""
    hidden, cell = (_for_each_row(op, x, state) for state in (hidden, cell))
    _check(attributes, x, weights, recurrence, biases, hidden, cell)
    node = attributes.onnx()
    return _lstm_cell(op, x, hidden, cell, weights, recurrence, biases, None, node)


@rule("RNNSequence", since="opset5", departs=[_LENGTHS_OVERLOOKED, _NO_STEPS, _NAN_CLIPPED])
def rnn_sequence(
    op: Builder,
    x: Value,
    hidden: Value,
    lengths: Value,
    weights: Value,
    recurrence: Value,
    biases: Value,
    *,
    direction: Direction,
    attributes: RNN,
):
    """RNNSequence-5."""
    _check(attributes, x, weights, recurrence, biases, hidden, lengths=lengths, direction=direction)
    node = attributes.onnx(direction)
    outputs = op.RNN(
        _time_first(op, x), weights, recurrence, _with_zeros(op, biases), _lengths(op, x, lengths),
        _direction_first(op, hidden), outputs=2, **node,
    )  # fmt: skip
    return _batch_first(op, outputs)


@rule("GRUSequence", since="opset5", departs=[_LENGTHS_OVERLOOKED, _NO_STEPS, _NAN_CLIPPED])
def gru_sequence(
    op: Builder,
    x: Value,
    hidden: Value,
    lengths: Value,
    weights: Value,
    recurrence: Value,
    biases: Value,
    *,
    direction: Direction,
    attributes: GRU,
):
    """GRUSequence-5."""
    _check(attributes, x, weights, recurrence, biases, hidden, lengths=lengths, direction=direction)
    node = attributes.onnx(direction)
    outputs = op.GRU(
        _time_first(op, x), weights, recurrence, _gru_biases(op, biases, attributes),
        _lengths(op, x, lengths), _direction_first(op, hidden), outputs=2, **node,
    )  # fmt: skip
    return _batch_first(op, outputs)


@rule("LSTMSequence", since="opset5", departs=[_LENGTHS_OVERLOOKED, _NO_STEPS, _NAN_CLIPPED])
def lstm_sequence(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    lengths: Value,
    weights: Value,
    recurrence: Value,
    biases: Value,
    *,
    direction: Direction,
    attributes: LSTM,
):
    """LSTMSequence-5: the order of the gates is f, i, c, o."""
    _check(attributes, x, weights, recurrence, biases, hidden, cell, lengths=lengths, direction=direction)
    node = attributes.onnx(direction)
    weights, recurrence, biases = (_gates(op, value) for value in (weights, recurrence, biases))
    outputs = op.LSTM(
        _time_first(op, x), weights, recurrence, _with_zeros(op, biases), _lengths(op, x, lengths),
        _direction_first(op, hidden), _direction_first(op, cell), outputs=3, **node,
    )  # fmt: skip
    return _batch_first(op, outputs)


def _check(
    attributes: Recurrent,
    x: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None,
    *states: Value,
    lengths: Value | None = None,
    direction: str | None = None,
) -> None:
    """Raise `Malformed` if shapes do not match. Cells have no ``direction``."""
    hidden_size = attributes.hidden_size
    if hidden_size < 1:
        raise Malformed(f"its hidden_size is {hidden_size}; it must be 1 or more")
    rows, more = attributes.gates * hidden_size, attributes.bias_gates * hidden_size
    lead, time = ("", "") if direction is None else ("2 " if direction == "bidirectional" else "1 ", "T ")
    match_shapes(
        x=(x, f"N {time}I"),
        weights=(weights, f"{lead}{rows} I"),
        recurrence=(recurrence, f"{lead}{rows} {hidden_size}"),
        biases=(biases, f"{lead}{more}"),
        lengths=(lengths, "N"),
        **{f"state {k}": (state, f"N {lead}{hidden_size}") for k, state in enumerate(states)},
    )


def _for_each_row(op: Builder, x: Value, state: Value) -> Value:
    """Repeat a constant state of one row for each row of ``x``, as OpenVINO does in a model that is reshaped."""
    if state.constant is None or state.rank != 2 or len(state.constant) != 1 or (x.dims and x.dims[0] == 1):
        return state
    return op.Expand(state, op.Concat(op.Shape(x, end=1), op.Shape(state, start=1), axis=0))


def _lstm_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None,
    peepholes: Value | None,
    node: dict[str, Any],
) -> list[Value]:
    x, hidden, cell, weights, recurrence = (op.Unsqueeze(v, [0]) for v in (x, hidden, cell, weights, recurrence))
    if biases is not None:
        biases = _gates(op, op.Unsqueeze(biases, [0]))
    if peepholes is not None:
        peepholes = _gates(op, op.Unsqueeze(peepholes, [0]), [1, 2, 0])
    _, last, state = op.LSTM(
        x, _gates(op, weights), _gates(op, recurrence), _with_zeros(op, biases), None, hidden, cell, peepholes,
        outputs=3, **node,
    )  # fmt: skip
    return [op.Squeeze(last, [0]), op.Squeeze(state, [0])]


def _coupled(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    weights: Value,
    recurrence: Value,
    biases: Value | None,
    peepholes: Value | None,
    activations: Sequence[str],
    clip: float,
) -> list[Value]:
    """Emit a step of an LSTM whose gate i is 1 - f. ONNX does not define which gate ``input_forget`` computes."""
    total = op.Add(
        op.MatMul(x, op.Transpose(weights, perm=[1, 0])), op.MatMul(hidden, op.Transpose(recurrence, perm=[1, 0]))
    )
    f, _, c, o = op.Split(total if biases is None else op.Add(total, biases), outputs=4, axis=1, num_outputs=4)
    if peepholes is not None:
        of_f, _, of_o = op.Split(peepholes, outputs=3, axis=0, num_outputs=3)
        f = op.Add(f, op.Mul(of_f, cell))

    def activated(gate: Value, name: str) -> Value:
        return op.node(_NAMES[name], op.Clip(gate, -clip, clip) if clip else gate)

    f = activated(f, activations[0])
    state = op.Add(op.Mul(f, cell), op.Mul(op.Sub(1, f), activated(c, activations[1])))
    if peepholes is not None:
        o = op.Add(o, op.Mul(of_o, state))
    return [op.Mul(activated(o, activations[0]), op.node(_NAMES[activations[2]], state)), state]


def _gates(op: Builder, value: Value, order: Sequence[int] = (1, 3, 0, 2)) -> Value:
    """Reorder the gates of ``[directions, gates * hidden, ...]`` to ONNX's order, by default f, i, c, o to i, o, f, c."""
    gates = op.Reshape(value, op.Concat(op.Shape(value, start=0, end=1), [len(order), -1], axis=0))
    return op.Reshape(op.Gather(gates, list(order), axis=1), op.Shape(value))


def _zeros(op: Builder, value: Value) -> Value:
    return op.Expand(op.const(0, value.dtype), op.Shape(value))


def _with_zeros(op: Builder, biases: Value | None) -> Value | None:
    """Return ONNX's biases: those of the input, then those of the recurrence, which OpenVINO has added to them."""
    return None if biases is None else op.Concat(biases, _zeros(op, biases), axis=1)


def _gru_biases(op: Builder, biases: Value | None, attributes: GRU) -> Value | None:
    """Return the biases as `_with_zeros`. With ``linear_before_reset``, the recurrence of the last gate has its own biases
    at the end.
    """
    if biases is None or not attributes.linear_before_reset:
        return _with_zeros(op, biases)
    hidden_size = attributes.hidden_size
    inputs, own = (op.Slice(biases, [start], [end], [1]) for start, end in ((0, 3 * hidden_size), (3 * hidden_size, 2**31)))
    return op.Concat(inputs, _zeros(op, op.Slice(biases, [0], [2 * hidden_size], [1])), own, axis=1)


def _lengths(op: Builder, x: Value, lengths: Value) -> Value | None:
    """Return the sequences' lengths; ``None`` if all are known to be complete."""
    whole = x.dims[1] if x.dims and len(x.dims) == 3 else None
    if whole is not None and lengths.constant is not None and (lengths.constant == whole).all():
        return None
    return op.Cast(lengths, to=ir.DataType.INT32)


def _time_first(op: Builder, x: Value) -> Value:
    """Transpose ``[batch, time, input]`` to ``[time, batch, input]``."""
    return op.Transpose(x, perm=[1, 0, 2])


def _direction_first(op: Builder, state: Value) -> Value:
    """Transpose ``[batch, directions, hidden]`` to ``[directions, batch, hidden]``."""
    return op.Transpose(state, perm=[1, 0, 2])


def _batch_first(op: Builder, outputs: Sequence[Value]) -> list[Value]:
    """Transpose ONNX's ``[time, directions, batch, hidden]`` and ``[directions, batch, hidden]`` to batch first."""
    every, *states = outputs
    return [op.Transpose(every, perm=[2, 1, 0, 3]), *(op.Transpose(state, perm=[1, 0, 2]) for state in states)]
