"""``specops validate --report`` and ``specops diff --report``, for models that agree and models that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from tests.converters.cli.specops import as_json, specops
from tests.converters.reports.pages import load, text_of


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save y = relu((x * 2) @ w) - 5, with layers that are called double, turn, bend<b>, end."""
    x = ops.parameter([3, 4], np.float32, name="x")
    value = ops.multiply(x, ops.constant(np.full((1, 4), 2, np.float32)), name="double")
    value = ops.matmul(value, ops.constant(np.arange(20, dtype=np.float32).reshape(4, 5)), False, False, name="turn")
    value = ops.relu(value, name="bend<b>")
    value = ops.subtract(value, ops.constant(np.full((1, 5), 5, np.float32)), name="end")
    path = tmp_path_factory.mktemp("model") / "model.xml"
    ov.save_model(ov.Model([value], [x]), path, compress_to_fp16=False)
    convert(path, path.with_name("good.onnx"))
    wrong = onnx.load(path.with_name("good.onnx"))
    for tensor in wrong.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.shape == (4, 5):
            tensor.CopyFrom(onnx.numpy_helper.from_array(array + np.float32(0.5), tensor.name))
    onnx.save(wrong, path.with_name("wrong.onnx"))
    return path


def test_a_conversion_that_agrees(model: Path, tmp_path: Path) -> None:
    result = specops("validate", model, "--report", tmp_path / "report.html", "--json")
    assert result.exit_code == 0, result.output
    document = as_json(result)
    assert document["agrees"]
    assert {layer["layer_name"] for layer in document["layers"]} == {"double", "turn", "bend<b>", "end"}
    assert all(layer["relative_l2"] < 1e-6 for layer in document["layers"])
    times = document["times"]
    assert times["openvino"] > 0 and times["onnxruntime"] > 0 and not times["problem"]
    timed = [layer["layer_name"] for row in times["layers"] for layer in row["layers"]]
    assert len(timed) == len(set(timed)) and {"double", "turn", "bend<b>", "end"} <= set(timed)
    page = load(tmp_path / "report.html")
    assert "all runtimes agree" in page.xpath("//header")[0].text_content()
    assert "bend<b>" in text_of(page, "layers")
    assert "OpenVINO" in text_of(page, "times")
    # Layers and nodes have links to each other.
    (row,) = page.xpath("//tr[starts-with(@id, 'layer-')][td[1] = 'turn']")
    (node,) = page.xpath("//tr[@id = $id]", id=row.xpath(".//a[. = 'MatMul']/@href")[0][1:])
    assert f"#{row.get('id')}" in node.xpath(".//a/@href")
    # A runtime has one time.
    seconds = {runtime["runtime"]: runtime["seconds"] for runtime in document["runtimes"]}
    assert (seconds["openvino"], seconds[times["kernels"]]) == (times["openvino"], times["onnxruntime"])
    for name in ("openvino", "onnxruntime"):
        assert sum(row[name] or 0 for row in times["layers"]) <= times[name] * 1.001


def test_a_conversion_that_differs(model: Path, tmp_path: Path) -> None:
    arguments = ("validate", model, model.with_name("wrong.onnx"), "--runtime", "openvino", "--runtime", "none")
    result = specops(*arguments, "--report", tmp_path / "report.html", "--json")
    assert result.exit_code == 1, result.output
    document = as_json(result)
    assert [d["layer_name"] for d in document["first_differences"]] == ["turn"]
    errors = {layer["layer_name"]: layer["relative_l2"] for layer in document["layers"]}
    assert errors["double"] == 0 and errors["turn"] > 1e-3 and errors["end"] > 1e-3
    assert {found["layer_name"] for found in document["worst"]} == {"turn", "bend<b>", "end"}
    for found in document["worst"]:
        assert sum(found["expected"]) == sum(found["got"]) == 15
    page = load(tmp_path / "report.html")
    assert "the runtimes differ" in page.xpath("//header")[0].text_content()
    parting = text_of(page, "parting")
    assert "The first difference" in parting and "turn (MatMul), output 0" in parting
    (graph,) = page.xpath("//section[.//h2[@id='parting']]//svg")
    assert [node.text_content().split()[0] for node in graph.xpath(".//g[contains(@class, 'center')]")] == ["turn"]
    assert len(graph.xpath(".//g[@class='edge']")) >= 3
    assert len(page.xpath("//figure")) == 3


def test_two_files(model: Path, tmp_path: Path) -> None:
    good, wrong = model.with_name("good.onnx"), model.with_name("wrong.onnx")
    result = specops("diff", good, wrong, "--report", tmp_path / "diff.html", "--json")
    assert result.exit_code == 1, result.output
    document = as_json(result)
    assert document["first_difference"]["name"] == "turn"
    assert {value["name"]: value["agrees"] for value in document["values"]} == {
        "double": True,
        "turn": False,
        "bend<b>": False,
    }
    assert [output["agrees"] for output in document["outputs"]] == [False]
    page = load(tmp_path / "diff.html")
    assert "turn (MatMul)" in text_of(page, "parting")
    assert "bend<b>" in text_of(page, "values")


def test_strings_that_differ_have_no_distance(tmp_path: Path) -> None:
    for name, pattern in (("one", "b"), ("other", "c")):
        made = onnx.helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=f"{pattern}+")
        chosen = onnx.helper.make_node("Where", ["y", "x", "none"], ["z"])
        graph = onnx.helper.make_graph(
            [made, chosen],
            name,
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [3])],
            [onnx.helper.make_tensor_value_info("z", onnx.TensorProto.STRING, [3])],
            [onnx.helper.make_tensor("none", onnx.TensorProto.STRING, [1], [b"none"])],
        )
        opset = onnx.helper.make_opsetid("", 21)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10), tmp_path / f"{name}.onnx")
    np.savez(tmp_path / "in.npz", x=np.array(["b", "c", "d"]))
    files = tmp_path / "one.onnx", tmp_path / "other.onnx"
    result = specops("diff", *files, "--inputs", tmp_path / "in.npz", "--report", tmp_path / "diff.html")
    assert result.exit_code == 1, result.output
    assert "z (Where): 33.3% exact\n" in result.stdout
    assert "relative L2 ," not in result.stdout + load(tmp_path / "diff.html").text_content()


def test_a_file_and_itself(model: Path) -> None:
    good = model.with_name("good.onnx")
    result = specops("diff", good, good)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "agree"
    assert "3 inner values with the same name: 3 agree, 0 differ" in result.stdout


def test_files_with_other_names_of_inputs_and_outputs(model: Path, tmp_path: Path) -> None:
    renamed = onnx.load(model.with_name("good.onnx"))
    result = renamed.graph.output[0].name
    for node in renamed.graph.node:
        node.input[:] = ["data" if name == "x" else name for name in node.input]
        node.output[:] = ["result" if name == result else name for name in node.output]
    renamed.graph.input[0].name, renamed.graph.output[0].name = "data", "result"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    found = specops("diff", model.with_name("good.onnx"), tmp_path / "renamed.onnx", "--json")
    assert found.exit_code == 0, found.output
    assert as_json(found)["by_place"] == ["inputs", "outputs"]


def test_files_that_cannot_be_compared(model: Path, tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 4])
    twice = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 4])
    nodes = [onnx.helper.make_node("Add", ["x", "x2"], ["y"])]
    second = onnx.helper.make_tensor_value_info("x2", onnx.TensorProto.FLOAT, [3, 4])
    graph = onnx.helper.make_graph(nodes, "two", [value, second], [twice])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)]), tmp_path / "two.onnx")
    result = specops("diff", model.with_name("good.onnx"), tmp_path / "two.onnx")
    assert result.exit_code == 2
    assert "the models have 1 and 2 inputs" in result.stderr


def test_a_page_is_not_written_over_an_input(model: Path) -> None:
    before = model.read_bytes()
    result = specops("validate", model, "--report", model)
    assert result.exit_code == 2 and "would be overwritten" in result.stderr
    assert model.read_bytes() == before
