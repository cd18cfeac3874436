"""Normalizations of channels and of groups of channels after quantized convolutions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset14 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
CHANNELS = 8


def convolution(x: Any, inside: int, out: int = CHANNELS, seed: int = 1, space: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    numbers = np.clip(rng.standard_normal((out, inside, *[3] * space)) * 0.3, -2, 2)
    ones = [1] * space
    return ops.convolution(x, quantized(constant(numbers), -2, 2, 255), ones, ones, ones, ones)


def normalized(x: Any, scaled: bool = True) -> Any:
    rank = len(x.get_output_partial_shape(0))
    result = ops.mvn(x, constant(np.arange(2, rank)), True, 1e-5, "inside_sqrt")
    if not scaled:
        return result
    column = (1, CHANNELS, *[1] * (rank - 2))
    result = ops.multiply(result, constant(np.linspace(0.5, 1.5, CHANNELS).reshape(column)))
    return ops.add(result, constant(np.linspace(-1, 1, CHANNELS).reshape(column)))


def grouped(x: Any, groups: int = 2) -> Any:
    scale, bias = (np.linspace(low, 1.5, CHANNELS).astype(np.float32) for low in (0.5, -1))
    return ops.group_normalization(x, scale, bias, groups, 1e-5)


def _made(build: Callable[[Any], Any], folder: Path, shape: tuple[int, ...] = (2, 3, 16, 18)) -> list[str]:
    x = ops.parameter(list(shape), np.float32, name="x")
    space = len(shape) - 2

    def first(x: Any) -> Any:
        return quantized(convolution(quantized(x), shape[1], space=space), -4, 4 * 127 / 128)

    y = convolution(quantized(build(first(x)), -3, 3 * 127 / 128), CHANNELS, 4, 2, space)
    return names(compared(ov.Model([y], [x]), folder, given(*shape), atol=16 * STEP))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 16, 18), (1, 2, 8, 9, 10)])
def test_channels(shape: tuple[int, ...], scaled: bool, tmp_path: Path) -> None:
    found = _made(lambda x: normalized(x, scaled), tmp_path, shape)
    assert found.count("QuantizedGroupMoments") == 1 and found.count("QuantizedConv") == 2
    assert not {"InstanceNormalization", "FakeQuantize", "DequantizeLinear"} & set(found)


@pytest.mark.parametrize("shape", [(2, 3, 16, 18), (1, 2, 300)])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_groups(groups: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    found = _made(lambda x: grouped(x, groups), tmp_path, shape)
    assert found.count("QuantizedGroupMoments") == 1 and found.count("QuantizedConv") == 2
    assert not {"InstanceNormalization", "FakeQuantize", "DequantizeLinear"} & set(found)


@pytest.mark.parametrize("function", [ops.relu, lambda x: ops.swish(x), lambda x: ops.prelu(x, constant(np.array([0.1])))])
def test_functions(function: Callable[[Any], Any], tmp_path: Path) -> None:
    """One node normalizes, computes the function and quantizes."""
    found = _made(lambda x: function(grouped(x)), tmp_path)
    assert found.count("QuantizedGroupMoments") == 1 and found.count("QuantizedConv") == 2
    assert found[found.index("QuantizedGroupMoments") :].count("Elementwise") == 1


def _of_tokens(x: Any) -> Any:
    """Another dimension is normalized."""
    return ops.mvn(x, constant(np.array([3])), True, 1e-5, "inside_sqrt")


def _of_floats(x: Any) -> Any:
    """The normalized tensor is not quantized."""
    return normalized(ops.sin(x))


def _of_the_input(x: Any) -> Any:
    """The integers are not those of a convolution."""
    return normalized(quantized(ops.sin(x)))


def _of_more_levels(x: Any) -> Any:
    return normalized(quantized(ops.sin(x), levels=1024))


def _of_channels(x: Any) -> Any:
    """The quantization has a scale for each channel."""
    top = np.linspace(1, 3, CHANNELS).reshape(1, -1, 1, 1)
    return normalized(quantized(x, -top, top * 127 / 128))


@pytest.mark.parametrize("near", [_of_tokens, _of_floats, _of_the_input, _of_more_levels, _of_channels])
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert "QuantizedGroupMoments" not in _made(near, tmp_path)


def test_groups_of_another_shape(tmp_path: Path) -> None:
    """The Reshape after the normalization is not the reverse of the one before it."""

    def build(x: Any) -> Any:
        merged = ops.reshape(x, constant(np.array([2, 2, -1])), False)
        rows = ops.mvn(merged, constant(np.array([2])), True, 1e-5, "inside_sqrt")
        return ops.reshape(rows, constant(np.array([2, CHANNELS, 18, 16])), False)

    assert "QuantizedGroupMoments" not in _made(build, tmp_path)


def test_more_consumers(tmp_path: Path) -> None:
    """A residual connection reads the integers, too."""
    found = _made(lambda x: ops.add(grouped(x), x), tmp_path)
    assert found.count("QuantizedGroupMoments") == 1


def test_an_unknown_batch(tmp_path: Path) -> None:
    """The shape is unknown."""
    x = ops.parameter([-1, 3, 16, 18], np.float32, name="x")
    inner = normalized(quantized(convolution(quantized(x), 3), -4, 4 * 127 / 128))
    y = convolution(quantized(inner, -3, 3 * 127 / 128), CHANNELS, 4, 2)
    assert "QuantizedGroupMoments" not in names(compared(ov.Model([y], [x]), tmp_path, given(2, 3, 16, 18), atol=16 * STEP))
