"""Resizing of bytes like OpenCV: ``cv2.INTER_LINEAR`` in fixed-point arithmetic."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.model_api.sizes import size_along
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8


def fixed_point_resized(
    op: Builder, levels: Value, height: Value, width: Value, axis: int, others: int = 0, scale: Value | None = None
) -> Value:
    """Resize uint8 to another size, in the fixed-point arithmetic of ``cv2.INTER_LINEAR``.

    Args:
        op: the graph builder.
        levels: ``[..., h, w, ...]``.
        height, width: int64 scalars, the new size.
        axis: the axis of ``h``.
        others: the number of axes after that of ``w``.
        scale: the growth of height and width, float64; the quotient of the sizes by default.
    """
    trailing = list(range(1, others + 1))

    def along(worth: Value, axes: list[int]) -> Value:
        return op.Unsqueeze(worth, axes) if axes else worth

    across = op.Cast(levels, to=_INT64)
    first, second, near, far = _fixed_point(op, across, width, axis + 1, scale, bounded=True)
    near, far = along(near, trailing), along(far, trailing)
    left, right = (op.Gather(across, places, axis=axis + 1) for places in (first, second))
    across = op.Add(op.Mul(left, near), op.Mul(right, far))
    first, second, near, far = _fixed_point(op, across, height, axis, scale, bounded=False)
    parts = []
    for rows, worth in ((first, near), (second, far)):
        shifted = op.Div(op.Gather(across, rows, axis=axis), 1 << 4)
        parts.append(op.Div(op.Mul(shifted, along(worth, [1, *(place + 1 for place in trailing)])), 1 << 16))
    return op.Cast(op.Div(op.Add(op.Add(*parts), 2), 4), to=_UINT8)


def halved(op: Builder, levels: Value, height: Value, width: Value) -> Value:
    """Resize uint8 images by one half, which ``cv2.INTER_LINEAR`` computes as ``cv2.INTER_AREA``: the mean of four pixels.

    Halves are rounded up, or to even where the last row or column of an odd size has no neighbor.

    Args:
        op: the graph builder.
        levels: ``[n, h, w, channels]``.
        height, width: int64 scalars, half of ``h`` and ``w`` in either rounding.
    """
    across = op.Cast(levels, to=_INT64)
    borders = []
    for axis, size in ((1, height), (2, width)):
        last = op.Sub(size_along(op, levels, axis), 1)
        first = op.Mul(op.Range(np.int64(0), size, np.int64(1)), 2)
        borders.append(op.Equal(first, last))
        second = op.Min(op.Add(first, 1), last)
        across = op.Add(op.Gather(across, first, axis=axis), op.Gather(across, second, axis=axis))
    border = op.Or(op.Unsqueeze(borders[0], [1, 2]), op.Unsqueeze(borders[1], [1]))
    to_even = op.Cast(op.Round(op.Mul(op.Cast(across, to=_FLOAT), np.float32(0.25))), to=_INT64)
    return op.Cast(op.Where(border, to_even, op.Div(op.Add(across, 2), 4)), to=_UINT8)


def _fixed_point(
    op: Builder, levels: Value, size: Value, axis: int, scale: Value | None, *, bounded: bool
) -> tuple[Value, Value, Value, Value]:
    """Return the two neighbors of each position along an axis, and their weights in units of 1/2048.

    Positions outside the image are moved to its border if ``bounded``, as OpenCV does along rows. Along columns it takes the
    border twice, with two weights, and rounds each product.
    """
    own = size_along(op, levels, axis)
    grown = op.Div(op.Cast(size, to=_DOUBLE), op.Cast(own, to=_DOUBLE)) if scale is None else scale
    step = op.Reciprocal(grown)  # ONNX Runtime replaces Mul(x, Div(1, y)) with Div(x, y), which rounds differently
    positions = op.Add(op.Cast(op.Range(np.int64(0), size, np.int64(1)), to=_DOUBLE), 0.5)
    source = op.Cast(op.Sub(op.Mul(positions, step), 0.5), to=_FLOAT)
    first = op.Floor(source)
    last = op.Sub(own, 1)
    fraction, second = op.Sub(source, first), op.Add(first, np.float32(1))
    if bounded:
        outside = op.Or(op.Less(source, np.float32(0)), op.GreaterOrEqual(first, op.Cast(last, to=_FLOAT)))
        fraction = op.Where(outside, np.float32(0), fraction)
    first, second = (op.Max(op.Min(op.Cast(place, to=_INT64), last), 0) for place in (first, second))
    near, far = (
        op.Cast(op.Round(op.Mul(part, np.float32(2048))), to=_INT64) for part in (op.Sub(np.float32(1), fraction), fraction)
    )
    return first, second, near, far
