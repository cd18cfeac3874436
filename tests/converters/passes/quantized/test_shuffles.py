"""Shuffles of channels with different scales, before depthwise convolutions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
CHANNELS, LIMITS = 12, np.linspace(1, 3, 12).reshape(1, 12, 1, 1)
LOWEST = {
    "scales": np.zeros_like(LIMITS),
    "zero points": -LIMITS / 255 * 7 * np.arange(CHANNELS).reshape(LIMITS.shape),
    "offsets": -0.013 - 0.11 * np.arange(CHANNELS).reshape(LIMITS.shape),  # zero is between two levels
}
"""The lowest numbers of the channels."""


def given(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def convolution(x: Any, out: int = CHANNELS) -> Any:
    weights = quantized(constant(np.clip(given(out, CHANNELS, 1, 1), -2, 2) * 0.3), -2, 2, 255)
    return ops.convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def depthwise(x: Any) -> Any:
    weights = quantized(constant(np.clip(given(CHANNELS, 1, 1, 3, 3), -2, 2)), -2, 2, 255)
    return ops.group_convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])


def shuffled(
    x: Any, groups: Any = (1, 3, 4, 5, 7), order: Any = (0, 2, 1, 3, 4), back: Any = (1, 12, 5, 7), between: Any = None
) -> Any:
    inner = ops.transpose(ops.reshape(x, np.array(groups), False), np.array(order))
    return ops.reshape(inner if between is None else between(inner), np.array(back), False)


def network(shuffle: Any, shape: list[int], limits: np.ndarray = LIMITS, lowest: str = "scales") -> ov.Model:
    x = ops.parameter(shape, np.float32, name="x")
    low = np.broadcast_to(LOWEST[lowest], limits.shape) if limits.ndim else np.array(0.0)
    function = ops.relu if lowest == "scales" else ops.hswish
    inner = quantized(function(convolution(quantized(x))), low, low + limits, 256)
    return ov.Model([depthwise(shuffle(inner))], [x])


@pytest.mark.parametrize("lowest", LOWEST)
@pytest.mark.parametrize(
    ("changed", "shape", "found"),
    [
        ({}, [1, 12, 5, 7], True),
        ({"groups": (-1, 3, 4, 5, 7), "back": (-1, 12, 5, 7)}, [-1, 12, 5, 7], True),  # any batch
        ({"groups": (1, 3, 4, 35), "order": (0, 2, 1, 3)}, [1, 12, 5, 7], True),
        ({"groups": (1, 6, 2, 7, 5)}, [1, 12, 5, 7], True),  # the pixels are in the same order
        ({"order": (0, 2, 1, 4, 3)}, [1, 12, 5, 7], False),
        ({"order": (0, 3, 2, 1, 4)}, [1, 12, 5, 7], False),
        ({"order": (0, 1, 2, 3, 4)}, [1, 12, 5, 7], False),
        ({"groups": (1, 3, 2, 2, 35)}, [1, 12, 5, 7], False),  # channels and pixels are mixed
        ({"between": ops.relu}, [1, 12, 5, 7], False),
        ({"groups": (1, 3, 4, -1, 7), "back": (1, 12, -1, 7)}, [1, 12, -1, 7], False),  # the number of pixels is unknown
    ],
)
def test_conditions(changed: dict[str, Any], shape: list[int], found: bool, lowest: str, tmp_path: Path) -> None:
    model = network(lambda x: shuffled(x, **changed), shape, lowest=lowest)
    made = compared(model, tmp_path, given(1, 12, 5, 7), atol=1e-3, body_atol=0.1)
    assert names(made).count("QuantizedConv") == (2 if found else 1)


def test_one_scale(tmp_path: Path) -> None:
    """The integers move in any way."""
    model = network(lambda x: shuffled(x, order=(0, 2, 1, 4, 3)), [1, 12, 5, 7], np.array(2.0))
    assert names(compared(model, tmp_path, given(1, 12, 5, 7), atol=1e-3, body_atol=0.1)).count("QuantizedConv") == 2


def test_values_in_between_may_be_results(tmp_path: Path) -> None:
    x = ops.parameter([1, 12, 5, 7], np.float32, name="x")
    inner = quantized(ops.relu(convolution(quantized(x))), np.zeros_like(LIMITS), LIMITS, 256)
    groups = ops.reshape(inner, np.array([1, 3, 4, 5, 7]), False)
    back = ops.reshape(ops.transpose(groups, np.array([0, 2, 1, 3, 4])), np.array([1, 12, 5, 7]), False)
    made = compared(ov.Model([depthwise(back), groups, inner], [x]), tmp_path, given(1, 12, 5, 7), atol=1e-3, body_atol=0.1)
    assert names(made).count("QuantizedConv") == 1


def test_the_tensor_before_the_shuffle_may_have_other_consumers(tmp_path: Path) -> None:
    x = ops.parameter([1, 12, 5, 7], np.float32, name="x")
    inner = quantized(ops.relu(convolution(quantized(x))), np.zeros_like(LIMITS), LIMITS, 256)
    model = ov.Model([ops.add(depthwise(shuffled(inner)), inner)], [x])
    made = compared(model, tmp_path, given(1, 12, 5, 7), atol=1e-3, body_atol=0.1)
    assert names(made).count("QuantizedConv") == 2
