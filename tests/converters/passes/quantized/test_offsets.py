"""Quantizations whose limits put zero between two levels, or outside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.passes.quantized.affine import affine
from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import CHANNELS, STEP, convolution, depthwise, given

pytestmark = pytest.mark.unverified  # integers round ties differently


def between(x: Any, part: float = 0.3, levels: int = 256) -> Any:
    """Quantize with a zero that is this part of a level above one."""
    return quantized(x, (-128 + part) * STEP, (levels - 129 + part) * STEP, levels)


def positive(x: Any) -> Any:
    return quantized(x, -2.7 * STEP, 252.3 * STEP)


def above(x: Any) -> Any:
    """No level is zero or less."""
    return quantized(x, 0.4, 2.9)


def below(x: Any) -> Any:
    return quantized(x, -2.9, -0.4)


def channels(x: Any, part: float = 0.3) -> Any:
    steps = (np.resize([1.0, 0.5, 0.75, 0.6, 0.9, 0.8], x.get_output_shape(0)[1]) / 64).reshape(1, -1, 1, 1)
    return quantized(x, (-128 + part) * steps, (127 + part) * steps)


def _moved(x: Any) -> Any:
    return ops.transpose(ops.reshape(x, [0, 0, 3, 12], True), [0, 1, 3, 2])


def _maximum(x: Any) -> Any:
    both = ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2])
    return ops.reshape(both.output(0), [0, 0, 0, 0], True)


def _product(x: Any) -> Any:
    tokens = between(ops.transpose(ops.reshape(x, [0, 0, 36], True), [0, 2, 1]))
    weights = np.clip(np.random.default_rng(3).standard_normal((CHANNELS, 10)), -2, 2)
    return ops.add(
        ops.matmul(tokens, quantized(constant(weights), -2, 2, 255), False, False), constant(np.linspace(-1, 1, 10))
    )


def _transposed(x: Any) -> Any:
    weights = np.clip(np.random.default_rng(4).standard_normal((CHANNELS, 5, 3, 3)), -2, 2)
    filters = quantized(constant(weights * 0.3), -2, 2, 255)
    return ops.convolution_backprop_data(x, filters, [2, 2], None, [1, 1], [0, 1], [1, 1])


def _residual(x: Any, function: Callable[[Any], Any] = lambda total: total, part: float = 0.4) -> Any:
    first = between(x)
    return function(ops.add(first, between(convolution(first, seed=3), part)))


def _both(x: Any) -> Any:
    """Two convolutions, concatenated."""
    return ops.concat([ops.relu(convolution(between(x), seed=seed)) for seed in (5, 6)], 1)


def _several(x: Any) -> Any:
    """A result that is quantized by the whole and by channels."""
    first = ops.relu(convolution(between(x), size=1))
    return ops.concat([convolution(between(first)), depthwise(channels(first))], 1)


def _normalized(x: Any) -> Any:
    """A BatchNormalization of parts with different limits."""
    parts = ops.concat([between(x), between(ops.negative(x), 0.4)], 1)
    line = constant(np.linspace(0.5, 1.5, 2 * CHANNELS).reshape(1, -1, 1, 1))
    return ops.relu(ops.add(ops.multiply(parts, line), line))


def _average(x: Any, pads: int = 0, *, exclude_pad: bool = False) -> Any:
    return ops.avg_pool(x, [2, 2], [pads, pads], [0, 0], [2, 2], exclude_pad)


HITS: dict[str, Callable[[Any], Any]] = {
    "windows": lambda x: convolution(between(x)),
    "pixels": lambda x: convolution(between(x), size=1),
    "relu": lambda x: convolution(between(ops.relu(x))),
    "relu of a range from below zero": lambda x: convolution(positive(ops.relu(x))),
    "a factor": lambda x: convolution(between(ops.multiply(x, constant(np.float32(0.7))))),
    "factors of channels": lambda x: convolution(
        between(ops.multiply(x, constant(np.linspace(0.5, 2, 6).reshape(1, -1, 1, 1))))
    ),
    "factors and limits of channels": lambda x: depthwise(
        channels(ops.multiply(x, constant(np.linspace(0.5, 2, 6).reshape(1, -1, 1, 1))))
    ),
    "a transposed convolution": lambda x: convolution(between(_transposed(between(x)))),
    "swish": lambda x: convolution(positive(ops.swish(x))),
    "prelu": lambda x: convolution(between(ops.prelu(x, constant(np.array([0.1]))))),
    "above zero": lambda x: convolution(above(ops.relu(x))),
    "below zero": lambda x: convolution(below(x)),
    "255 levels": lambda x: convolution(between(x, levels=255)),
    "depthwise": lambda x: convolution(between(depthwise(between(x)))),
    "depthwise, by channels": lambda x: depthwise(channels(x)),
    "maximum": lambda x: convolution(_maximum(between(x))),
    "moves": lambda x: convolution(_moved(between(x))),
    "product": _product,
    "addition": lambda x: convolution(between(_residual(x))),
    "addition and relu": lambda x: convolution(quantized(_residual(x, ops.relu), 0, 4 * 255 / 256)),
    "average": lambda x: convolution(between(_average(between(x)))),
    "average with padding": lambda x: convolution(between(_average(between(x), 1))),
    "mean": lambda x: convolution(between(ops.reduce_mean(between(x), constant(np.array([2, 3])), True))),
    "concatenation": lambda x: convolution(ops.concat([between(x), between(ops.negative(x))], 1)),
    "parts": lambda x: convolution(between(_both(x))),
    "parts, by channels": lambda x: depthwise(channels(_both(x))),
    "several quantizations": _several,
    "parts with different limits": lambda x: convolution(between(_normalized(x))),
    "factors": lambda x: convolution(between(ops.multiply(between(x), constant(np.full((1, CHANNELS, 1, 1), -0.7))))),
}


def _made(build: Callable[[Any], Any], folder: Path, **options: Any) -> list[str]:
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    model = ov.Model([build(convolution(between(x)))], [x])
    return names(compared(model, folder, given(2, 4, 6, 6), atol=8 * STEP, **options))


@pytest.mark.parametrize("hit", HITS)
def test_integers(hit: str, tmp_path: Path) -> None:
    found = _made(HITS[hit], tmp_path)
    assert not {"Conv", "MatMul", "FakeQuantize", "AveragePool", "DequantizeLinear"} & set(found)


NEAR_MISSES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no convolution": (lambda x: ops.add(between(x), constant(1.0)), "FakeQuantize"),
    "far from zero": (lambda x: convolution(quantized(x, 100.0, 101.0)), "FakeQuantize"),
    "computed weights": (
        lambda x: ops.matmul(between(x), between(ops.negative(x)), False, True), "MatMul",
    ),
    "different offsets": (lambda x: convolution(ops.concat([between(x), between(ops.negative(x), 0.4)], 1)), "Conv"),
    "a slope after the sum": (
        lambda x: convolution(between(_residual(x, lambda total: ops.prelu(total, constant(np.array([0.1])))))),
        "DequantizeLinear",
    ),
    "a mean without the padding": (lambda x: convolution(between(_average(between(x), 1, exclude_pad=True))), "AveragePool"),
    "channels of a whole convolution": (lambda x: convolution(channels(x)), "Conv"),
}  # fmt: skip


@pytest.mark.parametrize("near", NEAR_MISSES)
def test_near_misses(near: str, tmp_path: Path) -> None:
    build, left = NEAR_MISSES[near]
    assert left in _made(build, tmp_path)


@pytest.mark.parametrize("options", [{"target": "standard"}, {"opset": 20}, {"precision": "float16"}], ids=str)
def test_other_forms(options: dict[str, Any], tmp_path: Path) -> None:
    _made(HITS["windows"], tmp_path, **options)


def test_a_used_result(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        whole = between(x)
        return ops.add(convolution(whole), ops.abs(whole))

    assert "DequantizeLinear" in _made(build, tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "zero", "offset"),
    [
        (-1.0, 1.55, 100, None),
        (-1.0004, 1.5496, 100, -0.04),
        (-1.004, 1.546, 100, -0.4),
        (0.5, 3.05, 0, 50.0),
        (-3.05, -0.5, 255, -50.0),
        (1e-6, 2.55, 0, 1e-4),
        (-2.55, -1e-6, 255, -1e-4),
    ],
)
def test_zero_points(low: float, high: float, zero: int, offset: float | None) -> None:
    found = affine(np.array(low), np.array(high), 256, 4, rounded=False, offsets=True)
    assert found is not None and found.zero_point == zero
    assert (found.offset is None) == (offset is None)
    if offset is not None:
        np.testing.assert_allclose(found.offset, np.float32(offset), rtol=0.1, atol=1e-5, strict=True)
        assert affine(np.array(low), np.array(high), 256, 4, rounded=False) is None


@pytest.mark.parametrize("limit", [1.0, 1.009765625, 0.731, 2.3, 5.77])
@pytest.mark.parametrize("convolved", [False, True])
def test_zeros_halfway_between_two_levels(limit: float, convolved: bool, tmp_path: Path) -> None:
    """Half of the numbers after Relu are zeros, which have the level that OpenVINO computes.

    For other limits, such as 0.1234, OpenVINO computes another level after a convolution than elsewhere.
    """
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    first = convolution(quantized(x)) if convolved else x
    model = ov.Model([convolution(quantized(ops.relu(first), -limit, limit), size=1)], [x])
    made = compared(model, tmp_path, given(2, 4, 6, 6), atol=limit / 255)
    assert names(made).count("QuantizedConv") == 1 + convolved
