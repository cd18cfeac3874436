"""``convert(opset=N)`` from a user's perspective."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as op
from typer.testing import CliRunner

from converters.cli.app import app
from converters.errors import Fault, UnsupportedError
from converters.openvino import convert
from onnx_specops import DOMAIN
from onnx_specops.lowering import newest

MODELS = Path(__file__).parents[3] / "models"
EMBEDDING = MODELS / "embedding_bag_offsets_sum" / "model.xml"


def domains(model: onnx.ModelProto) -> set[str]:
    return {entry.domain for entry in model.opset_import}


@pytest.mark.parametrize(("opset", "ir_version"), [(11, 6), (13, 7), (15, 8), (17, 8), (19, 9), (20, 9)])
def test_below_21_the_file_is_standard_onnx(opset: int, ir_version: int, tmp_path: Path):
    model, report = convert(EMBEDDING, tmp_path / "model.onnx", opset=opset)
    assert [entry.version for entry in model.opset_import if not entry.domain] == [opset]
    assert model.ir_version == ir_version and not model.functions and DOMAIN not in domains(model)
    assert report.opset == opset and report.inlined == ["EmbeddingBagOffsetsSum"] and not report.custom_operators
    onnx.checker.check_model(model, full_check=True)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs, expected = (np.load(EMBEDDING.with_name(name)) for name in ("inputs.npz", "expected.npz"))
    results = session.run(None, {x.name: inputs[x.name] for x in session.get_inputs()})
    for output, got in zip(session.get_outputs(), results, strict=True):
        np.testing.assert_allclose(got, expected[output.name], rtol=1e-4, atol=1e-5)


def test_from_21_on_the_file_has_operators_with_bodies():
    for opset in (21, newest()):
        model, report = convert(EMBEDDING, opset=opset)
        assert report.custom_operators == ["EmbeddingBagOffsetsSum"] and not report.inlined and model.functions
        for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
            assert [entry.version for entry in imports if not entry.domain] in ([], [opset])


def test_21_is_the_default():
    assert convert(EMBEDDING).model.SerializeToString() == convert(EMBEDDING, opset=21).model.SerializeToString()


@pytest.mark.parametrize(
    ("opset", "told"), [(10, "opset must be 11 or more"), (newest() + 1, f"opset must be 11 to {newest()}")]
)
def test_invalid_opsets(opset: int, told: str):
    with pytest.raises(ValueError, match=told):
        convert(EMBEDDING, opset=opset)


def unrepresentable(folder: Path) -> Path:
    """Create a model with two layers that opset 11 cannot represent."""
    x = op.parameter([4], ov.Type.bf16, name="x")
    x.output(0).set_names({"x"})
    text = op.parameter(ov.PartialShape([-1]), ov.Type.string, name="text")
    text.output(0).set_names({"text"})
    path = folder / "model.xml"
    ov.save_model(ov.Model([op.relu(x), text], [x, text]), path, compress_to_fp16=False)
    return path


def test_errors_name_the_layer_and_the_lowest_opset(tmp_path: Path):
    with pytest.raises(UnsupportedError) as caught:
        convert(unrepresentable(tmp_path), opset=11)
    problems = caught.value.problems
    assert {problem.layer_type for problem in problems} == {"Parameter", "Result"}
    for problem in problems:
        assert problem.fault is Fault.UNSUPPORTED and problem.line is not None
        assert problem.message == "opset 11 cannot represent an input or output of the type BFLOAT16"
        assert problem.remedy == "use opset 13 or newer"
    convert(tmp_path / "model.xml", opset=13)


@pytest.mark.parametrize("name", ["dft", "idft", "irdft"])
def test_complex_numbers_whose_last_dimension_the_file_does_not_state(name: str, tmp_path: Path):
    x, amounts = op.parameter([-1, -1, 2], ov.Type.f32, name="x"), op.parameter([3], ov.Type.i64, name="amounts")
    padded = op.pad(x, amounts, op.constant(np.zeros(3, np.int64)), "constant", op.constant(np.float32(0)))
    assert padded.output(0).partial_shape[2].is_dynamic
    model = ov.Model([getattr(op, name)(padded, op.constant(np.array([1])))], [x, amounts])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    given = {"x": np.random.default_rng(0).random((2, 4, 2), np.float32), "amounts": np.array([1, 2, 0])}
    wanted = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given["x"], given["amounts"]])[0]
    converted, _ = convert(tmp_path / "model.xml", opset=13)
    session = ort.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, given)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


def test_operators_without_a_body_name_their_layers():
    with pytest.raises(UnsupportedError) as caught:
        convert(MODELS / "recommender" / "model.xml", opset=17)
    assert len(caught.value.problems) > 1
    assert all(problem.layer_name and problem.remedy == "use opset 21 or newer" for problem in caught.value.problems)


def test_the_command(tmp_path: Path):
    target = tmp_path / "model.onnx"
    done = CliRunner().invoke(app, ["convert", str(EMBEDDING), "-o", str(target), "--opset", "13", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["opset"] == 13 and document["inlined"] == ["EmbeddingBagOffsetsSum"] and document["clamped"] == []
    assert onnx.load(target).opset_import[0].version == 13


def test_the_command_reports_that_kernels_do_not_apply(tmp_path: Path):
    done = CliRunner().invoke(app, ["convert", str(EMBEDDING), "-o", str(tmp_path / "model.onnx"), "--opset", "13"])
    assert (
        "replaced by their function bodies at opset 13, so the plugin's kernels are not used: EmbeddingBagOffsetsSum"
        in done.output
    )


@pytest.mark.parametrize(("options", "code"), [(["--opset", "10"], 2), (["--opset", "99"], 2), (["--fp16", "--fp32"], 2)])
def test_bad_usage(options: list[str], code: int, tmp_path: Path):
    done = CliRunner().invoke(app, ["convert", str(EMBEDDING), "-o", str(tmp_path / "model.onnx"), *options])
    assert done.exit_code == code


def test_several_models_at_an_opset(tmp_path: Path):
    command = ["convert", str(MODELS / "matmul"), str(EMBEDDING.parent), "-o", str(tmp_path)]
    for jobs in ("1", "2"):
        for folder in ("matmul", "embedding_bag_offsets_sum"):
            (tmp_path / folder).mkdir(exist_ok=True)
        done = CliRunner().invoke(app, [*command[:2], "-o", str(tmp_path / "matmul"), "--opset", "12", "--fp16", "-j", jobs])
        assert done.exit_code == 0, done.output
        assert onnx.load(tmp_path / "matmul" / "model.onnx").opset_import[0].version == 12
