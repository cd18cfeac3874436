"""Saliency maps of tiles, merged into one of the image.

Source: Model API, ``tilers/detection.py`` and ``tilers/instance_segmentation.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.configuration import Configuration
from converters.model_api.fixed_point import fixed_point_resized
from converters.model_api.segmentation import resized_linear
from converters.model_api.sizes import pads_around, size_along
from onnx_specops.building import Builder, Value

_DOUBLE, _INT64, _UINT8, _FLOAT = ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.FLOAT


@dataclass(frozen=True)
class InstanceMaps:
    """The maximum of the maps of all tiles, uint8 ``[labels, height, width]``.

    Attributes:
        start: the map before the first tile.
        dims: its known dimensions.
        size: the height and width of the image.
    """

    start: Value
    dims: list[int | None]
    size: list[Value]

    @classmethod
    def of(cls, op: Builder, size: list[Value], config: Configuration) -> InstanceMaps:
        """Return the empty map of an image."""
        count = len(config.labels)
        if not count:
            raise Malformed("it has a feature_vector, but no labels")
        shape = op.Concat([count], *(op.Unsqueeze(side, [0]) for side in size), axis=0)
        return cls(op.Expand(op.const(0, _UINT8), shape), [count, None, None], size)

    def add(self, op: Builder, merged: Value, tile: Value, place: Value, number: Value) -> Value:
        """Add the map of a tile, which has the tile's size."""
        del number  # the whole image is merged like a tile
        return op.Max(merged, op.Pad(tile, pads_around(op, place, self.size, 1)))

    def finish(self, op: Builder, merged: Value) -> Value:
        """Return the map of all tiles."""
        return op.Identity(merged)


@dataclass(frozen=True)
class SaliencyMaps:
    """The maps of a network's output, ``[classes, h, w]``: overlapping tiles are averaged one after the other.

    Attributes:
        start: the map before the first tile, and that of the whole image: float64 ``[2 * classes, H, W]``.
        dims: its known dimensions.
        size: H and W.
        ratio: the size of a map relative to its tile's: of heights and widths.
        leading: whether the network's map has a leading dimension of 1.
    """

    start: Value
    dims: list[int | None]
    size: list[Value]
    ratio: list[Value]
    leading: bool

    @classmethod
    def of(cls, op: Builder, size: list[Value], config: Configuration, output: Value) -> SaliencyMaps:
        """Return the empty map of an image."""
        dims = list(output.dims or [])
        if len(dims) not in (3, 4) or not all(isinstance(side, int) for side in dims) or (len(dims) == 4 and dims[0] != 1):
            raise Unsupported("the shape of its saliency_map is not [classes, height, width]: use --outputs to omit it")
        if not config.flag("tile_with_full_img", True):
            raise Unsupported(
                "its saliency_map needs the whole image as a tile (tile_with_full_img): use --outputs to omit it"
            )
        classes, *sides = (int(side or 0) for side in dims[-3:])
        length = config.whole("tile_size", 400)
        ratio = [
            op.Div(float(side), op.Cast(op.Min(own, np.int64(length)), to=_DOUBLE))
            for side, own in zip(sides, size, strict=True)
        ]
        whole = [_scaled(op, own, by) for own, by in zip(size, ratio, strict=True)]
        shape = op.Concat([2 * classes], *(op.Unsqueeze(side, [0]) for side in whole), axis=0)
        return cls(op.Expand(op.const(0, _DOUBLE), shape), [2 * classes, None, None], whole, ratio, len(dims) == 4)

    def add(self, op: Builder, merged: Value, tile: Value, place: Value, number: Value) -> Value:
        """Add the map of a tile, or of the whole image, which is the first."""
        tile = op.Squeeze(tile, [0]) if self.leading else tile
        classes = int(self.dims[0] or 0) // 2
        tiles, whole = op.Slice(merged, [0], [classes], [0]), op.Slice(merged, [classes], [2 * classes], [0])
        return op.if_(
            op.Equal(number, np.int64(0)),
            lambda op: op.Concat(tiles, op.Cast(_resized(op, tile, *self.size), to=_DOUBLE), axis=0),
            lambda op: op.Concat(self._averaged(op, tiles, tile, place), whole, axis=0),
        )

    def _averaged(self, op: Builder, merged: Value, tile: Value, place: Value) -> Value:
        by = [self.ratio[1], self.ratio[0]] * 2
        ends = [_scaled(op, op.Squeeze(op.Slice(place, [at], [at + 1]), [0]), by[at]) for at in range(4)]
        width, height = (op.Sub(ends[at + 2], ends[at]) for at in (0, 1))
        own = [size_along(op, tile, axis) for axis in (1, 2)]
        smaller = op.And(
            *(op.And(op.Less(new, old), op.Greater(new, np.int64(0))) for new, old in ((height, own[0]), (width, own[1])))
        )
        # A map is resized only if its target is smaller in both directions.
        sides = [op.Where(smaller, new, old) for new, old in ((height, own[0]), (width, own[1]))]
        part = op.Cast(_resized(op, tile, *sides), to=_DOUBLE)
        part = op.Slice(part, [0, 0], op.Concat(op.Unsqueeze(height, [0]), op.Unsqueeze(width, [0]), axis=0), [1, 2])
        corners = op.Concat(*(op.Unsqueeze(end, [0]) for end in ends), axis=0)
        ones = op.Cast(op.Expand(np.ones((1, 1, 1), np.float32), op.Shape(part)), to=_DOUBLE)
        pads = pads_around(op, corners, self.size, 1)
        here, there = op.Pad(ones, pads), op.Pad(part, pads)
        zero = op.const(0, _DOUBLE)
        mixed = op.Where(op.Equal(merged, zero), there, op.Mul(op.Add(there, merged), 0.5))
        return op.Where(op.Greater(here, zero), mixed, merged)

    def finish(self, op: Builder, merged: Value) -> Value:
        """Return the maps of all tiles and half of that of the whole image, scaled by a power, as bytes."""
        classes = int(self.dims[0] or 0) // 2
        tiles, whole = op.Slice(merged, [0], [classes], [0]), op.Slice(merged, [classes], [2 * classes], [0])
        total = op.Add(tiles, op.Mul(whole, 0.5))
        positive = op.Pow(op.Sub(total, op.ReduceMin(total, [1, 2], keepdims=1)), 1.5)
        factor = op.Div(255.0, op.Add(op.ReduceMax(positive, [1, 2], keepdims=1), 1e-12))
        levels = op.Cast(op.Floor(op.Mul(factor, positive)), to=_UINT8)
        return op.Unsqueeze(levels, [0]) if self.leading else levels


def _scaled(op: Builder, length: Value, ratio: Value) -> Value:
    return op.Cast(op.Mul(op.Cast(length, to=_DOUBLE), ratio), to=_INT64)


def _resized(op: Builder, maps: Value, height: Value, width: Value) -> Value:
    """Resize ``[classes, h, w]`` as OpenCV resizes each map."""
    if maps.dtype == _UINT8:
        return fixed_point_resized(op, maps, height, width, 1)
    return resized_linear(op, op.Cast(maps, to=_FLOAT), height, width)
