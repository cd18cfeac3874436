"""Interpolate after a Transpose, which ONNX Runtime moves past a Resize, also past one in the body of an operator."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset11 as ops

import onnx_specops
from converters.openvino import convert


@pytest.mark.parametrize("kernels", ["native", "none"])
@pytest.mark.parametrize("sizes", [[1, 1], [2, 6], [5, 7]])
@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic"])
def test_channels_last(mode: str, sizes: list[int], kernels: str) -> None:
    data = ops.parameter([2, 3, 2, 4], np.float32, name="x")
    moved = ops.transpose(data, np.array([0, 2, 3, 1]))
    resized = ops.interpolate(moved, np.array(sizes), mode, "sizes", axes=np.array([2, 3]))
    model = ov.Model([resized], [data])
    x = np.random.default_rng(0).standard_normal((2, 3, 2, 4)).astype(np.float32)
    (expected,) = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values()
    session = onnx_specops.InferenceSession(convert(model).model.SerializeToString(), kernels=kernels)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)
