"""What operators over regions of feature maps share: sampling between positions, and rounding as C does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto as Type

from onnx_specops.ops._checks import required

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value

Array = npt.NDArray[Any]

FAR = 2.0**30  # no feature map is that large; positions beyond are as good as there


def real_regions(name: str, what: str, batch: Array, images: int) -> Array:
    """How many regions there are: those before the first whose image index is -1; raises for an index without an image."""
    ended = np.flatnonzero(batch == -1)
    real = batch[: ended[0]] if ended.size else batch
    if (bad := np.flatnonzero((real < 0) | (real >= images))).size:
        raise IndexError(f"{name}: {what}[{bad[0]}] = {real[bad[0]]} is out of range [0, {images - 1}]")
    return real


def check_maps(name: str, maps: Array, regions: Array, numbers: int) -> None:
    """Raises ``ValueError`` unless ``maps`` are ``[N, C, H, W]`` with positions, and ``regions`` ``[R, numbers]``."""
    if maps.ndim != 4 or 0 in maps.shape[2:]:
        raise ValueError(f"{name}: the feature maps have the shape {list(maps.shape)} instead of [N, C, H, W]")
    if regions.ndim != 2 or regions.shape[1] != numbers:
        raise ValueError(f"{name}: the regions have the shape {list(regions.shape)} instead of [R, {numbers}]")


def rounded(x: Array) -> Array:
    """``x`` rounded to a whole number, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x)


def whole(x: Array) -> npt.NDArray[np.int64]:
    """Whole numbers in a floating-point type as int64, far ones brought near."""
    return np.nan_to_num(np.clip(x, -FAR, FAR), nan=0.0).astype(np.int64)


def neighbours(position: Array, size: int) -> tuple[Array, Array, Array]:
    """The whole positions on both sides of ``position``, in ``[0, size - 1]``, and how far it is from the first."""
    position = np.nan_to_num(np.clip(position, 0, size - 1), nan=0.0)
    low = np.floor(position).astype(np.int64)
    high = np.ceil(position).astype(np.int64)
    return low, high, position - low.astype(position.dtype)


# -- in bodies ---------------------------------------------------------------------------------------------------------


def emit_real_regions(op: Builder, batch: Value, images: Value) -> tuple[Value, Value]:
    """Which regions come before the first whose image index (int64 ``[R]``) is -1, and the index, 0 for the others."""
    real = op.Equal(op.CumSum(op.Cast(op.Equal(batch, -1), to=Type.INT64), 0), 0)
    batch = op.Where(real, batch, 0)
    violations = op.Or(op.Less(batch, 0), op.GreaterOrEqual(batch, images))
    return real, required(op, "image_index_out_of_range", violations, batch)


def emit_rounded(op: Builder, x: Value) -> Value:
    """``x`` rounded to a whole number, halves away from zero."""
    size = op.Abs(x)
    floor = op.Floor(size)
    return op.Mul(op.Sign(x), op.Add(floor, op.Cast(op.GreaterOrEqual(op.Sub(size, floor), 0.5), to=x.dtype)))


def emit_whole(op: Builder, x: Value) -> Value:
    """Whole numbers in a floating-point type as int64, far ones brought near."""
    return op.Cast(op.Clip(x, -FAR, FAR), to=Type.INT64)


def emit_neighbours(op: Builder, position: Value, size: Value) -> tuple[Value, Value, Value]:
    """The whole positions (int64) on both sides of ``position``, in ``[0, size - 1]``, and how far it is from the first."""
    last = op.Cast(op.Sub(size, 1), to=position.dtype)
    position = op.Max(op.Min(position, last), 0.0)
    low = op.Floor(position)
    whole = [op.Min(op.Max(op.Cast(x, to=Type.INT64), 0), op.Sub(size, 1)) for x in (low, op.Ceil(position))]
    return whole[0], whole[1], op.Sub(position, low)


def emit_bilinear(op: Builder, values: Value, base: Value, y: Value, x: Value, size: Sequence[Value]) -> Value:
    """``values`` (the first axis are positions, row by row) between four positions, each weighted by how near it is.

    Args:
        op: the graph builder.
        values: ``[positions]`` or ``[positions, channels]``.
        base: int64, the position of each map's first element.
        y: where in the map, broadcast with ``x`` and ``base``.
        x: where in the map.
        size: the map's height and width, int64 ``[1]``.

    Returns:
        the shape of the positions (and channels).
    """
    top, bottom, down = emit_neighbours(op, y, size[0])
    left, right, across = emit_neighbours(op, x, size[1])
    rows = [op.Add(base, op.Mul(row, size[1])) for row in (top, bottom)]
    corners = [op.Gather(values, op.Add(row, column), axis=0) for row in rows for column in (left, right)]
    if values.rank == 2:
        down, across = op.Unsqueeze(down, [-1]), op.Unsqueeze(across, [-1])
    upper = op.Add(corners[0], op.Mul(op.Sub(corners[1], corners[0]), across))
    lower = op.Add(corners[2], op.Mul(op.Sub(corners[3], corners[2]), across))
    return op.Add(upper, op.Mul(op.Sub(lower, upper), down))


def emit_rows(op: Builder, maps: Value) -> Value:
    """``[N, C, H, W]`` as ``[N * H * W, C]``."""
    return op.Reshape(op.Transpose(maps, perm=[0, 2, 3, 1]), op.Concat([-1], op.Shape(maps, start=1, end=2), axis=0))


def emit_inside(op: Builder, y: Value, x: Value, size: Sequence[Value], margin: float = 0.0) -> Value:
    """Which positions lie in the map, or up to ``margin`` off its first and last element."""
    flags = []
    for position, extent in ((y, size[0]), (x, size[1])):
        last = op.Add(op.Cast(op.Sub(extent, 1), to=position.dtype), margin)
        flags += [op.GreaterOrEqual(position, -margin), op.LessOrEqual(position, last)]
    return op.And(op.And(flags[0], flags[1]), op.And(flags[2], flags[3]))
