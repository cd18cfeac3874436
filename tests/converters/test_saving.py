"""Constants in the ONNX file: packed if ONNX supports it, by reference, copied or embedded."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.errors import ConversionError
from converters.openvino import convert
from onnx_specops.runtime.reference import reference_evaluator
from tests.conformance.operation_models import layer_case, static
from tests.conformance.operations.cases.low_precision import BITS, codes_of, filled, through, zeros
from tests.fuzz.deep.bodies import MAKERS

SHAPE = [197, 211]
COUNT = 197 * 211
PLAIN = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
    "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
# More bytes than the lookup tables of codes.
TABLES = 4096
# The number of elements in three bytes.
GROUPS = {"u3": 8, "u6": 4}


def write(folder: Path, kind: str) -> Path:
    """Save a constant of random bytes, converted to float32 and added to an input."""
    size = COUNT * np.dtype(PLAIN[kind]).itemsize if kind in PLAIN else 0
    content = np.random.default_rng(1).integers(0, 48, size, np.uint8).tobytes() if size else codes_of(kind, COUNT)
    return through("", kind, SHAPE, content).save(folder)


@pytest.mark.parametrize("weights", ["embed", "copy", "reference"])
@pytest.mark.parametrize("kind", [*BITS, *PLAIN])
def test_every_type_in_every_place(tmp_path: Path, kind: str, weights: str) -> None:
    xml = write(tmp_path, kind)
    model, report = convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    oracle = ov.Core().read_model(xml)
    expected = ov.Tensor(ov.Type.f32, ov.Shape(SHAPE))
    assert oracle.evaluate([expected], [ov.Tensor(np.zeros(1, np.float32))])
    for run in (
        ort.InferenceSession(tmp_path / "model.onnx").run,
        reference_evaluator(tmp_path / "model.onnx").run,
    ):
        (got,) = run(None, {model.graph.input[0].name: np.zeros(1, np.float32)})
        np.testing.assert_array_equal(got, expected.data)

    tensor = max(model.graph.initializer, key=lambda tensor: np.prod(tensor.dims))
    bits = BITS.get(kind) or np.dtype(PLAIN[kind]).itemsize * 8
    stored = -(-COUNT // (GROUPS[kind])) * 3 if kind in GROUPS else -(-COUNT * bits // 8)
    assert report.weights == weights
    assert stored <= report.weights_bytes <= stored + TABLES
    external = {entry.key: entry.value for entry in tensor.external_data}
    if weights == "reference":
        assert (external["location"], int(external["length"])) == ("model.bin", stored)
        assert (tmp_path / "model.onnx").stat().st_size < 1536 + TABLES
    elif weights == "copy" and stored > 4096:
        assert external["location"] == "model.onnx.data"
        assert stored <= (tmp_path / "model.onnx.data").stat().st_size < stored + 8192
    else:
        assert not external
        assert stored < (tmp_path / "model.onnx").stat().st_size < stored + 1536 + TABLES


@pytest.mark.parametrize("kind", ["nf4", "f4e2m1", "f8e8m0"])
def test_codes_within_a_body(tmp_path: Path, kind: str) -> None:
    """A constant in a loop's body is decoded once, outside of the loop."""

    def make(ops, x, *, constant):
        state = ops.parameter(SHAPE, np.float32)
        body = ov.Model(
            [ops.result(ops.constant(np.bool_(True))), ops.result(ops.add(state, ops.convert(constant(), "f32")))], [state]
        )
        loop = ops.loop(ops.constant(np.int64(3)).output(0), ops.constant(np.bool_(True)).output(0))
        loop.set_function(body)
        loop.set_special_body_ports([-1, 0])
        start = ops.broadcast(x, ops.constant(SHAPE))
        loop.set_merged_input(state, start.output(0), body.get_results()[1].output(0))
        return [loop.get_iter_value(body.get_results()[1].output(0), -1)]

    inputs = [static(np.zeros(1, np.float32))]
    attributes = {"constant": zeros(kind, *SHAPE)}
    filled(layer_case("Loop", "opset13", make, "", inputs, attributes), {kind: codes_of(kind, COUNT)}).save(tmp_path)
    model, _ = convert(tmp_path / "model.xml", tmp_path / "model.onnx", weights="reference")
    assert [node.op_type for node in model.graph.node].count("Gather") == 1
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    assert "Gather" not in [node.op_type for node in loop.attribute[0].g.node]
    x = np.zeros(1, np.float32)
    (got,) = ort.InferenceSession(tmp_path / "model.onnx").run(None, {model.graph.input[0].name: x})
    expected = ov.Core().compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])[0]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-37)


def test_a_constant_that_is_used_twice_is_stored_once(tmp_path: Path) -> None:
    """Also if the file refers to it twice, and if its codes are looked up."""

    def build() -> ov.Model:
        x = ops.parameter([1], np.float32, name="x")
        values = [ops.convert(ov.op.Constant(ov.Type.nf4, ov.Shape(SHAPE), [3] * COUNT), "f32") for _ in range(2)]
        return ov.Model([ops.add(values[0], x), ops.multiply(values[1], x)], [x])

    ov.save_model(build(), tmp_path / "model.xml", compress_to_fp16=False)
    model, report = convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    assert report.weights_bytes < COUNT
    assert [node.op_type for node in model.graph.node].count("Gather") == 1


@pytest.mark.parametrize("kind", ["loop", "if"])
def test_bodies_within_bodies(tmp_path: Path, kind: str) -> None:
    """Readers of protobuf limit the depth of a file."""
    for depth in (31, 32):
        for path, content in zip(("model.xml", "model.bin"), MAKERS[f"{kind} in {kind}, {depth} deep"](), strict=True):
            (tmp_path / path).write_bytes(content)
        if depth == 32:
            with pytest.raises(ConversionError, match="graphs are nested 32 deep; protobuf reads at most 31"):
                convert(tmp_path / "model.xml", tmp_path / "other.onnx")
            continue
        convert(tmp_path / "model.xml", tmp_path / "model.onnx")
        onnx.load(tmp_path / "model.onnx")
