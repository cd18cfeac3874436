"""PSROIPooling: regions of feature maps pooled to one size, each bin from its own channels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_columns, emit_wide, number_type, wide
from onnx_specops.ops._regions import (
    CHANNELS_OF_BINS,
    CHANNELS_OF_SPATIAL_BINS,
    Bins,
    Channels,
    Samples,
    check_maps,
    emit_bilinear,
    emit_inside,
    emit_real_regions,
    emit_rounded,
    emit_whole,
    neighbors,
    real_regions,
    rounded,
    whole,
)

# Narrower or lower regions, in positions, are enlarged to this size.
LEAST = 0.1


@operator(
    inputs={"feat": "T", "rois": "T"},
    outputs={"output": "T"},
    types={"T": FLOATS},
    products=[CHANNELS_OF_BINS, CHANNELS_OF_SPATIAL_BINS],
)
def PSROIPooling(
    feat,
    rois,
    *,
    output_dim: Channels,
    group_size: Bins,
    spatial_scale: float,
    mode: Literal["average", "bilinear"] = "average",
    spatial_bins_x: Samples = 1,
    spatial_bins_y: Samples = 1,
):
    """Divides regions of feature maps into bins and averages each bin over its own channels.

    Inputs:
        feat: ``[N, C, H, W]``. For ``average``, ``C`` is ``output_dim * group_size ** 2``, and the bins of an output channel
            are adjacent. For ``bilinear``, ``C`` is ``output_dim * spatial_bins_x * spatial_bins_y``, and the output
            channels of a part are adjacent.
        rois: ``[R, 5]``, ``image, x1, y1, x2, y2``. The first row whose image is -1 ends the list. The results of this row
            and of all rows after it are zeros.

    Attributes:
        output_dim: the number of output channels.
        group_size: the number of bins of a region along each axis.
        spatial_scale: the factor that maps coordinates to positions (``average``) or to fractions of the map.
        mode: ``average``: coordinates are rounded first, and a bin is the mean of its elements. ``bilinear``: a region
            is divided into parts, and each part has one sample per bin, from edge to edge. A bin is the mean of its
            samples over the parts. Samples outside the map are 0.
        spatial_bins_x, spatial_bins_y: for ``bilinear``: the number of parts of a region.

    Output: ``[R, output_dim, group_size, group_size]``.

    Source: OpenVINO specification, PSROIPooling-1.
    """
    name = "PSROIPooling"
    check_maps(name, feat, rois, 5)
    parts = group_size**2 if mode == "average" else spatial_bins_x * spatial_bins_y
    if feat.shape[1] < output_dim * parts:
        raise ValueError(f"{name}: feat has {feat.shape[1]} channels, fewer than {output_dim} * {parts}")
    maps, regions = wide(feat), wide(rois)
    dtype = maps.dtype.type
    height, width = maps.shape[2:]
    batch = real_regions(name, "rois", whole(np.trunc(regions[:, 0])), len(maps))
    regions = regions[: len(batch)]
    output = np.zeros((len(rois), output_dim, group_size, group_size), dtype)
    if mode == "average":
        starts = rounded(regions[:, 1:3]) * dtype(spatial_scale)
        ends = rounded(regions[:, 3:5] + dtype(1)) * dtype(spatial_scale)
        columns, rows = (_bins(starts[:, i], ends[:, i], group_size, size) for i, size in ((0, width), (1, height)))
        for region, image in enumerate(batch):
            for h in range(group_size):
                for w in range(group_size):
                    own = maps[image, h * group_size + w :: group_size**2][:output_dim]
                    bin_ = own[:, rows[0][region, h] : rows[1][region, h], columns[0][region, w] : columns[1][region, w]]
                    if bin_.size:
                        output[region, :, h, w] = bin_.mean(axis=(1, 2))
        return output.astype(feat.dtype)

    regions = regions[:, 1:] * dtype(spatial_scale)
    lines = [
        _samples(regions[:, i], regions[:, i + 2], parts, group_size, size)
        for i, parts, size in ((0, spatial_bins_x, width), (1, spatial_bins_y, height))
    ]
    # [R, parts_y, parts_x, output_dim, bins_y, bins_x]
    x, y = lines[0][:, None, :, None, None, :], lines[1][:, :, None, None, :, None]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    (top, bottom, down), (left, right, across) = neighbors(y, height), neighbors(x, width)
    at = batch.reshape(-1, *[1] * 5)
    channel = np.arange(output_dim * parts).reshape(1, spatial_bins_y, spatial_bins_x, output_dim, 1, 1)
    upper = maps[at, channel, top, left]
    upper = upper + (maps[at, channel, top, right] - upper) * across
    lower = maps[at, channel, bottom, left]
    lower = lower + (maps[at, channel, bottom, right] - lower) * across
    samples = np.where(inside, upper + (lower - upper) * down, 0)
    output[: len(batch)] = samples.sum(axis=(1, 2)) / dtype(parts)
    return output.astype(feat.dtype)


def _bins(start, end, count, size):
    dtype = start.dtype.type
    length = (np.maximum(end - start, dtype(LEAST)) / dtype(count))[:, None]
    bins = np.arange(count + 1, dtype=dtype)
    edges = np.floor(bins[:-1] * length + start[:, None]), np.ceil(bins[1:] * length + start[:, None])
    return [np.clip(whole(edge), 0, size) for edge in edges]


def _samples(start, end, parts, count, size):
    dtype = start.dtype.type
    last = dtype(size - 1)
    bounds = start[:, None] + np.arange(parts + 1, dtype=dtype) * ((end - start) / dtype(parts))[:, None]
    low, high = bounds[:, :-1, None], bounds[:, 1:, None]
    if count == 1:
        return dtype(0.5) * (low + high) * last
    return np.arange(count, dtype=dtype) * ((high - low) * last / dtype(count - 1)) + low * last


@PSROIPooling.infer_shapes
def _(node):
    regions, given = node.shape(1), node.attributes
    return [[regions[0] if regions else None, given["output_dim"], given["group_size"], given["group_size"]]]


@PSROIPooling.body
def _(op, feat, rois, *, output_dim, group_size, spatial_scale, mode, spatial_bins_x, spatial_bins_y):
    maps, regions = emit_wide(op, feat), emit_wide(op, rois)
    dtype = number_type(maps)
    size = op.Shape(maps, start=2, end=3), op.Shape(maps, start=3)
    image, *coordinates = emit_columns(op, regions, 5)
    real, batch = emit_real_regions(op, emit_whole(op, image), op.Shape(maps, start=0, end=1))
    channels = op.Shape(maps, start=1, end=2)
    parts = group_size**2 if mode == "average" else spatial_bins_x * spatial_bins_y
    area = required(op, "feat_has_too_few_channels", op.Less(channels, output_dim * parts), op.Mul(*size))
    plane = op.Mul(batch, channels)
    flat = op.Reshape(maps, [-1])
    if mode == "average":
        starts = [op.Mul(emit_rounded(op, c), dtype(spatial_scale)) for c in coordinates[:2]]
        ends = [op.Mul(emit_rounded(op, op.Add(c, 1.0)), dtype(spatial_scale)) for c in coordinates[2:]]
        columns, rows = (
            _emit_bins(op, start, end, group_size, s) for start, end, s in zip(starts, ends, size[::-1], strict=True)
        )
        # [R, output_dim, bins_y, bins_x]
        channel = op.const(np.arange(output_dim * parts).reshape(1, output_dim, group_size, group_size))
        base = op.Mul(op.Add(op.Unsqueeze(plane, [1, 2, 3]), channel), area)
        y, x = [op.Unsqueeze(e, [1, 3]) for e in rows], [op.Unsqueeze(e, [1, 2]) for e in columns]
        pooled = _emit_means(op, flat, base, y, x, size)
    else:
        coordinates = [op.Mul(c, dtype(spatial_scale)) for c in coordinates]
        lines = [
            _emit_samples(op, coordinates[i], coordinates[i + 2], bins, group_size, s)
            for i, bins, s in ((0, spatial_bins_x, size[1]), (1, spatial_bins_y, size[0]))
        ]
        # [R, parts_y, parts_x, output_dim, bins_y, bins_x]
        x, y = op.Unsqueeze(lines[0], [1, 3, 4]), op.Unsqueeze(lines[1], [2, 3, 5])
        channel = op.const(np.arange(output_dim * parts).reshape(1, spatial_bins_y, spatial_bins_x, output_dim, 1, 1))
        base = op.Mul(op.Add(op.Unsqueeze(plane, [1, 2, 3, 4, 5]), channel), area)
        samples = op.Where(emit_inside(op, y, x, size), emit_bilinear(op, flat, base, y, x, size), dtype(0))
        pooled = op.Div(op.ReduceSum(samples, [1, 2], keepdims=0), dtype(parts))
    return op.Cast(op.Where(op.Unsqueeze(real, [1, 2, 3]), pooled, dtype(0)), to=feat.dtype)


def _emit_bins(op, start, end, count, size):
    """Return the start and the (exclusive) end of each region's bins along an axis: ``[R, count]``."""
    dtype = number_type(start)
    start, length = (op.Unsqueeze(x, [1]) for x in (start, op.Div(op.Max(op.Sub(end, start), dtype(LEAST)), dtype(count))))
    bins = np.arange(count + 1, dtype=dtype)
    edges = [op.Add(op.Mul(op.const(b), length), start) for b in (bins[:-1], bins[1:])]
    edges = [op.Floor(edges[0]), op.Ceil(edges[1])]
    return [op.Max(op.Min(emit_whole(op, edge), size), 0) for edge in edges]


def _emit_samples(op, start, end, parts, count, size):
    """Return the positions of the samples of each part of each region along an axis: ``[R, parts, count]``."""
    dtype = number_type(start)
    last = op.Cast(op.Sub(size, 1), to=start.dtype)
    length = op.Unsqueeze(op.Div(op.Sub(end, start), dtype(parts)), [1, 2])
    start = op.Unsqueeze(start, [1, 2])
    bounds = np.arange(parts + 1, dtype=dtype)[:, None]
    low, high = (op.Add(start, op.Mul(op.const(b), length)) for b in (bounds[:-1], bounds[1:]))
    if count == 1:
        return op.Mul(op.Mul(op.Add(low, high), 0.5), last)
    step = op.Div(op.Mul(op.Sub(high, low), last), dtype(count - 1))
    return op.Add(op.Mul(op.const(np.arange(count, dtype=dtype)), step), op.Mul(low, last))


def _emit_means(op, flat, base, y, x, size):
    """Return the mean of every bin, 0 for empty bins, in the shape of ``base``. One element of all bins at a time."""
    dtype = number_type(flat)
    extents = [op.Max(op.Sub(*edges[::-1]), 0) for edges in (y, x)]
    most = [op.ReduceMax(op.Concat(op.Reshape(extent, [-1]), [0], axis=0), keepdims=0) for extent in extents]
    width = op.Max(most[1], 1)  # ONNX Runtime rejects a constant divisor of 0 even for empty tensors

    def step(op, iteration, condition, sums):
        row, column = op.Add(y[0], op.Div(iteration, width)), op.Add(x[0], op.Mod(iteration, width))
        valid = op.And(op.Less(row, y[1]), op.Less(column, x[1]))
        value = op.Gather(flat, op.Add(base, op.Where(valid, op.Add(op.Mul(row, size[1]), column), 0)), axis=0)
        return op.Identity(condition), op.Where(valid, op.Add(sums, value), sums)

    zeros = op.ConstantOfShape(op.Shape(base), value=np.zeros(1, dtype))
    sums = op.loop(op.Mul(*most), op.const(np.array(True)), step, zeros)
    return op.Div(sums, op.Cast(op.Max(op.Mul(*extents), 1), to=flat.dtype))
