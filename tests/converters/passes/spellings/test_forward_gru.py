"""GRU of both directions, and near misses."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.spellings.forward_gru import ForwardGRU
from tests.converters.passes.graphs import floats, graph, rewritten, run

STEPS, BATCH, SIZE, HIDDEN = 3, 2, 4, 5


def _emit(direction: str, *, bias: bool = True, initial: bool = True, states: bool = True, whole: bool = True, **attributes):
    generator = np.random.default_rng(0)
    count = 2 if direction == "bidirectional" else 1

    def numbers(*dims: int) -> np.ndarray:
        return generator.standard_normal(dims).astype(np.float32)

    weights, recurrent = numbers(count, 3 * HIDDEN, SIZE), numbers(count, 3 * HIDDEN, HIDDEN)
    addends = numbers(count, 6 * HIDDEN) if bias else None
    start = numbers(count, BATCH, HIDDEN) if initial else None

    def emit(op, x):
        outputs = op.GRU(
            x, weights, recurrent, addends, None, start, direction=direction, hidden_size=HIDDEN, outputs=2, **attributes
        )
        return [value for value, used in zip(outputs, (whole, states), strict=True) if used]

    return emit


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize(("bias", "initial"), [(True, True), (False, False)])
@pytest.mark.parametrize(("states", "whole"), [(True, True), (False, True), (True, False)])
def test_both_directions(before: int, bias: bool, initial: bool, states: bool, whole: bool) -> None:
    emit = _emit("bidirectional", bias=bias, initial=initial, states=states, whole=whole, linear_before_reset=before)
    found = rewritten(emit, floats("x", STEPS, BATCH, SIZE), by=[ForwardGRU()])
    assert found.count("GRU") == 2 and ("Concat" in found)


def test_functions_of_each_direction() -> None:
    emit = _emit("bidirectional", activations=["Sigmoid", "Tanh", "HardSigmoid", "Relu"])
    assert rewritten(emit, floats("x", STEPS, BATCH, SIZE), by=[ForwardGRU()]).count("GRU") == 2


def test_parameters_of_functions_stay() -> None:
    functions = ["HardSigmoid", "Tanh", "HardSigmoid", "Tanh"]
    emit = _emit("bidirectional", activations=functions, activation_alpha=[0.2, 0.3], activation_beta=[0.5, 0.4])
    assert rewritten(emit, floats("x", STEPS, BATCH, SIZE), by=[ForwardGRU()]) == ["GRU"]


def test_an_unused_sequence_without_a_name() -> None:
    """Its replacement, from which the last state is taken, keeps a name."""
    model = graph(_emit("forward", whole=False), floats("x", STEPS, BATCH, SIZE))
    numbers = np.ones((STEPS, BATCH, SIZE), np.float32)
    expected = run(model, numbers)[0]
    next(iter(model.graph)).outputs[0].name = ""
    ForwardGRU()(model)
    RemoveUnusedNodesPass()(model)
    np.testing.assert_allclose(run(model, numbers)[0], expected, atol=1e-6)


def test_last_states() -> None:
    found = rewritten(_emit("forward"), floats("x", STEPS, BATCH, SIZE), by=[ForwardGRU()])
    assert found == ["GRU", "Reshape", "Slice"]


@pytest.mark.parametrize(
    ("direction", "states", "dims"),
    [
        ("forward", False, (STEPS, BATCH, SIZE)),
        ("reverse", True, (STEPS, BATCH, SIZE)),
        ("bidirectional", True, (None, BATCH, SIZE)),
    ],
)
def test_near_misses(direction: str, states: bool, dims: tuple[int | None, ...]) -> None:
    numbers = [np.ones((STEPS, BATCH, SIZE), np.float32)]
    assert rewritten(_emit(direction, states=states), floats("x", *dims), by=[ForwardGRU()], numbers=numbers) == ["GRU"]
