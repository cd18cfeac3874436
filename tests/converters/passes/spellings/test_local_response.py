"""LRN of targets whose files ONNX Runtime's CPU provider may compute."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.options import TargetName


@pytest.mark.parametrize(("target", "kept"), [("standard", False), ("webgpu", False), ("directml", False), ("opencv", True)])
def test_numbers_after_a_large_one(target: TargetName, kept: bool) -> None:
    x = ops.parameter([2, 8, 3, 4], np.float32, name="x")
    model = ov.Model([ops.lrn(x, ops.constant([1]), 1.0, 0.75, 1.0, 3)], [x])
    numbers = np.full((2, 8, 3, 4), 0.5, np.float32)
    numbers[0, 1] = 1e4
    wanted = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(numbers)[0]
    conversion = convert(model, target=target)
    assert ("LRN" in conversion.report.nodes) is kept
    got = ort.InferenceSession(conversion.model.SerializeToString()).run(None, {"x": numbers})[0]
    assert np.allclose(got, wanted, rtol=1e-5) is not kept
