"""Variables as inputs and outputs, or as constants if nothing assigns them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.openvino.runtime.inference import evaluate
from onnx_specops import InferenceSession

X = np.float32([[1, 2, 3], [-1, 0.5, 4]])


@pytest.mark.parametrize("start", ["constant", "computed", "none"])
@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize("options", [{}, {"precision": "float16"}, {"opset": 13}, {"variables": "inputs"}])
def test_a_variable_without_an_assignment_is_constant(
    tmp_path: Path, start: str, assigned: bool, options: dict[str, Any]
) -> None:
    x = ops.parameter([2, 3], np.float32, name="x")
    initial = {"constant": [ops.constant(X * 2)], "computed": [ops.relu(x)], "none": []}[start]
    past = ops.read_value(*initial, "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    weights = ops.constant(np.float32([[1, 0, 2], [0, 1, 0], [0.5, 0, 1]]))
    total = ops.add(ops.matmul(x, weights, False, False), past)
    path = tmp_path / "model.xml"
    ov.save_model(
        ov.Model([ops.result(total)], [ops.assign(total, "memory")] if assigned else [], [x]), path, compress_to_fp16=False
    )
    convert(path, tmp_path / "model.onnx", **options)
    inputs = [value.name for value in onnx.load(tmp_path / "model.onnx").graph.input]
    assert (inputs == ["x"]) is not assigned
    (found,) = InferenceSession(tmp_path / "model.onnx").run(None, {"x": X})
    # The reference kernels start from the initial value, and only the plugin requires an assignment.
    np.testing.assert_array_equal(found, evaluate(str(path), [[X]])[0][0], strict=True)
