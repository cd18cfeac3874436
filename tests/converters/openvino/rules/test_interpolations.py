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


@pytest.mark.parametrize(
    ("rank", "constant", "coefficient"),
    [(4, True, -0.5), (4, False, -0.9), (5, True, -0.9)],
)
def test_coefficient_of_pillow(rank: int, constant: bool, coefficient: float) -> None:
    """OpenVINO's CPU plugin ignores the attribute, unless it uses the reference kernel."""
    data = ops.parameter([1] * (rank - 2) + [3, 4], np.float32, name="x")
    places = np.array([rank - 2, rank - 1])
    axes = ops.constant(places) if constant else ops.parameter([2], np.int64, name="axes")
    resized = ops.interpolate(data, np.array([5, 6]), "bicubic_pillow", "sizes", cube_coeff=-0.9, axes=axes)
    model = ov.Model([resized], [data] if constant else [data, axes])
    (node,) = [node for node in convert(model).model.graph.node if node.op_type == "Interpolate"]
    assert [a.f for a in node.attribute if a.name == "cube_coeff"] == [np.float32(coefficient)]
