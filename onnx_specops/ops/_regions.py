"""Shared code of region operators: sampling between positions of feature maps, and C's rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.attributes import Limits, Product
from onnx_specops.ops._boxes import number_type

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value

Array = npt.NDArray[Any]

Bins = Annotated[int, Limits(1, 1024)]
"""The number of bins, or parts, of a region along an axis."""

Samples = Annotated[int, Limits(1, 128)]
"""The number of samples of a bin along an axis."""

SamplingRatio = Annotated[int, Limits(0, 128)]
"""The number of samples of a bin along an axis; 0 for one per position."""

Channels = Annotated[int, Limits(1, 2**16)]
"""The number of output channels."""

MAX_WORK = 2**20
SAMPLES_OF_A_REGION = Product(("pooled_h", "pooled_w", "sampling_ratio", "sampling_ratio"), MAX_WORK)
CHANNELS_OF_BINS = Product(("output_dim", "group_size", "group_size"), MAX_WORK)
CHANNELS_OF_SPATIAL_BINS = Product(("output_dim", "spatial_bins_x", "spatial_bins_y"), MAX_WORK)

MOST_SLACK = 64.0
"""The number of extra samples that are computed on both sides of a map, because positions are rounded. If a region begins so
far away that this is not enough, its positions consist only of rounding errors.
"""

FAR = 2.0**30  # no feature map is this large, so positions beyond it are clamped to it


def real_regions(name: str, what: str, batch: Array, images: int) -> Array:
    """Return the number of regions before the first with image index -1; raise an error for an index without an image."""
    ended = np.flatnonzero(batch == -1)
    real = batch[: ended[0]] if ended.size else batch
    if (bad := np.flatnonzero((real < 0) | (real >= images))).size:
        raise IndexError(f"{name}: {what}[{bad[0]}] = {real[bad[0]]} is out of range [0, {images - 1}]")
    return real


def check_maps(name: str, maps: Array, regions: Array, numbers: int) -> None:
    """Raise ``ValueError`` unless ``maps`` are non-empty ``[N, C, H, W]``, and ``regions`` ``[R, numbers]``."""
    if maps.ndim != 4 or 0 in maps.shape[2:]:
        raise ValueError(f"{name}: the feature maps have the shape {list(maps.shape)} instead of [N, C, H, W]")
    if regions.ndim != 2 or regions.shape[1] != numbers:
        raise ValueError(f"{name}: the regions have the shape {list(regions.shape)} instead of [R, {numbers}]")


def rounded(x: Array) -> Array:
    """Round ``x`` to an integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x)


def whole(x: Array) -> npt.NDArray[np.int64]:
    """Convert integers in a floating-point type to int64, clamping large ones."""
    return np.nan_to_num(np.clip(x, -FAR, FAR), nan=0.0).astype(np.int64)


def neighbors(position: Array, size: int) -> tuple[Array, Array, Array]:
    """Return the integer positions on both sides of ``position``, in ``[0, size - 1]``, and the distance from the
    first one.
    """
    position = np.nan_to_num(np.clip(position, 0, size - 1), nan=0.0)
    low = np.floor(position).astype(np.int64)
    high = np.ceil(position).astype(np.int64)
    return low, high, position - low.astype(position.dtype)


# -- in bodies ---------------------------------------------------------------------------------------------------------


def emit_real_regions(op: Builder, batch: Value, images: Value) -> tuple[Value, Value]:
    """Return which regions precede the first with image index (int64 ``[R]``) -1, and the indices, 0 for the others."""
    real = op.Equal(op.CumSum(op.Cast(op.Equal(batch, -1), to=Type.INT64), 0), 0)
    batch = op.Where(real, batch, 0)
    violations = op.Or(op.Less(batch, 0), op.GreaterOrEqual(batch, images))
    return real, required(op, "image_index_out_of_range", violations, batch)


def emit_rounded(op: Builder, x: Value) -> Value:
    """Round ``x`` to an integer, halves away from zero."""
    size = op.Abs(x)
    floor = op.Floor(size)
    return op.Mul(op.Sign(x), op.Add(floor, op.Cast(op.GreaterOrEqual(op.Sub(size, floor), 0.5), to=x.dtype)))


def emit_whole(op: Builder, x: Value) -> Value:
    """Convert integers in a floating-point type to int64, clamping large ones."""
    return op.Cast(op.Clip(x, -FAR, FAR), to=Type.INT64)


def emit_neighbors(op: Builder, position: Value, size: Value) -> tuple[Value, Value, Value]:
    """Return the integer positions (int64) on both sides of ``position``, in ``[0, size - 1]``, and the distance from the
    first.
    """
    last = op.Cast(op.Sub(size, 1), to=position.dtype)
    position = op.Max(op.Min(position, last), 0.0)
    low = op.Floor(position)
    whole = [op.Min(op.Max(op.Cast(x, to=Type.INT64), 0), op.Sub(size, 1)) for x in (low, op.Ceil(position))]
    return whole[0], whole[1], op.Sub(position, low)


def emit_bilinear(op: Builder, values: Value, base: Value, y: Value, x: Value, size: Sequence[Value]) -> Value:
    """Interpolate ``values`` (the first axis has the positions, row by row) bilinearly.

    Args:
        op: the graph builder.
        values: ``[positions]`` or ``[positions, channels]``.
        base: int64, the position of each map's first element.
        y: the vertical position in the map, broadcast with ``x`` and ``base``.
        x: the horizontal position in the map.
        size: the map's height and width, int64 ``[1]``.

    Returns:
        The shape of the positions (and channels).
    """
    top, bottom, down = emit_neighbors(op, y, size[0])
    left, right, across = emit_neighbors(op, x, size[1])
    rows = [op.Add(base, op.Mul(row, size[1])) for row in (top, bottom)]
    corners = [op.Gather(values, op.Add(row, column), axis=0) for row in rows for column in (left, right)]
    if values.rank == 2:
        down, across = op.Unsqueeze(down, [-1]), op.Unsqueeze(across, [-1])
    upper = op.Add(corners[0], op.Mul(op.Sub(corners[1], corners[0]), across))
    lower = op.Add(corners[2], op.Mul(op.Sub(corners[3], corners[2]), across))
    return op.Add(upper, op.Mul(op.Sub(lower, upper), down))


def emit_rows(op: Builder, maps: Value) -> Value:
    """Reshape ``[N, C, H, W]`` to ``[N * H * W, C]``."""
    return op.Reshape(op.Transpose(maps, perm=[0, 2, 3, 1]), op.Concat([-1], op.Shape(maps, start=1, end=2), axis=0))


def emit_inside(op: Builder, y: Value, x: Value, size: Sequence[Value], margin: float = 0.0) -> Value:
    """Return which positions are in the map, or up to ``margin`` outside its first and last element."""
    flags = []
    for position, extent in ((y, size[0]), (x, size[1])):
        last = op.Add(op.Cast(op.Sub(extent, 1), to=position.dtype), margin)
        flags += [op.GreaterOrEqual(position, -margin), op.LessOrEqual(position, last)]
    return op.And(op.And(flags[0], flags[1]), op.And(flags[2], flags[3]))


# -- bins of evenly spaced samples -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """The samples along an axis of a region that may be inside a map, bin by bin.

    A region, and the number of its samples, may be far larger than its map. Samples outside the map are 0.

    Attributes:
        positions: the positions of samples along the axis.
        starts: the index in ``positions`` of the first sample of each bin that has samples.
        bins: the indices of these bins.
        samples: the number of samples of each bin, including omitted ones.
    """

    positions: Array
    starts: Array
    bins: Array
    samples: int

    @classmethod
    def of(
        cls, start: Any, extent: Any, bins: int, sampling_ratio: int, low: float, high: float, offset: float = 0.0
    ) -> Line:
        """Return the samples of a region between ``low`` and ``high``, and possibly a few more.

        ``offset`` is added to a sample's position later, and rounded with it.
        """
        dtype = start.dtype.type
        length = extent / dtype(bins)
        samples = sampling_ratio or max(int(whole(np.ceil(length))), 0)
        step = length / dtype(max(samples, 1))
        first = start + np.arange(bins, dtype=dtype) * length
        begins, ends = np.zeros(bins, np.int64), np.full(bins, samples)
        if step > 0:
            origin, each = first.astype(np.float64), float(step)
            slack = 2 + np.minimum(8 * np.finfo(dtype).eps * (np.abs(origin) + offset) / each, MOST_SLACK)
            begins = np.clip(whole(np.floor((low - origin) / each - slack)), 0, samples)
            ends = np.clip(whole(np.ceil((high - origin) / each + slack)), begins, samples)
        counts = ends - begins
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - begins, counts)
        positions = np.repeat(first, counts) + step * (at.astype(dtype) + dtype(0.5))
        used = np.flatnonzero(counts)
        return cls(positions, (np.cumsum(counts) - counts)[used], used, samples)


def pooled_samples(
    maps: Array, y: Line, x: Line, bins: tuple[int, int], mode: str, turn: Callable[..., tuple[Array, Array]] | None = None
) -> Array:
    """Return the mean, or the maximum (at least 0), of each bin's samples; a sample more than 1 outside the map is 0.

    Args:
        maps: ``[C, H, W]``.
        y: the vertical samples.
        x: the horizontal samples.
        bins: the numbers of vertical and horizontal bins.
        mode: ``avg`` or ``max``.
        turn: ``turn(y, x)`` maps positions in the region to positions in the map.

    Returns:
        ``[C, bins_h, bins_w]``.
    """
    reduce = np.add if mode == "avg" else np.maximum
    height, width = maps.shape[1:]
    pooled = np.zeros((len(maps), *bins), maps.dtype)
    if not (y.bins.size and x.bins.size):
        return pooled
    for row, down in zip(y.bins, np.split(y.positions, y.starts[1:]), strict=True):
        at_y, at_x = np.broadcast_arrays(*(turn or _unrotated)(down[:, None], x.positions))
        inside = (at_y >= -1) & (at_y <= height) & (at_x >= -1) & (at_x <= width)
        (top, bottom, dy), (left, right, dx) = neighbors(at_y, height), neighbors(at_x, width)
        upper = maps[:, top, left] + (maps[:, top, right] - maps[:, top, left]) * dx
        lower = maps[:, bottom, left] + (maps[:, bottom, right] - maps[:, bottom, left]) * dx
        values = np.where(inside, upper + (lower - upper) * dy, 0)
        pooled[:, row, x.bins] = reduce.reduceat(reduce.reduce(values, axis=1), x.starts, axis=1)
    number = maps.dtype.type(max(y.samples, 1)) * maps.dtype.type(max(x.samples, 1))
    return pooled / number if mode == "avg" else np.maximum(pooled, 0)


def _unrotated(y: Array, x: Array) -> tuple[Array, Array]:
    return y, x


def emit_pooled_samples(
    op: Builder,
    maps: Value,
    batch: Value,
    start: Sequence[Value],
    extent: Sequence[Value],
    bins: Sequence[int],
    sampling_ratio: int,
    mode: str,
    reach: Sequence[tuple[Any, Any, Any]],
    turn: Callable[[Builder, Value, Value], tuple[Value, Value]] | None = None,
) -> Value:
    """Compute the mean or maximum (at least 0) of evenly spaced samples in the bins of regions, one sample of all bins at a
    time.

    Args:
        op: the graph builder.
        maps: ``[N, C, H, W]``.
        batch: int64 ``[R]``, the image of each region.
        start: the start of regions, y and x: ``[R]``.
        extent: the height and width of regions: ``[R]``.
        bins: the numbers of vertical and horizontal bins.
        sampling_ratio: the number of samples of a bin along each axis; 0 for one per position.
        mode: ``avg`` or ``max``.
        reach: the range of a map along the vertical and horizontal axes of each region, and the offset that is added to
            positions later; values that broadcast to ``[R, 1]``. Positions outside the range need no samples.
        turn: ``turn(op, y, x)`` maps positions (``[R, bins_h, bins_w]``) in the region to positions in the map.

    Returns:
        ``[R, C, bins_h, bins_w]``.
    """
    dtype = number_type(maps)
    size = op.Shape(maps, start=2, end=3), op.Shape(maps, start=3)
    rows = emit_rows(op, maps)
    base = op.Unsqueeze(op.Mul(batch, op.Mul(*size)), [1, 2])
    axes = [[2], [1]]
    lengths = [op.Unsqueeze(op.Div(e, dtype(n)), [1]) for e, n in zip(extent, bins, strict=True)]
    if sampling_ratio > 0:
        counts = [op.Expand(op.const([[sampling_ratio]]), op.Shape(length)) for length in lengths]
    else:
        counts = [emit_whole(op, op.Max(op.Ceil(length), 0.0)) for length in lengths]
    firsts = [
        op.Add(op.Unsqueeze(s, [1]), op.Mul(op.const(np.arange(n, dtype=dtype)), length))
        for s, n, length in zip(start, bins, lengths, strict=True)
    ]
    steps = [op.Div(length, op.Cast(op.Max(count, 1), to=maps.dtype)) for length, count in zip(lengths, counts, strict=True)]
    if sampling_ratio > 0:
        begins, ends = [op.const(0)] * 2, counts
        most = [op.const(sampling_ratio)] * 2
    else:
        windows = [_emit_window(op, *line) for line in zip(firsts, steps, counts, reach, strict=True)]
        begins, ends = ([window[k] for window in windows] for k in (0, 1))
        taken = [op.Sub(end, begin) for begin, end in windows]
        most = [op.ReduceMax(op.Concat(op.Reshape(count, [-1]), [0], axis=0), keepdims=0) for count in taken]
    width = op.Max(most[1], 1)  # ONNX Runtime rejects a constant divisor of 0 even for empty tensors
    zero = op.Where(op.Equal(op.Add(base, op.const(np.zeros(list(bins), np.int64))), -1), dtype(0), dtype(0))
    zero = op.Expand(op.Unsqueeze(zero, [3]), op.Concat([1, 1, 1], op.Shape(rows, start=1), axis=0))

    def step(op: Builder, iteration: Value, condition: Value, pooled: Value) -> tuple[Value, Value]:
        at = op.Div(iteration, width), op.Mod(iteration, width)
        samples = [op.Add(begin, i) for begin, i in zip(begins, at, strict=True)]
        taken = op.And(*(op.Unsqueeze(op.Less(i, end), axis) for i, end, axis in zip(samples, ends, axes, strict=True)))
        y, x = (
            op.Unsqueeze(op.Add(first, op.Mul(length, op.Add(op.Cast(i, to=maps.dtype), 0.5))), axis)
            for first, length, i, axis in zip(firsts, steps, samples, axes, strict=True)
        )
        if turn is not None:
            y, x = turn(op, y, x)
        valid = op.And(taken, emit_inside(op, y, x, size, margin=1.0))
        value = op.Where(op.Unsqueeze(valid, [3]), emit_bilinear(op, rows, base, y, x, size), dtype(0))
        return op.Identity(condition), op.Add(pooled, value) if mode == "avg" else op.Max(pooled, value)

    pooled = op.loop(op.Mul(*most), op.const(np.array(True)), step, zero)
    if mode == "avg":
        number = op.Cast(op.Max(op.Mul(*counts), 1), to=maps.dtype)
        pooled = op.Div(pooled, op.Unsqueeze(number, [2, 3]))
    return op.Transpose(pooled, perm=[0, 3, 1, 2])


def _emit_window(op: Builder, first: Value, step: Value, count: Value, reach: tuple[Any, Any, Any]) -> tuple[Value, Value]:
    """Return the range of each bin's samples within ``reach``, possibly with a few more: see `Line`."""
    *ends, offset = reach
    rounding = op.Mul(op.Add(op.Abs(first), offset), number_type(first)(8 * np.finfo(number_type(first)).eps))
    slack = op.Add(op.Min(op.Div(rounding, step), MOST_SLACK), 2.0)
    low, high = (op.Div(op.Sub(end, first), step) for end in ends)
    begin, end = emit_whole(op, op.Floor(op.Sub(low, slack))), emit_whole(op, op.Ceil(op.Add(high, slack)))
    begin = op.Max(op.Min(begin, count), 0)
    return begin, op.Max(op.Min(end, count), begin)
