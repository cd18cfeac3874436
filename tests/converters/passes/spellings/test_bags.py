"""Bags of embeddings as matrix multiplications, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.bags import BagsByMatMul
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

INT64 = ir.DataType.INT64
INDICES, OFFSETS = np.array([4, 0, 3, 3, 1, 2]), np.array([1, 1, 4, 6])  # the first index belongs to no bag


def _kept(emit: Any, table: Any = None, indices: int | None = 6, offsets: int | None = 4) -> bool:
    rng = np.random.default_rng(0)
    table = floats("table", 5, 3) if table is None else table
    numbers = rng.standard_normal([dim if isinstance(dim, int) else 5 for dim in table.shape]).astype(table.dtype.numpy())
    inputs = [table, new_value(INT64, [indices], "indices"), new_value(INT64, [offsets], "offsets")]
    arrays = [numbers, INDICES, OFFSETS]
    found = rewritten(emit, *inputs, by=[BagsByMatMul()], numbers=arrays)
    assert ("MatMul" in found) != ("EmbeddingBagOffsetsSum" in found)
    return "EmbeddingBagOffsetsSum" in found


def _bags(*more: Any):
    def emit(op, table, indices, offsets):
        constants = [None if array is None else op.const(array) for array in more]
        return op.specops.EmbeddingBagOffsetsSum(table, indices, offsets, *constants)

    return emit


WEIGHTS = np.random.default_rng(1).standard_normal(6).astype(np.float32)


@pytest.mark.parametrize(
    ("emit", "table"),
    [
        (_bags(), None),
        (_bags(np.array(-1)), None),
        (_bags(np.array([2])), None),
        (_bags(np.zeros(0, np.int64)), None),
        (_bags(np.array([2]), WEIGHTS), None),
        (_bags(None, WEIGHTS), floats("table", None, 2, 3)),
        (_bags(np.array([2]), np.zeros(0, np.float32)), None),
        (_bags(np.array([2])), new_value(ir.DataType.DOUBLE, [5, 3], "table")),
    ],
)
def test_bags(emit: Any, table: Any) -> None:
    assert not _kept(emit, table)


@pytest.mark.parametrize(
    ("emit", "table", "indices", "offsets"),
    [
        (_bags(), None, None, 4),
        (_bags(), None, 6, None),
        (_bags(), floats("table", 5, None), 6, 4),
        (_bags(), new_value(ir.DataType.INT32, [5, 3], "table"), 6, 4),
    ],
)
def test_bags_that_stay(emit: Any, table: Any, indices: int | None, offsets: int | None) -> None:
    assert _kept(emit, table, indices, offsets)


def test_a_computed_default_index_stays() -> None:
    def emit(op, table, indices, offsets):
        return op.specops.EmbeddingBagOffsetsSum(table, indices, offsets, op.Slice(indices, [0], [1]))

    assert _kept(emit)


@pytest.mark.parametrize("weights", [None, np.array([1, np.inf, 0, -1, 2, 3], np.float32)])
@pytest.mark.parametrize("constant", [False, True])
def test_bags_without_an_infinite_row(constant: bool, weights: Any) -> None:
    """An infinite or NaN row, or weight, affects the bags that contain it, and no others."""
    rows = np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32)
    rows[0], rows[1, 1], rows[2, 0], rows[4] = [np.inf, np.nan, -np.inf], np.inf, np.inf, np.nan
    indices, offsets = np.array([4, 0, 3, 3, 1, 2, 0]), np.array([0, 1, 2, 2, 5])
    weights = None if weights is None else np.append(weights, np.float32(1))

    def emit(op, indices, offsets, *table):
        return _bags(np.array([2]), weights)(op, op.const(rows) if constant else table[0], indices, offsets)

    inputs = [new_value(INT64, [7], "indices"), new_value(INT64, [5], "offsets")]
    arrays = [indices, offsets]
    if not constant:
        inputs.append(floats("table", 5, 3))
        arrays.append(rows)
    assert "MatMul" in rewritten(emit, *inputs, by=[BagsByMatMul()], numbers=arrays)


@pytest.mark.parametrize(
    ("offsets", "by_matrix"),
    [([0, 2, 4], False), ([0, 1, 2, 3, 4, 5], False), ([0], False), ([0, 2, 3], True), ([1, 2, 4], True)],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("to", [INT64, ir.DataType.INT32])
def test_equal_bags(offsets: list[int], by_matrix: bool, weights: Any, to: ir.DataType) -> None:
    """Bags with the same number of indices are summed along an axis."""
    rows = np.random.default_rng(2).standard_normal((5, 3, 2)).astype(np.float32)

    def emit(op, indices):
        flat = op.Cast(op.Reshape(indices, [-1]), to=to)
        return _bags(np.array([2], to.numpy()), weights)(op, op.const(rows), flat, op.const(np.array(offsets, to.numpy())))

    found = rewritten(emit, new_value(INT64, [3, 2], "indices"), by=[BagsByMatMul()], numbers=[INDICES.reshape(3, 2)])
    assert ("MatMul" in found) == by_matrix
    assert ("ReduceSum" in found) != by_matrix
    assert "EmbeddingBagOffsetsSum" not in found
