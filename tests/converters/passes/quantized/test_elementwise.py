"""Chains of element-wise nodes between the integers of a converted network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, given

pytestmark = pytest.mark.unverified  # integers round ties differently
SHAPE = (2, 4, 24, 24)
WEIGHTS = np.random.default_rng(0).standard_normal((6, 4, 1, 1)).astype(np.float32)


def network(integers: bool = True) -> ov.Model:
    """A function, a factor and an addend of channels between two convolutions."""
    x = ops.parameter(SHAPE, np.float32, name="x")
    channels = constant(np.linspace(0.5, 1.5, 6).reshape(1, -1, 1, 1))
    first = convolution(quantized(x)) if integers else ops.convolution(x, WEIGHTS, [1, 1], [0, 0], [0, 0], [1, 1])
    scaled = ops.add(ops.multiply(ops.tanh(first), channels), channels)
    return ov.Model([convolution(quantized(scaled)) if integers else ops.relu(scaled)], [x])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"opset": 20}, False),  # the plugin's kernels do not apply to older opsets
        ({"contrib": False}, False),
        ({"quantized": "float"}, False),
        ({"precision": "float32"}, False),
        ({"target": "standard"}, False),
    ],
)
def test_options(options: dict[str, Any], found: bool, tmp_path: Path) -> None:
    made = compared(network(), tmp_path, given(*SHAPE), atol=8 * STEP, **options)
    assert ("Elementwise" in names(made)) is found


def test_networks_without_integers(tmp_path: Path) -> None:
    assert "Elementwise" not in names(compared(network(False), tmp_path, given(*SHAPE), atol=1e-4))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "Elementwise"),
        ({"opset": 20}, "Elu"),
        ({"contrib": False}, "Elu"),
        ({"precision": "float32"}, "Elu"),
        ({"precision": "float16"}, "Elu"),
        ({"target": "standard"}, "Elu"),
        ({"target": "opencv"}, "Elu"),
    ],
    ids=str,
)
def test_slow_functions_of_networks_without_integers(options: dict[str, Any], found: str, tmp_path: Path) -> None:
    x = ops.parameter(SHAPE, np.float32, name="x")
    model = ov.Model([ops.add(ops.elu(x, 1.0), ops.mish(x))], [x])
    made = names(compared(model, tmp_path, given(*SHAPE), atol=5e-3 if "float16" in options.values() else 1e-5, **options))
    assert found in made


def test_channels_stay_last(tmp_path: Path) -> None:
    """No Transpose is left between the convolutions, except those of the Tanh, which ONNX Runtime moves.

    The convolutions compute several pixels at once, which a Reshape separates.
    """
    made = compared(network(), tmp_path, given(*SHAPE), atol=8 * STEP)
    of_input, first = ["Elementwise", "Transpose"], ["QuantizedConv", "Reshape", "Transpose", "Tanh"]
    assert names(made) == [*of_input, *first, "Transpose", "Elementwise", "QuantizedConv", "Reshape", "Transpose"]


@pytest.mark.parametrize("of_input", [True, False])
def test_inputs_are_quantized_before_they_are_transposed(of_input: bool, tmp_path: Path) -> None:
    """The Transpose of another tensor may be part of the node before it."""
    x = ops.parameter(SHAPE, np.float32, name="x")
    first = x if of_input else ops.convolution(x, WEIGHTS[:4], [1, 1], [0, 0], [0, 0], [1, 1])
    model = ov.Model([convolution(quantized(ops.multiply(first, np.float32(0.7))))], [x])
    made = names(compared(model, tmp_path, given(*SHAPE), atol=8 * STEP))
    assert (made.index("Elementwise") < made.index("Transpose")) is of_input
