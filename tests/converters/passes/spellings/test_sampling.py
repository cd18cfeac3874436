"""Samples of images, and near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.options import TargetName
from converters.passes.spellings.sampling import GridSampleToGather, NearestGridSampleToGather
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted, operators
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


@pytest.mark.parametrize("step", [GridSampleToGather, NearestGridSampleToGather])
@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize("positions", ["between", "ties", "outside"])
def test_nearest_samples(step: Any, align_corners: int, padding_mode: str, positions: str) -> None:
    def emit(op, x, grid):
        return op.GridSample(x, grid, mode="nearest", align_corners=align_corners, padding_mode=padding_mode)

    size, grid = 5 if align_corners else 4, NUMBERS[1]
    if positions == "ties":
        grid = np.resize(np.arange(-8, 9, dtype=np.float32) / (4 if align_corners else 2), grid.shape)
    elif positions == "outside":
        grid = np.resize(np.array([-100, -3, 3, 100, 0.1], np.float32), grid.shape)
    x = np.random.default_rng(0).standard_normal((2, 3, size, size)).astype(np.float32)
    inputs = floats("x", *x.shape), floats("grid", 2, 6, 7, 2)
    found = rewritten(emit, *inputs, by=[step()], numbers=[x, grid])
    assert found.count("GatherElements") == 1 and "GridSample" not in found


def test_only_nearest_samples() -> None:
    inputs = floats("x", 2, 3, 4, 5), floats("grid", 2, 6, 7, 2)
    steps = [NearestGridSampleToGather()]
    assert rewritten(lambda op, x, g: op.GridSample(x, g), *inputs, by=steps, numbers=NUMBERS) == ["GridSample"]


@pytest.mark.parametrize(
    ("attributes", "rows"),
    [
        ({"padding_mode": "reflection"}, 6),
        ({"padding_mode": "reflection", "mode": "nearest"}, 6),
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


_TARGETS = ["opencv4", "webgpu", "tinygrad", "onnx2torch"]


@pytest.mark.parametrize(
    ("mode", "target"),
    [*(("bilinear", target) for target in (*_TARGETS, "jax")), *(("nearest", target) for target in _TARGETS)],
)
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_positions_that_are_not_numbers(
    mode: str, padding_mode: str, align_corners: bool, target: TargetName, oracle: Oracle, tmp_path: Path
) -> None:
    """A bilinear sample at a NaN or an infinity is NaN, and one at a large number is beyond the image.

    A nearest sample at a NaN is that at the last pixel, or 0.
    """
    x, grid = ops.parameter([1, 2, 4, 5], np.float32, name="x"), ops.parameter([1, 2, 7, 2], np.float32, name="grid")
    attributes = {"align_corners": align_corners, "mode": mode, "padding_mode": padding_mode}
    model = ov.Model([ops.grid_sample(x, grid, attributes)], [x, grid])
    pixels = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
    positions = np.random.default_rng(1).uniform(-1, 1, (1, 2, 7, 2)).astype(np.float32)
    for index, number in enumerate((np.nan, np.inf, -np.inf, 1e30, -1e30, 1e9, -2)):
        positions[0, 0, index, 0] = positions[0, 1, index, 1] = number
    assert "GatherElements" in operators(converted(model, [pixels, positions], oracle, tmp_path, target=target))


@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_infinite_pixels_beside_samples_outside(mode: str, padding_mode: str, oracle: Oracle, tmp_path: Path) -> None:
    """A pixel outside is 0, although the nearest one inside is infinite or NaN."""
    x, grid = ops.parameter([1, 2, 3, 4], np.float32, name="x"), ops.parameter([1, 1, 5, 2], np.float32, name="grid")
    attributes = {"align_corners": True, "mode": mode, "padding_mode": padding_mode}
    model = ov.Model([ops.grid_sample(x, grid, attributes)], [x, grid])
    pixels = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    pixels[0, :, 0, 0], pixels[0, :, 2, 3], pixels[0, :, 2, 0] = np.inf, np.nan, -np.inf
    places = [(-3, -3), (4, 5), (-3, 4), (0.25, -0.5), (0.5, -3)]
    positions = np.array(places, np.float32).reshape(1, 1, 5, 2)
    if mode == "bilinear" and padding_mode == "border":
        pixels = np.nan_to_num(pixels, posinf=1, neginf=-1)  # OpenVINO also multiplies pixels beyond the border by 0
    assert "GatherElements" in operators(converted(model, [pixels, positions], oracle, tmp_path, target="opencv4"))
