"""The options of ``specops convert``: sources, targets and fixed shapes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.cli import forked
from tests.converters.cli.specops import as_json, save_dense, specops

EXTENSION = Path(__file__).parents[3] / "examples" / "extension"


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """Create two models in folders, and an .xml that is not an IR."""
    folder = tmp_path / "zoo"
    for place in ("a/one.xml", "a/deeper/two.xml"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        save_dense(folder / place)
    (folder / "note.xml").write_text("<note/>")
    return folder


def damage(xml: Path) -> Path:
    xml.write_text(xml.read_text().replace('type="ReLU"', 'type="Magic"'))
    return xml


def test_assumptions_of_a_target(tmp_path: Path) -> None:
    """ncnn takes the first row for negative indices, which OpenVINO counts from the end."""
    table = ops.constant(np.arange(20, dtype=np.float32).reshape(5, 4))
    x = ops.parameter([1, 3], np.int64, name="x")
    rows = ops.gather(table, x, ops.constant(0), name="rows")
    ov.save_model(ov.Model([ops.relu(rows)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    document = as_json(specops("convert", tmp_path / "model.xml", "--target", "ncnn", "--json"))
    assert document["assumptions"] == {"rows": "no index is negative"}
    result = specops("convert", tmp_path / "model.xml", "--target", "ncnn")
    assert "correct on the target only if no index is negative: rows" in " ".join(result.output.split())
    assert as_json(specops("convert", tmp_path / "model.xml", "--target", "mnn", "--json"))["assumptions"] == {}


def test_conditions_of_float16(tmp_path: Path) -> None:
    """QNN's HTP computes in float16."""
    x, index = ops.parameter([1, 3], np.float32, name="x"), ops.parameter([1, 1], np.int64, name="index")
    angles = ops.sin(x, name="angles")
    written = ops.scatter_elements_update(angles, index, ops.gather_elements(x, index, 1), ops.constant(1), name="written")
    best = ops.topk(x, ops.constant(2), -1, "max", "value")
    outputs = [written.output(0), best.output(0), ops.relu(x, name="plain").output(0)]
    ov.save_model(ov.Model(outputs, [x, index]), tmp_path / "model.xml", compress_to_fp16=False)
    for command in ("convert", "inspect"):
        found = as_json(specops(command, tmp_path / "model.xml", "--target", "qnn", "--json"))["assumptions"]
        assert sorted(found.values()) == [
            "each result may be rounded to float16",
            "no two indices are equal",
            "no two of the elements are equal in float16",
            "the angles are between -10 and 10, because it reduces them in float16",
        ], found
        assert found["angles"].startswith("the angles")
        text = " ".join(specops(command, tmp_path / "model.xml", "--target", "qnn").output.split())
        assert "correct on the target only if no two of the elements are equal in float16" in text
    assert as_json(specops("inspect", tmp_path / "model.xml", "--target", "webgpu", "--json"))["assumptions"] == {}


def test_numbers_that_tinygrad_sorts(tmp_path: Path) -> None:
    x = ops.parameter([1, 4], np.float32, name="x")
    best = ops.topk(x, ops.constant(2), -1, "max", "value", name="best")
    ov.save_model(ov.Model([best.output(0)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    for target, found in (("tinygrad", ["no element is NaN"]), ("tvm", [])):
        document = as_json(specops("convert", tmp_path / "model.xml", "--target", target, "--json"))
        assert list(document["assumptions"].values()) == found


@pytest.mark.parametrize("target", ["mnn", "onnx2torch"])
@pytest.mark.parametrize(("count", "output", "found"), [(2, 1, True), (2, 0, False), (1, 1, False)])
def test_equal_elements(count: int, output: int, found: bool, target: str, tmp_path: Path) -> None:
    """The TopK of MNN and PyTorch returns equal elements in any order."""
    x = ops.parameter([1, 4], np.float32, name="x")
    best = ops.topk(x, ops.constant(count), -1, "max", "value")
    ov.save_model(ov.Model([best.output(output)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    assumptions = as_json(specops("convert", tmp_path / "model.xml", "--target", target, "--json"))["assumptions"]
    assert list(assumptions.values()) == ["no two of the elements are equal"] * found


def test_constants_are_no_conditions(tmp_path: Path) -> None:
    x = ops.parameter([1, 4], np.float32, name="x")
    index = ops.constant(np.array([[0, 2]]))
    written = ops.scatter_elements_update(x, index, ops.constant(np.ones((1, 2), np.float32)), ops.constant(1))
    best = ops.topk(written, ops.constant(1), -1, "max", "value")
    ov.save_model(ov.Model([best.output(1)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    assert as_json(specops("convert", tmp_path / "model.xml", "--target", "qnn", "--json"))["assumptions"] == {}


# -- several models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_becomes_a_folder(zoo: Path, tmp_path: Path, jobs: int) -> None:
    result = specops("convert", zoo, "-o", tmp_path / "out", "--jobs", jobs)
    assert result.exit_code == 0, result.output
    made = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.onnx"))
    assert made == ["a/deeper/two.onnx", "a/one.onnx"]
    assert "2 of 2" in result.stdout


def test_a_file_as_the_output_of_a_folder(zoo: Path, tmp_path: Path) -> None:
    result = specops("convert", zoo, "-o", tmp_path / "x.onnx")
    assert result.exit_code == 2
    assert "several models require a folder" in " ".join(result.stderr.replace("│", " ").split())
    assert "omit -o to write each one next to its model" in " ".join(result.stderr.replace("│", " ").split())


def test_without_output_each_is_written_next_to_its_ir(zoo: Path) -> None:
    assert specops("convert", zoo / "a/one.xml", zoo / "a/deeper").exit_code == 0
    assert (zoo / "a/one.onnx").is_file() and (zoo / "a/deeper/two.onnx").is_file()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_does_not_stop_the_other_conversions(zoo: Path, jobs: int) -> None:
    damage(zoo / "a/one.xml")
    result = specops("convert", zoo, "--jobs", jobs, "--json")
    assert result.exit_code == 1
    document = as_json(result)
    assert (document["converted"], document["failed"]) == (1, 1)
    good, bad = document["conversions"]
    assert good["output"].endswith("two.onnx") and (zoo / "a/deeper/two.onnx").is_file()
    assert bad["model"].endswith("one.xml") and bad["problems"][0]["layer_type"] == "Magic"
    assert not (zoo / "a/one.onnx").exists()


def test_models_of_one_name_are_not_written_over_each_other(zoo: Path, tmp_path: Path) -> None:
    (zoo / "b").mkdir()
    save_dense(zoo / "b/one.xml")
    result = specops("convert", zoo / "a/one.xml", zoo / "b/one.xml", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "have the same output file" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_without_models(tmp_path: Path) -> None:
    result = specops("convert", tmp_path)
    assert result.exit_code == 2
    assert "contains no IR" in result.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders_are_checked_and_their_inputs_get_shapes(tmp_path: Path, jobs: int) -> None:
    for name in ("one", "two"):
        save_dense(tmp_path / "in" / f"{name}.xml")
    y = ops.parameter([-1], np.float32, name="other")
    ov.save_model(ov.Model([ops.multiply(y, ops.constant(np.float32(2)))], [y]), tmp_path / "in/three.xml")
    rows = ("--input-shape", "x=7x32", "--shape", "other=5")
    result = specops("convert", tmp_path / "in", "-o", tmp_path / "out", "--jobs", jobs, "--check", *rows, "--json")
    assert result.exit_code == 0, result.output
    document = as_json(result)
    assert (document["converted"], document["failed"], document["differ"]) == (3, 0, 0)
    assert all(found["check"]["agrees"] for found in document["conversions"])
    shapes = [found["check"]["runtimes"][0]["outputs"].popitem()[1]["shape"] for found in document["conversions"]]
    assert shapes == [[7, 32], [5], [7, 32]]
    rules = tmp_path / "rules.py"
    rules.write_text("from converters.openvino.rule import rule\n\n@rule('ReLU')\ndef relu(op, x):\n    return op.Neg(x)\n")
    # In a separate process, because the rule stays registered.
    command = ("convert", tmp_path / "in", "-o", tmp_path / "out", "--check", "--jobs", jobs)
    said = forked.specops(*command, "--rules", rules, *rows)
    assert said.returncode == 1, said.stderr
    assert "1 of 3 models agree with OpenVINO" in said.stdout and "specops validate" in said.stdout
    wrong = specops("convert", tmp_path / "in", "--input-shape", "absent=1")
    assert wrong.exit_code == 2 and "no model has an input named absent" in wrong.stderr


@pytest.mark.parametrize("option", [["--bin", "x.bin"], ["--inputs", "x.npz"]])
def test_options_for_a_single_model(zoo: Path, option: list[str]) -> None:
    result = specops("convert", zoo, *option)
    assert result.exit_code == 2
    assert "a single model only" in result.stderr


# -- standard output, weights elsewhere, shapes ------------------------------------------------------------------------


def test_chosen_outputs_and_names(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    matmul = next(line.split('name="')[1].split('"')[0] for line in xml.read_text().splitlines() if 'type="MatMul"' in line)
    names = ("--outputs", f"{matmul},y", "--rename", "x=image", "--rename", f"{matmul}=product")
    result = specops("convert", xml, *names, "--check")
    assert result.exit_code == 0, result.output
    model = onnx.load(tmp_path / "model.onnx")
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == ["image", "product", "y"]
    assert specops("validate", xml, tmp_path / "model.onnx", "--per-layer").exit_code == 0
    wrong = specops("convert", xml, "--rename", "x")
    assert wrong.exit_code == 2 and "OLD=NEW" in wrong.stderr


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_rewrites_are_verified(tmp_path: Path, jobs: int | None) -> None:
    xml = tmp_path / "in" / "model.xml"
    x = ops.parameter([-1, 8], np.float32, name="x")
    ov.save_model(ov.Model([ops.mish(x)], [x]), xml)
    given = [xml] if jobs is None else [tmp_path / "in", "--jobs", jobs]
    result = specops("convert", *given, "--verify", "--json")
    assert result.exit_code == 0, result.output
    document = as_json(result) if jobs is None else as_json(result)["conversions"][0]
    assert document["verified"]["verified"] and not document["verified"]["differences"]
    assert as_json(specops("convert", xml, "--json"))["verified"] is None
    assert "checked 1 rewrites: 1 agree, 0 were rejected\n" in specops("convert", xml, "--verify").stdout


def test_to_standard_output(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    command = [sys.executable, "-m", "converters.cli", "convert", str(xml), "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    session = ort.InferenceSession(done.stdout, providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert b"layers became" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["model.bin", "model.xml"]


@pytest.mark.parametrize("options", [["--json"], ["--check"], ["--weights", "copy"]])
def test_standard_output_has_only_the_model(tmp_path: Path, options: list[str]) -> None:
    result = specops("convert", save_dense(tmp_path / "model.xml"), "-o", "-", *options)
    assert result.exit_code == 2
    said = result.stdout if "--json" in options else result.stderr  # with --json, the output is JSON only
    assert re.search(rf"(?s){options[0]}.*standard output", said)


def test_weights_in_another_folder(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    (tmp_path / "blobs").mkdir()
    weights = shutil.move(tmp_path / "model.bin", tmp_path / "blobs" / "0123abcd")
    assert specops("convert", xml).exit_code == 2
    result = specops("convert", xml, "--bin", weights, "--check")
    assert result.exit_code == 0, result.output
    kernel = onnx.numpy_helper.to_array(onnx.load(tmp_path / "model.onnx").graph.initializer[0])
    assert sorted(kernel.reshape(-1)) == sorted(np.fromfile(weights, np.float32))


def test_float16_is_checked_with_its_own_tolerance(tmp_path: Path) -> None:
    """A deep network differs from OpenVINO in float32 by many roundings, and is correct."""
    rng = np.random.default_rng(0)
    x = hidden = ops.parameter([4, 64], np.float32, name="x")
    for _ in range(12):
        weights = rng.standard_normal((64, 64)).astype(np.float32) / 8
        hidden = ops.tanh(ops.matmul(hidden, ops.constant(weights), False, False))
    ov.save_model(ov.Model([hidden], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    assert specops("convert", tmp_path / "model.xml", "--fp16", "--check").exit_code == 0
    half = tmp_path / "model.onnx"
    assert specops("validate", tmp_path / "model.xml", half, "--rtol", 1e-5, "--atol", 1e-6).exit_code == 1


def test_an_onnx_model_is_rejected(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    assert specops("convert", xml).exit_code == 0
    before = (tmp_path / "model.onnx").read_bytes()
    result = specops("convert", tmp_path / "model.onnx")
    assert result.exit_code == 2
    assert "would be overwritten" in " ".join(result.stderr.split())
    assert (tmp_path / "model.onnx").read_bytes() == before
    assert specops("convert", tmp_path / "model.onnx", "-o", tmp_path / "again.onnx", "--check").exit_code == 0


def test_fixed_input_shapes(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    result = specops("convert", xml, "--input-shape", "x=5x32", "--check")
    assert result.exit_code == 0, result.output
    graph = onnx.load(tmp_path / "model.onnx").graph
    for value in (*graph.input, *graph.output):
        assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == [5, 32]


@pytest.mark.parametrize("dim", ["?", "-1", "1..8", "..8"])
def test_dimensions_that_stay_dynamic(dim: str, tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    result = specops("convert", xml, "--input-shape", f"x={dim}x32", "--check")
    assert result.exit_code == 0, result.output
    (value,) = onnx.load(tmp_path / "model.onnx").graph.input
    batch, width = value.type.tensor_type.shape.dim
    assert (batch.HasField("dim_value"), width.dim_value) == (False, 32)


@pytest.mark.parametrize("dim", ["??", "-2", "1.8", "1..8..9", "²"])
def test_invalid_dimensions(dim: str, tmp_path: Path) -> None:
    result = specops("convert", save_dense(tmp_path / "model.xml"), "--input-shape", f"x={dim}x32")
    assert result.exit_code == 2 and "with ? for a dynamic dimension" in " ".join(result.stderr.split())


def test_a_folder_of_models_with_a_dynamic_dimension(zoo: Path, tmp_path: Path) -> None:
    result = specops("convert", zoo, "-o", tmp_path / "out", "--input-shape", "x=?x32", "--jobs", 2)
    assert result.exit_code == 0, result.output
    (value,) = onnx.load(tmp_path / "out" / "a" / "one.onnx").graph.input
    assert not value.type.tensor_type.shape.dim[0].HasField("dim_value")


def test_shapes_that_openvino_accepts_in_reshape(tmp_path: Path) -> None:
    """A network of fixed size at another size. The shapes in the file are no longer valid."""
    x = ops.parameter([1, 3, 8, 8], np.float32, name="x")
    kernel = ops.constant(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32))
    y = ops.convolution(x, kernel, [2, 2], [1, 1], [1, 1], [1, 1])
    model = ov.Model([ops.reduce_mean(y, np.array([2, 3]), True)], [x])
    ov.save_model(model, tmp_path / "model.xml")
    assert specops("convert", tmp_path / "model.xml", "--input-shape", "x=2x3x12x10").exit_code == 0
    data = np.random.default_rng(1).standard_normal((2, 3, 12, 10)).astype(np.float32)
    model.reshape([2, 3, 12, 10])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([data])[0]
    session = ort.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == [2, 3, 12, 10]
    np.testing.assert_allclose(session.run(None, {"x": data})[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "message"),
    [("y=5x32", "there is no input named y"), ("x=5", "has 1 dimensions, the input 2"), ("x=ax3", "--input-shape")],
)
def test_invalid_input_shapes(tmp_path: Path, shape: str, message: str) -> None:
    result = specops("convert", save_dense(tmp_path / "model.xml"), "--input-shape", shape)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


# -- attributes that OpenVINO ignores ----------------------------------------------------------------------------------


def test_strict_rejects_ignored_attributes(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    xml.write_text(xml.read_text().replace('<data transpose_a="false"', '<data eta="1" transpose_a="false"'))
    told = specops("convert", xml)
    assert told.exit_code == 0
    assert "the attribute eta of MatMul" in told.stdout
    refused = specops("convert", xml, "--strict", "-o", tmp_path / "strict.onnx")
    assert refused.exit_code == 2
    assert "the attribute eta of MatMul" in refused.stderr
    assert not (tmp_path / "strict.onnx").exists()


# -- external rules ----------------------------------------------------------------------------------------------------


def test_external_rules(tmp_path: Path) -> None:
    result = run(
        "convert", EXTENSION / "sparsemax.xml", "-o", tmp_path / "model.onnx", "--rules", EXTENSION / "sparsemax_rules.py"
    )
    assert result.returncode == 0, result.stderr
    assert "Sparsemax" in result.stdout


def test_without_external_rules_the_layer_is_reported(tmp_path: Path) -> None:
    result = run("convert", EXTENSION / "sparsemax.xml", "-o", tmp_path / "model.onnx")
    assert result.returncode == 1
    assert "no rule converts Sparsemax" in " ".join(result.stderr.split())
    assert "--rules" in result.stderr


def test_rules_for_each_process_of_several(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for suffix in (".xml", ".bin"):
            shutil.copy(EXTENSION / f"sparsemax{suffix}", tmp_path / f"{name}{suffix}")
    result = run("convert", tmp_path, "--rules", EXTENSION / "sparsemax_rules.py", "-j", "2")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "a.onnx").is_file() and (tmp_path / "b.onnx").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [("import nothing_of_that_name", "ModuleNotFoundError"), ("rule(", "SyntaxError"), (None, "FileNotFound")],
)
def test_rules_that_fail(tmp_path: Path, text: str | None, message: str) -> None:
    rules = tmp_path / "mine.py"
    if text is not None:
        rules.write_text(text)
    result = specops("convert", save_dense(tmp_path / "model.xml"), "--rules", rules)
    assert result.exit_code == 2
    assert "mine.py" in result.stderr and message in result.stderr


def run(*arguments: object) -> subprocess.CompletedProcess:
    """Run the command in a separate process, because rules stay registered."""
    return forked.specops(*arguments, COLUMNS="200")
