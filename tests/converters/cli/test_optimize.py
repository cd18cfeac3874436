"""``specops optimize``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from tests.converters.cli.specops import as_json, specops

X = np.random.default_rng(0).standard_normal((1, 32, 22, 22)).astype(np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a model with a convolution, a Relu and a Gelu."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], name="conv"),
        helper.make_node("Relu", ["y"], ["r"]),
        helper.make_node("Gelu", ["r"], ["z"]),
    ]
    weights = np.random.default_rng(1).standard_normal((32, 32, 3, 3)).astype(np.float32) / 16
    x, z = (
        helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [1, 32, 22, 22]), ("z", [1, 32, 20, 20]))
    )
    graph = helper.make_graph(nodes, "graph", [x], [z], [numpy_helper.from_array(weights, "w")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def test_the_file_runs_without_the_plugin(model: Path) -> None:
    before, output = model.read_bytes(), model.with_name("faster.onnx")
    result = specops("optimize", model, "-o", output)
    assert result.exit_code == 0
    assert result.stdout.split() == [*str(output).split(), "1", "VolumeConv", "1", "Elementwise"]
    expected, found = (ort.InferenceSession(str(path)).run(None, {"x": X})[0] for path in (model, output))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert model.read_bytes() == before


def test_json(model: Path) -> None:
    output = model.with_name("faster.onnx")
    document = as_json(specops("optimize", model, "-o", output, "--json"))
    assert document == {"model": str(model), "output": str(output), "replaced": {"VolumeConv": 1, "Elementwise": 1}}
    again = as_json(specops("optimize", output, "-o", model.with_name("again.onnx"), "--json"))
    assert again["replaced"] == {}


def test_a_copy(model: Path) -> None:
    made = onnx.load(model)
    del made.graph.node[0], made.graph.node[1]
    made.graph.node[0].input[0] = "x"
    made.graph.output[0].name = "r"
    del made.graph.output[0].type.tensor_type.shape.dim[:], made.graph.initializer[:]
    onnx.save(made, model)
    output = model.with_name("copy.onnx")
    result = specops("optimize", model, "-o", output)
    assert result.exit_code == 0 and "the file is a copy" in result.stdout
    assert onnx.load(output) == made


def test_external_weights_stay_where_they_are(model: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "other").mkdir()
    result = specops("optimize", model, "-o", tmp_path / "other" / "faster.onnx")
    assert result.exit_code == 2
    assert "write the output to the folder of the model" in " ".join(result.stderr.split())
    output = tmp_path / "faster.onnx"
    assert specops("optimize", model, "-o", output).exit_code == 0
    expected, found = (ort.InferenceSession(str(path)).run(None, {"x": X})[0] for path in (model, output))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("target", ["model.onnx", "weights.bin"])
def test_inputs_are_not_overwritten(model: Path, target: str) -> None:
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = model.with_name(target).read_bytes()
    assert specops("optimize", model, "-o", model.with_name(target)).exit_code == 2
    assert model.with_name(target).read_bytes() == before


def test_other_files(model: Path) -> None:
    xml = model.with_name("model.xml")
    xml.write_text("<?xml version='1.0'?><net name='a' version='11'/>")
    result = specops("optimize", xml, "-o", model.with_name("out.onnx"))
    assert result.exit_code == 2 and "is an OpenVINO IR" in " ".join(result.stderr.split())
    damaged = model.with_name("damaged.onnx")
    damaged.write_bytes(model.read_bytes()[:1000])
    assert specops("optimize", damaged, "-o", model.with_name("out.onnx")).exit_code == 2
    assert specops("optimize", model.with_name("missing.onnx"), "-o", model.with_name("out.onnx")).exit_code == 2
    assert not model.with_name("out.onnx").exists()
