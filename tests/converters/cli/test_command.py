"""The subcommands of ``specops``: their output, files and exit codes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops
from typer.testing import CliRunner

import onnx_specops
from converters.cli.app import app
from tests.converters.cli.specops import MODELS, as_json, copy_of, save_dense, specops


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return save_dense(tmp_path / "model.xml")


@pytest.fixture
def bags(tmp_path: Path) -> Path:
    """Save the embedding bags of models/, which become operators of the domain."""
    return copy_of("embedding_bag_offsets_sum", tmp_path)


def unknown_layer(xml: Path) -> Path:
    """Give the model a layer of an unknown type."""
    xml.write_text(xml.read_text().replace('type="ReLU"', 'type="Magic[red]Layer"'))
    return xml


# -- the command itself -------------------------------------------------------------------------------------------------


def test_no_arguments_print_the_help() -> None:
    result = specops()
    assert result.exit_code in (0, 2)  # releases of typer differ
    assert all(name in result.output for name in ("convert", "run", "validate", "inspect", "ops"))


def test_version() -> None:
    result = specops("--version")
    assert (result.exit_code, result.stdout) == (0, f"specops {onnx_specops.__version__}\n")


@pytest.mark.parametrize("built", [True, False])
def test_version_without_native_kernels(built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install -q` hides the message of a build without a compiler."""
    monkeypatch.setattr("onnx_specops.runtime.library.has_library", lambda: built)
    result = specops("--version")
    assert (result.exit_code, result.stdout) == (0, f"specops {onnx_specops.__version__}\n")
    assert ("native kernels are not built. To build them" in result.stderr) is not built


@pytest.mark.parametrize("command", ["convert", "run", "validate", "inspect", "ops"])
def test_every_option_has_help(command: str) -> None:
    result = specops(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ("transmogrify",),
        ("convert",),
        ("convert", "a.xml", "--weights", "inline"),
        ("convert", "a.xml", "b.xml", "--inputs", "x.npz"),
        ("convert", "a.xml", "b.xml", "--bin", "a.bin"),
        ("convert", "a.xml", "--input-shape", "x=1xn"),
        ("convert", "a.xml", "--inputs", "x.npz"),
        ("convert", "a.xml", "--shape", "x=1x3"),
        ("convert", "a.xml", "--rtol", "0.1"),
        ("convert", "a.xml", "--verify", "--rtol", "0.1"),
        ("convert", "a.xml", "b.xml", "-o", "x.onnx"),
        ("convert", "a.xml", "--jobs", "0"),
        ("run", "a.onnx", "--kernels", "gpu"),
        ("run", "a.onnx", "--seed", "-1"),
        ("validate", "a.xml", "--rtol", "-1"),
        ("validate", "a.xml", "--atol", "much"),
        ("validate", "a.xml", "--runtime", "tensorflow"),
        ("inspect",),
        ("inspect", "a.xml", "--all-operations"),
        ("ops", "--yaml"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    result = specops(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("command", [(), ("convert",), ("validate",), ("inspect",), ("run",), ("ops",)])
def test_flags_have_no_value(command: tuple[str, ...]) -> None:
    assert "bool" not in specops(*command, "--help").stdout.lower()


@pytest.mark.parametrize(
    "arguments",
    [("convert",), ("convert", "a.xml", "--jobs", "0"), ("convert", "a.xml", "-o", "-"), ("inspect",), ("ops", "--yaml")],
)
def test_bad_usage_as_json(arguments: tuple[str, ...]) -> None:
    result = specops(*arguments, "--json")
    assert result.exit_code == 2
    (problem,) = as_json(result)["problems"]
    assert problem["message"] and problem["fault"] == "usage"
    assert not result.stderr


def test_shells_complete_subcommands_and_options() -> None:
    def completed(words: str) -> list[str]:
        asked = {
            "_SPECOPS_COMPLETE": "complete_bash",
            "COMP_WORDS": f"specops {words}",
            "COMP_CWORD": str(words.count(" ") + 1),
        }
        return CliRunner().invoke(app, [], prog_name="specops", env=asked).stdout.split()

    assert completed("con") == ["convert"]
    assert completed("convert --wei") == ["--weights"]
    assert completed("convert --weights e") == ["embed"]


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_interruption(dense: Path, json_too: tuple[str, ...]) -> None:
    (dense.parent / "rules.py").write_text("raise KeyboardInterrupt")
    result = specops("convert", dense, "--rules", dense.parent / "rules.py", *json_too)
    assert result.exit_code == 130
    assert "interrupted" in (as_json(result)["problems"][0]["message"] if json_too else result.stderr)


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_too_little_memory(tmp_path: Path, command: str, json_too: tuple[str, ...]) -> None:
    x = ops.parameter([-1, -1, -1], np.float32, name="x")
    ov.save_model(ov.Model([ops.relu(x)], [x]), tmp_path / "model.xml")
    specops("convert", tmp_path / "model.xml")
    model = tmp_path / ("model.onnx" if command == "run" else "model.xml")
    result = specops(command, model, "--shape", "x=99999x99999x99999", *json_too)
    assert result.exit_code == 2
    told = as_json(result)["problems"][0]["message"] if json_too else result.stderr
    assert "not enough memory: Unable to allocate" in told


# -- convert -------------------------------------------------------------------------------------------------------------


def test_convert_writes_next_to_the_model(dense: Path) -> None:
    result = specops("convert", dense)
    target = dense.with_suffix(".onnx")
    assert result.exit_code == 0
    assert re.fullmatch(
        rf"{re.escape(str(target))}: 5 layers became 2 nodes, 4\.0 KiB of weights \(embedded\), \d+\.\d\d s\n", result.stdout
    )
    assert not result.stderr
    onnx.checker.check_model(str(target), full_check=True)


@pytest.mark.parametrize(
    ("weights", "placement", "files"),
    [
        ("auto", "embed", {"model.onnx"}),
        ("embed", "embed", {"model.onnx"}),
        ("copy", "copy", {"model.onnx", "model.onnx.data"}),
        ("reference", "reference", {"model.onnx"}),
    ],
)
def test_convert_places_the_weights(dense: Path, weights: str, placement: str, files: set[str]) -> None:
    result = specops("convert", dense, "--weights", weights, "--json")
    assert result.exit_code == 0
    document = as_json(result)
    assert document["weights"] == placement
    assert {path.name for path in dense.parent.iterdir()} - {"model.xml", "model.bin"} == files
    assert specops("validate", dense, dense.with_suffix(".onnx")).exit_code == 0


def test_convert_and_check(bags: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "bags.onnx"
    target.parent.mkdir()
    result = specops("convert", bags, "-o", target, "--check")
    assert result.exit_code == 0, result.output
    first, *_, last = result.stdout.splitlines()
    assert first.startswith(f"{target}: ")
    assert last.startswith("agree: OpenVINO, CPU; ONNX Runtime")
    assert "custom operators: EmbeddingBagOffsetsSum" in result.stdout
    assert target.is_file()


def test_convert_as_json(bags: Path) -> None:
    document = as_json(specops("convert", bags, "--check", "--json"))
    assert set(document) == {
        "output", "model", "layers", "nodes", "custom_operators", "without_body", "contrib_operators", "weights",
        "weights_bytes", "seconds", "passed_over", "verified", "check", "opset", "inlined", "clamped", "unranked",
        "without_kernel", "assumptions",
    }  # fmt: skip
    assert document["layers"]["EmbeddingBagOffsetsSum"] == document["nodes"]["onnx_specops.EmbeddingBagOffsetsSum"]
    assert document["custom_operators"] == ["EmbeddingBagOffsetsSum"]
    assert document["without_body"] == []
    assert document["check"]["agrees"] is True


def test_check_fails_for_differences_beyond_the_tolerance(dense: Path) -> None:
    """Summation noise exceeds a tolerance of zero."""
    result = specops("convert", dense, "--check", "--rtol", "0", "--atol", "0")
    exact = specops("validate", dense, "--json", "--rtol", "0", "--atol", "0")
    shares = [o["exact"] for r in as_json(exact)["runtimes"][1:] for o in r["outputs"].values()]
    assert result.exit_code == (0 if set(shares) == {1.0} else 1)


def test_output_in_a_folder(dense: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    result = specops("convert", dense, "-o", tmp_path / "out", "--json")
    assert as_json(result)["output"] == str(tmp_path / "out" / "model.onnx")
    assert (tmp_path / "out" / "model.onnx").is_file()
    result = specops("convert", dense, "-o", f"{tmp_path}/none/")
    assert (result.exit_code, result.stderr) == (2, f"error: the folder does not exist\n  --> {tmp_path}/none/\n")


def test_an_input_of_unknown_rank(tmp_path: Path) -> None:
    """ONNX has no representation that its checker accepts. The command gives a remedy."""
    x = ops.parameter(ov.PartialShape.dynamic(), np.float32, name="x")
    x.output(0).set_names({"x"})
    xml = tmp_path / "model.xml"
    ov.save_model(ov.Model([ops.relu(x)], [x]), xml)
    assert (
        "x has an unknown rank, which onnx.checker rejects; set its shape with --input-shape x="
        in specops("convert", xml).stdout
    )
    assert as_json(specops("convert", xml, "--json"))["unranked"] == ["x"]
    outputs = as_json(specops("run", xml.with_suffix(".onnx"), "--shape", "x=2x3", "--json"))["outputs"]
    assert [output["shape"] for output in outputs.values()] == [[2, 3]]
    assert as_json(specops("convert", xml, "--input-shape", "x=2x3", "--json"))["unranked"] == []
    onnx.checker.check_model(xml.with_suffix(".onnx"), full_check=True)


def test_run_of_a_scalar(tmp_path: Path) -> None:
    x = ops.parameter([], np.float32, name="x")
    ov.save_model(ov.Model([ops.relu(x)], [x]), tmp_path / "model.xml")
    specops("convert", tmp_path / "model.xml")
    outputs = as_json(specops("run", tmp_path / "model.onnx", "--json"))["outputs"]
    assert [output["shape"] for output in outputs.values()] == [[]]
    (problem,) = as_json(specops("run", tmp_path / "model.onnx", "--shape", "x=2x3", "--json"))["problems"]
    assert "the model requires []" in problem["message"]


def test_run_within_the_bounds_of_the_ir(tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape([ov.Dimension(5, 8), 2]), np.float32, name="x")
    ov.save_model(ov.Model([ops.relu(x)], [x]), tmp_path / "model.xml")
    specops("convert", tmp_path / "model.xml")
    outputs = as_json(specops("run", tmp_path / "model.onnx", "--json"))["outputs"]
    assert [output["shape"] for output in outputs.values()] == [[5, 2]]


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_casts_of_inputs_are_reported(dense: Path, json_too: tuple[str, ...]) -> None:
    specops("convert", dense)
    np.savez(dense.parent / "in.npz", x=np.ones((1, 32)))
    result = specops("run", dense.with_suffix(".onnx"), "--inputs", dense.parent / "in.npz", *json_too)
    note = f"x is float64 in {dense.parent / 'in.npz'}, and float32 for the model"
    assert as_json(result)["notes"] == [note] if json_too else result.stderr.replace("\n", "") == f"note: {note}"


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_too_little_memory_for_the_outputs_of_a_model(tmp_path: Path, json_too: tuple[str, ...]) -> None:
    n = ops.parameter([2], np.int64, name="n")
    n.output(0).set_names({"n"})
    ov.save_model(ov.Model([ops.broadcast(ops.constant(np.float32(1)), n)], [n]), tmp_path / "model.xml")
    specops("convert", tmp_path / "model.xml")
    np.savez(tmp_path / "in.npz", n=np.array([10**7, 10**8]))
    result = specops("run", tmp_path / "model.onnx", "--inputs", tmp_path / "in.npz", *json_too)
    assert result.exit_code == 2
    told = as_json(result)["problems"][0]["message"] if json_too else result.stderr
    assert "not enough memory: ONNX Runtime ran" in told
    assert "which requested 4,000,000,000,000,000 bytes" in told.replace("\n", " ")


def test_equal_problems_of_many_layers_share_a_line(tmp_path: Path) -> None:
    x = ops.parameter([2], np.float32, name="x")
    y = x
    for _ in range(30):
        y = ops.relu(y)
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    result = specops("convert", unknown_layer(tmp_path / "model.xml"))
    lines = result.stderr.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert [line.startswith("  --> ") for line in lines] == [False, *[True] * 9, False]
    assert lines[9] == "  --> and 22 more"
    assert len(as_json(specops("convert", tmp_path / "model.xml", "--json"))["problems"]) == 30


def test_layers_without_a_rule_are_reported_with_their_lines(dense: Path) -> None:
    result = specops("convert", unknown_layer(dense))
    assert result.exit_code == 1
    assert not result.stdout
    assert not dense.with_suffix(".onnx").exists()
    lines = result.stderr.splitlines()
    assert lines[0] == "error: no rule converts Magic[red]Layer (opset1)"
    assert re.fullmatch(rf'  --> {re.escape(str(dense))}:\d+ layer "y" \(Magic\[red\]Layer, id \d+\)', lines[1])
    assert lines[2].startswith("  help: ")


def test_problems_as_json(dense: Path) -> None:
    result = specops("convert", unknown_layer(dense), "--json")
    assert result.exit_code == 1
    (problem,) = as_json(result)["problems"]
    assert set(problem) == {"message", "fault", "file", "line", "layer_name", "layer_type", "layer_id", "remedy"}
    assert problem["fault"] == "unsupported"
    assert problem["file"] == str(dense)
    assert problem["layer_type"] == "Magic[red]Layer"


@pytest.mark.parametrize("text", ["", "<net", "\0", "<html/>", '<net name="x" version="9"><layers/><edges/></net>'])
@pytest.mark.parametrize("command", ["convert", "validate", "inspect"])
def test_files_that_are_not_ir_are_bad_input(command: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(text)
    result = specops(command, path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert str(path) in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("command", ["convert", "validate", "inspect", "run"])
@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_files_that_cannot_be_read(command: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "no.xml"
    for extra in ((), ("--json",)):
        result = specops(command, path, *extra)
        assert result.exit_code == 2
        assert str(path) in result.output


def test_a_target_that_cannot_be_written(dense: Path) -> None:
    target = dense.parent / "no" / "model.onnx"
    result = specops("convert", dense, "-o", target)
    assert (result.exit_code, result.stderr) == (2, f"error: the folder does not exist\n  --> {target.parent}\n")


@pytest.mark.parametrize("output", ["model.xml", "model.bin", "inputs.npz"])
def test_no_output_over_an_input(bags: Path, output: str) -> None:
    before = (bags.parent / output).read_bytes()
    target = bags.parent / output
    result = specops("convert", bags, "-o", target, "--check", "--inputs", bags.parent / "inputs.npz")
    assert (result.exit_code, result.stderr) == (2, f"error: {target} is an input and would be overwritten\n")
    assert target.read_bytes() == before


def test_no_output_of_several_over_any_input(bags: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").symlink_to(bags)
    before = bags.read_bytes()
    for arguments in ((tmp_path,), (bags, MODELS / "recommender" / "model.xml")):
        result = specops("convert", *arguments, "-o", tmp_path / "out")
        assert result.exit_code == 2, result.output
    assert bags.read_bytes() == before


def test_two_models_are_not_written_to_one_file(bags: Path, tmp_path: Path) -> None:
    shutil.copy(bags, tmp_path / "other.xml")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").symlink_to("other.onnx")
    result = specops("convert", bags, tmp_path / "other.xml", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "have the same output file" in result.stderr


# -- run -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["model.onnx", "model.onnx.data", "inputs.npz"])
def test_outputs_are_not_written_over_the_model(dense: Path, output: str) -> None:
    specops("convert", dense, "--weights", "copy")
    target, inputs = dense.parent / output, dense.parent / "inputs.npz"
    np.savez(inputs, x=np.zeros((2, 32), np.float32))
    before = target.read_bytes()
    result = specops("run", dense.with_suffix(".onnx"), "--inputs", inputs, "--outputs", target)
    assert (result.exit_code, result.stderr) == (2, f"error: {target} is an input and would be overwritten\n")
    assert target.read_bytes() == before


@pytest.mark.parametrize("kernels", ["auto", "python", "none"])
def test_run_with_inputs_and_outputs(bags: Path, tmp_path: Path, kernels: str) -> None:
    assert specops("convert", bags).exit_code == 0
    written = tmp_path / "outputs.npz"
    model = bags.with_suffix(".onnx")
    result = specops("run", model, "--inputs", tmp_path / "inputs.npz", "--outputs", written, "--kernels", kernels)
    assert result.exit_code == 0, result.output
    with np.load(written) as got, np.load(tmp_path / "expected.npz") as expected:
        assert set(got.files) == set(expected.files)
        for name in expected.files:
            assert got[name].dtype == expected[name].dtype
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_random_inputs_follow_the_seed(dense: Path) -> None:
    specops("convert", dense)
    model = dense.with_suffix(".onnx")
    first, again, other = (as_json(specops("run", model, "--json", "--seed", seed)) for seed in (1, 1, 2))
    assert first == again
    assert first["outputs"]["y"]["values"] != other["outputs"]["y"]["values"]
    assert first["outputs"]["y"]["shape"] == [2, 32]
    assert first["outputs"]["y"]["type"] == "float32"


def test_random_inputs_have_the_requested_shapes(dense: Path, tmp_path: Path) -> None:
    assert specops("convert", dense, "--check", "--shape", "x=7x32").exit_code == 0
    model = dense.with_suffix(".onnx")
    assert as_json(specops("run", model, "--json", "--shape", "x=7x32"))["outputs"]["y"]["shape"] == [7, 32]
    assert specops("validate", dense, model, "--shape", "x=1x32").exit_code == 0
    for arguments, message in (
        (("--shape", "x=7x33"), "the model requires"),
        (("--shape", "y=7x32"), "there is no input named y"),
        (("--shape", "x=7x32", "--inputs", "x.npz"), "shapes apply to random inputs"),
        (("--shape", "7x32"), "is not of the form"),
        (("--shape", "x=7xn"), "is not of the form"),
    ):
        result = specops("run", model, *arguments)
        assert (result.exit_code, message in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_a_size_that_runs_is_found(tmp_path: Path) -> None:
    """An image network needs more than the default of 2 for unknown dimensions."""
    x = ops.parameter([-1, 3, -1, -1], np.float32, name="x")
    kernel = ops.constant(np.random.default_rng(0).standard_normal((4, 3, 40, 40)).astype(np.float32))
    y = ops.convolution(x, kernel, [1, 1], [0, 0], [0, 0], [1, 1])
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    result = specops("validate", tmp_path / "model.xml", "--runtime", "openvino", "--runtime", "none")
    assert result.exit_code == 0, result.output
    assert "x has the shape [2, 3, 64, 64]" in " ".join(result.output.split())


def test_guessed_shapes_are_reported_if_none_works(tmp_path: Path) -> None:
    x = ops.parameter([-1, -1], np.float32, name="x")
    y = ops.matmul(x, ops.constant(np.ones((5, 2), np.float32)), False, False)
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    result = specops("validate", tmp_path / "model.xml", "--runtime", "openvino", "--runtime", "none")
    assert result.exit_code == 1
    assert "shapes of these random inputs are guesses: x." in " ".join(result.stdout.split())
    assert specops("validate", tmp_path / "model.xml", "--shape", "x=3x5").exit_code == 0


def test_run_shows_the_first_values(dense: Path) -> None:
    specops("convert", dense)
    result = specops("run", dense.with_suffix(".onnx"))
    assert result.exit_code == 0
    assert re.search(r"\by\s+2x32\s+float32\s+", result.stdout)
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_numbers_that_json_lacks_are_strings(tmp_path: Path) -> None:
    x = ops.parameter([3], np.float32, name="x")
    y = ops.log(x)
    y.output(0).set_names({"y"})
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    specops("convert", tmp_path / "model.xml")
    np.savez(tmp_path / "in.npz", x=np.array([1, 0, -1], np.float32))
    result = specops("run", tmp_path / "model.onnx", "--inputs", tmp_path / "in.npz", "--json")
    assert as_json(result)["outputs"]["y"]["values"] == [0.0, "-inf", "nan"]


def test_strings_in_and_out(tmp_path: Path) -> None:
    text = copy_of("vocabulary_table", tmp_path)
    assert specops("convert", text).exit_code == 0
    result = specops("run", tmp_path / "model.onnx", "--inputs", tmp_path / "inputs.npz", "--json")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "expected.npz") as expected:
        for name in expected.files:
            assert as_json(result)["outputs"][name]["values"] == expected[name].reshape(-1).tolist()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "x missing; the file has no arrays"),
        ({"z": np.zeros((2, 32), np.float32)}, "x missing; the file has z"),
        ({"x": np.zeros((2, 31), np.float32)}, "x has the shape [2, 31], but the model requires [?, 32]"),
        ({"x": np.zeros(32, np.float32)}, "x has the shape [32], but the model requires [?, 32]"),
        ({"x": np.full((2, 32), "a")}, "x contains <U1 values that float32, the type of the input, cannot represent"),
        (
            {"x": np.full((2, 32), 0.1)},
            "x contains float64 values that float32, the type of the input, cannot represent; "
            "array.astype(np.float32) rounds them",
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "validate", "convert"])
def test_invalid_inputs(dense: Path, tmp_path: Path, arrays: dict, message: str, command: str) -> None:
    specops("convert", dense)
    np.savez(tmp_path / "in.npz", **arrays)
    model = dense.with_suffix(".onnx") if command == "run" else dense
    check = ["--check"] if command == "convert" else []
    result = specops(command, model, *check, "--inputs", tmp_path / "in.npz")
    assert result.exit_code == 2
    assert result.stderr == f"error: {tmp_path / 'in.npz'}: {message}\n"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text"])
def test_inputs_that_are_not_npz(dense: Path, tmp_path: Path, content: bytes) -> None:
    specops("convert", dense)
    (tmp_path / "in.npz").write_bytes(content)
    result = specops("run", dense.with_suffix(".onnx"), "--inputs", tmp_path / "in.npz")
    assert result.exit_code == 2
    assert "is not a readable .npz file" in result.stderr


def test_inputs_by_position_and_of_narrower_types(dense: Path, tmp_path: Path) -> None:
    specops("convert", dense)
    np.savez(tmp_path / "in.npz", np.ones((2, 32), np.int8))
    result = specops("run", dense.with_suffix(".onnx"), "--inputs", tmp_path / "in.npz")
    assert result.exit_code == 0, result.output


def test_run_in_ort_format(dense: Path, tmp_path: Path) -> None:
    assert specops("convert", dense).exit_code == 0
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(dense.with_suffix(".onnx"), options)
    np.savez(tmp_path / "in.npz", x=np.ones((3, 32), np.float32))
    for inputs in ((), ("--inputs", tmp_path / "in.npz")):
        outputs = [as_json(specops("run", path, *inputs, "--json"))["outputs"]
                   for path in (dense.with_suffix(".onnx"), tmp_path / "model.ort")]  # fmt: skip
        assert outputs[0] == outputs[1]


def test_run_of_an_invalid_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\0\1")
    result = specops("run", path)
    assert result.exit_code == 2
    assert result.stderr == f"error: {path} is not an ONNX model, or is damaged\n"


def test_run_reports_the_error_of_a_kernel(bags: Path, tmp_path: Path) -> None:
    specops("convert", bags)
    with np.load(tmp_path / "inputs.npz") as file:
        arrays = dict(file)
    name = next(n for n, a in arrays.items() if n.startswith("indices") and a.size)
    arrays[name] = np.full_like(arrays[name], 10**6)
    np.savez(tmp_path / "bad.npz", **arrays)
    for kernels in ("python", "none"):
        result = specops("run", tmp_path / "model.onnx", "--inputs", tmp_path / "bad.npz", "--kernels", kernels)
        assert result.exit_code == 2
        assert "1000000" in result.stderr or kernels == "none"
        assert "Traceback" not in result.stderr


# -- validate ------------------------------------------------------------------------------------------------------------


def test_validate_shows_every_output_and_runtime(bags: Path) -> None:
    result = specops("validate", bags)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"{bags}, compared with OpenVINO, CPU"
    assert lines[1].split() == ["shape", "type", "abs", "err", "rel", "err", "exact", "time"]
    for name in ("OpenVINO", "ORT Python", "ORT plain", "ONNX reference"):
        rows = [line for line in lines if line.startswith(f"  {name} ")]
        with np.load(bags.with_name("expected.npz")) as expected:
            assert len(rows) == len(expected.files)
    assert all(len(line) <= 80 for line in lines[1:] if line.startswith(" "))
    assert lines[-1].startswith("agree: OpenVINO, CPU; ")


def test_validate_as_json(bags: Path) -> None:
    document = as_json(specops("validate", bags, "--json"))
    of_layers = {"first_differences", "layers_compared", "layers", "worst", "times"}
    of_inputs = {"guessed", "notes", "samples", "sample", "samples_apart"}
    of_all = {"model", "baseline", "agrees", "runtimes", "openvino_in_low_precision"}
    assert set(document) == of_all | of_layers | of_inputs
    assert (document["baseline"], document["agrees"]) == ("openvino", True)
    assert [r["runtime"] for r in document["runtimes"]] == ["openvino", "native", "python", "none", "reference"]
    for runtime in document["runtimes"]:
        assert set(runtime) == {"runtime", "agrees", "skipped", "error", "seconds", "outputs"}
        for output in runtime["outputs"].values():
            assert set(output) == {
                "shape", "type", "max_absolute_error", "max_relative_error", "relative_l2", "exact", "beyond", "agrees",
                "note",
            }  # fmt: skip


def test_validate_only_some_runtimes(dense: Path) -> None:
    document = as_json(specops("validate", dense, "--runtime", "reference", "--runtime", "none", "--json"))
    assert [r["runtime"] for r in document["runtimes"]] == ["none", "reference"]
    assert document["baseline"] == "none"
    alone = specops("validate", dense, "--runtime", "none")
    assert alone.exit_code == 1
    assert "nothing to compare" in alone.stdout


def test_validate_a_model_that_was_changed(dense: Path) -> None:
    specops("convert", dense)
    path = dense.with_suffix(".onnx")
    model = onnx.load(path)
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).copy()
    weights[0] += 1
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, model.graph.initializer[0].name))
    onnx.save(model, path)
    result = specops("validate", dense, path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "differ: ONNX Runtime, no plugin; ONNX reference evaluator"
    document = as_json(specops("validate", dense, path, "--per-layer", "--json"))
    assert document["agrees"] is False
    assert {d["layer_type"] for d in document["first_differences"]} == {"MatMul"}


def test_validate_against_another_model(dense: Path, tmp_path: Path) -> None:
    x = ops.parameter([2], np.float32)
    ov.save_model(ov.Model([ops.relu(x), ops.abs(x)], [x]), tmp_path / "other.xml")
    specops("convert", tmp_path / "other.xml")
    result = specops("validate", dense, tmp_path / "other.onnx")
    assert result.exit_code == 2
    assert "has 2 outputs, but" in result.stderr
    for content in (b"", b"text"):
        (tmp_path / "bad.onnx").write_bytes(content)
        result = specops("validate", dense, tmp_path / "bad.onnx")
        assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)
    assert specops("validate", dense, tmp_path / "none.onnx").exit_code == 2


# -- inspect -------------------------------------------------------------------------------------------------------------


def test_inspect_without_weights(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    whole = as_json(specops("inspect", xml, "--json"))
    (tmp_path / "model.bin").unlink()
    result = specops("inspect", xml)
    assert result.exit_code == 0, result.output
    assert "5 layers: each has a rule" in result.stdout and "model.bin is missing" in result.stdout
    document = as_json(specops("inspect", xml, "--json"))
    assert (whole["weights_missing"], document["weights_missing"]) == (False, True)
    assert document["contents"] == whole["contents"]
    xml.write_text(xml.read_text().replace('type="ReLU"', 'type="Sorcery"'))
    result = specops("inspect", xml)
    assert result.exit_code == 1
    assert "Sorcery" in result.stderr and "5 layers: 1 problem" in result.stdout


@pytest.mark.parametrize("command", ["validate", "inspect"])
def test_weights_in_another_file(command: str, tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    (tmp_path / "blobs").mkdir()
    weights = (tmp_path / "model.bin").rename(tmp_path / "blobs" / "0123abcd")
    result = specops(command, xml, "--bin", weights)
    assert result.exit_code == 0, result.output
    assert "is missing" not in result.output
    assert specops(command, xml, "--bin", weights, "--report", weights).exit_code == 2
    assert weights.stat().st_size


def test_inspect_shows_the_conversion_of_layers(bags: Path) -> None:
    result = specops("inspect", bags)
    assert result.exit_code == 0
    assert "onnx_specops.EmbeddingBagOffsetsSum" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("layers: all can be converted")
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[1:])
    assert not bags.with_suffix(".onnx").exists()


def test_inspect_lists_unsupported_layers(dense: Path) -> None:
    result = specops("inspect", unknown_layer(dense))
    assert result.exit_code == 1
    assert re.search(r"Magic\[red\]Layer +opset1 +1 +cannot be converted", result.stdout)
    assert result.stdout.splitlines()[-1] == "5 layers: 1 problem"
    assert result.stderr.startswith("error: no rule converts Magic[red]Layer (opset1)\n  --> ")
    document = as_json(specops("inspect", dense, "--json"))
    assert len(document["problems"]) == 1
    assert {row["type"]: row["convertible"] for row in document["layers"]}["MatMul"] is True
    assert set(document["layers"][0]) == {"type", "version", "count", "becomes", "convertible"}


def test_inspect_all_operations() -> None:
    result = specops("inspect", "--all-operations")
    assert result.exit_code == 0
    assert re.search(r"^ Abs-0 +opset1 +standard +\d+ of \d+", result.stdout, re.MULTILINE)
    assert re.search(r"^245 of 245 operations have a rule: ", result.stdout, re.MULTILINE)
    assert re.search(
        r"^245 of 245 pass all of their test cases \(\d+ in total\), compared with OpenVINO \d", result.stdout, re.MULTILINE
    )
    document = as_json(specops("inspect", "--all-operations", "--json"))
    assert set(document) == {"operations", "total", "with_rule", "passing", "compared_with"}
    assert len(document["operations"]) == document["total"] == document["with_rule"] == document["passing"] == 245
    keys = {"name", "number", "version", "rule", "becomes", "custom_operators", "cases", "passed", "restrictions"}
    assert set(document["operations"][0]) == keys


# -- ops -----------------------------------------------------------------------------------------------------------------


def test_ops_lists_every_operator() -> None:
    result = specops("ops")
    assert result.exit_code == 0
    assert re.search(r"^ EmbeddingBagOffsetsSum +yes +yes +", result.stdout, re.MULTILINE)
    document = as_json(specops("ops", "--json"))
    assert (document["domain"], document["version"]) == ("onnx_specops", 1)
    assert {"operator": "StringToHashBucket", "python": ""}.items() <= document["operators"][
        [row["operator"] for row in document["operators"]].index("StringToHashBucket")
    ].items()
    assert set(document["operators"][0]) == {"operator", "body", "python", "native"}
