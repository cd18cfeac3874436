"""The integers of quantized constants represent the same numbers as the constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from tests.converters.passes.quantized.networks import compared, constant, names, quantized

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently


def of_levels(least: int, greatest: int) -> np.ndarray:
    """Return a matrix with numbers at both ends of the levels."""
    numbers = np.random.default_rng(1).standard_normal((24, 16))
    numbers = (numbers - numbers.min()) / (numbers.max() - numbers.min())
    return (numbers * (greatest - least) + least) / 100


@pytest.mark.parametrize(
    ("least", "greatest"),
    [(-128, 127), (-127, 128), (-127, 127), (0, 255), (-255, 0), (-8, 7), (-7, 8), (-3, 252), (-1, 1)],
    ids=str,
)
def test_levels(least: int, greatest: int, tmp_path: Path) -> None:
    """From -127 steps to +128, the highest level is outside int8 but within uint8."""
    x = ops.parameter([4, 16], np.float32, name="x")
    ends = np.array([[least]]) / 100, np.array([[greatest]]) / 100
    weights = quantized(constant(of_levels(least, greatest)), *ends, greatest - least + 1)
    given = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    compared(ov.Model([ops.matmul(quantized(x), weights, False, True)], [x]), tmp_path, given, atol=1e-4)


@pytest.mark.parametrize(
    ("stored", "by"),
    [
        (np.uint8, []),
        (np.int8, []),
        (np.uint8, ["i32"]),
        (np.int8, ["f16"]),
        (np.int8, ["bf16"]),
        (np.uint8, ["i8"]),
        (np.int8, ["u8"]),
        (np.int8, ["u16"]),
        (np.uint8, ["i8", "i32"]),
        (np.int8, ["i32", "u8"]),
    ],
    ids=str,
)
def test_casts_on_the_way(stored: type, by: list[str], tmp_path: Path) -> None:
    """Casts that change integers, such as u8 to i8, change the weights."""
    weights = constant(np.random.default_rng(3).integers(0, 256, (16, 24)).astype(np.uint8).view(stored))
    for type_ in [*by, "f32"]:
        weights = ops.convert(weights, type_)
    x = ops.parameter([4, 16], np.float32, name="x")
    result = ops.matmul(quantized(x), ops.multiply(weights, constant(0.01)), False, False)
    given = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    compared(ov.Model([result], [x]), tmp_path, given, atol=1e-3)


def _of_16_bits(weights: np.ndarray, low: float, high: float) -> ov.Model:
    """As the Post-Training Optimization Tool of 2021 wrote FP16-INT8: bytes, converted to float16, under a FakeQuantize."""

    def halves(*limits: float) -> list:
        return [ops.constant(np.float16(limit)) for limit in limits]

    x = ops.parameter([1, 16, 6, 5], np.float16, name="x")
    data = ops.fake_quantize(x, *halves(-2, 1.984375, -2, 1.984375), 256)
    levels = ops.convert(ops.constant(weights), "f16")
    filters = ops.fake_quantize(levels, *halves(low, high, -1, 1), 255)
    return ov.Model([ops.convolution(data, filters, [1, 1], [0, 0], [0, 0], [1, 1])], [x])


def test_bytes_in_float16_under_a_fake_quantize(tmp_path: Path) -> None:
    weights = np.random.default_rng(2).integers(0, 255, (24, 16, 1, 1)).astype(np.uint8)
    given = np.random.default_rng(0).standard_normal((1, 16, 6, 5)).astype(np.float16)
    found = compared(_of_16_bits(weights, 0, 254), tmp_path, given, atol=2e-2)  # the result is float16
    assert names(found).count("QuantizedConv") == 1
    assert "DequantizeLinear" not in names(found)


def test_numbers_that_float16_rounds_stay_floats(tmp_path: Path) -> None:
    """Integers above 2,048 in float16: several casts must preserve the numbers."""
    weights = np.random.default_rng(2).integers(0, 2540, (24, 16, 1, 1)).astype(np.int32)
    model = _of_16_bits(weights, 0, 2540)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    assert "QuantizedConv" not in names(convert(tmp_path / "model.xml").model)
