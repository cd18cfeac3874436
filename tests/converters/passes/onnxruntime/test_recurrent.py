"""GRU and LSTM with a possibly empty batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.onnxruntime.recurrent import EmptyBatches
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, operators, run


def _emit(kind: str, direction: str = "forward") -> Any:
    gates, count, directions = {"GRU": (3, 2), "LSTM": (4, 3)}[kind] + (2 if direction == "bidirectional" else 1,)
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((directions, gates * 2, size)).astype(np.float32) for size in (3, 2)]

    def emit(op: Builder, x: Value) -> list[Value]:
        found: list[Value] = op.node(kind, x, *weights, outputs=count, hidden_size=2, direction=direction)
        return found

    return emit


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize(("batch", "guarded"), [(None, True), (2, False), (1, False)])
def test_conditions(kind: str, batch: int | None, guarded: bool) -> None:
    model = graph(_emit(kind), floats("x", 4, batch, 3))
    assert EmptyBatches()(model).modified is guarded
    assert ("If" in operators(model)) is guarded


def test_a_batch_known_to_be_empty() -> None:
    model = graph(_emit("LSTM"), floats("x", 4, 0, 3))
    EmptyBatches()(model)
    assert "LSTM" not in operators(model) and "If" not in operators(model)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_results(kind: str, direction: str) -> None:
    plain, model = (graph(_emit(kind, direction), floats("x", 4, None, 3)) for _ in range(2))
    EmptyBatches()(model)
    x = np.random.default_rng(1).standard_normal((4, 2, 3)).astype(np.float32)
    for got, expected in zip(run(model, x), run(plain, x), strict=True):
        np.testing.assert_array_equal(got, expected)
    directions = 2 if direction == "bidirectional" else 1
    every, *states = run(model, x[:, :0])
    assert every.shape == (4, directions, 0, 2) and all(state.shape == (directions, 0, 2) for state in states)
