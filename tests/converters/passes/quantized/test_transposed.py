"""Transposed convolutions as convolutions in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized, rounded

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
STEP = 1 / 64


def given(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


SYMMETRIC = (-2, 2, 255)


def transposed(
    x: Any,
    out: int,
    size: int,
    stride: int,
    begin: int = 0,
    end: int = 0,
    more: int = 0,
    dilation: int = 1,
    seed: int = 1,
    limits: tuple[float, float, int] | None = SYMMETRIC,
) -> Any:
    """Build a transposed convolution with quantized weights, unless ``limits`` is ``None``, and a bias."""
    shape = x.get_output_partial_shape(0)
    rank = len(shape) - 2
    kernel = np.random.default_rng(seed).standard_normal((shape[1].get_length(), out, *[size] * rank))
    filters = constant(np.clip(kernel, -2, 2) * 0.3)
    if limits is not None:
        filters = quantized(filters, *limits)
    numbers = [[number] * rank for number in (stride, begin, end, dilation, more)]
    result = ops.convolution_backprop_data(
        x, filters, numbers[0], None, numbers[1], numbers[2], numbers[3], output_padding=numbers[4]
    )
    return ops.add(result, constant(np.linspace(-1, 1, out).reshape(1, -1, *[1] * rank)))


GEOMETRIES = [
    # kernel, stride, padding at the beginning and the end, output padding
    (2, 2, 0, 0, 0),
    (4, 2, 1, 1, 0),
    (3, 2, 1, 1, 1),
    (3, 2, 0, 1, 0),
    (3, 1, 1, 1, 0),
    (9, 4, 4, 4, 3),
    (1, 2, 0, 0, 0),
    (2, 3, 0, 0, 0),
    (4, 2, 3, 3, 0),
    (5, 3, 2, 1, 0),
]


@pytest.mark.parametrize("space", [[6], [5, 7], [3, 4, 5]], ids=len)
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_geometries(geometry: tuple[int, ...], space: list[int], tmp_path: Path) -> None:
    x = ops.parameter([2, 8, *space], np.float32, name="x")
    follows = ov.Model([transposed(quantized(ops.relu(transposed(quantized(x), 6, *geometry))), 5, 2, 2, seed=2)], [x])
    made = compared(follows, tmp_path, given(2, 8, *space), atol=1e-4, body_atol=2 * STEP)  # bodies round biases
    assert names(made).count("QuantizedConv") == 2
    assert not set(names(made)) & {"ConvTranspose", "FakeQuantize", "DequantizeLinear"}
    assert names(made).count("QuantizeLinear") == 1  # for the input


@pytest.mark.parametrize(
    ("function", "limits"),
    [
        (lambda x: ops.prelu(x, constant(np.linspace(-0.5, 1.5, 6))), {}),
        (ops.swish, {}),
        (lambda x: x, {"low": 0.0, "high": 255 / 64}),
    ],
)
def test_following_nodes(function: Any, limits: dict[str, float], tmp_path: Path) -> None:
    x = ops.parameter([1, 8, 5, 7], np.float32, name="x")
    inner = quantized(function(transposed(quantized(x), 6, 4, 2, 1, 1)), **limits)
    made = compared(ov.Model([transposed(inner, 4, 2, 2)], [x]), tmp_path, given(1, 8, 5, 7), atol=2 * STEP)
    assert names(made).count("QuantizedConv") == 2
    assert not set(names(made)) & {"ConvTranspose", "FakeQuantize", "DequantizeLinear", "PRelu", "Sigmoid"}


def test_the_batch_may_be_unknown(tmp_path: Path) -> None:
    x = ops.parameter([-1, 8, 5, 7], np.float32, name="x")
    made = compared(ov.Model([transposed(quantized(x), 6, 4, 2, 1, 1)], [x]), tmp_path, given(3, 8, 5, 7), atol=1e-4)
    assert "QuantizedConv" in names(made)


def test_quantization_after_a_concatenation(tmp_path: Path) -> None:
    x, y = (ops.parameter([1, 8, *space], np.float32, name=name) for name, space in (("x", [5, 7]), ("y", [10, 14])))
    joined = quantized(ops.concat([transposed(quantized(x), 6, 2, 2), quantized(y)], 1))
    model = ov.Model([transposed(joined, 4, 2, 2)], [x, y])
    made = compared(model, tmp_path, given(1, 8, 5, 7), given(1, 8, 10, 14), atol=2 * STEP)
    assert names(made).count("QuantizedConv") == 2


def changed(**arguments: Any) -> Any:
    """Return a function that builds a transposed convolution with other arguments."""
    return lambda x: transposed(quantized(x), 6, **{"size": 2, "stride": 2} | arguments)


def grouped(x: Any) -> Any:
    filters = quantized(constant(np.clip(given(2, 4, 3, 2, 2), -2, 2)), *SYMMETRIC)
    return ops.group_convolution_backprop_data(quantized(x), filters, [2, 2], None, [0, 0], [0, 0], [1, 1])


def of_computed_weights(x: Any) -> Any:
    filters = quantized(ops.broadcast(ops.reduce_mean(x, np.array([0, 1, 2, 3]), keep_dims=False), [8, 6, 2, 2]))
    return ops.convolution_backprop_data(quantized(x), filters, [2, 2], None, [0, 0], [0, 0], [1, 1])


BY_CHANNEL = np.linspace(1, 3, 8).reshape(1, 8, 1, 1)


@pytest.mark.parametrize(
    ("build", "shape", "options"),
    [
        (changed(size=3, dilation=2), [1, 8, 5, 7], {}),
        (changed(begin=2), [1, 8, 5, 7], {}),  # the convolution would have negative pads
        (changed(), [1, 8, -1, 7], {}),  # the number of pixels is unknown
        (changed(), [1, 8, 5, 7], {"target": "standard"}),  # without ONNX Runtime's own operators
        (changed(limits=None), [1, 8, 5, 7], {}),
        (changed(limits=(-1.5, 2, 256)), [1, 8, 5, 7], {}),  # the weights have a zero point
        (lambda x: transposed(x, 6, 2, 2), [1, 8, 5, 7], {}),
        (lambda x: transposed(quantized(x, -BY_CHANNEL, BY_CHANNEL), 6, 2, 2), [1, 8, 5, 7], {}),
        (grouped, [1, 8, 5, 7], {}),
        (of_computed_weights, [1, 8, 5, 7], {}),
    ],
    ids=["dilation", "pads", "size", "target", "float weights", "asymmetric weights", "float input",
         "limits by channel", "groups", "computed weights"],
)  # fmt: skip
def test_near_misses(build: Any, shape: list[int], options: dict[str, Any], tmp_path: Path) -> None:
    x = ops.parameter(shape, np.float32, name="x")
    made = compared(ov.Model([build(x)], [x]), tmp_path, given(1, 8, 5, 7), atol=1e-3, **options)
    assert "ConvTranspose" in names(made)
    assert "QuantizedConv" not in names(made)


def test_16_bits_stay(tmp_path: Path) -> None:
    """OpenVINO's CPU plugin differs by 0.66 from the definition here."""
    x = ops.parameter([1, 8, 5, 7], np.float32, name="x")
    kernel = np.clip(np.random.default_rng(1).standard_normal((8, 6, 2, 2)), -2, 2) * 0.3
    sums = np.einsum("ncij,cmab->nmiajb", rounded(given(1, 8, 5, 7), levels=65536), rounded(kernel, *SYMMETRIC))
    expected = sums.reshape(1, 6, 10, 14) + np.linspace(-1, 1, 6).reshape(1, 6, 1, 1)
    model = ov.Model([transposed(quantized(x, levels=65536), 6, 2, 2)], [x])
    made = compared(model, tmp_path, given(1, 8, 5, 7), atol=1e-4, expected=expected)
    assert "ConvTranspose" in names(made)
    assert "QuantizedConv" not in names(made)


def test_a_bias_that_is_computed_stays_an_addition(tmp_path: Path) -> None:
    x, bias = ops.parameter([1, 8, 5, 7], np.float32, name="x"), ops.parameter([1, 6, 1, 1], np.float32, name="bias")
    model = ov.Model([ops.add(transposed(quantized(x), 6, 2, 2), bias)], [x, bias])
    made = compared(model, tmp_path, given(1, 8, 5, 7), given(1, 6, 1, 1), atol=1e-4)
    assert names(made).count("QuantizedConv") == names(made).count("Add") == 1


@pytest.mark.parametrize(("pads", "shape"), [("same_upper", [10, 14]), ("same_lower", [9, 13]), ("explicit", [10, 14])])
def test_a_stated_output_shape(pads: str, shape: list[int], tmp_path: Path) -> None:
    x = ops.parameter([1, 8, 5, 7], np.float32, name="x")
    filters = quantized(constant(np.clip(given(8, 6, 3, 3), -2, 2) * 0.3), *SYMMETRIC)
    zeros, ones = [0, 0], [1, 1]
    size = ops.constant(np.array(shape, np.int64))
    result = ops.convolution_backprop_data(quantized(x), filters, [2, 2], size, zeros, ones, ones, pads, zeros)
    made = compared(ov.Model([result], [x]), tmp_path, given(1, 8, 5, 7), atol=1e-4)
    assert "QuantizedConv" in names(made)
