"""Scattered updates, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings.scattering import ScatterWithinData
from tests.converters.passes.graphs import floats, rewritten

INDICES = np.array([0, 3, 1, -1, 2, -4, 0], np.int64)
MORE = ["Concat", "ScatterElements", "Slice"]


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
@pytest.mark.parametrize(("axis", "dims"), [(0, (4, 3)), (1, (3, 4)), (-1, (3, 4))])
def test_more_updates_than_data(reduction: str, axis: int, dims: tuple[int, ...]) -> None:
    indices = np.stack([INDICES] * 3, 1 if axis == 0 else 0)

    def emit(op, x, y):
        return op.ScatterElements(x, indices, y, axis=axis, reduction=reduction)

    assert rewritten(emit, floats("x", *dims), floats("y", *indices.shape), by=[ScatterWithinData()]) == MORE


@pytest.mark.parametrize("dims", [(7,), (8,), (None,)])
def test_as_many_updates_as_data(dims: tuple[int | None, ...]) -> None:
    def emit(op, x, y):
        return op.ScatterElements(x, INDICES, y, reduction="add")

    numbers = [np.zeros(dims[0] or 4, np.float32), np.ones(7, np.float32)]
    inputs = floats("x", *dims), floats("y", 7)
    assert rewritten(emit, *inputs, by=[ScatterWithinData()], numbers=numbers) == ["ScatterElements"]
