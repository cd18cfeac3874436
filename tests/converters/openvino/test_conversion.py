"""Whole models: names, order, weights, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import ConversionError, convert
from converters.openvino.inspection import inspect


def save(folder: Path, results, parameters, *, fp16: bool = False) -> Path:
    path = folder / "model.xml"
    ov.save_model(ov.Model(results, parameters, "test"), path, compress_to_fp16=fp16)
    return path


def dense(folder: Path, *, fp16: bool = False) -> Path:
    """Save a dense layer with transposed 100 x 100 weights."""
    x = ops.parameter([-1, 100], np.float32, name="x")
    weights = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32)
    return save(
        folder, [ops.add(ops.matmul(x, ops.constant(weights), False, True), ops.constant(np.float32(1)))], [x], fp16=fp16
    )


def run_both(xml: Path, onnx_path: Path, *arrays: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    session = ort.InferenceSession(str(onnx_path))
    got = session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})
    compiled = ov.Core().compile_model(xml, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return got, list(compiled(list(arrays)).values())


@pytest.mark.parametrize("fp16", [False, True])
@pytest.mark.parametrize("weights", ["auto", "embed", "copy", "reference"])
def test_placement_of_weights(tmp_path, weights, fp16):
    xml = dense(tmp_path, fp16=fp16)
    target = tmp_path / "model.onnx"
    model, report = convert(xml, target, weights=weights)
    onnx.checker.check_model(str(target), full_check=True)
    x = np.random.default_rng(1).standard_normal((3, 100)).astype(np.float32)
    got, expected = run_both(xml, target, x)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4, atol=1e-5)
    assert report.weights == ("embed" if weights == "auto" else weights)
    locations = {
        entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"
    }
    assert locations == {"copy": {"model.onnx.data"}, "reference": {"model.bin"}}.get(weights, set())
    operators = [node.op_type for node in model.graph.node]
    # If the .bin's layout is kept, ONNX Runtime folds the transposition when it loads the model.
    assert ("Transpose" in operators) == (weights == "reference")


def test_references_need_the_bin_next_to_the_model(tmp_path):
    xml = dense(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ConversionError, match="weights='copy'"):
        convert(xml, tmp_path / "elsewhere" / "model.onnx", weights="reference")


def test_large_weights_are_referred_to_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr("converters.saving.EMBEDDED_BYTES", 1000)
    xml = dense(tmp_path)
    assert convert(xml, tmp_path / "model.onnx").report.weights == "reference"
    (tmp_path / "elsewhere").mkdir()
    assert convert(xml, tmp_path / "elsewhere" / "model.onnx").report.weights == "copy"


def test_unknown_weights_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="'auto', 'embed'"):
        convert(dense(tmp_path), tmp_path / "model.onnx", weights="inline")  # type: ignore[arg-type]


def test_names_order_and_dynamic_dimensions_equal_openvino(tmp_path):
    b = ops.parameter([-1, 3], np.float32, name="b")
    a = ops.parameter([2, -1, 3], np.float32, name="a")
    b.output(0).set_names({"second"})
    total = ops.add(a, b, name="total")
    total.output(0).set_names({"sum"})
    passed = ops.result(b, name="passed")
    model = ov.Model([ops.result(total), passed, ops.result(total)], [b, a], "names")
    xml = tmp_path / "model.xml"
    ov.save_model(model, xml)
    converted, _ = convert(xml, tmp_path / "model.onnx")
    read = ov.Core().read_model(xml)
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    assert [i.name for i in session.get_inputs()] == ["second", "a"]
    assert [i.shape for i in session.get_inputs()] == [["second_0", 3], [2, "a_1", 3]]
    assert len(session.get_outputs()) == len(read.outputs) == 3
    assert session.get_outputs()[0].name in read.outputs[0].get_names()
    x, y = np.ones((1, 3), np.float32), np.ones((2, 4, 3), np.float32)
    got, expected = run_both(xml, tmp_path / "model.onnx", x, y)
    for some, other in zip(got, expected, strict=False):
        np.testing.assert_array_equal(some, other)
    assert len({output.name for output in converted.graph.output}) == 3


def test_all_problems_of_a_model_are_reported_at_once(tmp_path):
    xml = dense(tmp_path)
    text = (
        xml.read_text().replace('type="MatMul"', 'type="MagicMul"').replace('auto_broadcast="numpy"', 'auto_broadcast="odd"')
    )
    xml.write_text(text)
    with pytest.raises(ConversionError) as error:
        convert(xml, tmp_path / "model.onnx")
    problems = error.value.problems
    assert [problem.layer_type for problem in problems] == ["MagicMul", "Add"]
    assert all(problem.line and problem.layer_name and problem.file == str(xml) for problem in problems)
    assert not (tmp_path / "model.onnx").exists()
    inspection = inspect(xml)
    assert len(inspection.problems) == 2
    assert {row.type: row.convertible for row in inspection.rows}["MagicMul"] is False


def changed(xml, old, new):
    """Return the file with a change after its MatMul."""
    head, tail = xml.read_text().split('type="MatMul"')
    assert old in tail
    xml.write_text(head + 'type="MatMul"' + tail.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<dim>100</dim>\n\t\t\t\t</port>\n\t\t\t</output>", "<dim>99</dim>\n\t\t\t\t</port>\n\t\t\t</output>", "the shape"),
        ('transpose_b="true"', 'transpose_b="true" transpose_c="maybe"', "the attribute transpose_c of MatMul"),
        ('precision="FP32"', 'precision="I32"', "I32 as the type of output 0 of MatMul, which is f32"),
    ],
)
def test_ignored_content_has_no_effect_and_is_reported(tmp_path, old, new, message):
    xml = dense(tmp_path)
    before, _ = convert(xml)
    changed(xml, old, new)
    model, report = convert(xml, tmp_path / "model.onnx")
    assert any(message in remark.message for remark in report.passed_over)
    assert model.graph == before.graph
    with pytest.raises(ConversionError, match=message) as error:
        convert(xml, tmp_path / "strict.onnx", strict=True)
    assert error.value.problems[0].line
    assert not (tmp_path / "strict.onnx").exists()


def test_an_invalid_attribute_value_is_an_error(tmp_path):
    xml = dense(tmp_path)
    changed(xml, 'auto_broadcast="numpy"', 'auto_broadcast="odd"')
    with pytest.raises(ConversionError, match="'odd' is not one of 'numpy'"):
        convert(xml)


def test_the_report_maps_layers_to_values(tmp_path):
    xml = dense(tmp_path)
    model, report = convert(xml)
    known = {name for node in model.graph.node for name in node.output}
    assert report.layers["MatMul"] == 1
    assert report.becomes["MatMul"] == ["MatMul", "Transpose"]
    names = [name for (_, _), name in report.values.items() if name in known]
    assert len(names) == 2


def test_a_shared_constant_is_stored_once(tmp_path):
    x = ops.parameter([-1, 64], np.float32, name="x")
    weights = ops.constant(np.eye(64, dtype=np.float32) * 2)
    y = ops.matmul(ops.matmul(x, weights, False, True), weights, False, True)
    model, report = convert(save(tmp_path, [y], [x]))
    assert sum(int(np.prod(t.dims)) for t in model.graph.initializer) == 64 * 64
    assert report.weights_bytes == 64 * 64 * 4
