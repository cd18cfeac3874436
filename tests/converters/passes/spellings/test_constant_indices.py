"""Gather with constant indices, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.constant_indices import ComputedIndices, ConstantIndices
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten


@pytest.mark.parametrize(
    ("indices", "axis", "found"),
    [
        ([0, 2], 1, ["Concat", "Slice", "Slice"]),
        ([0, 1, 2], 1, ["Slice"]),
        ([1], 1, ["Slice"]),
        ([-1], 2, ["Slice"]),
        ([2, 1, 1], -1, ["Concat", "Slice", "Slice", "Slice"]),
        ([[0, 1], [2, 0]], 1, ["Concat", "Reshape", "Slice", "Slice"]),
        (list(range(19, -1, -1)), 2, ["MatMul", "Transpose", "Transpose"]),
        (list(range(0, 20, 2)), 2, ["MatMul", "Transpose", "Transpose"]),
        (1, 1, ["Gather"]),  # a scalar
        ([], 1, ["Gather"]),
    ],
)
def test_indices(indices: Any, axis: int, found: list[str]) -> None:
    def emit(op, x):
        return op.Gather(x, op.const(np.array(indices, np.int64)), axis=axis)

    assert rewritten(emit, floats("x", 2, 3, 20, 4), by=[ConstantIndices()]) == found


def test_integers_are_not_multiplied() -> None:
    def emit(op, x):
        return op.Gather(x, list(range(19, 9, -1)), axis=0)

    x, numbers = new_value(ir.DataType.INT64, (20, 3), "x"), np.arange(60).reshape(20, 3)
    assert rewritten(emit, x, by=[ConstantIndices()], numbers=[numbers]) == ["Concat", *["Slice"] * 10]


def test_unknown_sizes_and_computed_indices_stay() -> None:
    numbers = [np.ones((3, 4), np.float32)]
    assert rewritten(
        lambda op, x: op.Gather(x, [0, 2], axis=0), floats("x", None, 4), by=[ConstantIndices()], numbers=numbers
    ) == ["Gather"]

    def emit(op, x):
        return op.Gather(x, op.Cast(op.Slice(x, [0], [1], [1]), to=ir.DataType.INT64), axis=0)

    assert "Gather" in rewritten(emit, floats("x", 3, 4), by=[ConstantIndices()], numbers=numbers)


@pytest.mark.parametrize(
    ("emit", "count"),
    [
        (lambda op, x, k: op.Gather(x, np.array([[0, 1], [2, -1]]), axis=0), 1),
        (lambda op, x, k: [op.Gather(x, np.array([[0, 1], [2, -1]]), axis=axis) for axis in (0, 1)], 1),
        (lambda op, x, k: op.Gather(x, [0, 2], axis=0), 0),
        (lambda op, x, k: op.Gather(x, k, axis=0), 0),
        (lambda op, x, k: op.GatherElements(x, np.array([[0, 1, 2]]), axis=0), 0),
    ],
)
def test_computed_indices(emit: Any, count: int) -> None:
    k = new_value(ir.DataType.INT64, (1, 2), "k")
    numbers = [np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[3, 0]])]
    found = rewritten(emit, floats("x", 4, 3), k, by=[ComputedIndices()], numbers=numbers)
    assert found.count("Identity") == count
