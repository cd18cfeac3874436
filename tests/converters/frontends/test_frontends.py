"""Models of other frameworks are converted through OpenVINO's frontends, and agree with the frameworks."""

from __future__ import annotations

import importlib.util
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from converters.convert import convert
from converters.errors import ConversionError
from converters.formats import find_models, recognized
from converters.frontends.saved_model import signatures
from converters.options import Weights
from tests.conformance.frontends.model import Recorded, recorded
from tests.converters.cli.specops import as_json, specops
from tests.converters.frontends.record import ANSWERS, FILES, image

MODELS = {
    "model.tflite": "tensorflow",
    "frozen.pb": "tensorflow",
    "saved_model": "tensorflow",
    "model.pdmodel": "paddle",
    "model.pt2": "torch",
}


@pytest.fixture(params=MODELS)
def model(request, tmp_path: Path) -> Path:
    if request.param == "model.pt2" and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch reads its own programs: pip install torch")
    for file in FILES.iterdir():
        copy = shutil.copytree if file.is_dir() else shutil.copy
        copy(file, tmp_path / file.name)
    return tmp_path / request.param


def test_agreement_with_frameworks(model: Path) -> None:
    target = model.parent / "out.onnx"
    report = convert(model, target).report
    assert str(report.path) == str(model)
    framework = MODELS[model.name]
    channels_last = framework == "tensorflow"
    session = ort.InferenceSession(target)
    (name,) = [value.name for value in session.get_inputs()]
    (scores,) = session.run(None, {name: image().transpose(0, 2, 3, 1) if channels_last else image()})
    np.testing.assert_allclose(scores, np.load(ANSWERS)[framework], rtol=1e-5, atol=1e-6)


def test_the_command(model: Path) -> None:
    result = specops("convert", model, "-o", model.parent / "out.onnx", "--check", "--json")
    assert result.exit_code == 0, result.output
    document = as_json(result)
    assert document["model"] == str(model)
    assert document["check"]["agrees"]
    if model.name == "model.pt2":
        return  # PyTorch takes seconds to read a program; `inspect` is the same for all
    inspected = as_json(specops("inspect", model, "--json"))
    assert json.dumps(inspected).count("Convolution") > 0


def test_files_associated_with_a_model_of_tensorflow_lite(tmp_path: Path) -> None:
    """Lists of labels are metadata of the converted model; other files of the archive are not."""
    path = tmp_path / "model.tflite"
    shutil.copy(FILES / path.name, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.txt", "cat\ndög\n")
        archive.writestr("folder/vocabulary.txt", "the\na")
        archive.writestr("empty.txt", "")
        archive.writestr("table.bin", b"\0\1\2")
        archive.writestr("latin.txt", b"d\xf6g")
        archive.writestr("large.txt", "x" * (2**20 + 1))
    metadata = {entry.key: entry.value for entry in convert(path).model.metadata_props}
    assert {name.partition(" ")[2]: text for name, text in metadata.items() if name.startswith("associated_files ")} == {
        "labels.txt": "cat\ndög\n",
        "folder/vocabulary.txt": "the\na",
        "empty.txt": "",
    }


@pytest.mark.parametrize("damage", [b"PK\5\6" + bytes(18), b"PK\5\6" + b"\xff" * 16 + b"\0\0"])
def test_a_damaged_archive_after_a_model_is_ignored(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes((FILES / path.name).read_bytes() + damage)
    assert not any("associated" in entry.key for entry in convert(path).model.metadata_props)


@pytest.mark.parametrize("name", ["model.tflite", "frozen.pb", "model.pdmodel"])
def test_a_damaged_file_is_one_error(name: str, tmp_path: Path) -> None:
    content = (FILES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ConversionError, match="frontend") as caught:
        convert(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert "\n" not in problem.message


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("model.gguf", b"GGUF\x03" + bytes(64), "optimum-intel"),
        ("model.json", b'{"base_code":{"magic":"pir","trainable":false,"version":1},"program":{}}', "FLAGS_enable_pir_api"),
        ("model.onnx", b"not one", "ovc"),
    ],
)
def test_files_that_openvino_rejects_are_one_error(name: str, content: bytes, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConversionError, match="frontend") as caught:
        convert(path)
    (problem,) = caught.value.problems
    assert "\n" not in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(("name", "content"), [("a.tflite", b"not one"), ("a.pt2", b"not one"), ("a.txt", b"")])
def test_files_that_are_not_models(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert recognized(path) is None


def test_models_below_a_folder() -> None:
    assert {path.name for path in find_models(FILES)} == {"model.tflite", "model.pdmodel", "model.pt2"}


def test_weights_of_an_ir() -> None:
    with pytest.raises(ValueError, match=r"a \.bin belongs to an \.xml"):
        convert(FILES / "model.tflite", bin="x.bin")


@pytest.mark.parametrize(
    ("target", "weights"),
    [("model.onnx", "auto"), ("out.onnx.data", "auto"), ("out.onnx.data", "embed"), ("out.onnx", "copy")],
)
def test_weights_of_an_onnx_model_are_not_overwritten(target: str, weights: Weights, tmp_path: Path) -> None:
    """The model's weights are in a file of the name that a converted model's would have."""
    table = np.arange(4096, dtype=np.float32).reshape(64, 64)
    product = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 64]) for name in "xy")
    graph = onnx.helper.make_graph([product], "product", [x], [y], [onnx.numpy_helper.from_array(table, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="out.onnx.data")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(before) == {"model.onnx", "out.onnx.data"}
    with pytest.raises(ValueError, match="would be overwritten"):
        convert(path, tmp_path / target, weights=weights)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def _of_several_signatures(folder: Path) -> tuple[Path, Recorded]:
    """A SavedModel with the signatures serving_default (6 numbers to 3) and decode (3 to 6)."""
    (model,) = [one for one in recorded("saved_model") if one.name == "signatures"]
    return model.extract(folder), model


def test_a_signature_of_several(tmp_path: Path) -> None:
    path, model = _of_several_signatures(tmp_path)
    assert signatures(path) == ["decode", "serving_default"]
    numbers = {}
    for name in signatures(path):
        result = specops("convert", path, "-o", tmp_path / f"{name}.onnx", "--signature", name, "--check")
        assert result.exit_code == 0, result.output
        session = ort.InferenceSession(tmp_path / f"{name}.onnx")
        numbers[name] = [session.get_inputs()[0].name, session.get_inputs()[0].shape[1], session.get_outputs()[0].shape[1]]
    assert numbers == {"decode": ["code", 3, 6], "serving_default": ["x", 6, 3]}
    session = ort.InferenceSession(tmp_path / "serving_default.onnx")
    np.testing.assert_allclose(session.run(None, model.inputs)[0], next(iter(model.outputs.values())), rtol=1e-5)


@pytest.mark.parametrize("options", [(), ("--target", "standard")])
def test_inspection_of_a_signature(options: tuple[str, ...], tmp_path: Path) -> None:
    path, _ = _of_several_signatures(tmp_path)
    told = {
        name: specops("inspect", path, "--signature", name, "--json", *options) for name in ("decode", "serving_default")
    }
    assert {result.exit_code for result in told.values()} == {0}
    assert specops("inspect", path, "--json", *options).stdout == told["serving_default"].stdout
    assert told["decode"].stdout != told["serving_default"].stdout
    wrong = specops("inspect", path, "--signature", "encode", *options)
    assert wrong.exit_code != 0 and "decode, serving_default" in wrong.output
    other = specops("inspect", FILES / "model.tflite", "--signature", "decode", *options)
    assert other.exit_code != 0 and "a signature belongs to a TensorFlow SavedModel" in other.output


def test_signatures_that_cannot_be_chosen(tmp_path: Path) -> None:
    path, _ = _of_several_signatures(tmp_path)
    with pytest.raises(ConversionError, match="it has no signature 'encode'; expected one of decode, serving_default"):
        convert(path, signature="encode")
    with pytest.raises(ValueError, match="a signature belongs to a TensorFlow SavedModel"):
        convert(FILES / "model.tflite", signature="serving_default")
    with pytest.raises(ValueError, match="a signature belongs to a TensorFlow SavedModel"):
        convert(tmp_path / "model.xml", signature="serving_default")
    content = (path / "saved_model.pb").read_bytes()
    (path / "saved_model.pb").write_bytes(content.replace(b"serving_default", b"serving_another"))
    with pytest.raises(ConversionError, match="it has several signatures: decode, serving_another") as caught:
        convert(path)
    assert "--signature" in caught.value.problems[0].remedy
    (path / "saved_model.pb").write_bytes(content[:-5])
    with pytest.raises(ConversionError, match=r"saved_model\.pb is damaged"):
        convert(path, signature="decode")
