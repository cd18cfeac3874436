"""Resizing of bytes as OpenVINO's CPU plugin computes it on processors with fused multiply-add.

Source: OpenVINO, ``intel_cpu/src/nodes/interpolate.cpp`` (``linear_onnx`` and ``cubic``, half_pixel). Each step rounds to
float32 as in OpenVINO, because the sum is often halfway between two bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.model_api.sizes import size_along
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8
_HALF, _ONE, _A = np.float32(0.5), np.float32(1), np.float32(-0.75)


@dataclass(frozen=True)
class _Tap:
    """A neighbor of each position along an axis: its index, int64 ``[n]``, and its weight, float32 ``[n]``."""

    index: Value
    weight: Value


def linear_bytes(op: Builder, pixels: Value, height: Value, width: Value) -> Value:
    """Interpolate between two neighbors.

    Args:
        op: the graph builder.
        pixels: uint8 ``[1, h, w, channels]``.
        height, width: int64 scalars, the new size.
    """
    rows, columns = _two(op, pixels, height, 1), _two(op, pixels, width, 2)
    lines = []
    for row in rows:
        near, far = (_taken(op, op.Gather(pixels, row.index, axis=1), column.index) for column in columns)
        weights = [op.Unsqueeze(column.weight, [1]) for column in columns]
        lines.append(_fused(op, near, weights[0], op.Mul(far, weights[1])))
    weights = [op.Unsqueeze(row.weight, [1, 2]) for row in rows]
    return _bytes(op, _fused(op, lines[1], weights[1], op.Mul(lines[0], weights[0])))


def cubic_bytes(op: Builder, pixels: Value, height: Value, width: Value) -> Value:
    """Interpolate between four neighbors; arguments as of `linear_bytes`."""
    rows, columns = _four(op, pixels, height, 1), _four(op, pixels, width, 2)
    total: Value | None = None
    for row in rows:
        taken = op.Gather(pixels, row.index, axis=1)
        line: Value | None = None
        for column in columns:
            line = _fused(op, _taken(op, taken, column.index), op.Unsqueeze(column.weight, [1]), line)
        assert line is not None
        total = _fused(op, line, op.Unsqueeze(row.weight, [1, 2]), total)
    assert total is not None
    return _bytes(op, total)


def _positions(op: Builder, pixels: Value, size: Value, axis: int) -> tuple[Value, Value]:
    """Return where the new elements of an axis are among the old ones, float32, and the index of the last old one."""
    own = size_along(op, pixels, axis)
    scale = op.Div(op.Cast(size, to=_FLOAT), op.Cast(own, to=_FLOAT))
    numbers = op.Cast(op.Range(np.int64(0), size, np.int64(1)), to=_FLOAT)
    return op.Sub(op.Div(op.Add(numbers, _HALF), scale), _HALF), op.Sub(own, 1)


def _two(op: Builder, pixels: Value, size: Value, axis: int) -> Sequence[_Tap]:
    source, last = _positions(op, pixels, size, axis)
    source = op.Max(op.Min(source, op.Cast(last, to=_FLOAT)), np.float32(0))
    first = op.Cast(op.Floor(source), to=_INT64)
    second = op.Min(op.Add(first, 1), last)
    alone = op.Equal(first, second)
    near = op.Where(alone, _HALF, op.Sub(op.Cast(second, to=_FLOAT), source))
    far = op.Where(alone, _HALF, op.Sub(source, op.Cast(first, to=_FLOAT)))
    return _Tap(first, near), _Tap(second, far)


def _four(op: Builder, pixels: Value, size: Value, axis: int) -> Sequence[_Tap]:
    source, last = _positions(op, pixels, size, axis)
    floor = op.Floor(source)
    m, first = op.Sub(source, floor), op.Cast(floor, to=_INT64)
    below = op.Sub(m, _ONE)
    weights = (
        op.Mul(op.Mul(op.Mul(below, _A), below), m),
        op.Add(op.Mul(op.Mul(op.Sub(op.Mul(m, _A + 2), _A + 3), m), m), _ONE),
        op.Mul(op.Sub(op.Mul(op.Add(op.Mul(m, -_A - 2), 2 * _A + 3), m), _A), m),
        op.Mul(op.Mul(op.Mul(m, -_A), m), below),
    )
    places = (op.Max(op.Min(op.Add(first, shift), last), 0) for shift in (-1, 0, 1, 2))
    return [_Tap(place, weight) for place, weight in zip(places, weights, strict=True)]


def _taken(op: Builder, rows: Value, index: Value) -> Value:
    return op.Cast(op.Gather(rows, index, axis=2), to=_FLOAT)


def _fused(op: Builder, x: Value, weight: Value, term: Value | None) -> Value:
    """Return ``x * weight + term``, rounded to float32 once: float64 represents the product exactly."""
    product = op.Mul(op.Cast(x, to=_DOUBLE), op.Cast(weight, to=_DOUBLE))
    return op.Cast(product if term is None else op.Add(product, op.Cast(term, to=_DOUBLE)), to=_FLOAT)


def _bytes(op: Builder, levels: Value) -> Value:
    return op.Cast(op.Clip(op.Round(levels), np.float32(0), np.float32(255)), to=_UINT8)
