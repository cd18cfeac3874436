"""Recurrent cells and sequences. The weights of both inputs are concatenated: ``[gates * hidden, input + hidden]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from converters.errors import Malformed
from converters.inference_engine.rule import layer, shaped
from converters.openvino.rule import Context
from converters.openvino.rules import control_flow
from converters.openvino.rules import recurrent as opset
from onnx_specops.building import Builder, Value


def _parts(op: Builder, x: Value, weights: Value, biases: Value | None, rows: int, hidden: int, bias_rows: int):
    """Return the weights of the input, the weights of the hidden state, and the biases."""
    count = None if not weights.dims or None in weights.dims else int(np.prod([d or 0 for d in weights.dims]))
    if count is None or rows < 1 or hidden < 1 or count % (rows * hidden) or count // (rows * hidden) <= hidden:
        raise Malformed(f"its {count} weights do not match hidden_size={hidden}")
    size = count // (rows * hidden) - hidden
    whole = shaped(op, weights, [rows * hidden, size + hidden])
    w, r = op.Slice(whole, [0], [size], [1]), op.Slice(whole, [size], [size + hidden], [1])
    b = op.const(np.zeros(bias_rows * hidden, np.float32))
    if biases is not None:
        b = shaped(op, biases, [bias_rows * hidden])
    return w, r, b


def _attributes(kind: Any, given: dict[str, Any]) -> Any:
    usual = {key: value for key, value in given.items() if value is not None and value != ()}
    return kind(**usual)


@layer("LSTMCell")
def lstm_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    cell: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    hidden_size: int,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
):
    """LSTMCell."""
    w, r, b = _parts(op, x, weights, biases, 4, hidden_size, 4)
    attributes = _attributes(opset.LSTM, {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip})
    return opset.lstm_cell_4(op, x, hidden, cell, w, r, b, attributes=attributes)


@layer("GRUCell")
def gru_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    hidden_size: int,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
):
    """GRUCell."""
    w, r, b = _parts(op, x, weights, biases, 3, hidden_size, 4 if linear_before_reset else 3)
    given = {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip}
    attributes = _attributes(opset.GRU, {**given, "linear_before_reset": linear_before_reset})
    return opset.gru_cell(op, x, hidden, w, r, b, attributes=attributes)


@layer("RNNCell")
def rnn_cell(
    op: Builder,
    x: Value,
    hidden: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    hidden_size: int,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
):
    """RNNCell."""
    w, r, b = _parts(op, x, weights, biases, 1, hidden_size, 1)
    given = {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip}
    return opset.rnn_cell(op, x, hidden, w, r, b, attributes=_attributes(opset.RNN, given))


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    lower = tuple(name.strip().lower() for name in names)
    if any(name not in ("sigmoid", "tanh", "relu") for name in lower):
        raise Malformed(f"its activations are {', '.join(names)}; expected sigmoid, tanh or relu")
    return lower


Direction = Literal["Forward", "Backward"]


def _given(op: Builder, x: Value, values: tuple[Value | None, ...], states: int, axis: int, hidden: int) -> list[Any]:
    """Return the states, the weights and the biases. States that the file omits are zeros."""
    known = [value for value in values if value is not None]
    blobs = [value for value in known if value.rank == 1]
    given: list[Any] = known[: len(known) - len(blobs)]
    if not blobs or len(given) not in (0, states):
        raise Malformed(f"it has {len(given)} states and {len(blobs)} blobs")
    if not given:
        shape = op.Concat(op.Slice(op.Shape(x), [1 - axis], [2 - axis]), [hidden], axis=0)
        given = [op.Expand(op.const(np.zeros((1, 1), np.float32)), shape)] * states
    return [*given, *blobs, None][: states + 2]


_DIRECTIONS: dict[str, Literal["forward", "reverse"]] = {"Forward": "forward", "Backward": "reverse"}


@layer("LSTMSequence")
def lstm_sequence(
    op: Builder,
    x: Value,
    hidden: Value | None = None,
    cell: Value | None = None,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    axis: int = 1,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
):
    """LSTMSequence: over the dimension ``axis``, 0 or 1."""
    given = {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip}
    attributes = _attributes(opset.LSTM, given)
    inputs = (hidden, cell, weights, biases)
    return _sequence(op, opset.lstm_sequence, x, inputs, 4, 4, axis, direction=direction, attributes=attributes)


@layer("GRUSequence")
def gru_sequence(
    op: Builder,
    x: Value,
    hidden: Value | None = None,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    axis: int = 1,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
):
    """GRUSequence: over the dimension ``axis``, 0 or 1."""
    given = {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip}
    attributes = _attributes(opset.GRU, {**given, "linear_before_reset": linear_before_reset})
    rows, inputs = 4 if linear_before_reset else 3, (hidden, weights, biases)
    return _sequence(op, opset.gru_sequence, x, inputs, 3, rows, axis, direction=direction, attributes=attributes)


@layer("RNNSequence")
def rnn_sequence(
    op: Builder,
    x: Value,
    hidden: Value | None = None,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    axis: int = 1,
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float = 0.0,
):
    """RNNSequence: over the dimension ``axis``, 0 or 1."""
    given = {"hidden_size": hidden_size, "activations": _lower(activations), "clip": clip}
    attributes, inputs = _attributes(opset.RNN, given), (hidden, weights, biases)
    return _sequence(op, opset.rnn_sequence, x, inputs, 1, 1, axis, direction=direction, attributes=attributes)


def _sequence(
    op: Builder,
    emit: Callable[..., Any],
    x: Value,
    inputs: tuple[Value | None, ...],
    rows: int,
    bias_rows: int,
    axis: int,
    *,
    direction: Direction,
    attributes: Any,
) -> Any:
    """Emit a sequence by the rule for OpenVINO's operation.

    Args:
        op: the builder.
        emit: the rule.
        x: the data.
        inputs: the states, weights and biases of the layer.
        rows, bias_rows: the numbers of gates in the weights and biases.
        axis: the dimension of the steps.
        direction, attributes: those of the layer.
    """
    hidden = attributes.hidden_size
    *states, weights, biases = _given(op, x, inputs, len(inputs) - 2, axis, hidden)
    parts = _parts(op, x, weights, biases, rows, hidden, bias_rows)
    x = _batch_first(op, x, axis)
    results = emit(
        op, x, *(op.Unsqueeze(state, [1]) for state in states), _lengths(op, x), *(op.Unsqueeze(v, [0]) for v in parts),
        direction=_DIRECTIONS[direction], attributes=attributes,
    )  # fmt: skip
    return _plain(op, results, axis)


def _batch_first(op: Builder, x: Value, axis: int) -> Value:
    if axis not in (0, 1) or x.rank not in (None, 3):
        raise Malformed(f"its sequence is along axis {axis} of {x.rank} dimensions; expected axis 0 or 1 of 3")
    return op.Transpose(x, perm=[1, 0, 2]) if axis == 0 else x


def _lengths(op: Builder, x: Value) -> Value:
    return op.Expand(op.Gather(op.Shape(x), 1), op.Shape(x, start=0, end=1))


def _plain(op: Builder, results: Any, axis: int) -> list[Value]:
    """Remove the dimension of directions, which is the second."""
    sequence, *states = (op.Squeeze(value, [1]) for value in results)
    return [op.Transpose(sequence, perm=[1, 0, 2]) if axis == 0 else sequence, *states]


@layer("TensorIterator", integers=True)
def tensor_iterator(op: Builder, *inputs: Value, ctx: Context):
    """TensorIterator."""
    return control_flow.tensor_iterator(op, *inputs, ctx=ctx)
