"""Attributes that float16 does not represent: OpenVINO's CPU plugin computes with their float32 values."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from converters.openvino import convert

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")
opset15 = pytest.importorskip("openvino.opset15")

_EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
_X = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype(np.float16)
_ZEROS = np.where(np.arange(5) == 2, 0, _X).astype(np.float16)

_BOXES = np.float16([[0.3, 0.7, 3.1, 2.3], [1.2, 0.1, 3.7, 3.9]])
_ROIS = np.concatenate([np.float16([[0], [1]]), _BOXES], 1)
_ROTATED = np.float16([[2.3, 1.7, 3.1, 2.3, 0.37]])


def _model(emit, shape):
    x = ops.parameter(list(shape), np.float16)
    # Before it is rounded to the type of an output, the result is enlarged and shifted.
    result = ops.multiply(ops.convert(emit(x), "f32"), ops.constant(np.float32(4096)))
    return ov.Model([result], [x])


@pytest.mark.parametrize("opset", [None, 13])
@pytest.mark.parametrize(
    "emit",
    [
        lambda x: ops.clamp(x, -0.33, 0.77),
        lambda x: ops.clamp(x, -0.25, 0.75),  # exact in float16
        lambda x: ops.normalize_l2(x, ops.constant([1]), 1e-10, "add"),
        lambda x: ops.normalize_l2(x, ops.constant([1]), 1e-10, "max"),
        lambda x: ops.mvn(x, ops.constant([2, 3]), True, 1.3e-9, "outside_sqrt"),
        lambda x: ops.mvn(x, ops.constant([1, 2, 3]), True, 1.3e-9, "inside_sqrt"),
        lambda x: ops.mvn(x, ops.constant([3]), True, 1e-3, "inside_sqrt"),
        lambda x: ops.lrn(x, ops.constant([2, 3]), 1e-3, 0.77, 1.0, 5),
        lambda x: ops.gelu(x, "tanh"),
        lambda x: ops.psroi_pooling(x, _ROIS, 3, 1, 0.77, 1, 1, "average"),
        lambda x: ops.psroi_pooling(x, _ROIS, 1, 1, 0.77, 3, 1, "bilinear"),
        lambda x: ops.roi_pooling(x, _ROIS, [2, 2], 0.077, "bilinear"),
        lambda x: ops.roi_align(x, _BOXES, ops.constant([0, 1]), 2, 2, 2, 0.77, "max", "half_pixel"),
        lambda x: opset15.roi_align_rotated(x, _ROTATED, ops.constant([1]), 2, 2, 2, 0.77, True),
    ],
)
def test_results_are_those_of_float32(emit, opset):
    request = ov.Core().compile_model(_model(emit, _X.shape), "CPU", _EXACT).create_infer_request()
    session = ort.InferenceSession(convert(_model(emit, _X.shape), opset=opset).model.SerializeToString())
    for x in (_X, _ZEROS):
        expected = next(iter(request.infer([x]).values()))
        (got,) = session.run(None, {session.get_inputs()[0].name: x})
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
