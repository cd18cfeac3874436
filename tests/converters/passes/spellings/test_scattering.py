"""Scattered updates, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.scattering import ScatterWithinData
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

INDICES = np.array([0, 3, 1, -1, 2, -4, 0], np.int64)
MORE = ["Concat", "ScatterElements", "Slice"]


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
@pytest.mark.parametrize(("axis", "dims"), [(0, (4, 3)), (1, (3, 4)), (-1, (3, 4))])
def test_more_updates_than_data(reduction: str, axis: int, dims: tuple[int, ...]) -> None:
    indices = np.stack([INDICES] * 3, 1 if axis == 0 else 0)

    def emit(op, x, y):
        return op.ScatterElements(x, indices, y, axis=axis, reduction=reduction)

    assert rewritten(emit, floats("x", *dims), floats("y", *indices.shape), by=[ScatterWithinData()]) == MORE


@pytest.mark.parametrize(("known", "count"), [((None, 3), None), ((4, 3), None), ((None, 3), 7), ((4, None), 7)])
def test_unknown_numbers_of_updates(known: tuple[int | None, ...], count: int | None) -> None:
    def emit(op, x, i, y):
        return op.ScatterElements(x, i, y, axis=0, reduction="add")

    inputs = floats("x", *known), new_value(ir.DataType.INT32, (count, 3), "i"), floats("y", count, 3)
    indices = np.stack([INDICES] * 3, 1).astype(np.int32)
    numbers = [np.ones((4, 3), np.float32), indices, np.arange(21, dtype=np.float32).reshape(7, 3)]
    assert {"Concat", "Slice"} <= set(rewritten(emit, *inputs, by=[ScatterWithinData()], numbers=numbers))


def test_a_known_size_of_the_result_stays_known() -> None:
    def emit(op, x, i, y):
        return op.ScatterElements(x, i, y, axis=0)

    model = graph(emit, floats("x", 4), new_value(ir.DataType.INT64, (None,), "i"), floats("y", None))
    ScatterWithinData()(model)
    assert model.graph.outputs[0].shape == ir.Shape([4])


@pytest.mark.parametrize("dims", [(7,), (8,)])
def test_as_many_updates_as_data(dims: tuple[int, ...]) -> None:
    def emit(op, x, y):
        return op.ScatterElements(x, INDICES, y, reduction="add")

    numbers = [np.zeros(dims[0], np.float32), np.ones(7, np.float32)]
    inputs = floats("x", *dims), floats("y", 7)
    assert rewritten(emit, *inputs, by=[ScatterWithinData()], numbers=numbers) == ["ScatterElements"]
