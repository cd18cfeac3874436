"""Nearest-neighbor Resize of bytes by Gather."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import NearestByGather
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import graph, rewritten

TO_FRONT = (0, 3, 1, 2)
FLOOR = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def resized(
    op: Builder, x: Value, scales: Any = None, sizes: Any = None, perm: tuple[int, ...] = TO_FRONT, **attributes: Any
) -> Value:
    given = [None if scales is None else np.array(scales, np.float32), None if sizes is None else list(sizes)]
    result: Value = op.Resize(op.Transpose(x, perm=list(perm)), None, *given, **{"mode": "nearest", **attributes})
    return result


def found(emit: Callable[..., Value], *dims: int | None, dtype: ir.DataType = ir.DataType.UINT8) -> list[str]:
    shape = [dim or 2 for dim in dims]
    numbers = np.random.default_rng(0).integers(0, 100, shape).astype(dtype.numpy())
    return rewritten(emit, new_value(dtype, dims, "x"), by=[NearestByGather()], numbers=[numbers])


@pytest.mark.parametrize(
    ("emit", "gathers"),
    [
        (lambda op, x: resized(op, x, [1, 1, 2, 3], **FLOOR), 2),
        (lambda op, x: resized(op, x, [1, 1, 4, 1], **FLOOR), 1),
        (lambda op, x: resized(op, x, sizes=[2, 6, 8, 15], **FLOOR), 2),
        (lambda op, x: resized(op, x, [1, 1, 2, 3]), 2),
        (lambda op, x: resized(op, x, [1, 1, 5, 2], nearest_mode="round_prefer_ceil"), 2),
        # The near misses.
        (lambda op, x: resized(op, x, [1, 2, 2, 2], **FLOOR), 0),
        (lambda op, x: resized(op, x, [1, 1, 1.5, 2], **FLOOR), 0),
        (lambda op, x: resized(op, x, [1, 1, 0.5, 2], **FLOOR), 0),
        (lambda op, x: resized(op, x, sizes=[2, 6, 9, 15], **FLOOR), 0),
        (lambda op, x: resized(op, x, [1, 1, 2, 3], **{**FLOOR, "nearest_mode": "ceil"}), 0),
        (lambda op, x: resized(op, x, [1, 1, 2, 3], **{**FLOOR, "nearest_mode": "round_prefer_floor"}), 0),
        (lambda op, x: resized(op, x, [1, 1, 2, 3], nearest_mode="floor"), 0),
        (lambda op, x: resized(op, x, [1, 1, 2, 3], coordinate_transformation_mode="align_corners"), 0),
        (lambda op, x: resized(op, x, [2, 3], axes=[2, 3], **FLOOR), 0),
        (lambda op, x: resized(op, x, [1, 1, 2, 3], perm=(0, 3, 2, 1), **FLOOR), 0),
    ],
)
def test_conditions(emit: Callable[..., Value], gathers: int) -> None:
    got = found(emit, 2, 4, 5, 6)
    assert (got.count("Gather"), got.count("Resize")) == (gathers, 0 if gathers else 1)


@pytest.mark.parametrize(
    ("dims", "dtype", "gathers"),
    [
        ((None, 4, 5, 6), ir.DataType.UINT8, 2),
        ((2, 4, 5, None), ir.DataType.INT8, 2),
        ((2, None, 5, 6), ir.DataType.UINT8, 0),
        ((2, 4, 5, 6), ir.DataType.FLOAT, 0),
    ],
)
def test_inputs(dims: tuple[int | None, ...], dtype: ir.DataType, gathers: int) -> None:
    assert found(lambda op, x: resized(op, x, [1, 1, 2, 3], **FLOOR), *dims, dtype=dtype).count("Gather") == gathers


@pytest.mark.parametrize(("scale", "found"), [(2.0**18, True), (2.0**20, False), (2.0**40, False)])
def test_enormous_results(scale: float, found: bool) -> None:
    """The elements of more than 2^22 positions are not computed."""
    emit = lambda op, x: resized(op, x, [1, 1, scale, 1], **FLOOR)  # noqa: E731
    model = graph(emit, new_value(ir.DataType.UINT8, (1, 5, 1, 2), "x"))
    assert NearestByGather()(model).modified is found


def test_lines_and_volumes() -> None:
    line = lambda op, x: resized(op, x, [1, 1, 3], perm=(0, 2, 1), **FLOOR)  # noqa: E731
    volume = lambda op, x: resized(op, x, [1, 1, 2, 1, 3], perm=(0, 4, 1, 2, 3), **FLOOR)  # noqa: E731
    assert found(line, 2, 4, 6).count("Gather") == 1
    assert found(volume, 2, 3, 4, 5, 6).count("Gather") == 2


def _added(op: Builder, x: Value, perm: tuple[int, ...] = TO_FRONT) -> Value:
    """The sum of two quantized tensors, as in residual networks."""
    scale, zero = np.array(0.5, np.float32), np.array(3, np.uint8)
    first = op.DequantizeLinear(op.Transpose(x, perm=list(perm)), scale, zero)
    total: Value = op.QuantizeLinear(op.Add(first, first), np.array(1.0, np.float32), zero)
    return total


@pytest.mark.parametrize(
    ("emit", "gathers"),
    [
        (lambda op, x: op.Resize(_added(op, x), None, np.array([1, 1, 2, 3], np.float32), mode="nearest", **FLOOR), 2),
        (lambda op, x: op.Resize(_added(op, x), None, np.array([1, 2, 2, 3], np.float32), mode="nearest", **FLOOR), 0),
        (
            lambda op, x: op.Resize(
                _added(op, x, (0, 3, 2, 1)), None, np.array([1, 1, 2, 3], np.float32), mode="nearest", **FLOOR
            ),
            0,
        ),
        (lambda op, x: op.Resize(x, None, np.array([1, 1, 2, 3], np.float32), mode="nearest", **FLOOR), 0),
    ],
)
def test_computed_pixels(emit: Callable[..., Value], gathers: int) -> None:
    got = found(emit, 2, 4, 5, 6)
    assert (got.count("Gather"), got.count("Resize")) == (gathers, 0 if gathers else 1)
