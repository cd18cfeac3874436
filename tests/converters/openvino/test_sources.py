"""The sources of models: files with weights elsewhere, and in-memory models."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.errors import ConversionError
from converters.openvino import convert

X = np.random.default_rng(0).standard_normal((3, 32)).astype(np.float32)


def dense(shape=(-1, 32)) -> ov.Model:
    x = ops.parameter(ov.PartialShape(list(shape)), np.float32, name="x")
    weights = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    return ov.Model([ops.relu(ops.matmul(x, ops.constant(weights), False, True), name="y")], [x], "dense")


def assert_same(converted: onnx.ModelProto | Path, model: ov.Model) -> None:
    source = str(converted) if isinstance(converted, Path) else converted.SerializeToString()
    session = ort.InferenceSession(source, providers=["CPUExecutionProvider"])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-5, atol=1e-5)


def test_an_in_memory_model(tmp_path: Path) -> None:
    converted, report = convert(dense(), tmp_path / "dense.onnx")
    assert_same(converted, dense())
    assert_same(tmp_path / "dense.onnx", dense())
    assert report.layers["MatMul"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["dense.onnx"]


@pytest.mark.parametrize("weights", ["embed", "copy"])
def test_the_weights_outlive_the_model(tmp_path: Path, weights: str) -> None:
    convert(dense(), tmp_path / "dense.onnx", weights=weights)
    assert_same(tmp_path / "dense.onnx", dense())


def test_an_in_memory_model_has_no_bin(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no \.bin file to reference"):
        convert(dense(), tmp_path / "dense.onnx", weights="reference")
    with pytest.raises(ValueError, match="contains its weights"):
        convert(dense(), bin=tmp_path / "dense.bin")


def test_after_pre_processing_and_reshape() -> None:
    """A model that a program has changed after reading it."""
    model = dense()
    model.reshape([3, 32])
    steps = ov.preprocess.PrePostProcessor(model)
    steps.input().tensor().set_element_type(ov.Type.u8)
    steps.input().preprocess().convert_element_type(ov.Type.f32).mean(7.0).scale(3.0)
    model = steps.build()
    data = np.random.default_rng(1).integers(0, 256, (3, 32)).astype(np.uint8)
    session = ort.InferenceSession(convert(model).model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([data])[0]
    np.testing.assert_allclose(session.run(None, {"x": data})[0], expected, rtol=1e-5, atol=1e-4)


def test_weights_in_another_folder(tmp_path: Path) -> None:
    """Content-addressed caches store files under another name in another folder."""
    ov.save_model(dense(), tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "blobs").mkdir()
    weights = Path(shutil.move(tmp_path / "model.bin", tmp_path / "blobs" / "6f1c"))
    with pytest.raises(ConversionError, match=r"the \.bin file, which is missing"):
        convert(tmp_path / "model.xml")
    assert_same(convert(tmp_path / "model.xml", bin=weights).model, dense())


def test_fixed_shapes() -> None:
    converted = convert(dense(), input_shapes={"x": [3, 32]}).model
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*converted.graph.input, *converted.graph.output)]
    assert shapes == [[3, 32], [3, 32]]
    assert_same(converted, dense())


def test_fixed_shapes_that_layers_reject() -> None:
    with pytest.raises(ConversionError, match="MatMul"):
        convert(dense(), input_shapes={"x": [3, 31]})


def test_problems_of_a_model_without_a_file() -> None:
    with pytest.raises(ConversionError) as caught:
        convert(dense(), input_shapes={"y": [3, 32]})
    assert caught.value.problems[0].file == "dense"
    assert convert(dense()).report.path == Path("dense")


def test_strict(tmp_path: Path) -> None:
    ov.save_model(dense(), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text()
    (tmp_path / "model.xml").write_text(text.replace('<data transpose_a="false"', '<data eta="1" transpose_a="false"'))
    (remark,) = convert(tmp_path / "model.xml").report.passed_over
    assert (remark.message, remark.count) == ("the attribute eta of MatMul", 1)
    with pytest.raises(ConversionError, match="eta of MatMul") as caught:
        convert(tmp_path / "model.xml", strict=True)
    assert caught.value.problems[0].layer_type == "MatMul"
    assert caught.value.problems[0].message == "OpenVINO ignores the attribute eta of MatMul"
