"""Only the registry refers to source formats."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.convert import convert
from converters.formats import find_models, format_names, format_of, formats, recognized
from converters.validation.validate import validate
from tests.converters.cli.specops import as_json, save_dense, specops

ROOT = Path(__file__).parents[2]
# Packages of source formats, which may depend on each other: the registered ones, and the one that opens old IR.
PACKAGES = (*dict.fromkeys(type(one).__module__.split(".")[1] for one in formats()), "inference_engine")
# Model API belongs to OpenVINO: its images are resized as OpenVINO's Interpolate does.
WITH_FORMATS = (*PACKAGES, "model_api")
# `specops weights` reads the constants of an IR, whose layers identify the weights.
OF_IR_ALONE = {"folders/recurrences.py", "folders/weights.py"}


def imported(path: Path) -> Iterator[str]:
    """Iterate over the full names of the modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_only_the_registry_imports_formats() -> None:
    found = {}
    for path in sorted((ROOT / "converters").rglob("*.py")):
        place = path.relative_to(ROOT / "converters")
        if place.parts[0] in WITH_FORMATS or place.as_posix() in OF_IR_ALONE:
            continue
        names = {name for name in imported(path) if name.split(".")[:2] in [["converters", package] for package in PACKAGES]}
        if names:
            found[path] = names
    assert found == {}


def test_the_registry_names_each_format_as_it_names_itself() -> None:
    assert format_names() == "; ".join(reversed([one.name for one in formats()]))


def test_the_plugin_does_not_import_the_converters() -> None:
    for path in (ROOT / "onnx_specops").rglob("*.py"):
        assert not any(name.partition(".")[0] == "converters" for name in imported(path)), path


@pytest.mark.parametrize("content", [b"", b"<note/>", b"\0\0<ne", b"<net"[:3]])
def test_files_of_no_format(tmp_path: Path, content: bytes) -> None:
    """The last format reports the error."""
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    assert recognized(path) is None
    assert format_of(path) is list(formats())[-1]
    assert recognized(tmp_path) is None and recognized(tmp_path / "none.xml") is None and recognized(7) is None


def test_the_help_names_all_formats() -> None:
    text = " ".join(specops("convert", "--help").output.replace("\u2502", " ").split())
    assert f"Formats: {format_names()}." in text


def test_folders_are_searched(tmp_path: Path) -> None:
    save_dense(tmp_path / "b" / "model.xml")
    save_dense(tmp_path / "a.xml")
    (tmp_path / "note.xml").write_text("<note/>")
    assert find_models(tmp_path) == [tmp_path / "a.xml", tmp_path / "b" / "model.xml"]


def test_properties_of_a_source(tmp_path: Path) -> None:
    """Its interface, layers and files, before and after outputs are selected."""
    x = ops.parameter([-1, 3], np.float32, name="x")
    x.output(0).set_names({"x", "also x"})
    x.set_layout(ov.Layout("NC"))
    hidden = ops.relu(x, name="hidden")
    y = ops.add(hidden, ops.constant(np.ones((1, 3), np.float32)), name="y")
    y.output(0).set_names({"y"})
    model = ov.Model([y], [x])
    model.set_rt_info("a", ["model_info", "b"])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    with format_of(tmp_path / "model.xml").open(tmp_path / "model.xml") as source:
        (port,) = source.inputs
        assert set(port.names) <= set(port.aliases) and {"x", "also x"} <= set(port.aliases)
        assert (port.dims, port.layout) == ((None, 3), "[N,C]")
        assert [port.names[0] for port in source.outputs] == ["y"]
        assert sorted(layer.kind for layer in source.layers) == ["constant", "input", "operation", "operation", "output"]
        by_name = {layer.name: layer for layer in source.layers}
        assert by_name["hidden"].before == (by_name["x"].id,)
        assert by_name["y"].dims == ((None, 3),) and by_name["y"].has_array == (True,)
        assert source.information["model_info b"] == "a"
        assert source.files == (tmp_path / "model.xml", tmp_path / "model.bin")
        source.choose(["hidden"], {"hidden": "h"})
        assert [port.names[0] for port in source.outputs] == ["h"]
        chosen = source.chosen()
    with format_of(tmp_path / "model.xml").open(tmp_path / "model.xml") as again:
        again.restore(chosen)
        assert [port.names[0] for port in again.outputs] == ["h"]
        assert {layer.name for layer in again.layers if layer.kind == "operation"} == {"hidden"}
        data = np.array([[-1, 2, 3]], np.float32)
        (tmp_path / "files").mkdir()
        baseline = again.baseline(tmp_path / "files")
        np.testing.assert_array_equal(baseline.run([data]).outputs[0][0], np.maximum(data, 0))


def test_an_in_memory_model() -> None:
    x = ops.parameter([2], np.float32, name="x")
    model = ov.Model([ops.relu(x)], [x])
    assert recognized(model) is not None
    with format_of(model).open(model) as source:
        assert source.files == ()
    with pytest.raises(ValueError, match=r"has no \.bin file to reference"):
        convert(model, weights="reference")


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder of models of an additional format."""
    modules = {"tests.converters.another_format": "Toy", "converters.openvino.format": "OpenVINO IR"}
    monkeypatch.setattr("converters.formats._MODULES", modules)
    (tmp_path / "toys" / "deep").mkdir(parents=True)
    (tmp_path / "toys" / "one.toy").write_text("toy\nx 2 3\nrelu y\n")
    (tmp_path / "toys" / "deep" / "two.toy").write_text("toy\na 4\ndouble b\n")
    (tmp_path / "toys" / "none.toy").write_text("no\n")
    return tmp_path / "toys"


def test_another_format_only_needs_its_package(toys: Path, tmp_path: Path) -> None:
    """Conversion, folders, checks, inspection and validation accept it."""
    converted = convert(toys / "one.toy", tmp_path / "one.onnx", input_shapes={"x": [-1, 3]}, rename={"y": "z"})
    assert converted.report.layers == {"input": 1, "relu": 1} and converted.report.nodes == {"Relu": 1}
    assert [value.name for value in converted.model.graph.output] == ["z"]
    assert {entry.key: entry.value for entry in converted.model.metadata_props}["author"] == "nobody"
    document = as_json(specops("convert", toys, "-o", tmp_path / "out", "--check", "--json"))
    assert (document["converted"], document["failed"], document["differ"]) == (2, 0, 0)
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.onnx")) == ["one.onnx", "two.onnx"]
    assert format_names() == "OpenVINO IR; Toy"
    assert "relu" in specops("inspect", toys / "one.toy").stdout
    result = specops("validate", toys / "one.toy", "--per-layer")
    assert result.exit_code == 0, result.output
    assert "compared with Toy, CPU" in result.stdout and "agree: Toy, CPU; ONNX Runtime" in result.stdout
    assert validate(toys / "one.toy", tmp_path / "one.onnx").agrees


def test_errors_of_another_format_are_reported(toys: Path) -> None:
    (toys / "one.toy").write_text("toy\nx 2 3\nsoftplus y\n")
    result = specops("convert", toys / "one.toy")
    assert result.exit_code == 2 and "no rule converts softplus" in result.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.xml")
    assert find_models(tmp_path) == []
    for command in ("convert", "inspect"):
        result = specops(command, tmp_path / "model.xml")
        assert result.exit_code == 2 and "the path is not a regular file" in result.stderr
