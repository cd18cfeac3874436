"""Forms for tinygrad, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.tinygrad_forms import IndicesOfPlanes, PositiveAxes, ScatteredRows, StrictComparisons
from onnx_specops.building import new_value
from onnx_specops.graphs import constant_array
from tests.converters.passes.graphs import floats, graph, operators, rewritten

INT64 = ir.DataType.INT64
ROWS = np.array([[3], [0], [-2]], np.int64)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize(
    ("indices", "dims", "updates"),
    [
        (ROWS, (4, 3), (3, 3)),
        (ROWS, (4,), (3,)),
        (ROWS, (4, 1, 2), (3, 1, 2)),
        (np.array([[1, 2], [-1, 0]], np.int64), (4, 3), (2,)),
        (np.array([[1, -1], [3, 0]], np.int64), (4, 3, 5), (2, 5)),
        (np.array([[[0, 1, 2], [3, -1, -2]]], np.int64), (4, 2, 3), (1, 2)),
    ],
)
def test_scattered_rows(indices: np.ndarray, dims: tuple[int, ...], updates: tuple[int, ...], reduction: str) -> None:
    def emit(op, x, y):
        return op.ScatterND(x, indices, y, reduction=reduction), op.Neg(x)

    found = rewritten(emit, floats("x", *dims), floats("y", *updates), by=[ScatteredRows()])
    assert "ScatterElements" in found and "ScatterND" not in found


def test_scattered_rows_of_computed_indices() -> None:
    def emit(op, x, i, y):
        return op.ScatterND(x, i, y)

    inputs = floats("x", 4, 3, 2), new_value(INT64, (2, 2), "i"), floats("y", 2, 2)
    indices = np.array([[-1, 2], [0, -3]], np.int64)
    numbers = [np.zeros((4, 3, 2), np.float32), indices, np.ones((2, 2), np.float32)]
    assert "ScatterND" not in rewritten(emit, *inputs, by=[ScatteredRows()], numbers=numbers)


@pytest.mark.parametrize(
    ("dims", "updates"), [((None, 3), (3, 3)), ((4, None), (3, 3)), ((4, 3), (3, None)), ((4, 0), (3, 0))]
)
def test_rows_of_unknown_sizes_or_none(dims: tuple[int | None, ...], updates: tuple[int | None, ...]) -> None:
    def emit(op, x, y):
        return op.ScatterND(x, ROWS, y)

    model = graph(emit, floats("x", *dims), floats("y", *updates))
    ScatteredRows()(model)
    assert operators(model) == ["ScatterND"]


@pytest.mark.parametrize(
    ("dims", "attributes"),
    [
        ((2, 3, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 3, 7, 6), {"kernel_shape": [2, 2], "dilations": [2, 2]}),
        ((2, 3, 9), {"kernel_shape": [3]}),
        ((2, 2, 4, 4, 4), {"kernel_shape": [2, 2, 2]}),
    ],
)
def test_indices_of_planes(dims: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """They stay those of the whole tensor; a second pass changes nothing."""

    def emit(op, x):
        return op.MaxPool(x, outputs=2, **attributes)

    by = [IndicesOfPlanes(), IndicesOfPlanes()]
    assert rewritten(emit, floats("x", *dims), by=by) == ["Add", "MaxPool", "Mod"]


@pytest.mark.parametrize(
    ("dims", "attributes"),
    [((1, 2, 4, 4), {"outputs": 1}), ((1, 2, 4, 4), {"outputs": 2, "storage_order": 1}), ((1, None, 4, 4), {"outputs": 2})],
)
def test_other_maxima(dims: tuple[int | None, ...], attributes: dict[str, Any]) -> None:
    def emit(op, x):
        return op.MaxPool(x, kernel_shape=[2, 2], **attributes)

    model = graph(emit, floats("x", *dims))
    IndicesOfPlanes()(model)
    assert operators(model) == ["MaxPool"]


@pytest.mark.parametrize(
    ("dims", "operator", "axes", "found"),
    [
        ((8,), "Unsqueeze", [-2, -1], [1, 2]),
        ((8, 3), "Unsqueeze", [0, -1], [0, 3]),
        ((8,), "Unsqueeze", [1, 2], [1, 2]),
        ((8,), "Unsqueeze", [-1], [-1]),
        ((8, 1, 1), "Squeeze", [-1, -2], [1, 2]),
        ((1, 8, 1), "Squeeze", [-3, 2], [0, 2]),
        ((1, 8, 1), "Squeeze", [2, 0], [2, 0]),
        ((8, 1, 1), "Squeeze", [-1], [-1]),
    ],
)
def test_positive_axes(dims: tuple[int, ...], operator: str, axes: list[int], found: list[int]) -> None:
    def emit(op, x):
        return op.node(operator, x, op.const(axes))

    assert rewritten(emit, floats("x", *dims), by=[PositiveAxes()]) == [operator]
    model = graph(emit, floats("x", *dims))
    PositiveAxes()(model)
    assert [constant_array(node.inputs[1]).tolist() for node in model.graph] == [found]


def test_axes_of_unknown_ranks() -> None:
    model = graph(lambda op, x: op.node("Unsqueeze", x, op.const([-2, -1])), new_value(ir.DataType.FLOAT, None, "x"))
    PositiveAxes()(model)
    assert [constant_array(node.inputs[1]).tolist() for node in model.graph] == [[-2, -1]]


@pytest.mark.parametrize(
    ("kind", "operator", "found"),
    [
        (ir.DataType.FLOAT, "GreaterOrEqual", ["Equal", "Greater", "Or"]),
        (ir.DataType.FLOAT, "LessOrEqual", ["Equal", "Less", "Or"]),
        (ir.DataType.FLOAT, "Less", ["Less"]),
        (ir.DataType.INT64, "LessOrEqual", ["LessOrEqual"]),
    ],
)
def test_strict_comparisons(kind: ir.DataType, operator: str, found: list[str]) -> None:
    x, y = ([3, 1, 2, np.nan, np.nan], [3, 2, 1, 0, np.nan]) if kind == ir.DataType.FLOAT else ([3, 1, 2], [3, 2, 1])
    numbers = [np.array(one, kind.numpy()) for one in (x, y)]
    inputs = [new_value(kind, (len(x),), name) for name in ("x", "y")]
    assert rewritten(lambda op, x, y: op.node(operator, x, y), *inputs, by=[StrictComparisons()], numbers=numbers) == found
