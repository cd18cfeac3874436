"""Quantized convolutions to few channels, which compute several pixels at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from onnx import numpy_helper
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, quantized
from tests.converters.passes.quantized.test_fused import STEP, given

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently


def convolution(
    x: Any, out: int, size: Sequence[int] = (3, 3), stride: int = 1, dilation: int = 1, pads: Any = None, seed: int = 1
) -> Any:
    rng = np.random.default_rng(seed)
    shape = (out, x.get_output_shape(0)[1], *size)
    filters = quantized(constant(np.clip(rng.standard_normal(shape), -2, 2) * 0.3), -2, 2, 255)
    both = [(width // 2, width // 2) for width in size] if pads is None else pads
    begins, ends = zip(*both, strict=True)
    strides, dilations = [*[1] * (len(size) - 1), stride], [*[1] * (len(size) - 1), dilation]
    result = ops.convolution(x, filters, strides, list(begins), list(ends), dilations)
    return ops.add(result, constant(rng.standard_normal((1, out, *[1] * len(size)))))


def columns(build: Callable[[Any], Any], folder: Path, shape: Sequence[int] = (1, 5, 36, 32), place: int = -1) -> int:
    """Return the number of channels that a QuantizedConv computes, by default the last one."""
    x = ops.parameter(list(shape), np.float32, name="x")
    made = compared(ov.Model([build(quantized(x))], [x]), folder, given(*shape), atol=4 * STEP)
    found = [node for node in made.graph.node if node.op_type == "QuantizedConv"][place]
    filters = next(tensor for tensor in made.graph.initializer if tensor.name == found.input[1])
    return len(numpy_helper.to_array(filters))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: convolution(x, 1), 16),
        (lambda x: convolution(x, 2), 16),
        (lambda x: convolution(x, 3), 12),
        (lambda x: convolution(x, 5), 10),
        (lambda x: convolution(x, 5, (3, 2), pads=[(1, 1), (1, 0)]), 5),  # two windows of two pixels would gain a third
        (lambda x: convolution(x, 5, (5, 7)), 10),
        (lambda x: convolution(x, 8, (1, 9)), 16),
        (lambda x: convolution(x, 9, (1, 9)), 9),  # more than half of the channels at once
        (lambda x: convolution(x, 3, (9, 1)), 3),  # a window of one pixel in a line
        (lambda x: convolution(x, 3, stride=2), 3),
        (lambda x: convolution(x, 3, dilation=2, pads=[(1, 1), (2, 2)]), 3),
        (lambda x: convolution(x, 3, pads=[(1, 1), (0, 0)]), 6),  # 30 pixels
        (lambda x: convolution(x, 3, pads=[(1, 1), (1, 0)]), 3),  # 31 pixels
        (lambda x: convolution(x, 3, pads=[(0, 2), (3, 1)]), 6),  # 34 pixels
        (lambda x: ops.sigmoid(convolution(x, 1)), 16),
        (lambda x: ops.prelu(convolution(x, 3), constant(np.array([0.1, 0.2, 0.3]))), 12),
        (lambda x: quantized(convolution(x, 3), 0, 2), 12),
    ],
)
def test_images(build: Callable[[Any], Any], expected: int, tmp_path: Path) -> None:
    assert columns(build, tmp_path) == expected


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((1, 4, 1024), (9,), 16),
        ((2, 3, 6, 8, 32), (3, 3, 3), 16),
        ((1, 4, 1020), (9,), 4),  # fewer pixels
        ((2, 3, 32, 16), (3, 3), 16),
    ],
)
def test_dimensions(shape: Sequence[int], size: Sequence[int], expected: int, tmp_path: Path) -> None:
    out = 4 if len(size) == 1 else 2
    assert columns(lambda x: convolution(x, out, size), tmp_path, shape) == expected


def test_limits_of_each_channel(tmp_path: Path) -> None:
    top = np.array([1, 2, 3]).reshape(1, 3, 1, 1)
    low = np.zeros_like(top)

    def build(x: Any) -> Any:
        inner = quantized(ops.relu(convolution(x, 3, (3, 7))), low, top)
        filters = quantized(constant(np.clip(given(3, 1, 1, 3, 3), -2, 2)), -2, 2, 255)
        return ops.group_convolution(inner, filters, [1, 1], [1, 1], [1, 1], [1, 1])

    assert columns(build, tmp_path, place=0) == 12


def test_an_unknown_size(tmp_path: Path) -> None:
    x = ops.parameter([1, 5, 36, -1], np.float32, name="x")
    rng = np.random.default_rng(1)
    filters = quantized(constant(np.clip(rng.standard_normal((1, 5, 3, 3)), -2, 2) * 0.3), -2, 2, 255)
    y = ops.convolution(quantized(x), filters, [1, 1], [1, 1], [1, 1], [1, 1])
    made = compared(ov.Model([y], [x]), tmp_path, given(1, 5, 36, 32), atol=4 * STEP)
    assert "Reshape" not in [node.op_type for node in made.graph.node]
