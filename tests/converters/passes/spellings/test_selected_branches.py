"""If as a selection between the results of both branches, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.selected_branches import SelectedBranches
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

BOOL, INT64 = ir.DataType.BOOL, ir.DataType.INT64
NUMBERS = np.array([[-1, 2, 3], [0, 1, -4]], np.float32)


def _integers(op, x):
    return op.Cast(x, to=INT64)


def _both(emit: Any, *dims: int | None) -> list[str]:
    """Return the operators after the rewrite, whose results are compared for both conditions."""
    found = []
    for condition in (True, False):
        inputs = new_value(BOOL, (), "condition"), floats("x", *dims)
        numbers = [np.array(condition), NUMBERS]
        found.append(rewritten(emit, *inputs, by=[SelectedBranches()], numbers=numbers))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.Neg(x)), ["Exp", "Neg", "Where"]),
        (lambda op, c, x: op.if_(c, lambda op: op.Log(x), lambda op: op.Identity(x)), ["Identity", "Log", "Where"]),
        (
            lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.const(np.ones((2, 3), np.float32))),
            ["Exp", "Where"],
        ),
        (
            lambda op, c, x: op.if_(c, lambda op: op.Less(x, 1.0), lambda op: op.Greater(x, 0.0)),
            ["And", "And", "Greater", "Less", "Not", "Or"],
        ),
        (
            lambda op, c, x: op.if_(c, lambda op: op.Less(x, 1.0), lambda op: op.const(np.zeros((2, 3), bool))),
            ["And", "Less"],
        ),
        (
            lambda op, c, x: op.if_(
                c, lambda op: op.Div(op.Cast(x, to=INT64), op.const(2)), lambda op: op.Cast(x, to=INT64)
            ),
            ["Cast", "Cast", "Div", "Where"],
        ),
        (
            lambda op, c, x: op.if_(
                c, lambda op: op.Div(9, op.Cast(op.Add(op.Abs(x), 1.0), to=INT64)), lambda op: op.Cast(x, to=INT64)
            ),
            None,
        ),
        (
            lambda op, c, x: op.if_(
                c, lambda op: op.GatherElements(x, op.Cast(op.Abs(op.Clip(x, -1.0, 1.0)), to=INT64)), lambda op: op.Neg(x)
            ),
            None,
        ),
        (lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.ReduceMax(x, [0], keepdims=0)), None),
        (lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.Unsqueeze(x, [0])), None),
        (lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.Mul(0.0, op.RandomNormalLike(x, seed=1.0))), None),
    ],
)
def test_branches(emit: Any, found: list[str] | None) -> None:
    operators = _both(emit, 2, 3)
    assert operators == found if found else "If" in operators


def test_vectors_as_conditions() -> None:
    def emit(op, x, y):
        return op.if_(op.Reshape(op.Less(x, y), [1]), lambda op: op.Exp(x), lambda op: op.Neg(x))

    found = rewritten(emit, floats("x", 1), floats("y", 1), by=[SelectedBranches()])
    assert "If" not in found and "Where" in found


def test_branches_in_branches() -> None:
    def emit(op, c, x):
        inner = lambda op: op.if_(op.Less(op.ReduceSum(x, keepdims=0), 0.0), lambda op: op.Exp(x), lambda op: op.Neg(x))  # noqa: E731
        return op.if_(c, inner, lambda op: op.Abs(x))

    found = _both(emit, 2, 3)
    assert "If" not in found and found.count("Where") == 2


def test_unknown_dimensions() -> None:
    assert "If" in _both(lambda op, c, x: op.if_(c, lambda op: op.Exp(x), lambda op: op.Neg(x)), 2, None)
