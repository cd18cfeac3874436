"""Samples of images, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings.sampling import GridSampleToGather
from tests.converters.passes.graphs import floats, graph, rewritten

NUMBERS = [
    np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32),
    np.random.default_rng(1).uniform(-1.5, 1.5, (2, 6, 7, 2)).astype(np.float32),
]


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
def test_bilinear_samples(align_corners: int, padding_mode: str) -> None:
    def emit(op, x, grid):
        return op.GridSample(x, grid, mode="linear", align_corners=align_corners, padding_mode=padding_mode)

    inputs = floats("x", 2, 3, 4, 5), floats("grid", 2, 6, 7, 2)
    found = rewritten(emit, *inputs, by=[GridSampleToGather()], numbers=NUMBERS)
    assert found.count("GatherElements") == 4 and "GridSample" not in found


@pytest.mark.parametrize(
    ("attributes", "rows"),
    [
        ({"padding_mode": "reflection"}, 6),
        ({"mode": "nearest"}, 6),
        ({"mode": "cubic"}, 6),
        ({}, None),
    ],
)
def test_near_misses(attributes: dict, rows: int | None) -> None:
    inputs = floats("x", 2, 3, 4, 5), floats("grid", 2, rows, 7, 2)
    found = rewritten(
        lambda op, x, g: op.GridSample(x, g, **attributes), *inputs, by=[GridSampleToGather()], numbers=NUMBERS
    )
    assert found == ["GridSample"]


def test_samples_of_volumes_stay() -> None:
    inputs = floats("x", 1, 2, 3, 4, 5), floats("grid", 1, 2, 2, 2, 3)
    numbers = [np.ones((1, 2, 3, 4, 5), np.float32), np.zeros((1, 2, 2, 2, 3), np.float32)]
    found = rewritten(lambda op, x, g: op.GridSample(x, g), *inputs, by=[GridSampleToGather()], numbers=numbers)
    assert found == ["GridSample"]


@pytest.mark.parametrize(("rows", "found"), [(4096, True), (4097, False)])
def test_pixels_that_float32_counts(rows: int, found: bool) -> None:
    model = graph(lambda op, x, g: op.GridSample(x, g), floats("x", 1, 1, rows, 4096), floats("grid", 1, 2, 2, 2))
    assert GridSampleToGather()(model).modified is found
