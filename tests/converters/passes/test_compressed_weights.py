"""Products with compressed weights absorb the following factor, bias and Gelu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_specops
from converters.openvino import convert
from onnx_specops.runtime.library import has_library
from tests.comparison import assert_all_close
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 128)).astype(np.float32)
CODES = RNG.integers(0, 256, (96, 128), np.uint8)
BIAS = RNG.standard_normal(96).astype(np.float32)


def product(ops: Any, x: Any) -> Any:
    weights = ops.multiply(ops.convert(ops.constant(CODES), "f32"), ops.constant(np.full((96, 1), 0.01, np.float32)))
    return ops.matmul(x, weights, False, True)


def a_bias(ops: Any, x: Any) -> list[Any]:
    return [ops.relu(ops.add(product(ops, x), ops.constant(BIAS)))]


def from_the_left(ops: Any, x: Any) -> list[Any]:
    return [ops.add(ops.constant(BIAS.reshape(1, 1, 96)), product(ops, x))]


def of_one_number(ops: Any, x: Any) -> list[Any]:
    return [ops.add(product(ops, x), ops.constant(np.float32([[[3]]])))]


def of_each_row(ops: Any, x: Any) -> list[Any]:
    return [ops.add(product(ops, x), ops.constant(RNG.standard_normal((1, 5, 96)).astype(np.float32)))]


def with_itself(ops: Any, x: Any) -> list[Any]:
    whole = product(ops, x)
    return [ops.add(whole, whole)]


def seen_before(ops: Any, x: Any) -> list[Any]:
    whole = product(ops, x)
    return [ops.add(whole, ops.constant(BIAS)), ops.relu(whole)]


FORMS = {
    a_bias: True, from_the_left: True, of_one_number: False, of_each_row: False, with_itself: False, seen_before: False,
}  # fmt: skip


@pytest.mark.parametrize(("form", "fused"), FORMS.items())
def test_bias(form: Any, fused: bool, oracle: Oracle, tmp_path: Path) -> None:
    names = _compared(form, oracle, tmp_path)
    assert names.count("MatMulCompressed") == 1
    assert ("Add" not in names) is fused


def _compared(form: Any, oracle: Oracle, folder: Path) -> list[str]:
    """Return the operators of the converted form, whose results must be right with and without the plugin."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1, -1, 128], np.float32)
    model = converted(ov.Model(form(ops, x), [x]), [X], oracle, folder)
    if has_library():
        results = [
            onnx_specops.InferenceSession(str(folder / "model.onnx"), kernels=kernels) for kernels in ("native", "none")
        ]
        native, plain = (session.run(None, {session.get_inputs()[0].name: X}) for session in results)
        assert_all_close(native, plain, 1e-4, 1e-4, "native and the body")
    return [node.op_type for node in model.graph.node]


def by_a_number(ops: Any, x: Any) -> list[Any]:
    whole = ops.matmul(x, ops.convert(ops.constant(CODES), "f32"), False, True)
    scaled = ops.multiply(whole, ops.constant(np.float32([[[0.01]]])))
    return [ops.relu(ops.add(scaled, ops.constant(BIAS.reshape(1, 1, 96))))]


def by_a_number_of_more_dimensions(ops: Any, x: Any) -> list[Any]:
    whole = ops.matmul(x, ops.convert(ops.constant(CODES), "f32"), False, True)
    return [ops.multiply(whole, ops.constant(np.float32([[[[0.01]]]])))]


def by_another_number(ops: Any, x: Any) -> list[Any]:
    return [ops.multiply(product(ops, x), ops.constant(np.float32(0.5)))]


@pytest.mark.parametrize(
    ("form", "fused"), {by_a_number: True, by_a_number_of_more_dimensions: False, by_another_number: False}.items()
)
def test_factor(form: Any, fused: bool, oracle: Oracle, tmp_path: Path) -> None:
    names = _compared(form, oracle, tmp_path)
    assert names.count("MatMulCompressed") == 1
    assert ("Mul" not in names and "Add" not in names) is fused


def a_gelu(ops: Any, x: Any) -> list[Any]:
    return [ops.relu(ops.gelu(ops.add(product(ops, x), ops.constant(BIAS)), "erf"))]


def without_bias(ops: Any, x: Any) -> list[Any]:
    return [ops.gelu(product(ops, x), "erf")]


def by_tanh(ops: Any, x: Any) -> list[Any]:
    return [ops.gelu(ops.add(product(ops, x), ops.constant(BIAS)), "tanh")]


def also_seen_before(ops: Any, x: Any) -> list[Any]:
    whole = ops.add(product(ops, x), ops.constant(BIAS))
    return [ops.gelu(whole, "erf"), ops.relu(whole)]


@pytest.mark.parametrize(
    ("form", "fused"), {a_gelu: True, without_bias: True, by_tanh: False, also_seen_before: False}.items()
)
def test_gelu(form: Any, fused: bool, oracle: Oracle, tmp_path: Path) -> None:
    names = _compared(form, oracle, tmp_path)
    assert names.count("MatMulCompressed") == 1
    assert bool({"Elementwise", "Gelu"} & set(names)) is not fused


@pytest.mark.parametrize("weights", ["embed", "copy"])
@pytest.mark.parametrize("kind", ["u4", "i4", "u2"])
def test_few_codes_without_products(kind: str, weights: Any, oracle: Oracle, tmp_path: Path) -> None:
    """More of them than are folded, in fewer bytes than are stored in a separate file."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1, 64], np.float32, name="x")
    codes = ov.op.Constant(getattr(ov.Type, kind), ov.Shape([96, 64]), RNG.integers(0, 4, 96 * 64).tolist())
    scaled = ops.multiply(ops.convert(codes, "f32"), ops.constant(np.full((96, 1), 0.01, np.float32)))
    ov.save_model(ov.Model([ops.matmul(x, scaled, False, True)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    given = RNG.standard_normal((3, 64)).astype(np.float32)
    answers = oracle.run(tmp_path / "model.xml", [[given]], names=("cpu",))["cpu"]
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "model.onnx"
    model, _ = convert(tmp_path / "model.xml", target, weights=weights)
    (tmp_path / "model.bin").unlink()
    assert [node.op_type for node in model.graph.node] == ["MatMulCompressed"]
    for source in (str(target), *([model.SerializeToString()] if weights == "embed" else [])):
        session = onnx_specops.InferenceSession(source, kernels="none")
        assert_all_close([session.run(None, {"x": given})], answers, 1e-4, 1e-4, "it")


# With 4-bit weights and zero points for each weight, OpenVINO crashes with SIGFPE.
@pytest.mark.parametrize(("kind", "columns"), [("u8", 1), ("i8", 1), ("u4", 1), ("i4", 1), ("u8", 128), ("i8", 128)])
def test_scales_of_integers(kind: str, columns: int, oracle: Oracle, tmp_path: Path) -> None:
    """One for each row, or for each weight."""
    import openvino as ov

    def form(ops: Any, x: Any) -> list[Any]:
        def integers(*shape: int) -> Any:
            numbers = RNG.integers(1, 8, shape).reshape(-1).tolist()
            return ops.convert(ov.op.Constant(getattr(ov.Type, kind), ov.Shape(shape), numbers), "f32")

        return [ops.matmul(x, ops.multiply(integers(96, 128), integers(96, columns)), False, True)]

    _compared(form, oracle, tmp_path)


@pytest.mark.parametrize("stateful", [False, True])
def test_float32_weights_of_models_with_states(stateful: bool, oracle: Oracle, tmp_path: Path) -> None:
    """A model with states usually runs with one token, so its weights are read in each run."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1, 512], np.float32)
    weights = RNG.standard_normal((512, 512)).astype(np.float32)
    product = ops.matmul(x, ops.constant(weights), False, True)
    if stateful:
        product = ops.add(product, ops.read_value(ops.constant(np.ones((1, 512), np.float32)), "state"))
        model = ov.Model([ops.result(ops.relu(product))], [ops.assign(product, "state")], [x])
    else:
        model = ov.Model([ops.relu(product)], [x])
    given = RNG.standard_normal((1, 512)).astype(np.float32)
    names = [node.op_type for node in converted(model, [given], oracle, tmp_path).graph.node]
    assert ("MatMulCompressed" in names) is stateful
