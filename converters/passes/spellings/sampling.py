"""Samples of images at computed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

D = ir.DataType

_MOST_PIXELS = 1 << 24
_DEFAULTS = (("padding_mode", "zeros"), ("mode", "linear"))
_LARGEST = float(np.finfo(np.float32).max)


class GridSampleToGather(Workaround):
    """Convert a nearest GridSample to GatherElements, and a bilinear one to the weighted sum of four GatherElements.

    OpenCV 4.14, WebGPU (0.4), tinygrad (0.14) and onnx2torch (1.5.15) lack GridSample. The indices of pixels are computed in
    float32, which represents integers up to 2**24. A bilinear sample at a NaN or an infinity is NaN, as its formula implies;
    the indices then select the first pixel.
    """

    operators = frozenset(("GridSample",))
    modes: ClassVar[frozenset[str]] = frozenset(("bilinear", "linear", "nearest"))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, grid = node.inputs
        padding, mode = (node.attributes.get_string(name, value) for name, value in _DEFAULTS)
        if not isinstance(x, Value) or not isinstance(grid, Value) or not x.is_static or not grid.is_static:
            return None
        if x.rank != 4 or x.dtype != D.FLOAT or padding not in ("border", "zeros") or mode not in self.modes:
            return None
        batch, channels, *sizes = (dim or 0 for dim in x.dims or ())
        rows, columns = (dim or 0 for dim in (grid.dims or ())[1:3])
        if math.prod(sizes) > _MOST_PIXELS:
            return None
        corners = bool(node.attributes.get_int("align_corners", 0))
        positions: list[Value] = []
        for axis, size in enumerate(reversed(sizes)):
            position = op.Reshape(op.Slice(grid, [axis], [axis + 1], [3]), [batch, 1, rows * columns])
            factor, offset = ((size - 1) / 2, (size - 1) / 2) if corners else (size / 2, (size - 1) / 2)
            positions.append(op.Add(op.Mul(position, _number(op, factor)), _number(op, offset)))
        pixels = op.Reshape(x, [batch, channels, sizes[0] * sizes[1]])
        if padding == "zeros":
            pixels = op.Concat(pixels, np.zeros((batch, channels, 1), np.float32), axis=2)
        image = _Image(op, pixels, sizes, padding == "border")
        total = image.nearest(positions) if mode == "nearest" else image.bilinear(positions)
        return [op.Reshape(total, [batch, channels, rows, columns])]


class NearestGridSampleToGather(GridSampleToGather):
    """Convert a nearest GridSample to GatherElements. MNN (3.6) selects the other one of two equally near pixels."""

    modes = frozenset(("nearest",))


@dataclass(frozen=True)
class _Image:
    """The pixels of sampled images.

    Attributes:
        pixels: the images' channels, each as one line; without `border`, a 0 follows.
        sizes: the height and width.
        border: whether positions outside have the nearest pixel; otherwise, they have 0.
    """

    op: Builder
    pixels: Value
    sizes: Sequence[int]
    border: bool

    def bilinear(self, positions: Sequence[Value]) -> Value:
        """Return the weighted sums of the four pixels next to some positions, each given by its column and its row."""
        op = self.op
        low: list[Value] = []
        high: list[tuple[Value, Value]] = []
        for position, size in zip(positions, reversed(self.sizes), strict=True):
            is_number = op.Less(op.Abs(position), _number(op, _LARGEST))
            finite = op.Where(is_number, position, _number(op, 0))
            if self.border:
                finite = op.Clip(finite, 0.0, float(size - 1))
            first = op.Floor(finite)
            after = op.Where(is_number, op.Sub(finite, first), _number(op, np.nan))
            low.append(first)
            high.append((op.Sub(_number(op, 1.0), after), after))
        total: Value | None = None
        for down in (0, 1):
            for right in (0, 1):
                places = [op.Add(low[0], _number(op, right)), op.Add(low[1], _number(op, down))]
                part = self._at(places, op.Mul(high[0][right], high[1][down]))
                total = part if total is None else op.Add(total, part)
        assert total is not None
        return total

    def nearest(self, positions: Sequence[Value]) -> Value:
        """Return the pixels nearest to some positions; of two equally near pixels, the one with the even index."""
        op, places = self.op, []
        for position, size in zip(positions, reversed(self.sizes), strict=True):
            first, last = (0.0, float(size - 1)) if self.border else (-1.0, float(size))
            within = op.Clip(position, first, last)
            is_number = op.Less(op.Abs(within), _number(op, _LARGEST))
            # OpenVINO takes the last pixel at a NaN.
            places.append(op.Round(op.Where(is_number, within, _number(op, last if self.border else first))))
        return self._at(places)

    def _at(self, places: Sequence[Value], weight: Value | None = None) -> Value:
        """Return the products of the pixels at integer places and any weights; a pixel outside is 0."""
        op = self.op
        sizes = list(reversed(self.sizes))
        within = [op.Clip(place, 0.0, float(size - 1)) for place, size in zip(places, sizes, strict=True)]
        number = op.Add(op.Mul(within[1], _number(op, sizes[0])), within[0])
        if not self.border:
            # A weight of 0 would give NaN for an infinite pixel.
            for place, inside in zip(places, within, strict=True):
                number = op.Where(op.Equal(place, inside), number, _number(op, math.prod(sizes)))
        batch, channels = (dim or 0 for dim in (self.pixels.dims or ())[:2])
        index = op.Expand(op.Cast(number, to=D.INT64), [batch, channels, (places[0].dims or (0,))[-1] or 0])
        found = op.GatherElements(self.pixels, index, axis=2)
        return found if weight is None else op.Mul(found, weight)


def _number(op: Builder, number: float) -> Value:
    result: Value = op.const([float(number)], D.FLOAT)
    return result
