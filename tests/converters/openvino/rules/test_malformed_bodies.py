"""Damaged layers with bodies and inconsistent variables raise errors and never give a wrong model."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import ConversionError, convert
from tests.conformance.operations.cases import control_flow, state
from tests.converters.openvino.rules.malformed import assert_fault

CASES = {case.id: case for module in (control_flow, state) for case in module.CASES}
MODELS = {
    "TensorIterator": CASES["TensorIterator-1-forward"],
    "Loop": CASES["Loop-5-run-time-trips"],
    "If": CASES["If-8-both"],
    "ReadValue": CASES["ReadValue-6-constant-initial"],
    "ReadValue-3": CASES["ReadValue-3-constant-initial"],
}


@pytest.mark.parametrize(
    ("model", "pattern", "replacement", "message"),
    [
        ("TensorIterator", r'axis="1" (external_port_id="0"[^/]*?) start.*?/>', r"\1 />", "Parameter .* does not match"),
        ("TensorIterator", r'(port_id="0".*?) stride="1"', r'\1 stride="0"', "stride=0"),
        ("TensorIterator", r'(port_id="0".*?) part_size="1"', r'\1 part_size="-1"', "part_size=-1"),
        ("TensorIterator", r'(port_id="0".*?) part_size="1"', r'\1 part_size="1000000000000"', "slices of 1000000000000"),
        ("TensorIterator", r'(port_id="0".*?) part_size="1"', r'\1 part_size="2"', "slices of 2"),
        ("TensorIterator", r'(port_id="0".*?) stride="1"', r'\1 stride="4"', "slice 6 elements with stride=4"),
        ("TensorIterator", r'(port_id="0".*?) start="0"', r'\1 start="9"', "slice -3 elements with stride=1"),
        ("TensorIterator", r'(port_id="0".*?) end="-1"', r'\1 end="5"', "have 5 and 6 slices"),
        ("TensorIterator", r'<input axis="1"', '<input axis="7"', "fit together|axis"),
        ("TensorIterator", r'<output axis="1"', '<output axis="7"', "fit together|axis"),
        ("TensorIterator", r'<output axis="1"', '<output axis="0"', "have 1 and 6 slices"),
        ("TensorIterator", r'<input external_port_id="1" internal_layer_id="1" />', "", "gives it no value"),
        ("TensorIterator", r'<input external_port_id="2" internal_layer_id="2" />', "", "gives it no value"),
        ("TensorIterator", r'external_port_id="1" internal', 'external_port_id="9" internal', "has no input 9"),
        (
            "TensorIterator",
            r'external_port_id="1" internal',
            'external_port_id="-1" internal',
            "nothing is connected to the Parameter",
        ),
        ("TensorIterator", r'<output external_port_id="4".*?/>', "", "it has 3 outputs"),
        ("TensorIterator", r'internal_layer_id="6"', 'internal_layer_id="4"', "not a Result of the body"),
        (
            "TensorIterator",
            r'<edge from-layer="6" to-layer="2" />',
            '<edge from-layer="6" to-layer="6" />',
            "a back edge must connect",
        ),
        (
            "TensorIterator",
            r'<edge from-layer="6" to-layer="2" />',
            '<edge from-layer="6" to-layer="1" />',
            "a back edge updates",
        ),
        ("TensorIterator", r"<body>.*</body>", "", "body"),
        ("TensorIterator", r'type="Multiply"', 'type="Nonsense"', "no rule converts Nonsense"),
        ("Loop", r"<body>.*</body>", "", "body"),
        ("Loop", r'<input external_port_id="3".*?/>', "", "gives it no value"),
        ("Loop", r'<input external_port_id="-1".*?/>', "", "gives it no value"),
        ("Loop", r'purpose="execution_condition"', 'purpose="execution"', "unknown purpose"),
        ("Loop", r'<output external_port_id="5".*?/>', "", "it has 3 outputs"),
        ("Loop", r'type="ReduceSum"', 'type="ReduceSums"', "no rule converts ReduceSums"),
        ("If", r"<else_body>.*</else_body>", "", "body"),
        ("If", r"<then_body>.*</then_body>", "", "body"),
        ("If", r'<input external_port_id="2".*?/>', "", "gives it no value"),
        ("If", r'<output external_port_id="3".*?/>', "", "it has 1 outputs"),
        ("If", r'element_type="boolean"', 'element_type="f32"', "its condition is FLOAT; it must be boolean"),
        ("If", r'type="Multiply"', 'type="Mul"', "no rule converts Mul"),
        ("ReadValue", r'variable_id="memory"( variable_type)', r'variable_id="other"\1', "no ReadValue before it"),
        ("ReadValue", r'variable_type="f32"', 'variable_type="float"', "variable_type='float' is not an element type"),
        ("ReadValue", r'variable_type="f32"', 'variable_type="i32"', "initial value is FLOAT"),
        ("ReadValue", r'variable_shape="2,3"', 'variable_shape="2,x"', "variable_shape='2,x'"),
        ("ReadValue", r'variable_shape="2,3"', 'variable_shape="5"', "initial value is"),
        ("ReadValue", r' variable_id="memory"', "", "variable_id"),
        ("ReadValue-3", r' variable_id="memory"', "", "variable_id"),
        ("ReadValue-3", r' variable_id="memory"', ' variable_id="other"', "no ReadValue before it"),
    ],
)
def test_damaged_layers(tmp_path: Path, model: str, pattern: str, replacement: str, message: str) -> None:
    path = MODELS[model].save(tmp_path)
    changed, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    path.write_text(changed)
    with pytest.raises(ConversionError, match=message) as caught:
        convert(path, tmp_path / "model.onnx")
    assert_fault(caught.value)
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(("axis", "elements"), [(0, 3), (1, 1)])
def test_conditions_of_several_elements(axis: int, elements: int, tmp_path: Path) -> None:
    """OpenVINO's frontend for PyTorch writes such a Loop for torch.gcd of matrices. The file is intact."""
    x = ops.parameter([1, 3], np.float32)
    state = ops.parameter([1, 3], np.float32)
    goes_on = ops.reduce_logical_or(ops.less(state, ops.constant(np.float32(9))), ops.constant(axis), keep_dims=False)
    doubled = ops.add(state, state)
    loop = ops.loop(ops.constant(np.int64(7)).output(0), ops.constant(np.bool_(True)).output(0))
    inner = ov.Model([ops.result(doubled), ops.result(goes_on)], [state])
    loop.set_function(inner)
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, x.output(0), inner.get_results()[0].output(0))
    model = ov.Model([ops.result(loop.get_iter_value(inner.get_results()[0].output(0), -1))], [x])
    path = tmp_path / "model.xml"
    ov.save_model(model, path)
    if elements == 1:
        given = np.array([[1, 2, 3]], np.float32)
        expected = ov.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given])[0]
        convert(path, tmp_path / "model.onnx")
        session = ort.InferenceSession(tmp_path / "model.onnx")
        np.testing.assert_array_equal(session.run(None, {session.get_inputs()[0].name: given})[0], expected)
        return
    with pytest.raises(ConversionError, match=r"has 3 elements; it must have one.*torch\.gcd") as caught:
        convert(path, tmp_path / "model.onnx")
    assert_fault(caught.value)
    assert "intact" not in str(caught.value)
