"""Outputs and names that a user selects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.metadata_keys import INTERFACE
from converters.openvino import ConversionError, convert
from converters.openvino.reader.interface import restore
from converters.openvino.reader.read import read
from converters.validation.validate import validate

X, Z = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32), np.float32([[1, 2, 3, 4]])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create y of a part of hidden of x; w of z; a variable that accumulates x, and a counter."""
    x, z = ops.parameter([2, 32], np.float32, name="x"), ops.parameter([-1, 4], np.float32, name="z")
    weights = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    hidden = ops.relu(ops.matmul(x, ops.constant(weights), False, False), name="hidden")
    hidden.output(0).set_names({"hidden, indeed"})
    parts = ops.split(hidden, 1, 4)
    parts.set_friendly_name("parts")
    y = ops.add(parts.output(2), ops.constant(np.float32(1)))
    y.output(0).set_names({"y"})
    w = ops.multiply(z, ops.constant(np.float32(3)), name="w")
    past = ops.read_value(ops.constant(np.zeros((2, 32), np.float32)), "sum", np.float32, [2, 32])
    total = ops.add(past, x, name="total")
    count = ops.read_value(ops.constant(np.float32(0)), "count", np.float32, [])
    counted = ops.add(count, ops.constant(np.float32(1)), name="counted")
    twins = [ops.sigmoid(x, name="twin"), ops.tanh(x, name="twin")]
    both = ops.add(*twins, name="both")
    sinks = [ops.assign(total, "sum"), ops.assign(counted, "count")]
    results = [ops.result(value) for value in (y, w, total, counted, both)]
    path = tmp_path_factory.mktemp("interface") / "model.xml"
    ov.save_model(ov.Model(results, sinks, [x, z], "m"), path, compress_to_fp16=False)
    return path


@pytest.mark.parametrize(
    ("outputs", "rename", "inputs", "names"),
    [
        (["hidden"], {}, ["x"], ["hidden, indeed"]),
        (["hidden, indeed"], {}, ["x"], ["hidden, indeed"]),
        (["y,parts.1"], {}, ["x"], ["y", "parts.1"]),
        (["parts:3", "y"], {"y": "new", "x": "image", "parts.3": "p"}, ["image"], ["p", "new"]),
        (["w"], {"w": "three times"}, ["z"], ["three times"]),
        (["total"], {"total": "t"}, ["x"], ["t"]),
        (["counted"], {"counted": "t"}, [], ["t"]),
    ],
)
def test_selected_outputs(
    model: Path, outputs: Sequence[str], rename: Mapping[str, str], inputs: list, names: list, tmp_path
) -> None:
    target = tmp_path / "model.onnx"
    proto, _ = convert(model, target, outputs=outputs, rename=rename)
    onnx.checker.check_model(proto, full_check=True)
    own = [value.name for value in proto.graph.input if value.name not in ("sum", "count")]
    assert own == inputs
    assert [value.name for value in proto.graph.output][: len(names)] == names
    variables = {value.name for value in proto.graph.input} & {"sum", "count"}
    assert variables == {"total": {"sum"}, "counted": {"count"}}.get(outputs[0], set())
    found = validate(model, target, runtimes=["openvino", "none"], per_layer=True)
    assert found.agrees and found.results[0].runtime == "openvino" and found.results[0].outputs
    assert found.layers_compared or outputs[0] in ("w", "total", "counted")


def test_values_of_outputs(model: Path) -> None:
    proto, _ = convert(model, outputs=["w", "hidden"], rename={"z": "in"})
    session = ort.InferenceSession(proto.SerializeToString())
    w, hidden = session.run(None, {"x": X, "in": Z})
    np.testing.assert_allclose(w, Z * 3)
    core = ov.Core()
    original = core.read_model(model)
    original.add_outputs("hidden, indeed")
    expected = core.compile_model(original, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": X, "z": Z})["hidden, indeed"]
    np.testing.assert_allclose(hidden, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("outputs", "rename", "message"),
    [
        (["hiden"], {}, "did you mean hidden"),
        (["parts"], {}, "it has several outputs: parts.0, parts.1"),
        (["parts.4"], {}, "there is no output or layer named parts.4"),
        (["twin"], {}, "2 layers have the name twin"),
        ([], {"absent": "new"}, "no input or output is called absent"),
        ([], {"y": "x"}, "several inputs and outputs would be named x"),
        (["hidden"], {"y": "new"}, "no input or output is called y"),
        (["x"], {"x": "seen"}, "several inputs and outputs are called x"),
        (["y", "y"], {"y": "new"}, "several inputs and outputs are called y"),
    ],
)
def test_invalid_selections(model: Path, outputs: list[str], rename: dict[str, str], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        convert(model, outputs=outputs, rename=rename)


def test_duplicate_outputs(model: Path) -> None:
    proto, _ = convert(model, outputs=["y", "y"])
    first, second = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": X})
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"inputs": [], "outputs": [[999, 0, ""]]}', '{"inputs": 1, "outputs": []}']
)
def test_damaged_metadata(model: Path, text: str) -> None:
    with pytest.raises(ValueError, match="does not match"):
        restore(read(model), text)


def test_only_selections_are_recorded(model: Path) -> None:
    recorded = [{p.key: p.value for p in convert(model, **more)[0].metadata_props} for more in ({}, {"outputs": ["y"]})]
    assert INTERFACE not in recorded[0]
    assert [name for *_, name in json.loads(recorded[1][INTERFACE])["outputs"]] == [""]
