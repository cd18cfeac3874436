"""Forms of quantized networks in real files that NNCF does not write today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.conformance.models.noise import relative_l2
from tests.conformance.quantized.test_quantized import EXACT, ONE_LEVEL, SHIPPED
from tests.processor import SATURATES

CHANNELS = 8


def _quantized(x: Any, low: float, high: float, kind: Any) -> Any:
    limits = [ops.constant(np.array(limit, kind)) for limit in (low, high, low, high)]
    return ops.fake_quantize(x, *limits, 256)


def _weights(kind: Any, seed: int, *, zero: float = 0.0) -> Any:
    """8-bit integers, Convert, Subtract, Multiply, with a scale for each channel."""
    rng = np.random.default_rng(seed)
    integers = ops.constant(rng.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3), dtype=np.int8))
    zeros = ops.constant(np.full((CHANNELS, 1, 1, 1), zero, kind))
    scales = ops.constant((rng.random((CHANNELS, 1, 1, 1)) * 0.002 + 0.0005).astype(kind))
    return ops.multiply(ops.subtract(ops.convert(integers, np.dtype(kind)), zeros), scales)


def _floats(kind: Any, seed: int) -> Any:
    """Weights whose channels differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) * np.logspace(-3, 0, CHANNELS)[:, None, None, None] * 0.1
    return ops.constant(weights.astype(kind))


def _convolution(x: Any, weights: Any, kind: Any, bias: float = 0.1) -> Any:
    y = ops.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return ops.add(y, ops.constant(np.full((1, CHANNELS, 1, 1), bias, kind)))


def _limits_of_16_bits(kind: Any) -> ov.Model:
    """Symmetric limits, rounded to 16 bits: zero is 0.02 and 0.05 of a level off a level."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    y = _convolution(_quantized(x, -2.865234375, 2.84375, kind), _weights(kind, 1, zero=7.6e-6), kind)
    y = _convolution(_quantized(y, -1.6875, 1.673828125, kind), _weights(kind, 2), kind)
    return ov.Model([ops.relu(y)], [x])


def _one_tensor_quantized_twice(kind: Any) -> ov.Model:
    """With a FakeQuantize for each consumer, as in early files."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    y = ops.relu(_convolution(_quantized(x, -2.56, 2.54, kind), _weights(kind, 1), kind))
    ends = [_convolution(_quantized(y, 0, 2.55, kind), _weights(kind, seed), kind) for seed in (2, 3)]
    return ov.Model([ops.relu(ops.add(*ends))], [x])


def _floats_between(kind: Any) -> ov.Model:
    """A convolution with float weights between two quantized tensors."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    y = ops.relu(_convolution(_quantized(x, -2.56, 2.54, kind), _floats(kind, 1), kind))
    y = _convolution(_quantized(y, 0, 2.55, kind), _weights(kind, 2), kind)
    return ov.Model([ops.relu(y)], [x])


def _product_with_floats_between(kind: Any) -> ov.Model:
    """A product with float weights and a bias, which ONNX Runtime fuses into a Gemm."""
    x = ops.parameter([4, 64], np.dtype(kind), name="x")
    rng = np.random.default_rng(0)
    first = ops.constant((rng.standard_normal((64, 16)) * np.logspace(-3, 0, 16)).astype(kind))
    y = ops.add(ops.matmul(_quantized(x, -2.56, 2.54, kind), first, False, False), ops.constant(np.full(16, 0.01, kind)))
    second = ops.constant(rng.integers(-127, 128, (16, 8), dtype=np.int8))
    scaled = ops.multiply(ops.convert(second, np.dtype(kind)), ops.constant(np.array(0.01, kind)))
    return ov.Model([ops.matmul(_quantized(y, -12.8, 12.7, kind), scaled, False, False)], [x])


def _moved_floats(kind: Any) -> ov.Model:
    """Float weights between two quantized tensors that are pooled and transposed in between."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    pooled = ops.max_pool(_quantized(x, -2.56, 2.54, kind), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2])
    y = ops.relu(_convolution(pooled.output(0), _floats(kind, 1), kind))
    turned = _quantized(ops.transpose(y, np.array([0, 1, 3, 2])), 0, 2.55, kind)
    return ov.Model([ops.relu(_convolution(turned, _weights(kind, 2), kind))], [x])


def _joined(kind: Any) -> ov.Model:
    """Two tensors with the same limits, split and concatenated, as in SqueezeNet."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    x1 = _quantized(x, -2.56, 2.54, kind)
    ends = [_quantized(ops.relu(_convolution(x1, _weights(kind, seed), kind)), 0, 2.55, kind) for seed in (1, 2)]
    begin, end, step, axis = (ops.constant(np.array([n])) for n in (0, CHANNELS // 2, 1, 1))
    both = ops.concat([ops.slice(y, begin, end, step, axis) for y in ends], 1)
    return ov.Model([ops.relu(_convolution(both, _weights(kind, 3), kind))], [x])


def _one_row_of_weights(kind: Any) -> ov.Model:
    """Weights that the scales broadcast: they have as many columns as the convolution has channels."""
    x = ops.parameter([1, CHANNELS, 12, 12], np.dtype(kind), name="x")
    rng = np.random.default_rng(1)
    integers = ops.constant(rng.integers(-127, 128, (CHANNELS, 1, 3, 3), dtype=np.int8))
    scales = ops.constant((rng.random((CHANNELS, CHANNELS, 1, 1)) * 0.002 + 0.0005).astype(kind))
    weights = ops.multiply(ops.convert(integers, np.dtype(kind)), scales)
    return ov.Model([ops.relu(_convolution(_quantized(x, -2.56, 2.54, kind), weights, kind))], [x])


@pytest.mark.parametrize("kind", [np.float32, np.float16], ids=["f32", "f16"])
@pytest.mark.parametrize(
    "build",
    [
        _limits_of_16_bits,
        _one_tensor_quantized_twice,
        _joined,
        _floats_between,
        _moved_floats,
        _product_with_floats_between,
        _one_row_of_weights,
    ],
)
def test_form(build: Any, kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.save_model(build(kind), path, compress_to_fp16=False)
    core = ov.Core()
    _, report = convert(path, tmp_path / "model.onnx")
    assert not report.nodes.get("onnx_specops.FakeQuantize")
    shape = list(core.read_model(path).input(0).shape)
    runs = [np.random.default_rng(seed).standard_normal(shape).astype(kind) for seed in range(4)]
    exact, shipped = (
        np.stack([compiled([run])[0].astype(np.float32) for run in runs])
        for compiled in (core.compile_model(path, "CPU", settings) for settings in (EXACT, SHIPPED))
    )
    session = onnx_specops.InferenceSession(tmp_path / "model.onnx")
    got = np.stack([session.run(None, {"x": run})[0].astype(np.float32) for run in runs])
    # where OpenVINO's integers saturate, only the exact levels are left, and one or two of them may differ
    allowed = ONE_LEVEL if SATURATES else 0.002
    assert min(relative_l2(got, exact), relative_l2(got, shipped)) <= allowed
    assert relative_l2(got, exact) <= max(relative_l2(shipped, exact), 0.002) * 1.2


def test_a_zero_between_the_levels_of_the_result(tmp_path: Path) -> None:
    """A tenth of a level off a level, because of limits with few digits."""
    x = ops.parameter([4, 64], np.float32, name="x")
    limits = [ops.constant(np.float32(limit)) for limit in (-1.75, 2.5, -1.375, 2)]
    weights = ops.constant(np.ones((64, 8), np.float32))
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([ops.matmul(ops.fake_quantize(x, *limits, 256), weights, False, False)], [x]), path)
    _, report = convert(path, tmp_path / "model.onnx")
    assert report.nodes["onnx_specops.FakeQuantize"] == 1
    given = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    expected = ov.Core().compile_model(path, "CPU", EXACT)([given])[0]
    got = onnx_specops.InferenceSession(tmp_path / "model.onnx").run(None, {"x": given})[0]
    np.testing.assert_allclose(got, expected, atol=1e-4)
