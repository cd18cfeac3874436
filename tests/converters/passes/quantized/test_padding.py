"""Zeros that are added before quantized convolutions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, depthwise, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
TOPS = np.linspace(0.5, 2, 4).reshape(1, 4, 1, 1)


def pad(x: Any, begin: tuple[int, ...], end: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> Any:
    return ops.pad(x, constant(np.array(begin)), constant(np.array(end)), mode, constant(np.array(value)))


def made(build: Callable[[Any], Any], folder: Path) -> list[str]:
    x = ops.parameter([2, 4, 7, 6], np.float32, name="x")
    return names(compared(ov.Model([build(x)], [x]), folder, given(2, 4, 7, 6), atol=4 * STEP))


@pytest.mark.parametrize("begin", [(0, 0, 0, 0), (0, 0, 1, 2)])
@pytest.mark.parametrize("build", [convolution, depthwise])
def test_zeros(begin: tuple[int, ...], build: Callable[[Any], Any], tmp_path: Path) -> None:
    found = made(lambda x: build(pad(quantized(x), begin, (0, 0, 2, 1))), tmp_path)
    assert "QuantizedConv" in found and "Pad" not in found


def test_limits_of_channels(tmp_path: Path) -> None:
    """The quantization of a depthwise convolution, directly before it."""
    top = TOPS.astype(np.float32)
    found = made(
        lambda x: depthwise(pad(quantized(convolution(quantized(x), 4), -top, top * 127 / 128), (0,) * 4, (0, 0, 1, 1))),
        tmp_path,
    )
    assert found.count("QuantizedConv") == 2 and not {"Pad", "FakeQuantize"} & set(found)


@pytest.mark.parametrize(
    "near",
    [
        lambda x: pad(x, (0, 0, 1, 1), (0, 0, 1, 1), value=0.25),
        lambda x: pad(x, (0, 0, 1, 1), (0, 0, 1, 1), mode="edge"),
        lambda x: pad(x, (0, 1, 0, 0), (0, 1, 0, 0)),
        lambda x: pad(x, (1, 0, 0, 0), (0, 0, 1, 0)),
        lambda x: pad(x, (0, 0, -1, 0), (0, 0, 1, 1)),
    ],
    ids=["value", "edge", "channels", "batch", "negative"],
)
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert {"Pad", "Slice"} & set(made(lambda x: convolution(near(quantized(x))), tmp_path))


def test_another_consumer(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        padded = pad(quantized(x), (0, 0, 0, 0), (0, 0, 1, 2))
        return ops.add(convolution(padded, 4), padded)

    found = made(build, tmp_path)
    assert "Pad" in found


@pytest.mark.parametrize(
    ("mode", "value"),
    [("edge", 0.0), ("reflect", 0.0), ("constant", 0.25), ("constant", -2.0), ("constant", 2.0 * 127 / 128)],
)
@pytest.mark.parametrize("begin", [(0, 0, 1, 2), (0, 0, 2, 0)])
def test_integers_are_padded(mode: str, value: float, begin: tuple[int, ...], tmp_path: Path) -> None:
    found = made(lambda x: convolution(pad(quantized(x), begin, (0, 0, 2, 1), mode, value)), tmp_path)
    assert {"Pad", "QuantizedConv"} <= set(found)
    assert not {"Conv", "DequantizeLinear", "FakeQuantize"} & set(found)


def test_integers_with_another_zero_are_padded(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        return convolution(pad(quantized(x, -0.5, 1.5), (0, 0, 1, 1), (0, 0, 1, 1), "reflect"))

    found = made(build, tmp_path)
    assert {"Pad", "QuantizedConv"} <= set(found) and not {"Conv", "FakeQuantize"} & set(found)


def test_padding_between_convolutions(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        inner = quantized(ops.relu(convolution(quantized(x), 4)), 0, 2)
        return convolution(pad(inner, (0, 0, 1, 1), (0, 0, 1, 1), "reflect"), seed=3)

    found = made(build, tmp_path)
    assert found.count("QuantizedConv") == 2 and not {"Conv", "DequantizeLinear", "FakeQuantize"} & set(found)


@pytest.mark.parametrize("value", [0.26, 2.0, -2.1, 100.0])
def test_constants_that_are_no_level(value: float, tmp_path: Path) -> None:
    """The floats are padded."""
    found = made(lambda x: convolution(pad(quantized(x), (0, 0, 1, 1), (0, 0, 1, 1), value=value)), tmp_path)
    assert "QuantizedConv" not in found and "Pad" in found
