"""Suppression of boxes and alignment of regions by matrix multiplications, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.detections import RegionsByMatMul, ScaledRegions, SuppressionBySteps
from converters.passes.workaround import Workaround
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten


def _boxes(batches: int, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 6, (batches, count, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0, 4, (batches, count, 2))], 2)
    boxes[:, 1::3] = boxes[:, 1::3][..., [2, 1, 0, 3]]  # the other corner first
    boxes[:, 5] = boxes[:, 4]
    boxes[:, 6, 2:] = boxes[:, 6, :2]  # empty
    return boxes.astype(np.float32)


def _suppressed(
    *limits: Any,
    batches: int = 2,
    classes: int = 3,
    count: int = 20,
    known: bool = True,
    step: float = 0.05,
    **attributes: Any,
) -> list[str]:
    scores = np.round(np.random.default_rng(1).random((batches, classes, count)) / step) * step  # with ties

    def emit(op, boxes, scores):
        constants = [None if limit is None else op.const(np.array([limit])) for limit in limits]
        return op.NonMaxSuppression(boxes, scores, *constants, **attributes)

    dims = (batches, classes, count if known else None)
    inputs = floats("boxes", batches, count if known else None, 4), floats("scores", *dims)
    numbers = [_boxes(batches, count), scores.astype(np.float32)]
    return rewritten(emit, *inputs, by=[SuppressionBySteps()], numbers=numbers)


F = np.float32


@pytest.mark.parametrize("iou", [None, F(0.0), F(0.1), F(0.5), F(1.0)])
@pytest.mark.parametrize("least", [None, F(0.3), F(0.95), F(2.0)])
@pytest.mark.parametrize("most", [np.int64(4), np.int64(100)])
def test_suppression(most: np.int64, iou: Any, least: Any) -> None:
    assert "NonMaxSuppression" not in _suppressed(most, iou, least)


@pytest.mark.parametrize("center", [0, 1])
def test_kinds_of_boxes(center: int) -> None:
    assert "NonMaxSuppression" not in _suppressed(np.int64(9), F(0.2), batches=1, classes=1, center_point_box=center)


def test_a_long_chain() -> None:
    """Each box overlaps the next one: whether the last one is kept depends on all others."""
    count = 33
    starts = np.arange(count, dtype=np.float32)
    boxes = np.stack([starts * 0, starts, starts * 0 + 1, starts + 2], 1)[None]
    scores = np.linspace(1, 0.1, count, dtype=np.float32)[None, None]
    found = rewritten(
        lambda op, boxes, scores: op.NonMaxSuppression(boxes, scores, op.const([count]), op.const([F(0.3)])),
        *(floats("boxes", 1, count, 4), floats("scores", 1, 1, count)),
        by=[SuppressionBySteps()],
        numbers=[boxes, scores],
    )
    assert found.count("MatMul") == count - 1


def test_near_misses_of_suppression() -> None:
    assert "NonMaxSuppression" in _suppressed(np.int64(4), F(0.5), known=False)
    assert "NonMaxSuppression" in _suppressed(np.int64(0), F(0.5))
    assert "NonMaxSuppression" in _suppressed(np.int64(4), F(0.5), classes=1000, batches=1)  # too many nodes

    def emit(op, boxes, scores, most):
        return op.NonMaxSuppression(boxes, scores, most, op.const([F(0.5)]))

    inputs = floats("boxes", 1, 4, 4), floats("scores", 1, 1, 4), new_value(ir.DataType.INT64, [1], "most")
    assert not SuppressionBySteps()(graph(emit, *inputs)).modified


REGIONS = np.array(
    [[0, 0, 9, 7], [2.3, 1.1, 5.7, 6.2], [-6, -3, 4, 4], [8, 6, 30, 30], [3, 3, 3, 3], [5, 5, 4, 2], [-40, 2, -30, 9]], F
)


def _aligned(
    x: tuple[int | None, ...] = (2, 3, 8, 10),
    dtype: ir.DataType = ir.DataType.FLOAT,
    by: type[Workaround] = RegionsByMatMul,
    **attributes: Any,
) -> list[str]:
    def emit(op, x, regions, images):
        return op.RoiAlign(x, regions, images, **attributes)

    shape = [5 if size is None else size for size in x]
    inputs = new_value(dtype, x, "x"), new_value(dtype, [None, 4], "regions"), new_value(ir.DataType.INT64, [None], "images")
    numbers = [
        np.random.default_rng(0).standard_normal(shape).astype(dtype.numpy()),
        REGIONS.astype(dtype.numpy()),
        np.arange(len(REGIONS)) % shape[0],
    ]
    return rewritten(emit, *inputs, by=[by()], numbers=numbers)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("scale", [1.0, 0.4])
@pytest.mark.parametrize("x", [(2, 3, 8, 10), (1, 3, 8, 10), (2, None, 1, 1)])
def test_regions(x: tuple[int | None, ...], scale: float, mode: str) -> None:
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    found = _aligned(x, spatial_scale=scale, coordinate_transformation_mode=mode, **attributes)
    assert "RoiAlign" not in found and found.count("MatMul") == 2


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_ratio": 0},
        {"sampling_ratio": 2, "mode": "max"},
        {"sampling_ratio": 2, "x": (2, 3, None, 10)},
        {"sampling_ratio": 2, "dtype": ir.DataType.DOUBLE},
    ],
)
def test_near_misses_of_regions(options: dict[str, Any]) -> None:
    assert "RoiAlign" in _aligned(**options)


@pytest.mark.parametrize(
    ("options", "scaled"),
    [
        ({"spatial_scale": 0.4}, True),
        ({"spatial_scale": 0.4, "sampling_ratio": 2, "dtype": ir.DataType.DOUBLE}, True),
        ({"spatial_scale": 0.4, "coordinate_transformation_mode": "output_half_pixel"}, False),
        ({"spatial_scale": 0.4, "mode": "max"}, False),
        ({"spatial_scale": 1.0}, False),
        ({}, False),
    ],
)
def test_scaled_regions(options: dict[str, Any], scaled: bool) -> None:
    assert _aligned(by=ScaledRegions, **options) == ["Mul"] * scaled + ["RoiAlign"]
