"""Sessions replace nodes of the models that they load by custom operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import onnx_specops
from onnx_specops.runtime.library import has_library
from tests.onnx_specops.optimizing.graphs import X, changed, made, numbers
from tests.onnx_specops.runtime.graphs import value

native = pytest.mark.skipif(not has_library(), reason="needs the native library")


def model_of_conv() -> onnx.ModelProto:
    nodes = [helper.make_node("Conv", [X, "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    return made(nodes, (2, 32, 22, 22), ["z"], weights={"w": numbers(32, 32, 3, 3)})


def test_all_operators() -> None:
    """Constants are added before the nodes, with new names."""
    nodes = [
        helper.make_node("Conv", [X, "w"], ["y"]),
        helper.make_node("Elu", ["y"], ["z"]),
        helper.make_node("Resize", ["z", "", "s"], ["r"], mode="linear"),
        helper.make_node("Gelu", ["r"], ["g"]),
        helper.make_node("Neg", ["g"], ["g/onnx_specops/1"]),
    ]
    weights = {"w": numbers(32, 32, 3, 3), "s": np.float32([1, 1, 2, 2])}
    model = made(nodes, (1, 32, 22, 22), ["g/onnx_specops/1"], weights=weights)
    assert changed(model, ["VolumeConv"])
    operators = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
    assert operators == ["VolumeConv", "Elementwise", "Interpolate", "Elementwise", "Neg"]


def test_other_models_stay() -> None:
    model = made([helper.make_node("Relu", [X], ["y"])], (2, 3))
    before = model.SerializeToString()
    assert not changed(model, [])
    assert onnx_specops.optimize(model).SerializeToString() == before


def test_an_invalid_node_after_a_valid_one() -> None:
    """The copy does not change in part."""
    nodes = [
        helper.make_node("Conv", [X, "w"], ["y"]),
        helper.make_node("Resize", [X, "", "s"], ["z"], mode="linear"),
    ]
    model = made(nodes, (1, 32, 22, 22), ["y", "z"], weights={"w": numbers(32, 32, 3, 3), "s": np.float32([1, 1, 2, 2])})
    model.graph.value_info.append(value("z", 1, [1, 32, 44, 44]))
    model.graph.initializer[1].raw_data = b"123"
    assert onnx_specops.optimize(model) == model


def test_optimize() -> None:
    """The given model does not change. With bodies, the result runs without kernels."""
    model = model_of_conv()
    before = model.SerializeToString()
    found = onnx_specops.optimize(model)
    assert model.SerializeToString() == before
    assert [node.op_type for node in found.graph.node] == ["VolumeConv"]
    assert onnx_specops.optimize(found) == found
    feeds = {X: numbers(2, 32, 22, 22, seed=3)}
    expected = ort.InferenceSession(before).run(None, feeds)[0]
    given = onnx_specops.add_bodies(found).SerializeToString()
    np.testing.assert_allclose(ort.InferenceSession(given).run(None, feeds)[0], expected, atol=1e-5)


def nodes_of(session: ort.InferenceSession, path: Path) -> list[str]:
    """Return the operators that a session runs, from the file of its optimized model."""
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


@native
@pytest.mark.parametrize("source", ["path", "bytes", "proto", "external"])
def test_sessions(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_specops.runtime.session.has_wide_vectors", lambda: True)
    model = model_of_conv()
    given: Any = {"bytes": model.SerializeToString(), "proto": model}.get(source, tmp_path / "model.onnx")
    x = numbers(2, 32, 22, 22, seed=3)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, {X: x})[0]
    if source in ("path", "external"):
        onnx.save(model, given, save_as_external_data=source == "external", size_threshold=0)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = onnx_specops.InferenceSession(given, options, kernels="native")
    assert nodes_of(session, tmp_path / "optimized.onnx") == ["VolumeConv"]
    np.testing.assert_allclose(session.run(None, {X: x})[0], expected, atol=1e-5)
    if source == "proto":
        assert given.graph.node[0].op_type == "Conv"


@native
def test_sessions_do_not_keep_the_changed_file(tmp_path: Path) -> None:
    onnx.save(model_of_conv(), tmp_path / "model.onnx")
    session = onnx_specops.InferenceSession(tmp_path / "model.onnx", kernels="native")
    assert session._model_bytes is None
    session.set_providers(["CPUExecutionProvider"])  # makes the session again
    assert session.run(None, {X: numbers(2, 32, 22, 22)})[0].shape == (2, 32, 20, 20)


@native
def test_sessions_of_models_that_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: onnx.ModelProto, **_: Any) -> bool:
        model.graph.node[0].op_type = "NoSuchOperator"
        return True

    model = model_of_conv()
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.setattr("onnx_specops.runtime.session.optimize_in_place", fail)
    x = numbers(2, 32, 22, 22)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, {X: x})[0]
    for given in (tmp_path / "model.onnx", model):
        session = onnx_specops.InferenceSession(given, kernels="native")
        np.testing.assert_array_equal(session.run(None, {X: x})[0], expected)


@native
def test_sessions_without_layout_optimizations_keep_the_nodes(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = onnx_specops.InferenceSession(model_of_conv(), options, kernels="native")
    assert nodes_of(session, tmp_path / "optimized.onnx") == ["FusedConv"]


@native
def test_processors_without_wide_vectors_keep_convolutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_specops.runtime.session.has_wide_vectors", lambda: False)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = onnx_specops.InferenceSession(model_of_conv(), options, kernels="native")
    assert "VolumeConv" not in nodes_of(session, tmp_path / "optimized.onnx")


def test_sessions_without_native_kernels_keep_the_nodes(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = onnx_specops.InferenceSession(model_of_conv(), options, kernels="none")
    assert "VolumeConv" not in nodes_of(session, tmp_path / "optimized.onnx")
