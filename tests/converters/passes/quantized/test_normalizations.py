"""Normalizations whose results are quantized."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, given
from tests.converters.passes.quantized.test_matmuls import product

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
SIZE = 40


def _normalized(x: Any, size: int = SIZE, axis: int = -1, bias: bool = True) -> Any:
    result = ops.mvn(x, constant(np.array([axis])), True, 1e-5, "inside_sqrt")
    result = ops.multiply(result, constant(np.linspace(0.5, 1.5, size)))
    return ops.add(result, constant(np.linspace(-1, 1, size))) if bias else result


def _made(build: Callable[[Any], Any], folder: Path, *, atol: float = 4 * STEP, **options: Any) -> list[str]:
    x = ops.parameter([2, 6, SIZE], np.float32, name="x")
    model = compared(ov.Model([build(x)], [x]), folder, given(2, 6, SIZE), atol=atol, **options)
    return [name for name in names(model) if name not in ("Reshape", "Transpose")]


@pytest.mark.parametrize("bias", [True, False])
def test_floats(bias: bool, tmp_path: Path) -> None:
    found = _made(lambda x: product(quantized(_normalized(ops.sin(x), bias=bias))), tmp_path)
    assert found == ["Sin", "QuantizedLayerNormalization", "QuantizedConv"]


def test_integers(tmp_path: Path) -> None:
    found = _made(lambda x: product(quantized(_normalized(quantized(ops.sin(x))))), tmp_path)
    assert found == ["Sin", "QuantizeLinear", "QuantizedLayerNormalization", "QuantizedConv"]


def test_between_products(tmp_path: Path) -> None:
    """Only integers are written, also if a residual connection reads them."""

    def build(x: Any) -> Any:
        first = quantized(product(quantized(x), SIZE))
        second = quantized(product(quantized(_normalized(first)), SIZE, 2))
        return product(quantized(ops.add(first, second)), 4, 3)

    found = _made(build, tmp_path, atol=0.1)
    assert found == ["QuantizeLinear", "QuantizedConv", "QuantizedLayerNormalization", "QuantizedConv", "QuantizedConv"]


def test_moves(tmp_path: Path) -> None:
    """Integers are moved."""

    def build(x: Any) -> Any:
        moved = ops.transpose(_normalized(ops.sin(x)), constant(np.array([1, 0, 2])))
        return product(quantized(ops.reshape(moved, constant(np.array([3, 4, SIZE])), False)))

    assert _made(build, tmp_path) == ["Sin", "QuantizedLayerNormalization", "QuantizedConv"]


def _used_twice(x: Any) -> Any:
    rows = _normalized(ops.sin(x))
    return ops.concat([product(quantized(rows)), rows], 2)


def _rows(x: Any) -> Any:
    """Another dimension is normalized."""
    mean = ops.mvn(ops.sin(x), constant(np.array([1])), True, 1e-5, "inside_sqrt")
    return product(quantized(mean))


def _of_channels(x: Any) -> Any:
    """The quantization has a scale for each channel."""
    top = np.linspace(1, 3, SIZE).reshape(1, 1, -1)
    return product(quantized(_normalized(ops.sin(x)), -top, top * 127 / 128))


def _16_bits(x: Any) -> Any:
    return ops.sin(quantized(_normalized(ops.sin(x)), -3.0, 3.0, 65535))


def _number(x: Any) -> Any:
    """The scale is one number."""
    unit = ops.mvn(ops.sin(x), constant(np.array([-1])), True, 1e-5, "inside_sqrt")
    return product(quantized(ops.multiply(unit, np.float32(2))))


def _computed(x: Any) -> Any:
    """The scale is computed."""
    scale = ops.add(ops.reduce_mean(x, constant(np.array([0, 1])), False), np.float32(1))
    unit = ops.mvn(ops.sin(x), constant(np.array([-1])), True, 1e-5, "inside_sqrt")
    return product(quantized(ops.multiply(unit, scale)))


@pytest.mark.parametrize("near", [_used_twice, _rows, _of_channels, _16_bits, _computed])
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert "QuantizedLayerNormalization" not in _made(near, tmp_path)


def test_one_scale(tmp_path: Path) -> None:
    """It is repeated for each element."""
    assert _made(_number, tmp_path) == ["Sin", "QuantizedLayerNormalization", "QuantizedConv"]


def test_a_quantized_input_of_floats_that_are_needed_stays(tmp_path: Path) -> None:
    """A normalization with a float result does not make integers of its input."""
    found = _made(lambda x: _normalized(quantized(ops.sin(x))), tmp_path, atol=1e-3)
    assert found == ["Sin", "FakeQuantize", "LayerNormalization"]


def test_an_input_quantized_by_channels_stays(tmp_path: Path) -> None:
    top = np.linspace(1, 3, SIZE).reshape(1, 1, -1)
    found = _made(lambda x: product(quantized(_normalized(quantized(ops.sin(x), -top, top * 127 / 128)))), tmp_path)
    assert found == ["Sin", "FakeQuantize", "QuantizedLayerNormalization", "QuantizedConv"]


@pytest.mark.parametrize(
    "option", [{"quantized": "float"}, {"opset": 16}, {"contrib": False}, {"precision": "float16"}], ids=str
)
def test_options(option: dict[str, Any], tmp_path: Path) -> None:
    found = _made(lambda x: product(quantized(_normalized(quantized(ops.sin(x))))), tmp_path, **option)
    assert ("QuantizedLayerNormalization" in found) == ("precision" in option)
