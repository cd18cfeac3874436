"""Outputs of recurrent layers with merged directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.merged_directions import MergeDirections
from tests.converters.passes.graphs import floats, graph, rewritten

STEPS, SIZE, HIDDEN = 3, 4, 5
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def _layer(operator: str, directions: int, after: Any, outputs: int = 1):
    generator = np.random.default_rng(0)

    def numbers(*dims: int) -> np.ndarray:
        return generator.standard_normal(dims).astype(np.float32)

    gates = GATES[operator] * HIDDEN
    weights, recurrent = numbers(directions, gates, SIZE), numbers(directions, gates, HIDDEN)

    def emit(op, x):
        direction = "bidirectional" if directions == 2 else "forward"
        found = op.node(operator, x, weights, recurrent, hidden_size=HIDDEN, direction=direction, outputs=outputs)
        first, *states = found if isinstance(found, tuple) else (found,)
        return [after(op, first), *states]

    return emit


def _found(operator: str, directions: int, batch: int, after: Any, outputs: int = 1) -> list[str]:
    emit = _layer(operator, directions, after, outputs)
    return rewritten(emit, floats("x", STEPS, batch, SIZE), by=[MergeDirections()])


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize(
    ("directions", "batch", "after", "found"),
    [
        (1, 1, lambda op, y: op.Reshape(y, [STEPS, HIDDEN]), ["Reshape", "Squeeze"]),
        (1, 2, lambda op, y: op.Reshape(y, [STEPS, 2, HIDDEN]), ["Squeeze"]),
        (1, 2, lambda op, y: op.Squeeze(y, [1]), ["Squeeze"]),
        (1, 2, lambda op, y: op.Relu(y), ["Relu", "Reshape", "Squeeze"]),
        (2, 1, lambda op, y: op.Reshape(y, [STEPS, 1, 2 * HIDDEN]), ["Reshape", "Transpose"]),
        (2, 1, lambda op, y: op.Reshape(y, [1, STEPS * 2 * HIDDEN]), ["Reshape", "Reshape", "Transpose"]),
        (2, 2, lambda op, y: op.Relu(y), ["Relu", "Reshape", "Reshape", "Transpose", "Transpose"]),
        (
            2,
            2,
            lambda op, y: op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [STEPS, 2, 2 * HIDDEN]),
            ["Reshape", "Transpose"],
        ),
        (
            2,
            2,  # a Reshape of the directions, which are before the batch, stays
            lambda op, y: op.Reshape(y, [STEPS, 4 * HIDDEN]),
            ["Reshape", "Reshape", "Reshape", "Transpose", "Transpose"],
        ),
        (
            2,
            2,
            lambda op, y: op.Add(op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [STEPS, 2, 2 * HIDDEN]), op.ReduceMax(y)),
            ["Add", "ReduceMax", "Reshape", "Reshape", "Transpose", "Transpose"],
        ),
    ],
)
def test_outputs(operator: str, directions: int, batch: int, after: Any, found: list[str]) -> None:
    assert _found(operator, directions, batch, after) == sorted([operator, *found])


@pytest.mark.parametrize("directions", [1, 2])
def test_states_and_outputs_of_the_graph(directions: int) -> None:
    assert _found("LSTM", directions, 1, lambda op, y: y, outputs=3)[0] == "LSTM"


@pytest.mark.parametrize(("opset", "inputs"), [(11, 1), (12, 1), (13, 2), (17, 2)])
def test_axes_of_the_opset(opset: int, inputs: int) -> None:
    model = graph(_layer("GRU", 1, lambda op, y: op.Relu(y)), floats("x", STEPS, 1, SIZE))
    model.graph.opset_imports[""] = opset
    MergeDirections()(model)
    (squeeze,) = (node for node in model.graph if node.op_type == "Squeeze")
    assert len(squeeze.inputs) == inputs and ("axes" in squeeze.attributes) == (inputs == 1)


def test_unknown_dimensions_stay() -> None:
    numbers = [np.ones((STEPS, 1, SIZE), np.float32)]
    emit = _layer("GRU", 1, lambda op, y: op.Relu(y))
    assert rewritten(emit, floats("x", None, 1, SIZE), by=[MergeDirections()], numbers=numbers) == ["GRU", "Relu"]


def test_unused_outputs_stay() -> None:
    def emit(op, x):
        weights = (np.ones((1, 3 * HIDDEN, size), np.float32) for size in (SIZE, HIDDEN))
        return op.GRU(x, *weights, hidden_size=HIDDEN, outputs=2)[1]

    model = graph(emit, floats("x", STEPS, 1, SIZE))
    assert not MergeDirections()(model).modified
    assert isinstance(model.graph[0], ir.Node)
