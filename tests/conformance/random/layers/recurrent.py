"""Recurrent cells and sequences."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.graph import Graph, maker

# operation -> its opset, gates, number of states
_CELLS = {"RNN": ("opset1", 1, 1), "GRU": ("opset3", 3, 1), "LSTM": ("opset4", 4, 2)}


@maker(2)
def recurrent(g: Graph) -> None:
    kind = g.pick(*_CELLS)
    opset, gates, states = _CELLS[kind]
    type_ = g.pick("f32", "f32", "f32", "f16")
    # For a single constant row the CPU plugin ignores the biases.
    batch, size, hidden, steps = g.int(2, 3), g.int(1, 4), g.int(1, 4), g.int(1, 5)
    sequence = g.chance(0.5)
    direction = g.pick("forward", "reverse", "bidirectional")
    outer = [2 if direction == "bidirectional" else 1] if sequence else []
    names = ["tanh"] if kind == "RNN" else ["sigmoid"] + ["tanh"] * states
    given = {
        "hidden_size": hidden,
        "activations": names if g.chance(0.7) else [g.pick("sigmoid", "tanh", "relu") for _ in names],
        "clip": g.pick(0.0, 0.0, 0.5),
    }
    biases = gates
    if kind == "GRU":
        given["linear_before_reset"] = g.chance(0.4)
        biases += given["linear_before_reset"]
    x = g.of_shape(type_, [batch, steps, size] if sequence else [batch, size], 0.1, -2, 2)
    state = [g.of_shape(type_, [batch, *outer, hidden], 0.2, -2, 2) for _ in range(states)]
    constant = g.pick(1.0, 1.0, 0.0)
    weights = [
        g.leaf(g.array(type_, [*outer, gates * hidden, size], -1, 1), constant),
        g.leaf(g.array(type_, [*outer, gates * hidden, hidden], -1, 1), constant),
        g.leaf(g.array(type_, [*outer, biases * hidden], -1, 1), constant),
    ]
    if sequence:
        lengths = [g.int(1, steps) for _ in range(batch)] if g.chance(0.5) else [steps] * batch
        g.layer(f"{kind}Sequence", "opset5", x, *state, g.index(lengths, 0.7), *weights, direction=direction, **given)
    else:
        g.layer(f"{kind}Cell", opset, x, *state, *weights, **given)


@maker()
def decoded(g: Graph) -> None:
    """Decoders of the outputs of recognition networks."""
    steps, batch, classes = g.int(1, 7), g.int(1, 3), g.int(2, 5)
    distinct = np.argsort(g.rng.random((steps, batch, classes)), axis=-1).astype(np.float32)
    if g.chance(0.4):
        mask = np.arange(steps)[:, None] < g.rng.integers(1, steps + 1, batch)
        given = [g.leaf(distinct, 0.0), g.leaf(mask.astype(np.float32), 0.3)]
        g.layer("CTCGreedyDecoder", "opset1", *given, ctc_merge_repeated=g.chance(0.5))
    elif g.chance(0.6):
        lengths = g.rng.integers(1, steps + 1, batch).astype(np.int32)
        given = [g.leaf(distinct.transpose(1, 0, 2), 0.0), g.leaf(lengths, 0.2)]
        blank = [g.leaf(np.array([g.int(0, classes - 1)], np.int32), 0.8)] if g.chance(0.5) else []
        types = {name: g.pick("i32", "i64") for name in ("classes_index_type", "sequence_length_type")}
        g.layer("CTCGreedyDecoderSeqLen", "opset6", *given, *blank, **types)
    else:
        labels = g.rng.integers(0, classes - 1, (batch, steps)).astype(np.int32)
        ends = g.rng.integers(1, steps + 1, batch).astype(np.int32)
        lengths = np.array([g.int(1, end) for end in ends], np.int32)
        logits = g.leaf(g.array("f32", (batch, steps, classes)), 0.0)
        g.layer("CTCLoss", "opset4", logits, *(g.leaf(a, 0.2) for a in (ends, labels, lengths)))
