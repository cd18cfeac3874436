"""The integers of quantized constants represent the same numbers as the constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, quantized

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
