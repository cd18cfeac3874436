"""Whole validations: modified models, layer by layer, variables, random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.validation.compare import Tolerance
from converters.validation.validate import RuntimeResult, Validation, _computes, validate
from tests.conformance.quantized.record import unpack

F = np.float32
MODELS = Path(__file__).parents[3] / "models"


def save(folder: Path, results, parameters, sinks=(), *, fp16: bool = False) -> Path:
    model = ov.Model(results, list(sinks), parameters) if sinks else ov.Model(results, parameters)
    ov.save_model(model, folder / "model.xml", compress_to_fp16=fp16)
    return folder / "model.xml"


def chain(folder: Path, *, dtype=F, fp16: bool = False) -> Path:
    """Save y = ((x * 2 + 3) @ w) - 5, with layers called double, shift, turn, end."""
    x = ops.parameter([-1, 4], dtype, name="x")
    weights = (np.arange(80).reshape(4, 20) % 7 - 3).astype(dtype)
    value = ops.multiply(x, ops.constant(np.full((1, 4), 2, dtype)), name="double")
    value = ops.add(value, ops.constant(np.full((1, 4), 3, dtype)), name="shift")
    value = ops.matmul(value, ops.constant(weights), False, False, name="turn")
    value = ops.subtract(value, ops.constant(np.full((1, 20), 5, dtype)), name="end")
    return save(folder, [value], [x], fp16=fp16)


def sabotage(path: Path, value: float, by: float) -> None:
    """Change every constant whose first element is ``value``."""
    model = onnx.load(path)
    found = 0
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.size and array.reshape(-1)[0] == value:
            tensor.CopyFrom(onnx.numpy_helper.from_array((array + by).astype(array.dtype), tensor.name))
            found += 1
    assert found == 1
    onnx.save(model, path)


def first_layers(validation: Validation) -> dict[str, tuple[str, str, int]]:
    return {d.runtime: (d.layer_name, d.layer_type, d.output) for d in validation.first_differences}


@pytest.mark.parametrize("dtype", [F, np.float16, np.float64])
def test_a_correct_conversion_agrees_layer_by_layer(tmp_path: Path, dtype: type) -> None:
    validation = validate(chain(tmp_path, dtype=dtype), per_layer=True)
    assert validation.agrees
    assert validation.baseline == "openvino"
    assert validation.layers_compared == 4
    assert not validation.first_differences
    assert [result.runtime for result in validation.results if not result.skipped] == ["openvino", "none", "reference"]
    assert all(result.seconds for result in validation.results if not result.skipped)


@pytest.mark.parametrize(
    ("constant", "layer"), [(2, ("double", "Multiply", 0)), (3, ("shift", "Add", 0)), (5, ("end", "Subtract", 0))]
)
def test_the_modified_layer_is_reported(tmp_path: Path, constant: int, layer: tuple[str, str, int]) -> None:
    xml = chain(tmp_path)
    convert(xml, tmp_path / "model.onnx")
    sabotage(tmp_path / "model.onnx", constant, 0.5)
    validation = validate(xml, tmp_path / "model.onnx", per_layer=True)
    assert not validation.agrees
    assert first_layers(validation) == {"none": layer, "reference": layer}
    (difference, _) = validation.first_differences
    assert f'name="{layer[0]}"' in xml.read_text().splitlines()[difference.line - 1]
    assert difference.comparison.max_absolute == pytest.approx(0.5 if constant != 2 else 0.5 * _largest(xml), rel=1e-4)


def _largest(xml: Path) -> float:
    from converters.validation.arrays import InputSpec, random_inputs

    return float(random_inputs([InputSpec("x", "float", (None, 4))])["x"].max())


@pytest.mark.parametrize("weights", ["copy", "reference"])
def test_weights_in_other_files(tmp_path: Path, weights: str) -> None:
    """The model with extra outputs must be next to its weights, and is removed afterwards."""
    xml = chain(tmp_path)
    convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
    before = sorted(tmp_path.iterdir())
    assert validate(xml, tmp_path / "model.onnx", per_layer=True).agrees
    assert sorted(tmp_path.iterdir()) == before


def test_a_difference_in_a_body_belongs_to_its_outer_layer(tmp_path: Path) -> None:
    x, row = ops.parameter([3, 4], F, name="x"), ops.parameter([1, 4], F)
    total, start = ops.parameter([1, 4], F), ops.constant(np.zeros((1, 4), F))
    following = ops.add(total, ops.multiply(row, ops.constant(np.full((1, 4), 7, F)), name="inner"))
    body = ov.Model([ops.result(following)], [row, total])
    loop = ops.tensor_iterator()
    loop.set_friendly_name("loop")
    loop.set_body(body)
    loop.set_sliced_input(row, ops.relu(x, name="before").output(0), 0, 1, 1, -1, 0)
    loop.set_merged_input(total, start.output(0), body.get_results()[0].output(0))
    last = loop.get_iter_value(body.get_results()[0].output(0), -1)
    xml = save(tmp_path, [ops.abs(last, name="after")], [x])
    assert validate(xml, per_layer=True).agrees
    convert(xml, tmp_path / "model.onnx")
    sabotage(tmp_path / "model.onnx", 7, 1)
    validation = validate(xml, tmp_path / "model.onnx", per_layer=True)
    assert set(first_layers(validation).values()) == {("loop", "TensorIterator", 0)}
    assert validation.layers_compared == 3


def test_layers_of_several_outputs(tmp_path: Path) -> None:
    x = ops.parameter([2, 6], F, name="x")
    parts = ops.split(ops.exp(x), ops.constant(1), 3, name="parts")
    scaled = ops.multiply(parts.output(2), ops.constant(np.full((1, 1), 9, F)), name="scaled")
    xml = save(tmp_path, [ops.add(scaled, parts.output(0), name="sum")], [x])
    validation = validate(xml, per_layer=True)
    assert validation.agrees
    assert validation.layers_compared == 6


def test_inputs_layers_and_outputs_of_types_that_numpy_lacks(tmp_path: Path) -> None:
    x = ops.parameter([2, 3], ov.Type.f8e4m3, name="x")
    half = ops.convert(ops.convert(x, "f32", name="wide"), "bf16", name="half")
    nibbles = ops.convert(ops.convert(x, "i32", name="whole"), "u4", name="nibbles")
    xml = save(tmp_path, [half, nibbles], [x])
    validation = validate(xml, per_layer=True, runtimes=["openvino", "none"])
    assert validation.agrees, validation
    assert validation.layers_compared == 4
    assert [c.element_type for c in validation.results[1].outputs.values()] == ["bfloat16", "uint4"]


def test_layers_of_one_name_are_not_confused(tmp_path: Path) -> None:
    xml = chain(tmp_path)
    xml.write_text(xml.read_text().replace('name="shift"', 'name="double"'))
    validation = validate(xml, per_layer=True)
    assert validation.agrees
    assert validation.layers_compared == 2


def test_without_openvino_the_first_runtime_is_the_reference(tmp_path: Path) -> None:
    validation = validate(MODELS / "embedding_bag_offsets_sum" / "model.xml", runtimes=["reference", "python", "none"])
    assert (validation.baseline, validation.agrees) == ("python", True)


def test_a_single_runtime_is_not_a_validation(tmp_path: Path) -> None:
    assert not validate(chain(tmp_path), runtimes=["openvino"]).agrees


def test_the_tolerance(tmp_path: Path) -> None:
    xml = chain(tmp_path)
    convert(xml, tmp_path / "model.onnx")
    sabotage(tmp_path / "model.onnx", 5, 0.01)
    assert not validate(xml, tmp_path / "model.onnx").agrees
    assert validate(xml, tmp_path / "model.onnx", tolerance=Tolerance(0, 0.02)).agrees


def test_the_inputs(tmp_path: Path) -> None:
    xml = chain(tmp_path)
    shapes = [c.shape for c in validate(xml).results[0].outputs.values()]
    assert shapes == [(2, 20)]
    np.savez(tmp_path / "inputs.npz", x=np.ones((5, 4), F))
    assert [c.shape for c in validate(xml).results[0].outputs.values()] == [(5, 20)]
    assert [c.shape for c in validate(xml, inputs={"x": np.ones((3, 4))}).results[0].outputs.values()] == [(3, 20)]
    with pytest.raises(ValueError, match="the inputs: x missing"):
        validate(xml, inputs={"y": np.ones(3)})
    with pytest.raises(ValueError, match="is not one of the runtimes"):
        validate(xml, runtimes=["torch"])


def test_bounds_of_dimensions_are_respected(tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape([ov.Dimension(5, 8), ov.Dimension(3, -1), 2]), F, name="x")
    validation = validate(save(tmp_path, [ops.relu(x)], [x]))
    assert validation.agrees
    assert [c.shape for c in validation.results[0].outputs.values()] == [(5, 3, 2)]


def test_inputs_of_unknown_rank(tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape.dynamic(), F, name="x")
    x.output(0).set_names({"x"})
    validation = validate(save(tmp_path, [ops.relu(x)], [x]), shapes={"x": [2, 3]})
    assert validation.agrees
    assert [c.shape for c in validation.results[0].outputs.values()] == [(2, 3)]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("other", [2, 4], "has the inputs? other, but .* has x: it is not the conversion of this IR"),
        ("x", [2, 5], r"the input x of .* has the shape \[2, 5\], but \[2, 4\] in .*: it is not the conversion of this IR"),
    ],
)
def test_another_model_s_conversion(tmp_path: Path, name: str, shape: list[int], message: str) -> None:
    for folder, (parameter, dims) in {"one": ("x", [2, 4]), "two": (name, shape)}.items():
        (tmp_path / folder).mkdir()
        x = ops.parameter(dims, F, name=parameter)
        xml = save(tmp_path / folder, [ops.relu(x, name="y")], [x])
    convert(xml, tmp_path / "two.onnx")
    with pytest.raises(ValueError, match=message):
        validate(tmp_path / "one" / "model.xml", tmp_path / "two.onnx")


def test_an_external_model_may_have_other_names(tmp_path: Path) -> None:
    x = ops.parameter([2, 4], F, name="x")
    xml = save(tmp_path, [ops.relu(x, name="y")], [x])
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2, 4] image) => (float[2, 4] scores) { scores = Relu(image) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "o.onnx")
    validation = validate(xml, tmp_path / "o.onnx")
    assert validation.agrees
    assert [note.split(" has ")[1] for note in validation.notes] == [
        f"the input image, but {xml}",
        f"the output scores, but {xml}",
    ]


# -- quantized models ----------------------------------------------------------------------------------------------------


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    return unpack("residual", tmp_path)


def test_quantized_models_are_compared_by_their_metadata(quantized: Path) -> None:
    """In floats a conversion is exact; in integers its error is similar to OpenVINO's own."""
    onnx_path = quantized.with_name("float.onnx")
    convert(quantized, onnx_path, quantized="float")
    exact = validate(quantized, onnx_path, runtimes=["openvino", "none"])
    assert exact.agrees
    assert exact.shipped is None
    for per_layer in (False, True):
        validation = validate(quantized, runtimes=["openvino", "none"], per_layer=per_layer)
        assert validation.agrees, validation
    assert validation.layers_compared


def test_low_precision_does_not_excuse_errors(quantized: Path) -> None:
    onnx_path = quantized.with_name("model.onnx")
    model, _ = convert(quantized, onnx_path, quantized="float")
    last = next(node for node in model.graph.node if node.output[0] == model.graph.output[0].name)
    last.output[0] = "before"
    model.graph.node.append(onnx.parser.parse_node(f"{model.graph.output[0].name} = Mul (before, factor)"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(F(1.2), "factor"))
    onnx.save(model, onnx_path)
    validation = validate(quantized, onnx_path, runtimes=["openvino", "none"])
    assert not validation.agrees


def test_an_allowed_fraction(tmp_path: Path) -> None:
    xml = chain(tmp_path)
    convert(xml, tmp_path / "model.onnx")
    sabotage(tmp_path / "model.onnx", 5, 0.01)
    assert not validate(xml, tmp_path / "model.onnx", tolerance=Tolerance(share=0.4)).agrees
    assert validate(xml, tmp_path / "model.onnx", tolerance=Tolerance(share=0.5)).agrees


def test_layers_do_not_affect_the_verdict(tmp_path: Path) -> None:
    """A layer that differs without an effect is named, and the verdict is the same as without --per-layer."""
    x = ops.parameter([2, 4], F, name="x")
    shifted = ops.add(x, ops.constant(np.full((1, 4), 3, F)), name="shifted")
    xml = save(tmp_path, [ops.clamp(ops.add(shifted, ops.constant(np.full((1, 4), 50, F)), name="far"), 0.0, 1.0)], [x])
    convert(xml, tmp_path / "model.onnx")
    sabotage(tmp_path / "model.onnx", 3, 1)
    validation = validate(xml, tmp_path / "model.onnx", per_layer=True)
    assert validation.agrees
    assert set(first_layers(validation).values()) == {("shifted", "Add", 0)}


# -- variables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("per_layer", [False, True])
def test_variables_are_reset_in_every_runtime(tmp_path: Path, computed: bool, per_layer: bool) -> None:
    x = ops.parameter([2, 3], F, name="x")
    start = ops.multiply(x, ops.constant(F(10))) if computed else ops.constant(np.full((2, 3), 5, F))
    read = ops.read_value(start, "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    following = ops.add(read, x, name="following")
    xml = save(tmp_path, [ops.result(ops.relu(following, name="positive"))], [x], [ops.assign(following, "memory")])
    validation = validate(xml, per_layer=per_layer)
    assert validation.agrees, validation
    assert {name for result in validation.results for name in result.outputs} == set(validation.results[0].outputs)
    assert len(validation.results[0].outputs) == 1
    assert [result.runtime for result in validation.results if not result.skipped] == ["openvino", "none", "reference"]


# -- random numbers ------------------------------------------------------------------------------------------------------


def drawing(folder: Path, samples: int = 64) -> Path:
    """Save a model with two outputs, one of them random, and a third that depends on random numbers."""
    p = ops.parameter([2, 5], F, name="p")
    weights = ops.add(ops.relu(p), ops.constant(F(1)), name="weights")
    drawn = ops.multinomial(weights, ops.constant(samples), "i64", True, False, 3, 4, name="drawn")
    more = ops.add(drawn, ops.constant(np.int64(10)), name="more")
    return save(folder, [weights, more], [p])


def test_random_outputs_of_bodies_are_flagged(tmp_path: Path) -> None:
    validation = validate(drawing(tmp_path), per_layer=True)
    assert validation.agrees, validation
    notes = {result.runtime: [c.note for c in result.outputs.values()] for result in validation.results if result.outputs}
    assert notes["openvino"] == notes["python"] == ["", ""]
    for runtime in ("none", "reference"):
        assert notes[runtime] == ["", "different random numbers of the same distribution"]


def test_random_numbers_of_kernels_are_compared(tmp_path: Path) -> None:
    """The kernels must draw OpenVINO's numbers, bit for bit."""
    xml = drawing(tmp_path)
    convert(xml, tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    (node,) = (node for node in model.graph.node if node.op_type == "Multinomial")
    (seed,) = (attribute for attribute in node.attribute if attribute.name == "op_seed")
    seed.i = 5
    onnx.save(model, tmp_path / "model.onnx")
    validation = validate(xml, tmp_path / "model.onnx", per_layer=True)
    assert not validation.agrees
    found = first_layers(validation)
    assert "python" in found
    assert set(found.values()) == {("more", "Add", 0)}
    assert not {"none", "reference"} & set(found)


def test_the_sampled_shape_must_be_right_everywhere(tmp_path: Path) -> None:
    xml = drawing(tmp_path, 64)
    (tmp_path / "other").mkdir()
    convert(drawing(tmp_path / "other", 65), tmp_path / "model.onnx")
    validation = validate(xml, tmp_path / "model.onnx")
    assert {r.runtime: r.agrees for r in validation.results if not r.skipped and r.runtime != "openvino"} == dict.fromkeys(
        [r.runtime for r in validation.results[1:] if not r.skipped], False
    )


# -- exceptions of a runtime ---------------------------------------------------------------------------------------------


def test_errors_of_a_runtime_are_its_result(tmp_path: Path) -> None:
    """An index that is out of range for the table: all runtimes reject it with different messages."""
    table = ops.constant(np.arange(40, dtype=F).reshape(10, 4))
    indices, offsets = ops.parameter([3], np.int64, name="indices"), ops.constant(np.array([0, 1]))
    xml = save(tmp_path, [ops.embedding_bag_offsets_sum(table, indices, offsets)], [indices])
    validation = validate(xml, inputs={"indices": np.array([0, 1, 99])}, runtimes=["python", "none"])
    assert not validation.agrees
    assert "99" in validation.results[0].error
    assert all(not result.outputs for result in validation.results)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in MODELS.glob("*/model.xml")))
def test_every_example_model_agrees(name: str) -> None:
    validation = validate(MODELS / name / "model.xml")
    assert validation.agrees, [
        (r.runtime, r.error, [c for c in r.outputs.values() if not c.agrees]) for r in validation.results
    ]
    ran = {result.runtime for result in validation.results if not result.skipped}
    assert {"openvino", "reference"} < ran


@pytest.mark.parametrize(("shape", "error", "computes"), [((2, 3), "", True), ((0, 3), "", False), ((2, 3), "no", False)])
def test_outputs_without_elements_ask_for_larger_inputs(shape: tuple[int, ...], error: str, computes: bool) -> None:
    result = RuntimeResult("openvino", error=error)
    assert _computes(result, {"y": np.zeros(shape, np.float32)}) is computes
