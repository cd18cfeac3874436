"""Two ONNX models with the same inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from converters.openvino import convert
from converters.validation.diff import diff
from tests.converters.cli.specops import as_json, save_dense, specops


def scaled(path: Path, factor: float, element_type: int = TensorProto.FLOAT) -> Path:
    """Save a model that multiplies its input, ``[?, 4]``."""
    x, y = (helper.make_tensor_value_info(name, element_type, [None, 4]) for name in "xy")
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    constant = numpy_helper.from_array(np.full(4, factor, dtype), "factor")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "scaled", [x], [y], [constant])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create three samples, the second of which is zero."""
    path = tmp_path / "samples"
    path.mkdir()
    for name, value in {"a": 1.0, "b": 0.0, "c": 3.0}.items():
        np.save(path / f"{name}.npy", np.full((2, 4), value, np.float32))
    return path


def test_folders_of_samples(folder: Path, tmp_path: Path) -> None:
    one, other = scaled(tmp_path / "one.onnx", 2.0), scaled(tmp_path / "other.onnx", 2.5)
    found = diff(one, other, inputs=folder)
    assert (found.samples, found.samples_apart, found.sample) == (["a.npy", "b.npy", "c.npy"], ["a.npy", "c.npy"], "a.npy")
    assert not found.agrees
    assert found.outputs[0].comparison.relative_l2 == 0.25, "that of the worst sample"
    assert diff(one, one, inputs=folder).agrees


def test_the_command_accepts_folders_of_samples(folder: Path, tmp_path: Path) -> None:
    one, other = scaled(tmp_path / "one.onnx", 2.0), scaled(tmp_path / "other.onnx", 2.5)
    result = specops("diff", one, other, "--inputs", folder)
    assert result.exit_code == 1
    assert "3 samples; these differ: a.npy, c.npy" in " ".join(result.stdout.split())
    assert as_json(specops("diff", one, other, "--inputs", folder, "--json"))["samples_apart"] == ["a.npy", "c.npy"]


def test_run_accepts_folders_of_samples(folder: Path, tmp_path: Path) -> None:
    model = scaled(tmp_path / "one.onnx", 2.0)
    result = specops("run", model, "--inputs", folder, "--outputs", tmp_path / "out")
    assert result.exit_code == 0, result.output
    for name, value in {"a": 2.0, "b": 0.0, "c": 6.0}.items():
        with np.load(tmp_path / "out" / f"{name}.npz") as arrays:
            assert arrays["y"].tolist() == [[value] * 4] * 2
    document = as_json(specops("run", model, "--inputs", folder, "--json"))
    assert document["samples"]["c.npy"]["y"]["values"] == [6.0] * 8
    np.save(folder / "d.npy", np.ones((2, 4), np.float32))
    np.savez(folder / "d.npz", x=np.ones((2, 4), np.float32))
    clash = specops("run", model, "--inputs", folder, "--outputs", tmp_path / "out")
    assert clash.exit_code == 2 and "d.npy and d.npz" in " ".join(clash.stderr.split())
    (tmp_path / "file").write_text("kept")
    assert specops("run", model, "--inputs", folder, "--outputs", tmp_path / "file").exit_code == 2
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(("factor", "agrees"), [(2.0, True), (2.01, True), (2.2, False)])
@pytest.mark.parametrize("narrow", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_floats_of_other_widths(narrow: int, factor: float, agrees: bool, tmp_path: Path) -> None:
    """A difference beyond the rounding of the narrower type counts."""
    if narrow == TensorProto.DOUBLE and factor == 2.01:
        agrees = False  # the narrower type is float32
    found = diff(scaled(tmp_path / "one.onnx", 2.0), scaled(tmp_path / "other.onnx", factor, narrow))
    (output,) = found.outputs
    assert output.comparison.agrees == agrees
    assert "not float32" in output.comparison.note


def test_a_conversion_in_float16(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    convert(xml, tmp_path / "one.onnx")
    convert(xml, tmp_path / "half.onnx", precision="float16")
    found = diff(tmp_path / "one.onnx", tmp_path / "half.onnx")
    assert found.agrees and found.first is None
    assert any("float16, not float32" in value.comparison.note for value in found.values)
