"""Common mistakes of new users: each error is one line with a remedy."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from converters.cli.text import print_problems
from converters.errors import Problem
from tests.converters.cli.specops import MODELS, as_json, save_dense, specops


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a model, its conversion, and files of other kinds."""
    save_dense(tmp_path / "model.xml")
    assert specops("convert", tmp_path / "model.xml").exit_code == 0
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "lone.bin").write_bytes(bytes(range(256)))
    (tmp_path / "lite.xml").write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    (tmp_path / "pointer.xml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    (tmp_path / "page.xml").write_text("<!DOCTYPE html><html>")
    (tmp_path / "keras").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    (tmp_path / "outer" / "saved").mkdir(parents=True)
    (tmp_path / "outer" / "saved" / "saved_model.pb").write_bytes(b"")
    shutil.copy(MODELS / "matmul" / "model.xml", tmp_path / "cut.xml")
    (tmp_path / "cut.xml").write_bytes((tmp_path / "cut.xml").read_bytes()[:5000])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("convert model.bin", "the file contains weights --> model.bin help: specify the .xml file of the IR: model.xml"),
        (
            "convert lone.bin",
            "the file contains weights --> lone.bin help: specify the .xml file of the IR, and its .bin with --bin",
        ),
        (
            "convert lite.xml",
            "the file is a TensorFlow Lite model --> lite.xml help: rename it: its name must end in .tflite",
        ),
        ("convert pointer.xml", "the file is a Git LFS pointer --> pointer.xml help: fetch the file itself: git lfs pull"),
        ("convert page.xml", "the file is a web page --> page.xml help: download the file itself"),
        ("convert keras", "the file is an HDF5 file, such as a Keras model --> keras help: save it as a SavedModel"),
        ("inspect outer", "the path is a directory --> outer help: specify the folder of the SavedModel: outer/saved"),
        ("convert cut.xml", "help: the file is damaged or incomplete"),
        ("convert text.txt", "help: specify the .xml file of an IR"),
        ("convert model.xml -o other.xml", "the name of an ONNX file ends in .onnx"),
        ("convert model.xml -o none/model.onnx", "the folder does not exist --> none"),
        ("convert model.xml --weights embeded", "'reference': did you mean embed?"),
        ("run model.xml", "model.xml is an OpenVINO IR, not an ONNX model: convert it with specops convert model.xml"),
        ("diff model.onnx model.xml", "model.xml is an OpenVINO IR, not an ONNX model"),
        ("run modle.onnx", "modle.onnx is not a file: did you mean model.onnx?"),
        ("validate model.xml modle.onnx", "modle.onnx is not a file: did you mean model.onnx?"),
        ("run text.txt", "text.txt is not an ONNX model, or is damaged"),
        ("run model.onnx --inputs text.txt", "inputs are an .npz, an .npy or an image, or a folder of these"),
        ("run model.onnx --inputs none.npz", "none.npz cannot be read: No such file or directory"),
        ("run model.onnx --kernels natve", "did you mean native?"),
        ("generate model.onnx hello", "model.onnx is not a folder"),
        ("generate none hello", "none is not a folder"),
    ],
)
def test_mistakes(folder: Path, arguments: str, message: str) -> None:
    result = specops(*arguments.split())
    assert result.exit_code == 2, result.output
    told = " ".join(result.stderr.replace("│", " ").split())
    assert message in told
    assert "Value error" not in told and "Traceback" not in told


def test_an_invalid_choice_as_json(folder: Path) -> None:
    result = specops("run", "model.onnx", "--kernels", "natve", "--json")
    (problem,) = as_json(result)["problems"]
    assert problem["fault"] == "usage" and problem["message"].endswith("did you mean native?")


@pytest.mark.parametrize(
    ("message", "layer", "headline"),
    [
        ("its axis is 3", "conv1", "axis is 3"),
        ("it has 2 inputs", "conv1", "the layer has 2 inputs"),
        ("item 2 is missing", "conv1", "item 2 is missing"),
        ("one of its inputs is f16", "conv1", "one of its inputs is f16"),
        ("it contains no samples", None, "it contains no samples"),
    ],
)
def test_a_headline_does_not_refer_to_the_layer_below_it(message: str, layer: str | None, headline: str) -> None:
    console = Console(file=io.StringIO(), width=80)
    print_problems(console, [Problem(message, "model.xml", 36, layer)])
    assert console.file.getvalue().startswith(f"error: {headline}\n  --> model.xml:36")  # type: ignore[attr-defined]
