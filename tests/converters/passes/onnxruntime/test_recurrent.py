"""Recurrent nodes with a possibly empty batch, or possibly no steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.onnxruntime.recurrent import EmptySequences
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, operators, run

KINDS = {"GRU": (3, 2), "LSTM": (4, 3), "RNN": (1, 2)}


def _emit(kind: str, direction: str = "forward") -> Any:
    gates, count, directions = KINDS[kind] + (2 if direction == "bidirectional" else 1,)
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((directions, gates * 2, size)).astype(np.float32) for size in (3, 2)]

    def emit(op: Builder, x: Value, *states: Value) -> list[Value]:
        found: list[Value] = op.node(
            kind, x, *weights, None, None, *states, outputs=count, hidden_size=2, direction=direction
        )
        return found

    return emit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("steps", "batch", "guarded"),
    [(4, None, ("GRU", "LSTM")), (None, 2, KINDS), (None, None, KINDS), (4, 2, ()), (1, 1, ())],
)
def test_conditions(kind: str, steps: int | None, batch: int | None, guarded: Any) -> None:
    model = graph(_emit(kind), floats("x", steps, batch, 3))
    assert EmptySequences()(model).modified is (kind in guarded)
    assert ("If" in operators(model)) is (kind in guarded)


@pytest.mark.parametrize("shape", [(4, 0, 3), (0, 2, 3)], ids=["batch", "steps"])
def test_a_size_known_to_be_0(shape: tuple[int, ...]) -> None:
    model = graph(_emit("LSTM"), floats("x", *shape))
    EmptySequences()(model)
    assert "LSTM" not in operators(model) and "If" not in operators(model)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_results(kind: str, direction: str) -> None:
    plain, model = (graph(_emit(kind, direction), floats("x", None, None, 3)) for _ in range(2))
    EmptySequences()(model)
    x = np.random.default_rng(1).standard_normal((4, 2, 3)).astype(np.float32)
    for got, expected in zip(run(model, x), run(plain, x), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)
    directions = 2 if direction == "bidirectional" else 1
    every, *states = run(model, x[:, :0])
    assert every.shape == (4, directions, 0, 2) and all(state.shape == (directions, 0, 2) for state in states)
    every, *states = run(model, x[:0])
    assert every.shape == (0, directions, 2, 2)
    assert all(state.shape == (directions, 2, 2) and not state.any() for state in states)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_states_of_no_steps_are_the_initial_ones(kind: str) -> None:
    starts = np.random.default_rng(2).standard_normal((KINDS[kind][1] - 1, 1, 2, 2)).astype(np.float32)
    model = graph(_emit(kind), floats("x", None, 2, 3), *(floats(name, 1, 2, 2) for name in "hc"[: len(starts)]))
    EmptySequences()(model)
    _, *states = run(model, np.zeros((0, 2, 3), np.float32), *starts)
    np.testing.assert_array_equal(states, starts, strict=True)
