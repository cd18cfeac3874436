"""Negative thresholds of NonMaxSuppression, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.positive_scores import is_nonnegative
from onnx_specops.graphs import constant_array
from tests.converters.passes.graphs import floats, graph, operators, run

BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [4, 4, 5, 5]]], np.float32)
SCORES = np.array([0.5, 3.0, 0.0, -2.0], np.float32)
LOWEST = np.finfo(np.float32).min


def _suppressed(threshold: Any, function: str = "Relu"):
    def emit(op, x):
        scores = op.Reshape(op.Gather(op.node(function, x), [0, 1, 2, 3]), [1, 1, 4])
        limits = () if threshold is None else (np.float32([threshold]),)
        return op.NonMaxSuppression(BOXES, scores, [9], np.float32([0.5]), *limits)

    return emit


@pytest.mark.parametrize(
    ("threshold", "function", "changed"),
    [
        (LOWEST, "Relu", True),
        (-np.inf, "Relu", True),
        (-0.5, "Softplus", True),
        (None, "Relu", True),
        (None, "Tanh", False),
        (0.0, "Relu", False),
        (0.5, "Relu", False),
        (LOWEST, "Tanh", False),
    ],
)
def test_thresholds(threshold: float | None, function: str, changed: bool) -> None:
    model = graph(_suppressed(threshold, function), floats("x", 4))
    before = run(model, SCORES)
    SPELLINGS["positive scores"]()(model)
    assert ("Max" in operators(model)) == changed
    (node,) = [node for node in model.graph if node.op_type == "NonMaxSuppression"]
    expected = 0.0 if changed else threshold
    found = None if len(node.inputs) < 5 else constant_array(node.inputs[4]).item()
    assert found == (None if expected is None else np.float32(expected))
    np.testing.assert_array_equal(run(model, SCORES)[0], before[0], strict=True)


def test_computed_thresholds_stay() -> None:
    def emit(op, x):
        scores = op.Reshape(op.Relu(x), [1, 1, 4])
        return op.NonMaxSuppression(
            BOXES, scores, [9], np.float32([0.5]), op.Neg(op.ReduceMax(scores, [0, 1, 2], keepdims=0))
        )

    assert not SPELLINGS["positive scores"]()(graph(emit, floats("x", 4))).modified


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Concat(op.Exp(x), op.Sigmoid(x), axis=0), True),
        (lambda op, x: op.Concat(op.Exp(x), x, axis=0), False),
        (lambda op, x: op.Where(op.Greater(x, 0.0), op.Abs(x), np.float32([1])), True),
        (lambda op, x: op.Where(op.Greater(x, 0.0), op.Abs(x), np.float32([-1])), False),
        (lambda op, x: op.Mul(op.Softmax(x), op.Sqrt(op.Abs(x))), True),
        (lambda op, x: op.Mul(op.Softmax(x), x), False),
        (lambda op, x: op.TopK(op.Sigmoid(x), [2], outputs=2)[0], True),
        (lambda op, x: op.Cast(op.TopK(op.Sigmoid(x), [2], outputs=2)[1], to=1), False),
        (lambda op, x: op.Split(op.Sigmoid(x), [2, 2], outputs=2)[1], True),
        (lambda op, x: op.Neg(op.Sigmoid(x)), False),
    ],
)
def test_numbers_that_are_not_negative(emit: Any, found: bool) -> None:
    assert is_nonnegative(graph(emit, floats("x", 4)).graph.outputs[0]) == found


@pytest.mark.parametrize(("count", "found"), [(10, True), (100, False)])
def test_long_chains_are_not_examined(count: int, found: bool) -> None:
    def emit(op, x):
        x = op.Relu(x)
        for index in range(count):
            x = op.Reshape(x, [1, 4] if index % 2 else [4, 1])
        return x

    assert is_nonnegative(graph(emit, floats("x", 4)).graph.outputs[0]) == found
