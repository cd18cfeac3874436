"""RoiAlign of opsets without a kernel in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.onnxruntime.regions import RoiAlignOfNewerOpsets
from tests.converters.passes.graphs import floats, rewritten

_ROIS = np.array([[0, 0, 5, 3], [1.5, 2, 1.75, 2.25], [-3, -2, 9, 7], [4, 4, 2, 1]], np.float32)


@pytest.mark.parametrize(
    ("opset", "attributes", "found"),
    [
        (22, {}, "ROIAlign"),
        (26, {"coordinate_transformation_mode": "output_half_pixel"}, "ROIAlign"),
        (23, {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5}, "ROIAlign"),
        (21, {}, "RoiAlign"),  # ONNX Runtime has its kernel
        (22, {"mode": "max"}, "RoiAlign"),  # of weighted neighbors, not of samples
    ],
)
def test_newer_opsets(opset: int, attributes: dict[str, Any], found: str) -> None:
    def emit(op: Any, x: Any) -> Any:
        return op.RoiAlign(x, _ROIS, np.array([0, 1, 1, 0]), **attributes)

    assert rewritten(emit, floats("x", 2, 3, 6, 7), by=[RoiAlignOfNewerOpsets(opset)]) == [found]
