"""Averages of windows of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently


def pool(
    x: Any,
    window: Sequence[int] = (3, 3),
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (1, 1),
    ends: Sequence[int] | None = None,
    exclude: bool = False,
    rounding: str = "floor",
    auto: str = "explicit",
) -> Any:
    ends = pads if ends is None else ends
    return ops.avg_pool(x, list(strides), list(pads), list(ends), list(window), exclude, rounding, auto)


def made(build: Callable[[Any], Any], folder: Path, space: Sequence[int] = (7, 6), **options: Any) -> list[str]:
    shape = (2, 4, *space)
    x = ops.parameter(options.pop("shape", shape), np.float32, name="x")
    model = compared(ov.Model([build(x)], [x]), folder, given(*shape), atol=4 * STEP, **options)
    return [name for name in names(model) if name not in ("Constant", "Transpose")]


def _between(x: Any, **stated: Any) -> Any:
    """Average the result of a convolution between two quantizations."""
    return convolution(quantized(pool(quantized(convolution(quantized(x))), **stated)), 5, 1)


@pytest.mark.parametrize(
    ("space", "stated"),
    [
        ((7, 6), {}),
        ((7, 6), {"strides": (2, 1), "ends": (0, 1)}),
        ((7, 6), {"window": (2, 3), "pads": (0, 0), "exclude": True}),
        ((9,), {"window": (4,), "strides": (3,), "pads": (1,)}),
        ((3, 4, 5), {"window": (2, 2, 2), "strides": (1, 2, 1), "pads": (0, 1, 0)}),
    ],
)
def test_averages(space: Sequence[int], stated: dict[str, Any], tmp_path: Path) -> None:
    assert made(lambda x: _between(x, **stated), tmp_path, space) == ["QuantizeLinear", *["QuantizedConv"] * 3]


def test_an_average_of_the_input_with_a_function(tmp_path: Path) -> None:
    found = made(lambda x: convolution(quantized(ops.sigmoid(pool(quantized(x))))), tmp_path)
    assert found == ["QuantizeLinear", "QuantizedConv", "QuantizedConv"]


def _last(x: Any) -> Any:
    """Average a quantized tensor of any sizes, so that it is integers. The average is not."""
    return ops.reduce_mean(x, np.array([1]), True)


@pytest.mark.parametrize(
    ("space", "stated"),
    [
        ((7, 6), {}),
        ((7, 6), {"strides": (2, 1), "ends": (0, 2)}),
        ((7, 6), {"auto": "same_upper", "strides": (2, 2)}),
        ((9,), {"window": (4,), "strides": (3,), "pads": (1,)}),
        ((3, 4, 5), {"window": (2, 3, 2), "strides": (1, 2, 1), "pads": (0, 2, 1)}),
    ],
)
def test_averages_without_padding(space: Sequence[int], stated: dict[str, Any], tmp_path: Path) -> None:
    """Each sum is divided by the share of its window that is not padding: a constant if the sizes are known."""
    found = made(lambda x: _between(x, exclude=True, **stated), tmp_path, space)
    assert found.count("QuantizedConv") == 3 and "AveragePool" not in found
    if "auto" not in stated:
        shape = [-1, 4, *[-1] * len(space)]
        found = made(lambda x: _last(quantized(pool(quantized(x), exclude=True, **stated))), tmp_path, space, shape=shape)
        assert found.count("QuantizedConv") == found.count("AveragePool") == 1  # of ones


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda x: _last(quantized(pool(quantized(x), rounding="ceil", strides=(2, 2), pads=(0, 0)))), [2, 4, -1, -1]),
        (lambda x: _last(quantized(pool(quantized(x), auto="same_upper", strides=(2, 2)))), [2, 4, -1, -1]),
        (lambda x: _last(quantized(ops.sigmoid(pool(quantized(x), exclude=True)))), [2, 4, 7, 6]),  # different divisors
        (lambda x: pool(quantized(x), exclude=True), [2, 4, 7, 6]),  # the result is not quantized
    ],
)
def test_near_misses(build: Callable[[Any], Any], shape: Sequence[int], tmp_path: Path) -> None:
    found = made(build, tmp_path, shape=shape)
    assert "AveragePool" in found and "QuantizedConv" not in found


@pytest.mark.parametrize("shape", [[-1, 4, -1, -1], [2, 4, 7, 6]])
def test_unknown_sizes(shape: list[int], tmp_path: Path) -> None:
    found = made(lambda x: pool(quantized(pool(quantized(x)))), tmp_path, shape=shape)
    assert found.count("QuantizedConv") == found.count("AveragePool") == 1  # the result of the second is not quantized


def test_an_average_that_is_not_quantized(tmp_path: Path) -> None:
    assert "AveragePool" in made(lambda x: pool(quantized(convolution(quantized(x)))), tmp_path)


def _mean_of_all(x: Any, axes: Sequence[int] = (2, 3)) -> Any:
    """Average the result of a convolution, and use it, too."""
    inner = quantized(convolution(quantized(x)))
    return ops.multiply(inner, ops.reduce_mean(inner, np.array(axes, np.int64), True))


@pytest.mark.parametrize(
    ("space", "axes", "after"),
    [
        ((7, 6), (2, 3), []),
        ((7, 6), (-1, 2), []),
        ((1, 13), (2, 3), []),
        ((24, 20), (2, 3), ["ReduceMean"]),  # windows of 6 x 5
        ((32,), (2,), ["ReduceMean"]),
        ((5, 4, 18), (2, 3, 4), ["ReduceMean"]),
    ],
)
def test_means(space: Sequence[int], axes: Sequence[int], after: list[str], tmp_path: Path) -> None:
    found = made(lambda x: _mean_of_all(x, axes), tmp_path, space)
    assert found.count("QuantizedConv") == 2 and [name for name in found if name == "ReduceMean"] == after


@pytest.mark.parametrize(
    ("space", "axes"),
    [
        ((19, 6), (2, 3)),  # no windows divide it
        ((34, 6), (2, 3)),  # only windows of 2
        ((6, 6), (2,)),
        ((6, 6), (1, 2)),
        ((6, 6), (1, 2, 3)),
    ],
)
def test_means_that_stay(space: Sequence[int], axes: Sequence[int], tmp_path: Path) -> None:
    found = made(lambda x: _mean_of_all(x, axes), tmp_path, space)
    assert found.count("QuantizedConv") == 1 and "ReduceMean" in found


def test_a_mean_without_its_dimensions_stays(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        return ops.reduce_mean(quantized(convolution(quantized(x))), np.array([2, 3], np.int64), False)

    found = made(build, tmp_path)
    assert found.count("QuantizedConv") == 1 and "ReduceMean" in found


def test_a_mean_of_unknown_dimensions_stays(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        inner = quantized(pool(quantized(x)))
        return ops.multiply(inner, ops.reduce_mean(inner, np.array([2, 3], np.int64), True))

    assert "ReduceMean" in made(build, tmp_path, shape=[2, 4, -1, -1])


def test_a_mean_that_is_quantized(tmp_path: Path) -> None:
    """ONNX Runtime computes it in integers."""

    def build(x: Any) -> Any:
        inner = quantized(convolution(quantized(x)))
        return convolution(quantized(ops.reduce_mean(inner, np.array([2, 3], np.int64), True)), 5, 1)

    assert "GlobalAveragePool" in made(build, tmp_path)
