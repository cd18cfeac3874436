"""Samples of images at computed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

D = ir.DataType

_MOST_PIXELS = 1 << 24
_LARGEST = float(np.finfo(np.float32).max)


class GridSampleToGather(Workaround):
    """Convert a bilinear GridSample to four GatherElements and their weighted sum.

    OpenCV 4.14, WebGPU (0.4), tinygrad (0.14) and onnx2torch (1.5.15) lack GridSample. The indices of pixels are computed in
    float32, which represents integers up to 2**24. A sample at a NaN or an infinity is NaN, as by its formula; its indices
    are those of the first pixel.
    """

    operators = frozenset(("GridSample",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, grid = node.inputs
        padding = node.attributes.get_string("padding_mode", "zeros")
        if not isinstance(x, Value) or not isinstance(grid, Value) or not x.is_static or not grid.is_static:
            return None
        if x.rank != 4 or x.dtype != D.FLOAT or padding not in ("border", "zeros"):
            return None
        if node.attributes.get_string("mode", "linear") not in ("bilinear", "linear"):
            return None
        batch, channels, *sizes = (dim or 0 for dim in x.dims or ())
        rows, columns = (dim or 0 for dim in (grid.dims or ())[1:3])
        if math.prod(sizes) > _MOST_PIXELS:
            return None
        corners = bool(node.attributes.get_int("align_corners", 0))
        low: list[Value] = []
        high: list[tuple[Value, Value]] = []
        for axis, size in enumerate(reversed(sizes)):
            position = op.Reshape(op.Slice(grid, [axis], [axis + 1], [3]), [batch, 1, rows * columns])
            factor, offset = ((size - 1) / 2, (size - 1) / 2) if corners else (size / 2, (size - 1) / 2)
            position = op.Add(op.Mul(position, _number(op, factor)), _number(op, offset))
            is_number = op.Less(op.Abs(position), _number(op, _LARGEST))
            position = op.Where(is_number, position, _number(op, 0))
            if padding == "border":
                position = op.Clip(position, 0.0, float(size - 1))
            first = op.Floor(position)
            after = op.Where(is_number, op.Sub(position, first), _number(op, np.nan))
            low.append(first)
            high.append((op.Sub(_number(op, 1.0), after), after))
        pixels = op.Reshape(x, [batch, channels, sizes[0] * sizes[1]])
        total: Value | None = None
        for down in (0, 1):
            for right in (0, 1):
                places = [op.Add(low[0], _number(op, right)), op.Add(low[1], _number(op, down))]
                weight = op.Mul(high[0][right], high[1][down])
                within = [op.Clip(place, 0.0, float(size - 1)) for place, size in zip(places, reversed(sizes), strict=True)]
                if padding == "zeros":
                    for place, inside in zip(places, within, strict=True):
                        weight = op.Mul(weight, op.Cast(op.Equal(place, inside), to=D.FLOAT))
                index = op.Add(op.Mul(within[1], _number(op, sizes[1])), within[0])
                index = op.Expand(op.Cast(index, to=D.INT64), [batch, channels, rows * columns])
                part = op.Mul(op.GatherElements(pixels, index, axis=2), weight)
                total = part if total is None else op.Add(total, part)
        return [op.Reshape(total, [batch, channels, rows, columns])]


def _number(op: Builder, number: float) -> Value:
    result: Value = op.const([float(number)], D.FLOAT)
    return result
