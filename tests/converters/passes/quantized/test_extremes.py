"""Maxima and minima of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
FLOATS = {"FakeQuantize", "DequantizeLinear"}


def made(build: Callable[[Any], Any], folder: Path, *, atol: float = 4 * STEP) -> list[str]:
    x = ops.parameter([2, 4, 7, 6], np.float32, name="x")
    return names(compared(ov.Model([build(x)], [x]), folder, given(2, 4, 7, 6), atol=atol))


def _reduced(x: Any, axes: Sequence[int], keep: bool, operator: Any = ops.reduce_max) -> Any:
    return operator(x, constant(np.array(axes)), keep)


@pytest.mark.parametrize("operator", [ops.reduce_max, ops.reduce_min])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [(3,), (2, 3), (-1, 2), (1,), (0, 3), (1, 2, 3), (0, 1, 2, 3)])
def test_reductions(axes: Sequence[int], keep: bool, operator: Any, tmp_path: Path) -> None:
    found = made(lambda x: _reduced(quantized(convolution(quantized(x), 4)), axes, keep, operator), tmp_path)
    assert found.count("QuantizedConv") == 1 and "FakeQuantize" not in found
    reduction = "ReduceMax" if operator is ops.reduce_max else "ReduceMin"
    assert found.index(reduction) < found.index("DequantizeLinear")
    assert ("Flatten" in found) == (sorted(axis % 4 for axis in axes) in ([3], [2, 3], [1, 2, 3]))


def test_a_reduction_of_floats(tmp_path: Path) -> None:
    found = made(lambda x: _reduced(convolution(quantized(x), 4), (2, 3), False), tmp_path)
    assert "ReduceMax" in found and "Flatten" not in found


def test_a_reduction_of_16_bits(tmp_path: Path) -> None:
    """OpenVINO removes a FakeQuantize of 65,536 levels, but not one of 32,768."""

    def build(x: Any) -> Any:
        return _reduced(quantized(convolution(quantized(x), 4), -2, 2, 32768), (2, 3), False)

    assert "Flatten" not in made(build, tmp_path)


def test_another_sum_is_no_extreme(tmp_path: Path) -> None:
    found = made(
        lambda x: _reduced(quantized(convolution(quantized(x), 4)), (2, 3), False, ops.reduce_sum), tmp_path, atol=2
    )
    assert "ReduceSum" in found and "Flatten" not in found


@pytest.mark.parametrize("operator", [ops.maximum, ops.minimum])
def test_parts(operator: Any, tmp_path: Path) -> None:
    """The halves of channels, as in LightCNN."""

    def build(x: Any) -> Any:
        halves = ops.split(quantized(convolution(quantized(x), 64)), constant(np.array(1)), 2)
        return convolution(operator(halves.output(0), halves.output(1)), 5, seed=3)

    found = made(build, tmp_path, atol=0.2)
    assert found.count("QuantizedConv") == 2 and "Elementwise" in found and not {"Max", "Min", *FLOATS} & set(found)


def _with_other_limits(x: Any) -> Any:
    return ops.maximum(quantized(convolution(x, 8)), quantized(convolution(x, 8, seed=5), -3, 3 * 127 / 128))


def _with_floats(x: Any) -> Any:
    return ops.maximum(quantized(convolution(x, 8)), convolution(x, 8, seed=5))


def _with_a_constant(x: Any) -> Any:
    return ops.maximum(quantized(convolution(x, 8)), constant(np.array(0.1)))


@pytest.mark.parametrize("near", [_with_other_limits, _with_floats, _with_a_constant])
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    """The extreme and the convolution after it are computed in floats."""
    found = made(lambda x: convolution(near(quantized(x)), 5, seed=3), tmp_path, atol=0.1)
    assert found[-1] == "Conv" and "Max" in found


@pytest.mark.parametrize(
    "gather",
    [
        lambda x: ops.gather(x, constant(np.array([3, 0, 2])), constant(np.array(2))),
        lambda x: ops.gather_elements(x, constant(np.ones((2, 8, 7, 2), np.int64)), 3),
        lambda x: ops.gather_nd(x, constant(np.array([[1], [0]])), 0),
    ],
)
def test_gathered_elements(gather: Callable[[Any], Any], tmp_path: Path) -> None:
    """Indices select integers."""

    def build(x: Any) -> Any:
        y = gather(quantized(convolution(quantized(x), 8)))
        y = ops.reshape(y, constant(np.array([2, 8, -1, 1])), False)
        return convolution(y, 5, seed=3)

    found = made(build, tmp_path, atol=0.2)
    assert found.count("QuantizedConv") == 2 and not FLOATS & set(found)
