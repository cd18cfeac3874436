"""The factors of SmoothQuant after normalizations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, given
from tests.converters.passes.quantized.test_matmuls import product

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
SIZE = 8
FACTORS = np.linspace(0.3, 2, SIZE)


def normalized(x: Any, scale: bool = True, axes: tuple[int, ...] = (-1,)) -> Any:
    """Build a normalization of the last dimension with a scale and a bias."""
    result = ops.mvn(x, constant(np.array(axes)), True, 1e-5, "inside_sqrt")
    if not scale:
        return result
    return ops.add(ops.multiply(result, constant(np.linspace(0.5, 1.5, SIZE))), constant(np.linspace(-1, 1, SIZE)))


def _windows(x: Any) -> Any:
    """Move numbers, but not along the last dimension."""
    split = ops.reshape(x, constant(np.array([2, 2, 3, SIZE])), False)
    moved = ops.transpose(split, constant(np.array([0, 2, 1, 3])))
    return ops.reshape(moved, constant(np.array([6, 2, SIZE])), False)


def made(build: Callable[[Any], Any], folder: Path, **options: Any) -> list[str]:
    x = ops.parameter([2, 6, SIZE], np.float32, name="x")
    model = compared(ov.Model([product(build(x))], [x]), folder, given(2, 6, SIZE), atol=4 * STEP, **options)
    return names(model)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("moves", [lambda x: x, _windows])
@pytest.mark.parametrize("factors", [FACTORS, FACTORS.reshape(1, 1, -1), -FACTORS, np.array([0.7])], ids=np.shape)
def test_factors(factors: np.ndarray, moves: Callable[[Any], Any], scale: bool, tmp_path: Path) -> None:
    found = made(lambda x: quantized(ops.multiply(moves(normalized(x, scale)), constant(factors))), tmp_path)
    assert "QuantizedLayerNormalization" in found and "Mul" not in found


def test_several_quantizations(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        scaled = ops.multiply(normalized(x), constant(FACTORS))
        return ops.concat([quantized(scaled), quantized(scaled, -1.0, 127 / 128)], 1)

    assert "Mul" not in made(build, tmp_path)


def _of_rows(x: Any) -> Any:
    return quantized(ops.multiply(normalized(x), constant(np.linspace(0.3, 2, 6).reshape(6, 1))))


def _result_is_used(x: Any) -> Any:
    inner = normalized(x)
    return ops.add(quantized(ops.multiply(inner, constant(FACTORS))), ops.reduce_max(inner, constant(np.array([0])), True))


def _product_is_used(x: Any) -> Any:
    inner = ops.multiply(normalized(x), constant(FACTORS))
    return ops.add(quantized(inner), ops.reduce_max(inner, constant(np.array([0])), True))


def _last_dimension_moves(x: Any) -> Any:
    swapped = ops.transpose(ops.reshape(normalized(x), constant(np.array([12, 8])), False), constant(np.array([1, 0])))
    rows = ops.reshape(swapped, constant(np.array([2, 6, SIZE])), False)
    return quantized(ops.multiply(rows, constant(FACTORS)))


def _two_dimensions(x: Any) -> Any:
    return quantized(ops.multiply(normalized(x, scale=False, axes=(-2, -1)), constant(FACTORS)))


def _subnormal(x: Any) -> Any:
    """The scale times the factor is subnormal, the result is not quantized to 0 only."""
    small = ops.multiply(normalized(x, scale=False), constant(np.full(SIZE, 1e-30)))
    return quantized(ops.multiply(ops.multiply(small, constant(np.full(SIZE, 1e-9))), constant(np.full(SIZE, 1e38))))


@pytest.mark.parametrize(
    "near", [_of_rows, _result_is_used, _product_is_used, _last_dimension_moves, _two_dimensions, _subnormal]
)
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert "Mul" in made(near, tmp_path)
