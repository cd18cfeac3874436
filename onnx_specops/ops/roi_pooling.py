"""ROIPooling: regions of feature maps pooled to one size by maxima or bilinear samples."""

from __future__ import annotations

from typing import Literal

import numpy as np

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_columns, emit_wide, number_type, wide
from onnx_specops.ops._regions import (
    Bins,
    check_maps,
    emit_bilinear,
    emit_inside,
    emit_real_regions,
    emit_rounded,
    emit_rows,
    emit_whole,
    neighbors,
    real_regions,
    rounded,
    whole,
)


@operator(inputs={"feat": "T", "rois": "T"}, outputs={"output": "T"}, types={"T": FLOATS})
def ROIPooling(
    feat, rois, *, pooled_h: Bins, pooled_w: Bins, spatial_scale: float = 1.0, method: Literal["max", "bilinear"] = "max"
):
    """Divides regions of feature maps into bins and computes the maximum or one sample of each bin.

    Inputs:
        feat: ``[N, C, H, W]``.
        rois: ``[R, 5]``, ``image, x1, y1, x2, y2``. The first row whose image is -1 ends the list. The results of this row
            and of all rows after it are zeros.

    Attributes:
        pooled_h, pooled_w: the number of bins of a region.
        spatial_scale: for ``max``: the factor that maps coordinates to positions, which are rounded and inclusive.
        method: ``max``: the largest element of a bin, or 0 if it is empty. ``bilinear``: coordinates are fractions of
            the map. The samples of the bins extend from edge to edge and are interpolated. Those outside the map are 0.

    Output: ``[R, C, pooled_h, pooled_w]``.

    Source: OpenVINO specification, ROIPooling-1.
    """
    name = "ROIPooling"
    check_maps(name, feat, rois, 5)
    maps, regions = wide(feat), wide(rois)
    images, channels, height, width = maps.shape
    batch = real_regions(name, "rois", whole(np.trunc(regions[:, 0])), images)
    output = np.zeros((len(rois), channels, pooled_h, pooled_w), maps.dtype)
    starts, ends = regions[: len(batch), 2:0:-1], regions[: len(batch), 4:2:-1]  # y, x
    if method == "bilinear":
        lines = [
            _samples(starts[:, i], ends[:, i], count, size)
            for i, (count, size) in enumerate(((pooled_h, height), (pooled_w, width)))
        ]
        (top, bottom, down), (left, right, across) = (neighbors(*x) for x in zip(lines, (height, width), strict=True))
        inside = [(line >= 0) & (line <= size - 1) for line, size in zip(lines, (height, width), strict=True)]
        at = batch[:, None, None]
        corner = [maps[at, :, y[:, :, None], x[:, None]] for y in (top, bottom) for x in (left, right)]
        across, down = across[:, None, :, None], down[:, :, None, None]
        upper = corner[0] + (corner[1] - corner[0]) * across
        lower = corner[2] + (corner[3] - corner[2]) * across
        valid = (inside[0][:, :, None] & inside[1][:, None])[..., None]
        output[: len(batch)] = np.where(valid, upper + (lower - upper) * down, 0).transpose(0, 3, 1, 2)
        return output.astype(feat.dtype)

    scale = maps.dtype.type(spatial_scale)
    first, last = (whole(rounded(x * scale)) for x in (starts, ends))
    rows, columns = (
        _bins(first[:, i], last[:, i], n, s) for i, (n, s) in enumerate(((pooled_h, height), (pooled_w, width)))
    )
    for region, image in enumerate(batch):
        for y in range(pooled_h):
            for x in range(pooled_w):
                bin_ = maps[image, :, rows[0][region, y] : rows[1][region, y], columns[0][region, x] : columns[1][region, x]]
                if bin_.size:
                    output[region, :, y, x] = bin_.max(axis=(1, 2))
    return output.astype(feat.dtype)


def _samples(start, end, count, size):
    last = start.dtype.type(size - 1)
    if count == 1:
        return ((start + end) * start.dtype.type(0.5) * last)[:, None]
    step = (end - start) * last / start.dtype.type(count - 1)
    samples = np.arange(count, dtype=start.dtype) * step[:, None] + (start * last)[:, None]
    samples[:, -1] = end * last
    return samples


def _bins(first, last, count, size):
    extent = np.maximum(last - first + 1, 1)[:, None]
    bins = np.arange(count)
    edges = bins * extent // count, -((bins + 1) * -extent // count)
    return [np.clip(edge + first[:, None], 0, size) for edge in edges]


@ROIPooling.infer_shapes
def _(node):
    maps, regions = node.shape(0), node.shape(1)
    return [[
        regions[0] if regions else None, maps[1] if maps else None, node.attributes["pooled_h"], node.attributes["pooled_w"]
    ]]  # fmt: skip


@ROIPooling.body
def _(op, feat, rois, *, pooled_h, pooled_w, spatial_scale, method):
    type_ = feat.dtype
    maps, regions = emit_wide(op, feat), emit_wide(op, rois)
    dtype = number_type(maps)
    images, size = op.Shape(maps, start=0, end=1), (op.Shape(maps, start=2, end=3), op.Shape(maps, start=3))
    image, *coordinates = emit_columns(op, regions, 5)
    real, batch = emit_real_regions(op, emit_whole(op, image), images)
    base = op.Unsqueeze(op.Mul(batch, op.Mul(*size)), [1, 2])
    rows = emit_rows(op, maps)
    starts, ends = coordinates[1::-1], coordinates[:1:-1]  # y, x
    real = op.Unsqueeze(real, [1, 2])
    if method == "bilinear":
        y, x = (_emit_samples(op, *line) for line in zip(starts, ends, (pooled_h, pooled_w), size, strict=True))
        y, x = op.Unsqueeze(y, [2]), op.Unsqueeze(x, [1])
        pooled = emit_bilinear(op, rows, base, y, x, size)
        valid = op.And(emit_inside(op, y, x, size), real)
    else:
        first, last = (
            [emit_whole(op, emit_rounded(op, op.Mul(x, dtype(spatial_scale)))) for x in s] for s in (starts, ends)
        )
        y, x = (_emit_bins(op, *line) for line in zip(first, last, (pooled_h, pooled_w), size, strict=True))
        y, x = [op.Unsqueeze(edge, [2]) for edge in y], [op.Unsqueeze(edge, [1]) for edge in x]
        pooled = _emit_maxima(op, rows, base, y, x, size)
        valid = op.And(op.And(op.Less(*y), op.Less(*x)), real)
    pooled = op.Where(op.Unsqueeze(valid, [3]), pooled, dtype(0))
    return op.Cast(op.Transpose(pooled, perm=[0, 3, 1, 2]), to=type_)


def _emit_samples(op, start, end, count, size):
    """Return the positions of each region's samples along an axis: ``[R, count]``."""
    last = op.Cast(op.Sub(size, 1), to=start.dtype)
    start, end = op.Unsqueeze(start, [1]), op.Unsqueeze(end, [1])
    if count == 1:
        return op.Mul(op.Mul(op.Add(start, end), 0.5), last)
    dtype = number_type(start)
    step = op.Div(op.Mul(op.Sub(end, start), last), dtype(count - 1))
    samples = op.Add(op.Mul(op.Cast(op.Range(0, count - 1, 1), to=start.dtype), step), op.Mul(start, last))
    return op.Concat(samples, op.Mul(end, last), axis=1)


def _emit_bins(op, first, last, count, size):
    """Return the start and the (exclusive) end of each region's bins along an axis: ``[R, count]``."""
    extent = op.Unsqueeze(op.Max(op.Add(op.Sub(last, first), 1), 1), [1])
    bins = op.Range(0, count, 1)
    edges = op.Div(op.Mul(bins, extent), count), op.Div(op.Add(op.Mul(op.Add(bins, 1), extent), count - 1), count)
    return [op.Max(op.Min(op.Add(edge, op.Unsqueeze(first, [1])), size), 0) for edge in edges]


def _emit_maxima(op, rows, base, y, x, size):
    """Return the maximum of every bin: ``[R, pooled_h, pooled_w, C]``. One element of all bins at a time."""
    most = [op.ReduceMax(op.Concat(op.Reshape(op.Sub(*edges[::-1]), [-1]), [0], axis=0), keepdims=0) for edges in (y, x)]
    bins = op.Add(base, op.Add(op.Mul(y[0], 0), op.Mul(x[0], 0)))
    width = op.Max(most[1], 1)  # ONNX Runtime rejects a constant divisor of 0 even for empty tensors
    lowest = np.array([-np.inf], number_type(rows))
    start = op.ConstantOfShape(op.Concat(op.Shape(bins), op.Shape(rows, start=1), axis=0), value=lowest)

    def step(op, iteration, condition, maxima):
        row, column = op.Add(y[0], op.Div(iteration, width)), op.Add(x[0], op.Mod(iteration, width))
        valid = op.And(op.Less(row, y[1]), op.Less(column, x[1]))
        at = op.Where(valid, op.Add(base, op.Add(op.Mul(row, size[1]), column)), base)
        value = op.Gather(rows, at, axis=0)
        return op.Identity(condition), op.Where(op.Unsqueeze(valid, [3]), op.Max(maxima, value), maxima)

    return op.loop(op.Mul(*most), op.const(np.array(True)), step, start)
