"""Matrix products of quantized tensors and constant weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import CHANNELS, STEP, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
DEPTH = 10

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": ops.relu,
    "leaky": lambda x: ops.prelu(x, constant(np.array([0.1]))),
    "clamp": lambda x: ops.clamp(x, -0.7, 1.1),
    "hswish": ops.hswish,
    "sigmoid": ops.sigmoid,
    "swish": ops.swish,
    "gelu": lambda x: ops.gelu(x, "ERF"),
    "gelu_tanh": lambda x: ops.gelu(x, "TANH"),
    "mish": ops.mish,
}


def product(x: Any, columns: int = CHANNELS, seed: int = 1, transposed: bool = False, bias: bool = True) -> Any:
    """Build a product with quantized weights and a bias."""
    depth = x.get_output_partial_shape(0)[-1].get_length()
    weights = np.clip(np.random.default_rng(seed).standard_normal((depth, columns)) * 0.4, -2, 2)
    result = ops.matmul(x, quantized(constant(weights.T if transposed else weights), -2, 2, 255), False, transposed)
    return ops.add(result, constant(np.linspace(-1, 1, columns))) if bias else result


def made(build: Callable[[Any], Any], folder: Path, shape: tuple[int, ...] = (2, 7, DEPTH), **options: Any) -> list[str]:
    """Compare a network of one input with OpenVINO and return the names of its operators."""
    x = ops.parameter(shape, np.float32, name="x")
    model: onnx.ModelProto = compared(ov.Model([build(x)], [x]), folder, given(*shape), **{"atol": 1e-4} | options)
    return [name for name in names(model) if name not in ("Constant", "Transpose", "Reshape")]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("space", [[7], [3, 4], [2, 3, 2]], ids=len)
def test_functions(function: str, space: list[int], tmp_path: Path) -> None:
    shape = (2, *space, DEPTH)
    found = made(lambda x: FUNCTIONS[function](product(quantized(x))), tmp_path, shape)
    assert found == ["QuantizeLinear", "QuantizedConv"]
    following = made(
        lambda x: product(quantized(FUNCTIONS[function](product(quantized(x), transposed=True))), 5, 2),
        tmp_path, shape, atol=6 * STEP,
    )  # fmt: skip
    assert following == ["QuantizeLinear", "QuantizedConv", "QuantizedConv"]


@pytest.mark.parametrize("bias", [False, True])
def test_an_addition_of_a_quantized_tensor(bias: bool, tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        first = quantized(product(quantized(x), bias=bias))
        second = quantized(product(first, seed=2))
        return product(quantized(ops.relu(ops.add(second, first)), 0, 255 * STEP), 5, 3)

    found = made(build, tmp_path, atol=8 * STEP)
    assert found == ["QuantizeLinear", *["QuantizedConv"] * 3]


_FACTORS = np.linspace(0.3, 2, CHANNELS)


def _smoothed(x: Any, factors: np.ndarray, function: str = "gelu") -> Any:
    return ops.multiply(FUNCTIONS[function](product(quantized(x))), constant(factors))


@pytest.mark.parametrize("function", ["gelu", "none", "relu"])
@pytest.mark.parametrize("factors", [_FACTORS, _FACTORS.reshape(1, 1, -1), np.array([1.7])], ids=np.shape)
def test_factors_of_smooth_quant(factors: np.ndarray, function: str, tmp_path: Path) -> None:
    found = made(lambda x: product(quantized(_smoothed(x, factors, function)), 5, 2), tmp_path, atol=6 * STEP)
    assert found == ["QuantizeLinear", "QuantizedConv", "QuantizedConv"]


def _negative(x: Any) -> Any:
    return quantized(_smoothed(x, np.where(np.arange(CHANNELS) == 2, -1, _FACTORS)))


def _zero(x: Any) -> Any:
    return quantized(_smoothed(x, np.where(np.arange(CHANNELS) == 2, 0, _FACTORS)))


def _of_rows(x: Any) -> Any:
    """Factors along the axis of the rows, which has the length of the columns."""
    return quantized(_smoothed(ops.pad(x, [0, 0, 0], [0, -1, 0], "constant"), _FACTORS.reshape(CHANNELS, 1)))


def _used_twice(x: Any) -> Any:
    scaled = _smoothed(x, _FACTORS)
    return ops.concat([quantized(scaled), scaled], 1)


def _not_constant(x: Any) -> Any:
    inner = product(quantized(x))
    return quantized(ops.multiply(inner, ops.reduce_mean(inner, constant(np.array([1])), True)))


@pytest.mark.parametrize("near", [_negative, _zero, _of_rows, _used_twice, _not_constant])
def test_near_misses_of_factors(near: Callable[[Any], Any], tmp_path: Path) -> None:
    found = made(lambda x: product(near(x), 5, 2), tmp_path, atol=8 * STEP)
    assert found.count("Mul") >= 1


def test_slopes_along_another_axis(tmp_path: Path) -> None:
    """OpenVINO's slopes belong to the second dimension, not to the columns."""
    slopes = constant(np.linspace(-0.5, 1.5, CHANNELS))
    found = made(lambda x: ops.prelu(product(quantized(x)), slopes), tmp_path, (2, CHANNELS, DEPTH))
    assert found[:2] == ["QuantizeLinear", "QuantizedConv"] and "Relu" in found


def test_a_bias_along_another_axis(tmp_path: Path) -> None:
    bias = constant(np.linspace(-1, 1, 7).reshape(7, 1))
    found = made(lambda x: ops.add(product(quantized(x), bias=False), bias), tmp_path)
    assert found == ["QuantizeLinear", "QuantizedConv", "Add"]


def test_two_dimensions(tmp_path: Path) -> None:
    """The operator has at least three."""
    assert made(lambda x: product(quantized(x)), tmp_path, (7, DEPTH)) == ["QuantizeLinear", "MatMulIntegerToFloat"]


def test_weights_with_another_zero(tmp_path: Path) -> None:
    weights = quantized(constant(np.random.default_rng(1).standard_normal((DEPTH, CHANNELS))), -1, 3 * 85 / 85)

    def build(x: Any) -> Any:
        return ops.matmul(quantized(x), weights, False, False)

    assert "QuantizedConv" not in made(build, tmp_path)


@pytest.mark.parametrize("shape", [(0, 7, DEPTH), (2, 0, DEPTH), (2, 7, DEPTH)])
@pytest.mark.parametrize("following", [False, True])
def test_unknown_sizes_and_no_rows(shape: tuple[int, ...], following: bool, tmp_path: Path) -> None:
    x = ops.parameter([-1, -1, DEPTH], np.float32, name="x")
    inner = product(quantized(x))
    network = product(quantized(inner), 5, 2) if following else inner
    expected = np.zeros((*shape[:2], 5 if following else CHANNELS), np.float32) if 0 in shape else None
    model = compared(ov.Model([network], [x]), tmp_path, given(*shape), atol=4 * STEP, expected=expected)
    assert names(model).count("QuantizedConv") == 1 + following


@pytest.mark.parametrize("factor", [np.array(0.35), np.full((1, 1, 1), 2.0)], ids=np.shape)
def test_a_factor_of_two_activations(factor: np.ndarray, tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        return ops.multiply(ops.matmul(quantized(x), quantized(ops.sin(x)), False, True), constant(factor))

    assert "Mul" not in made(build, tmp_path, atol=2 * STEP)[1:]


@pytest.mark.parametrize("factor", [np.array(-1.0), np.array(0.0), np.full((1, 1, 1, 1), 2.0), np.linspace(1, 2, 7)])
def test_near_misses_of_a_factor(factor: np.ndarray, tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        return ops.multiply(ops.matmul(quantized(x), quantized(ops.sin(x)), False, True), constant(factor))

    x = ops.parameter([2, 7, DEPTH], np.float32, name="x")
    model = compared(ov.Model([build(x)], [x]), tmp_path, given(2, 7, DEPTH), atol=2 * STEP)
    assert {"Mul", "Neg"} & set(names(model)[1:]) or not factor.any()
