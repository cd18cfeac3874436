"""Convolutions with kernels whose sizes are known at run time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert


@pytest.mark.parametrize("grouped", [False, True])
def test_a_kernel_without_elements_fails(tmp_path: Path, grouped: bool) -> None:
    """ONNX Runtime's Conv would not return."""
    groups = [2] if grouped else []
    leading = [*groups, 3, 1 if grouped else 2]
    x, w = ops.parameter([1, 2, 5, 4], np.float32), ops.parameter([*leading, -1, -1], np.float32)
    layer = ops.group_convolution if grouped else ops.convolution
    model = ov.Model([layer(x, w, [1, 1], [0, 0], [0, 0], [1, 1])], [x, w])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(tmp_path / "model.onnx", options)
    names = [port.name for port in session.get_inputs()]
    data = np.arange(40, dtype=np.float32).reshape(1, 2, 5, 4)
    for size in (2, 1):
        kernel = np.ones((*leading, size, 2), np.float32)
        model.reshape({0: list(data.shape), 1: list(kernel.shape)})  # OpenVINO runs known shapes only
        expected = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([data, kernel])[0]
        np.testing.assert_allclose(session.run(None, dict(zip(names, (data, kernel), strict=True)))[0], expected)
    with pytest.raises(Exception, match="the kernel has no elements"):
        session.run(None, dict(zip(names, (data, kernel[..., :0]), strict=True)))
