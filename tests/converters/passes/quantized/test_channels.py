"""Quantizations of channels before a Split whose parts depthwise convolutions use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.passes.quantized import ConvertToIntegers
from tests.converters.passes.graphs import floats, rewritten
from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import CHANNELS, STEP, convolution, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently

STEPS = np.array([1.0, 0.5, 0.75, 0.6, 0.9, 0.8]) / 64
ZEROS = np.array([100, 128, 90, 140, 0, 255])


def channels(x: Any, zeros: np.ndarray = ZEROS) -> Any:
    """Quantize each channel by its own limits."""
    return quantized(x, *((limit * STEPS).reshape(1, -1, 1, 1) for limit in (-zeros, 255 - zeros)))


def parts(x: Any, sizes: Sequence[int] = (2, 4), axis: int = 1) -> Sequence[Any]:
    return ops.variadic_split(x, constant(np.array(axis)), constant(np.array(sizes))).outputs()


def depthwise(x: Any, seed: int = 2, group: int | None = None) -> Any:
    count = x.get_shape()[1]
    group = count if group is None else group
    weights = np.clip(np.random.default_rng(seed).standard_normal((group, count // group, count // group, 3, 3)), -2, 2)
    return ops.group_convolution(x, quantized(constant(weights), -2, 2, 255), [1, 1], [1, 1], [1, 1], [1, 1])


def _made(build: Callable[[Any], Any], folder: Path, atol: float = 4 * STEP) -> list[str]:
    x = ops.parameter([2, 4, 7, 6], np.float32, name="x")
    network = build(ops.swish(convolution(quantized(x))))
    return names(compared(ov.Model([network], [x]), folder, given(2, 4, 7, 6), atol=atol))


def _both(x: Any) -> Any:
    first, second = parts(x)
    return ops.concat([depthwise(first), depthwise(second, 3)], 1)


@pytest.mark.parametrize("zeros", [ZEROS, np.full(CHANNELS, 128)], ids=["asymmetric", "symmetric"])
def test_parts_are_quantized(zeros: np.ndarray, tmp_path: Path) -> None:
    found = _made(lambda x: _both(channels(x, zeros)), tmp_path)
    assert found.count("QuantizedConv") >= 3 and not {"Conv", "FakeQuantize"} & set(found)


def test_a_part_with_two_convolutions(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        first, second = parts(channels(x), (3, 3))
        return ops.concat([depthwise(first), ops.add(depthwise(second, 3), depthwise(second, 4))], 1)

    assert not {"Conv", "FakeQuantize"} & set(_made(build, tmp_path))


def _one_is_used(x: Any) -> Any:
    first, second = parts(channels(x))
    return ops.concat([depthwise(first), ops.abs(second)], 1)


def _one_is_for_another_convolution(x: Any) -> Any:
    first, second = parts(channels(x))
    return ops.concat([depthwise(first), depthwise(second, group=2)], 1)


def _the_whole_is_used(x: Any) -> Any:
    whole = channels(x)
    return ops.add(_both(whole), whole)


def _other_dimension(x: Any) -> Any:
    first, second = parts(channels(x), (3, 4), axis=2)
    return ops.concat([depthwise(first), depthwise(second, 3)], 2)


@pytest.mark.parametrize("near", [_one_is_used, _one_is_for_another_convolution, _the_whole_is_used, _other_dimension])
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert "FakeQuantize" in _made(near, tmp_path)


@pytest.mark.parametrize(
    ("axis", "zero", "found"),
    [
        (1, np.uint8([0, 3, 250]), True),
        (1, np.int8([0, 3, -128]), False),
        (2, np.uint8([0, 3, 250, 7]), False),
    ],
)
def test_zero_points_of_channels_are_added_before_the_rounding(axis: int, zero: np.ndarray, found: bool) -> None:
    """Of uint8 along the second dimension: other quantizations stay."""

    def emit(op, x):
        integers = op.QuantizeLinear(x, op.const(np.ones(zero.size, np.float32)), op.const(zero), axis=axis)
        limits = (op.const(np.float32(limit)) for limit in (-1, 1, -1, 1))
        return op.Cast(integers, to=ir.DataType.FLOAT), op.specops.FakeQuantize(op.Abs(x), *limits, levels=256)

    operators = rewritten(emit, floats("x", 2, 3, 4), by=[ConvertToIntegers(21, contrib=True)], atol=1)
    assert ("Add" in operators) is found
