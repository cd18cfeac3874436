"""Targets: the contents of their files, and errors before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
from openvino import opset14
from typer.testing import CliRunner

from converters import options
from converters.cli.app import app
from converters.errors import UnsupportedError
from converters.openvino import convert
from converters.passes.spellings import SPELLINGS
from converters.targeting import inspect_for
from converters.targets import TARGETS
from converters.targets.onnxruntime import FIRST_WITHOUT_KERNEL, RELEASE
from converters.targets.target import Spelling
from onnx_specops.domain import DOMAIN
from tests.conformance.models import kept
from tests.conformance.models.table import NETWORKS
from tests.conformance.operations.cases import CASES
from tests.conformance.targets.networks import make

RECOMMENDER = Path(__file__).parents[2] / "models" / "recommender_int" / "model.xml"


def test_the_option_names_every_target() -> None:
    assert list(get_args(options.TargetName)) == list(TARGETS)


def test_spellings_are_passes() -> None:
    assert set(get_args(Spelling)) == set(SPELLINGS)
    assert all(set(target.spellings) <= set(SPELLINGS) for target in TARGETS.values())


def _network(name: str, folder: Path) -> Path:
    return kept.unpack(next(network for network in NETWORKS if network.name == name), folder)


def test_the_standard_target(tmp_path: Path) -> None:
    """No function, no domain except ONNX's, the oldest opset, and the same results."""
    model, report = convert(RECOMMENDER, tmp_path / "standard.onnx", target="standard")
    assert not model.functions and {node.domain for node in model.graph.node} <= {"", "ai.onnx.ml"}
    assert report.opset < 21 and report.opset == model.opset_import[0].version
    onnx.checker.check_model(model, full_check=True)
    inputs = dict(np.load(RECOMMENDER.with_name("inputs.npz"), allow_pickle=True))
    convert(RECOMMENDER, tmp_path / "default.onnx")
    outputs: list[list[Any]] = []
    for name in ("standard", "default"):
        session = ort.InferenceSession(tmp_path / f"{name}.onnx")
        feeds = {value.name: inputs[value.name] for value in session.get_inputs()}
        outputs.append(list(session.run(None, feeds)))
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_requested_opset(tmp_path: Path) -> None:
    path = _network("BitModel", tmp_path)
    assert convert(path, target="standard")[1].opset == 11
    assert convert(path, target="standard", opset=17)[1].opset == 17
    with pytest.raises(ValueError, match="supports opset 11 to 19, not 21"):
        convert(path, target="openvino", opset=21)


def test_unknown_dimensions_are_reported_by_name(tmp_path: Path) -> None:
    path, written = _network("BitModel", tmp_path), tmp_path / "model.onnx"
    with pytest.raises(UnsupportedError) as raised:
        convert(path, written, target="opencv")
    (problem,) = raised.value.problems
    assert "OpenCV's dnn module does not support inputs with dynamic dimensions" in problem.message
    assert problem.remedy.startswith("set its shape: --input-shape ") and problem.layer_type == "Parameter"
    assert not written.exists()
    name = problem.remedy.split("--input-shape ")[1].split("=")[0]
    assert convert(path, written, target="opencv", input_shapes={name: [1, 3, 64, 64]})[1].opset == 11


def test_unsupported_operators_are_reported_by_layer(tmp_path: Path) -> None:
    path = _network("TwoStages", tmp_path)
    with pytest.raises(UnsupportedError) as raised:
        convert(path, tmp_path / "model.onnx", target="tract")
    assert any(problem.layer_type == "ROIAlign" and "tract" in problem.message for problem in raised.value.problems)
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(
    ("target", "supported"), [("opencv", False), ("openvino", False), ("tract", False), ("standard", True)]
)
def test_deformable_convolutions(target: Any, supported: bool, tmp_path: Path) -> None:
    """Programs without DeformConv; other convolutions stay."""
    kernel = np.ones((2, 3, 3, 3), np.float32)
    sides: tuple[Any, ...] = ([1, 1], [1, 1], [1, 1], [1, 1])
    x, offsets = opset14.parameter([1, 3, 6, 6], name="x"), opset14.parameter([1, 18, 6, 6], name="offsets")
    plain = tmp_path / "plain.xml"
    ov.save_model(ov.Model([opset14.convolution(x, kernel, *sides)], [x]), plain)
    convert(plain, tmp_path / "plain.onnx", target=target)
    x = opset14.parameter([1, 3, 6, 6], name="x")
    path = tmp_path / "deformable.xml"
    ov.save_model(ov.Model([opset14.deformable_convolution(x, offsets, kernel, *sides)], [x, offsets]), path)
    if supported:
        convert(path, tmp_path / "deformable.onnx", target=target)
    else:
        with pytest.raises(UnsupportedError, match="the operator DeformConv; convert it for another target"):
            convert(path, tmp_path / "deformable.onnx", target=target)


def test_transposed_convolutions_of_volumes(tmp_path: Path) -> None:
    """OpenCV 4 computes those of images only."""
    for rank in (2, 3):
        x = opset14.parameter([1, 2, *[4] * rank], name="x")
        ones, zeros = [1] * rank, [0] * rank
        result = opset14.convolution_backprop_data(
            x, np.ones((2, 2, *[3] * rank), np.float32), ones, None, zeros, zeros, ones
        )
        ov.save_model(ov.Model([result], [x]), tmp_path / f"{rank}.xml")
    convert(tmp_path / "2.xml", target="opencv4")
    convert(tmp_path / "3.xml", target="opencv")
    with pytest.raises(UnsupportedError, match="does not support ConvTranspose three-dimensional; convert it for another"):
        convert(tmp_path / "3.xml", target="opencv4")


def test_sums_of_several_operands(tmp_path: Path) -> None:
    """MNN has Einsum of at most two operands."""
    for count in (2, 3):
        operands = [opset14.parameter([3, 4], name=f"x{index}") for index in range(count)]
        result = opset14.einsum(operands, ",".join(["ij"] * count) + "->i")
        ov.save_model(ov.Model([result], operands), tmp_path / f"{count}.xml")
    convert(tmp_path / "2.xml", target="mnn")
    with pytest.raises(UnsupportedError, match="does not support Einsum of three or more operands; convert it for another"):
        convert(tmp_path / "3.xml", target="mnn")


@pytest.mark.parametrize("computed", [False, True])
def test_computed_kernels(computed: bool, tmp_path: Path) -> None:
    """onnx2torch has modules for convolutions, whose kernels are parameters."""
    x = opset14.parameter([1, 3, 6, 6], name="x")
    kernel = opset14.parameter([2, 3, 3, 3], name="kernel") if computed else np.ones((2, 3, 3, 3), np.float32)
    result = opset14.convolution(x, kernel, [1, 1], [0, 0], [0, 0], [1, 1])
    ov.save_model(ov.Model([result], [x, kernel] if computed else [x]), tmp_path / "model.xml")
    if not computed:
        convert(tmp_path / "model.xml", target="onnx2torch")
        return
    convert(tmp_path / "model.xml", target="standard")
    with pytest.raises(UnsupportedError, match="does not support Conv with computed kernels"):
        convert(tmp_path / "model.xml", target="onnx2torch")


@pytest.mark.parametrize(("mode", "scale", "kept"), [("nearest", 0.6, False), ("nearest", 2.0, True), ("linear", 0.6, True)])
def test_nearest_images_by_free_scales(mode: str, scale: float, kept: bool, tmp_path: Path) -> None:
    """onnx2torch takes the quotients of the sizes for the scales of nearest pixels."""
    x = opset14.parameter([1, 3, 17, 17], name="x")
    scales = opset14.constant(np.full(2, scale, np.float32))
    result = opset14.interpolate(
        x,
        scales,
        mode,
        "scales",
        axes=opset14.constant(np.array([2, 3])),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    ov.save_model(ov.Model([result], [x]), tmp_path / "model.xml")
    assert ("Resize" in convert(tmp_path / "model.xml", target="onnx2torch")[1].nodes) == kept


def test_genai_requires_onnxruntime() -> None:
    with pytest.raises(ValueError, match="form='genai' requires target='onnxruntime' or target='cuda', not opencv"):
        options.Options(target="opencv", form="genai")
    assert options.Options(target="cuda", form="genai").target == "cuda"


def test_folded_weights_are_not_references() -> None:
    with pytest.raises(ValueError, match="weights='reference' requires target='onnxruntime'"):
        options.Options(target="standard", weights="reference")


@pytest.mark.parametrize(("used", "rejected"), [((0, 1), True), ((0,), False)])
def test_pooling_with_indices_is_rejected_for_cuda(used: tuple[int, ...], rejected: bool, tmp_path: Path) -> None:
    """CUDA gives the index of the last of equal maxima. Without its indices, the pooling stays."""
    x = opset14.parameter([1, 2, 6, 6], np.float32)
    pooled = opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2])
    ov.save_model(ov.Model([pooled.output(index) for index in used], [x]), tmp_path / "model.xml")
    if rejected:
        with pytest.raises(UnsupportedError, match="MaxPool with indices, which it computes incorrectly"):
            convert(tmp_path / "model.xml", tmp_path / "model.onnx", target="cuda")
        assert not (tmp_path / "model.onnx").exists()
    else:
        assert convert(tmp_path / "model.xml", target="cuda")[1].nodes["MaxPool"] == 1
    assert convert(tmp_path / "model.xml")[1].nodes["MaxPool"] == 1


def test_hashing_has_no_standard_form() -> None:
    """Hashing strings needs a kernel, which files for other programs cannot have."""
    path = RECOMMENDER.parents[1] / "vocabulary_table" / "model.xml"
    with pytest.raises(UnsupportedError, match="standard ONNX does not support"):
        convert(path, target="standard")


def test_inspection_counts_supported_nodes(tmp_path: Path) -> None:
    path = _network("TwoStages", tmp_path)
    taken = inspect_for(path, "tract")
    assert taken.opset is None and taken.untaken == {"RoiAlign": 1} and taken.taken["NonMaxSuppression"] == 1
    assert [problem.layer_type for problem in taken.problems] == ["ROIAlign"]
    taken = inspect_for(path, "standard")
    assert not taken.untaken and not taken.problems and taken.taken["RoiAlign"] == 1


def test_loops_of_known_iterations_are_unrolled(tmp_path: Path) -> None:
    path = _network("Greedy, scripted", tmp_path)
    assert inspect_for(path, "standard").taken["Loop"] == 1
    taken = inspect_for(path, "mnn")
    assert not taken.untaken and "Loop" not in taken.taken and taken.taken["Gemm"] == 3 * 6


@pytest.mark.parametrize(
    ("count", "condition", "stacked", "rejected"),
    [(50, True, True, False), (None, True, False, False), (None, True, True, True), (50, None, True, True)],
)
def test_loops_for_mnn(count: int | None, condition: bool | None, stacked: bool, rejected: bool) -> None:
    """MNN crashes if a Loop with stacked results has no iterations."""
    x, given = opset14.parameter([2, 3], np.float32), opset14.parameter([], np.int64)
    carried = opset14.parameter([2, 3], np.float32)
    doubled = opset14.multiply(carried, np.float32(2))
    going = opset14.less(opset14.reduce_max(doubled, [0, 1]), np.float32(9))
    first = opset14.constant(True) if condition else opset14.greater(given, np.int64(3))
    loop = opset14.loop(opset14.constant(count) if count else given, first)
    loop.set_function(ov.Model([going, doubled], [carried]))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(carried, x.output(0), doubled.output(0))
    results = [loop.get_iter_value(doubled.output(0), -1)]
    if stacked:
        results.append(loop.get_concatenated_slices(doubled.output(0), 0, 1, 1, -1, 0))
    model = ov.Model(results, [x, given])
    if rejected:
        with pytest.raises(UnsupportedError, match="with stacked results, if the number of iterations may be 0"):
            convert(model, target="mnn")
    else:
        assert convert(model, target="mnn").report.nodes["Loop"] == 1


def test_the_command(tmp_path: Path) -> None:
    path = _network("BitModel", tmp_path)
    runner = CliRunner()
    told = runner.invoke(app, ["inspect", str(path), "--target", "opencv", "--json"])
    assert told.exit_code == 1 and "--input-shape" in json.loads(told.stdout)["problems"][0]["remedy"]
    name = json.loads(told.stdout)["problems"][0]["remedy"].split("--input-shape ")[1].split("=")[0]
    shape = ["--input-shape", f"{name}=1x3x64x64"]
    told = runner.invoke(app, ["inspect", str(path), "--target", "opencv", *shape])
    assert told.exit_code == 0 and "all supported" in told.stdout
    told = runner.invoke(app, ["convert", str(path), "-o", str(tmp_path / "a.onnx"), "--target", "opencv", *shape])
    assert told.exit_code == 0 and onnx.load(tmp_path / "a.onnx").opset_import[0].version == 11
    assert runner.invoke(app, ["inspect", str(path), "--input-shape", "x=1"]).exit_code == 2


@pytest.mark.parametrize("opset", [None, 21])
def test_boolean_constants_are_casts_at_every_opset(opset: int | None, tmp_path: Path) -> None:
    path = next(case for case in CASES if case.id == "Pad-1-bool-constant").save(tmp_path)
    model, _ = convert(path, target="tract", opset=opset)
    assert sorted(node.op_type for node in model.graph.node) == ["Cast", "Pad"]
    assert all(constant.data_type != onnx.TensorProto.BOOL for constant in model.graph.initializer)


@pytest.mark.parametrize(("target", "outputs"), [("opencv", [3, 3]), ("mnn", [3, 3]), ("tract", [1, 1])])
def test_recurrent_layers_name_the_states_that_a_target_needs(target: str, outputs: list[int], tmp_path: Path) -> None:
    whole = ov.Core().read_model(_network("LSTM, num_layers, bidirectional", tmp_path))
    ov.save_model(ov.Model(whole.outputs[:1], whole.get_parameters()), tmp_path / "sequence.xml")  # without the last states
    model, _ = convert(tmp_path / "sequence.xml", target=target, input_shapes={"inputs": [2, 7]})
    assert [len(node.output) for node in model.graph.node if node.op_type == "LSTM"] == outputs


def test_files_for_cuda_keep_functions_and_kernels(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.id == "Power-1-int32")
    model, _ = convert(case.save(tmp_path), target="cuda")
    assert "Round" in {node.op_type for node in model.graph.node}
    assert "Round" not in {node.op_type for node in convert(tmp_path / "model.xml")[0].graph.node}
    model, report = convert(RECOMMENDER, target="cuda")
    assert report.custom_operators and {function.domain for function in model.functions} == {DOMAIN}


@pytest.mark.parametrize("release", [22, 28])
def test_the_operators_without_kernel_are_those_of_the_installed_onnxruntime(release: int) -> None:
    """ONNX Runtime has a kernel of an operator's version if a kernel begins with it, or ends after it."""
    if not ort.__version__.startswith(f"{RELEASE}."):
        pytest.skip(f"the list is that of ONNX Runtime {RELEASE}")
    kernels: dict[str, set[tuple[int, int]]] = {}
    for kernel in get_all_opkernel_def():
        if (kernel.provider, kernel.domain) == ("CPUExecutionProvider", ""):
            kernels.setdefault(kernel.op_name, set()).add(tuple(kernel.version_range))
    without = {
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.since_version == release and not schema.domain and schema.name in kernels and not schema.has_function
        if not any(first == release or first < release <= last < 2**31 - 1 for first, last in kernels[schema.name])
    }
    optional = {name for name in without if "Optional" in name}  # no rule emits these
    assert without - optional == {name for name, first in FIRST_WITHOUT_KERNEL.items() if first == release}


@pytest.mark.parametrize(
    ("model", "opset", "names"),
    [
        ("quantized/mobile", 27, []),
        ("quantized/mobile", 28, ["DequantizeLinear", "QuantizeLinear"]),
        ("BitModel", 28, []),
    ],
)
def test_operators_that_onnxruntime_does_not_load_are_reported(
    model: str, opset: int, names: list[str], tmp_path: Path
) -> None:
    path = make("quantized/mobile", tmp_path) / "model.xml" if "/" in model else _network(model, tmp_path)
    done = CliRunner().invoke(app, ["convert", str(path), "-o", str(tmp_path / "a.onnx"), "--opset", str(opset)])
    text = f"cannot load this file: it does not implement {', '.join(names)} of opset 28; use opset 27 or older"
    assert done.exit_code == 0 and (text in done.output) == bool(names)
    assert convert(path, opset=opset)[1].without_kernel == names
    session = tmp_path / "a.onnx"
    if names:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
            ort.InferenceSession(session)
    else:
        ort.InferenceSession(session)


def test_bodies_count_for_the_operators_that_onnxruntime_lacks() -> None:
    multinomial = RECOMMENDER.parents[1] / "multinomial" / "model.xml"
    assert convert(multinomial, opset=22)[1].without_kernel == ["RandomUniformLike"]
    assert convert(multinomial)[1].without_kernel == []
