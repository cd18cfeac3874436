"""Quantization of the inputs of Concat, and convolutions whose results are quantized in several ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, depthwise, given

pytestmark = pytest.mark.unverified  # integers round ties differently


def _by_channels(x: Any, is_zero_shared: bool = True) -> Any:
    """Quantize each channel with a separate scale, optionally also with a separate zero point."""
    channels = x.get_output_shape(0)[1]
    zeros = np.full(channels, 64) if is_zero_shared else np.arange(10, 10 + 5 * channels, 5)
    steps = np.linspace(1, 2, channels) / 64
    return quantized(x, low=(-zeros * steps).reshape(1, -1, 1, 1), high=((255 - zeros) * steps).reshape(1, -1, 1, 1))


def _positive(x: Any) -> Any:
    return quantized(x, 0, 255 * STEP)


def _ghost(x: Any, inputs: int = 4, is_zero_shared: bool = True) -> tuple[Any, Any]:
    """A convolution and a cheaper one of its result, concatenated as in GhostNet."""
    first = ops.relu(convolution(quantized(x)))
    return first, ops.relu(depthwise(_by_channels(first, is_zero_shared)))


def _made(model: Callable[[Any], list[Any]], folder: Path, channels: int = 4, **options: Any) -> list[str]:
    x = ops.parameter([2, channels, 6, 6], np.float32, name="x")
    made = compared(ov.Model(model(x), [x]), folder, given(2, channels, 6, 6), atol=6 * STEP, **options)
    return [name for name in names(made) if name not in ("Transpose", "Constant")]


@pytest.mark.parametrize("is_zero_shared", [True, False])
def test_parts_are_quantized(is_zero_shared: bool, tmp_path: Path) -> None:
    def model(x: Any) -> list[Any]:
        return [convolution(_positive(ops.concat(list(_ghost(x, is_zero_shared=is_zero_shared)), 1)))]

    found = _made(model, tmp_path)
    assert sorted(found) == ["Concat", "QuantizeLinear", *["QuantizedConv"] * 4]


@pytest.mark.parametrize("is_zero_shared", [True, False])
def test_parts_are_quantized_by_channels(is_zero_shared: bool, tmp_path: Path) -> None:
    """Each part gets the scales and zero points of its channels."""

    def model(x: Any) -> list[Any]:
        return [depthwise(_by_channels(ops.concat(list(_ghost(x)), 1), is_zero_shared))]

    found = _made(model, tmp_path)
    assert sorted(found) == ["Concat", "QuantizeLinear", *["QuantizedConv"] * 4]


def test_a_part_without_a_convolution(tmp_path: Path) -> None:
    """It is quantized separately."""

    def model(x: Any) -> list[Any]:
        return [convolution(_positive(ops.concat([ops.relu(convolution(quantized(x))), ops.sin(x)], 1)))]

    assert sorted(_made(model, tmp_path)) == [
        "Concat",
        "QuantizeLinear",
        "QuantizeLinear",
        "QuantizedConv",
        "QuantizedConv",
        "Sin",
    ]


NEAR_MISSES: dict[str, Callable[[Any], list[Any]]] = {
    "other axis": lambda x: [convolution(_positive(ops.concat(list(_ghost(x)), 2)))],
    "no convolution": lambda x: [convolution(_positive(ops.concat([ops.sin(x), ops.cos(x)], 1)))],
    "a user in floats": lambda x: [
        convolution(_positive(joined := ops.concat(list(_ghost(x)), 1))),
        ops.exp(joined),
    ],
    "a part in floats elsewhere": lambda x: [
        convolution(_positive(ops.concat([part := ops.relu(convolution(quantized(x))), ops.sin(x)], 1))),
        ops.exp(part),
    ],
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name: str, tmp_path: Path) -> None:
    found = _made(NEAR_MISSES[name], tmp_path)
    assert "QuantizeLinear" in found[found.index("Concat") :]


@pytest.mark.parametrize(
    ("channels", "divisions"),
    [(14, 0), (15, 1)],  # 126 products a sum; 135 of them are not made twice
)
def test_convolutions_are_repeated(channels: int, divisions: int, tmp_path: Path) -> None:
    def model(x: Any) -> list[Any]:
        return [convolution(_positive(ops.concat(list(_ghost(x)), 1)))]

    found = _made(model, tmp_path, channels)
    assert (found.count("Div"), found.count("QuantizedConv")) == (divisions, 4 - divisions)


def test_convolutions_quantized_in_several_ways_without_channels_are_not_repeated(tmp_path: Path) -> None:
    """ONNX Runtime quantizes with one scale faster than a convolution computes."""

    def model(x: Any) -> list[Any]:
        whole = ops.relu(convolution(quantized(x)))
        return [ops.add(convolution(_positive(whole)), convolution(quantized(whole)))]

    assert _made(model, tmp_path).count("QuantizedConv") == 3


def test_only_with_operators_of_the_domain(tmp_path: Path) -> None:
    def model(x: Any) -> list[Any]:
        return [convolution(_positive(ops.concat(list(_ghost(x)), 1)))]

    assert "QuantizedConv" not in _made(model, tmp_path, opset=17)
