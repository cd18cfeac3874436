"""GridSample at positions that are not numbers, infinite or far beyond the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.grids import SampleAnyPosition
from tests.converters.passes.graphs import floats, graph, rewritten, run

NAN, INF = np.nan, np.inf
IMAGE = np.arange(1, 31, dtype=np.float32).reshape(1, 1, 5, 6)
_GRID = np.random.default_rng(0).uniform(-3, 3, (1, 2, 4, 2)).astype(np.float32)


def _sampled(positions: list[tuple[float, float]], **attributes: Any) -> list[float]:
    grid = np.array(positions, np.float32).reshape(1, 1, -1, 2)
    model = graph(lambda op, x, g: op.GridSample(x, g, **attributes), floats("x", 1, 1, 5, 6), floats("grid", *grid.shape))
    assert SampleAnyPosition()(model).modified
    model.graph.outputs[0].shape = ir.Shape([1, 1, 1, len(positions)])
    (result,) = run(model, IMAGE, grid)
    return [float(number) for number in result.reshape(-1)]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_positions_without_a_number(mode: str, padding_mode: str) -> None:
    places = [(NAN, 0.3), (0.3, NAN), (INF, 0.3), (0.3, -INF)]
    got = _sampled([*places, (0, 0)], mode=mode, padding_mode=padding_mode)
    assert np.isnan(got[:4]).all() and got[4] == pytest.approx(15.5)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [0, 0, 15.5]),
        ({"padding_mode": "border"}, [18, 13, 15.5]),
        ({"mode": "cubic"}, [0, 0, 15.5]),
        ({"mode": "cubic", "padding_mode": "border"}, [18, 13, 15.5]),
        ({"mode": "nearest"}, [0, 0, 15]),
        ({"mode": "nearest", "padding_mode": "border"}, [18, 13, 15]),
    ],
)
@pytest.mark.parametrize("far", [1e8, 1e10, 3e38])
def test_positions_far_beyond_the_image(attributes: dict[str, Any], expected: list[float], far: float) -> None:
    assert _sampled([(far, 0), (-far, 0), (0, 0)], **attributes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("padding_mode", "expected"),
    [
        ("zeros", [0, 0, 0, 0]),
        ("border", [24, 24, 19, 28]),  # OpenVINO's CPU plugin takes the last pixel for a NaN
    ],
)
def test_nearest_pixels(padding_mode: str, expected: list[float]) -> None:
    got = _sampled([(NAN, 0.3), (INF, 0.3), (-INF, 0.3), (0.3, NAN)], mode="nearest", padding_mode=padding_mode)
    assert got == expected


@pytest.mark.parametrize(
    ("grid", "attributes", "found"),
    [
        (_GRID, {}, ["GridSample"]),
        (_GRID * 100, {}, ["Add", "Clip", "GridSample", "MatMul", "Transpose"]),
        (_GRID, {"mode": "nearest"}, ["GridSample"]),
        (_GRID * 100, {"mode": "nearest"}, ["Clip", "GridSample", "IsNaN", "Where"]),
    ],
)
@pytest.mark.parametrize("align_corners", [0, 1])
def test_constant_positions(grid: np.ndarray, attributes: dict[str, Any], found: list[str], align_corners: int) -> None:
    def emit(op: Any, x: Any) -> Any:
        return op.GridSample(x, grid, align_corners=align_corners, **attributes)

    assert rewritten(emit, floats("x", 1, 3, 4, 5), by=[SampleAnyPosition()]) == found


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({}, ["Add", "Clip", "GridSample", "MatMul", "Transpose"]),
        ({"mode": "cubic", "padding_mode": "reflection"}, ["Add", "GridSample", "MatMul", "Transpose"]),
        ({"mode": "nearest"}, ["Clip", "GridSample", "IsNaN", "Where"]),
        ({"mode": "nearest", "padding_mode": "reflection"}, ["GridSample"]),  # the result is undefined
    ],
)
def test_positions_at_run_time(attributes: dict[str, Any], found: list[str]) -> None:
    inputs = floats("x", None, None, None, None), floats("grid", None, None, None, 2)
    numbers = [IMAGE, 2 * _GRID]
    got = rewritten(lambda op, x, g: op.GridSample(x, g, **attributes), *inputs, by=[SampleAnyPosition()], numbers=numbers)
    assert got == found


def test_direct_convolutions() -> None:
    inputs = floats("x", 1, 1, 2, 3, 4), floats("grid", 1, 2, 2, 2, 3)
    assert rewritten(lambda op, x, g: op.GridSample(x, g), *inputs, by=[SampleAnyPosition()]) == ["GridSample"]
