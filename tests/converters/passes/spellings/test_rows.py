"""Rows of tables, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.spellings.rows import RowsOfMatrices, UncheckedRows
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph, operators, rewritten, run

COUNT = 5
INDICES = np.array([[0, 4, 2]], np.int64)


def _indices(dtype: ir.DataType = ir.DataType.INT64, dims: tuple[int | None, ...] = (1, 3)):
    return new_value(dtype, dims, "x")


def _table(*dims: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(dims)), dtype=np.float32).reshape(dims)


def _checked(table: np.ndarray, *, low: int = -COUNT, size: int = COUNT, zero: float = 0.0, axis: int = 0, last: int = -1):
    """Return a function that emits a lookup in which invalid indices give 0, as Gather's rule does."""

    def emit(op, x):
        valid = op.And(op.GreaterOrEqual(x, op.const(low)), op.Less(x, op.const(size)))
        rows = op.Gather(op.const(table), op.Where(valid, x, op.const(0)), axis=axis)
        after = table.ndim - 1
        where = op.Unsqueeze(valid, [last - k for k in range(after)]) if after else valid
        return op.Where(where, rows, op.const(np.float32(zero)))

    return emit


@pytest.mark.parametrize("dims", [(COUNT, 4), (COUNT,), (COUNT, 2, 3)])
@pytest.mark.parametrize("low", [-COUNT, 0])
def test_checks_of_indices(dims: tuple[int, ...], low: int) -> None:
    """An index beyond the end gives the added row of zeros. (ncnn replaces such an index by the last one.)"""
    emit = _checked(_table(*dims), low=low)
    assert rewritten(emit, _indices(), by=[UncheckedRows()], numbers=[INDICES]) == ["Gather"]
    model = graph(emit, _indices())
    given = np.array([[1, COUNT, 3]], np.int64)
    expected = run(model, given)
    rows = UncheckedRows()
    rows(model)
    assert rows.assumptions == {model.graph.outputs[0].name: "no index is negative"}
    RemoveUnusedNodesPass()(model)
    np.testing.assert_array_equal(run(model, given)[0], expected[0], strict=True)


@pytest.mark.parametrize(
    "emit",
    [
        _checked(_table(COUNT, 4), zero=1),
        _checked(_table(COUNT, 4), size=COUNT - 1),
        _checked(_table(COUNT, 4), low=1),
        _checked(_table(COUNT, COUNT), axis=1, last=1),
        _checked(_table(COUNT, 3), last=-2),
    ],
)
def test_other_checks_stay(emit: Any) -> None:
    assert "Where" in rewritten(emit, _indices(), by=[UncheckedRows()], numbers=[INDICES])


@pytest.mark.parametrize(
    ("dims", "indices", "found"),
    [
        ((COUNT, 4), INDICES, ["Gather"]),
        ((COUNT, 4), INDICES[0], ["Gather"]),
        ((COUNT,), INDICES, ["Gather", "Reshape"]),
        ((COUNT, 2, 3), INDICES, ["Gather", "Reshape"]),
        ((COUNT, 4), INDICES[None], ["Gather", "Reshape", "Reshape"]),
        ((COUNT, 4), np.array(3, np.int64), ["Gather", "Reshape", "Reshape"]),
    ],
)
def test_matrices(dims: tuple[int, ...], indices: np.ndarray, found: list[str]) -> None:
    def emit(op, x):
        return op.Gather(op.const(_table(*dims)), x, axis=0)

    assert rewritten(emit, _indices(dims=indices.shape), by=[RowsOfMatrices()], numbers=[indices]) == found
    model = graph(emit, _indices(dims=indices.shape))
    RowsOfMatrices()(model)
    assert all("axis" not in node.attributes for node in model.graph)


def test_casts_of_integers_are_removed() -> None:
    def emit(dtype):
        return lambda op, x: op.Gather(op.const(_table(COUNT, 4)), op.Cast(x, to=dtype), axis=0)

    assert rewritten(emit(ir.DataType.INT32), _indices(), by=[RowsOfMatrices()], numbers=[INDICES]) == ["Gather"]
    narrow = _indices(ir.DataType.UINT8)
    found = rewritten(emit(ir.DataType.INT32), narrow, by=[RowsOfMatrices()], numbers=[INDICES.astype(np.uint8)])
    assert found == ["Cast", "Gather"]


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.Gather(op.const(_table(COUNT, COUNT)), x, axis=1),
        lambda op, x: op.Gather(op.const(_table(COUNT, 4).astype(np.int64)), x, axis=0),
        lambda op, x: op.Gather(op.Cast(op.Concat(x, x, x, axis=0), to=ir.DataType.FLOAT), op.Clip(x, 0, 2), axis=0),
    ],
)
def test_other_lookups_stay(emit: Any) -> None:
    model = graph(emit, _indices())
    before = operators(model)
    RowsOfMatrices()(model)
    assert operators(model) == before and any("axis" in node.attributes for node in model.graph)
