"""Comparisons and Where with inputs of equal shapes, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, operators, rewritten
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(
    ("dims", "other", "found"),
    [
        ((2, 3, 4), (1, 3, 1), ["Greater"]),
        ((2, 1, 4), (1, 3, 1), ["Expand", "Greater"]),
        ((1, 1, 4), (1, 1, 1), ["Greater"]),
    ],
)
def test_comparisons(dims: tuple[int, ...], other: tuple[int, ...], found: list[str]) -> None:
    right = np.linspace(-2, 2, int(np.prod(other)), dtype=np.float32).reshape(other)
    left = np.linspace(-3, 3, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    assert operators(spelled("equal shapes", lambda op, x: op.Less(x, op.const(right)), left)) == found


@pytest.mark.parametrize(("other", "whole"), [((3, 1), (2, 3, 4)), ((1,), (1,)), ((2, 3, 4), (2, 3, 4))])
def test_choices(other: tuple[int, ...], whole: tuple[int, ...]) -> None:
    def emit(op, x):
        return op.Where(op.IsInf(x), x, op.const(np.ones(other, np.float32)))

    _, node = spelled("equal shapes", emit, np.zeros((2, 3, 4), np.float32)).graph
    assert node.inputs[2] is not None and tuple(node.inputs[2].shape or ()) == whole


def test_integers_are_compared_directly() -> None:
    model = graph(lambda op, x: op.Less(op.Cast(x, to=ir.DataType.INT32), op.const(np.int32(1))), floats("x", 2, 3))
    assert not SPELLINGS["equal shapes"]()(model).modified


SIGNED_ZEROS = np.array([[0, -0.0, 1, -2, 0.5, 3]], np.float32)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Equal(x, op.const([0.0])), ["Greater", "Greater", "Not", "Or"]),
        (lambda op, x: op.Cast(x, to=ir.DataType.BOOL), ["Abs", "Greater"]),
        (lambda op, x: op.Cast(op.Cast(x, to=ir.DataType.INT32), to=ir.DataType.BOOL), ["Cast", "Equal", "Not"]),
        (lambda op, x: op.Equal(op.Cast(x, to=ir.DataType.INT64), op.const(1)), ["Cast", "Equal"]),
        (lambda op, x: op.Greater(x, op.const(0.0)), ["Greater"]),
    ],
)
def test_compared_numbers(emit: Any, found: list[str]) -> None:
    by = [SPELLINGS["compared numbers"]()]
    assert rewritten(emit, floats("x", 1, 6), by=by, numbers=[SIGNED_ZEROS]) == found
