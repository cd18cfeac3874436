"""GridSample at positions that are NaN, infinite or far beyond the image: ONNX Runtime (1.32) samples other pixels.

ONNX Runtime samples at -1 for NaN, infinities, and positions that in pixels exceed the range of float32. Beyond 2^24 pixels,
``linear`` returns 0. By its formula, the interpolation at NaN and infinity is NaN. Large numbers are beyond the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array

_BEYOND = 32.0
"""A position at which all pixels of a sample are beyond the image, whatever its size: a pixel of an image with one column is
2 wide, and a cubic sample has two pixels on each side.
"""


class SampleAnyPosition(KernelWorkaround):
    """Clip the positions of GridSample, and make its results NaN where they are NaN or infinite.

    Positions that are constant and near the image need neither. With ``reflection``, no position is beyond the image, so
    they are not clipped. A ``nearest`` sample at a NaN is beyond the image, as for a large position. The other results of
    ``nearest`` with ``reflection`` are undefined.
    """

    operators = frozenset(("GridSample",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, grid = (cast(Value, value) for value in node.inputs)
        attributes = attributes_of(node)
        is_nearest = attributes.get("mode", "linear") == "nearest"
        is_reflected = attributes.get("padding_mode", "zeros") == "reflection"
        known = constant_array(grid)
        if (is_nearest and is_reflected) or (known is not None and (np.abs(known) <= _BEYOND).all()):
            return None
        if 4 not in (x.rank, grid.rank):
            return None
        positions = grid
        if is_nearest:
            positions = op.Where(op.IsNaN(grid), op.const(_BEYOND, grid.dtype), grid)
        if not is_reflected:
            positions = op.Clip(positions, op.const(-_BEYOND, grid.dtype), op.const(_BEYOND, grid.dtype))
        sampled = op.GridSample(x, positions, **attributes)
        if is_nearest:
            return [sampled]
        # 0 * position is 0 for numbers, else NaN.
        zeros = op.MatMul(grid, op.const(np.zeros((2, 1)), grid.dtype))
        masks = op.Transpose(zeros, perm=[0, 3, 1, 2])
        return [op.Add(sampled, op.Cast(masks, to=x.dtype) if x.dtype != grid.dtype else masks)]
