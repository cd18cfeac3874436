"""DeformablePSROIPooling: position-sensitive pooling of regions with shifted bins."""

from __future__ import annotations

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_columns, emit_wide, number_type, wide
from onnx_specops.ops._regions import (
    CHANNELS_OF_BINS,
    Bins,
    Channels,
    Samples,
    check_maps,
    emit_bilinear,
    emit_real_regions,
    emit_rounded,
    emit_whole,
    neighbors,
    real_regions,
    rounded,
    whole,
)
from onnx_specops.ops.psroi_pooling import LEAST


@operator(
    inputs={"feat": "T", "rois": "T", "offsets": "T"},
    outputs={"output": "T"},
    types={"T": FLOATS},
    products=[CHANNELS_OF_BINS],
)
def DeformablePSROIPooling(
    feat,
    rois,
    offsets=None,
    *,
    output_dim: Channels,
    spatial_scale: float,
    group_size: Bins = 1,
    spatial_bins_x: Samples = 1,
    spatial_bins_y: Samples = 1,
    trans_std: float = 1.0,
    part_size: Bins = 1,
):
    """Divides regions of feature maps into bins, shifts the bins, and averages samples of each bin from its own channels.

    Inputs:
        feat: ``[N, output_dim * group_size ** 2, H, W]``.
        rois: ``[R, 5]``, ``image, x1, y1, x2, y2``. The first row whose image is -1 ends the list. The results of this row
            and of all rows after it are zeros.
        offsets: ``[R, 2 * classes, part_size, part_size]``, horizontal and vertical shifts. If omitted or empty, the bins
            are not shifted. The output channels are divided evenly among the classes.

    Attributes:
        output_dim: the number of output channels.
        spatial_scale: the factor that maps rounded coordinates to positions, from which half a pixel is subtracted.
        group_size: the number of bins of a region along each axis.
        spatial_bins_x, spatial_bins_y: the number of samples of a bin along each axis.
        trans_std: the factor that converts ``offsets`` to fractions of the region.
        part_size: the number of separately shifted parts of a region along each axis.

    Output: ``[R, output_dim, group_size, group_size]``. Samples more than half a pixel outside the map are ignored. A
    bin without samples is 0.

    Source: OpenVINO specification, DeformablePSROIPooling-1.
    """
    name = "DeformablePSROIPooling"
    check_maps(name, feat, rois, 5)
    if feat.shape[1] < output_dim * group_size**2:
        raise ValueError(f"{name}: feat has {feat.shape[1]} channels, fewer than {output_dim} * {group_size} ** 2")
    if offsets is not None:
        _check_offsets(name, offsets, rois, output_dim, part_size)
    maps, regions = wide(feat), wide(rois)
    dtype = maps.dtype.type
    height, width = maps.shape[2:]
    batch = real_regions(name, "rois", whole(np.trunc(regions[:, 0])), len(maps))
    regions = regions[: len(batch), 1:]
    scale, half = dtype(spatial_scale), dtype(0.5)
    starts = rounded(regions[:, :2]) * scale - half
    ends = (rounded(regions[:, 2:]) + dtype(1)) * scale - half
    extents = np.maximum(ends - starts, dtype(LEAST))
    lengths = extents / dtype(group_size)

    # [R, output_dim, bins_y, bins_x]
    bins, channels = np.arange(group_size), np.arange(output_dim)
    positions = [bins.astype(dtype) * lengths[:, i].reshape(-1, 1, 1, 1) + starts[:, i].reshape(-1, 1, 1, 1) for i in (0, 1)]
    x, y = positions[0], positions[1].transpose(0, 1, 3, 2)
    if offsets is not None:
        classes = offsets.shape[1] // 2
        part = bins * part_size // group_size
        class_ = channels // _channels_of_a_class(output_dim, classes)
        shifts = wide(offsets)[: len(batch), :, part[:, None], part] * dtype(trans_std)
        x, y = (
            position + shifts[:, class_ * 2 + i] * extents[:, i].reshape(-1, 1, 1, 1) for i, position in enumerate((x, y))
        )
    at = batch.reshape(-1, 1, 1, 1)
    channel = (channels[:, None, None] * group_size + bins[:, None]) * group_size + bins
    total, count = np.zeros((len(batch), output_dim, group_size, group_size), dtype), 0
    for down in range(spatial_bins_y):
        for across in range(spatial_bins_x):
            px = x + (lengths[:, 0] / dtype(spatial_bins_x) * dtype(across)).reshape(-1, 1, 1, 1)
            py = y + (lengths[:, 1] / dtype(spatial_bins_y) * dtype(down)).reshape(-1, 1, 1, 1)
            inside = (px >= -0.5) & (px <= width - 0.5) & (py >= -0.5) & (py <= height - 0.5)
            (top, bottom, dy), (left, right, dx) = neighbors(py, height), neighbors(px, width)
            upper = maps[at, channel, top, left] * (1 - dx) + maps[at, channel, top, right] * dx
            lower = maps[at, channel, bottom, left] * (1 - dx) + maps[at, channel, bottom, right] * dx
            total = total + np.where(inside, upper * (1 - dy) + lower * dy, 0)
            count = count + inside
    output = np.zeros((len(rois), *total.shape[1:]), dtype)
    output[: len(batch)] = total / np.maximum(count, 1)
    return output.astype(feat.dtype)


def _check_offsets(name, offsets, rois, output_dim, part_size):
    fits = offsets.ndim == 4 and (offsets.shape[0], *offsets.shape[2:]) == (len(rois), part_size, part_size)
    classes = offsets.shape[1] // 2 if fits else 0
    if not classes or (output_dim - 1) // _channels_of_a_class(output_dim, classes) * 2 + 1 >= offsets.shape[1]:
        raise ValueError(f"{name}: offsets has the shape {list(offsets.shape)}, rois {list(rois.shape)}")


def _channels_of_a_class(output_dim, classes):
    return max(output_dim // classes, 1)


@DeformablePSROIPooling.infer_shapes
def _(node):
    regions, given = node.shape(1), node.attributes
    return [[regions[0] if regions else None, given["output_dim"], given["group_size"], given["group_size"]]]


@DeformablePSROIPooling.body
def _(
    op, feat, rois, offsets, *, output_dim, group_size, spatial_scale, part_size, trans_std, spatial_bins_x, spatial_bins_y
):
    maps, regions = emit_wide(op, feat), emit_wide(op, rois)
    dtype = number_type(maps)
    size = op.Shape(maps, start=2, end=3), op.Shape(maps, start=3)
    limits = [op.Sub(op.Cast(s, to=maps.dtype), 0.5) for s in size]
    image, *coordinates = emit_columns(op, regions, 5)
    real, batch = emit_real_regions(op, emit_whole(op, image), op.Shape(maps, start=0, end=1))
    channels = op.Shape(maps, start=1, end=2)
    area = required(op, "feat_has_too_few_channels", op.Less(channels, output_dim * group_size**2), op.Mul(*size))
    rounds = [emit_rounded(op, c) for c in coordinates]
    starts = [op.Sub(op.Mul(c, dtype(spatial_scale)), 0.5) for c in rounds[:2]]
    ends = [op.Sub(op.Mul(op.Add(c, 1.0), dtype(spatial_scale)), 0.5) for c in rounds[2:]]
    starts, ends = ([op.Unsqueeze(c, [1, 2, 3]) for c in edges] for edges in (starts, ends))
    extents = [op.Max(op.Sub(end, start), dtype(LEAST)) for start, end in zip(starts, ends, strict=True)]
    lengths = [op.Div(extent, dtype(group_size)) for extent in extents]

    # [R, output_dim, bins_y, bins_x]
    bins = np.arange(group_size)
    shapes = (1, 1, 1, group_size), (1, 1, group_size, 1)
    x, y = (
        op.Add(op.Mul(op.const(bins.astype(dtype).reshape(shape)), length), start)
        for shape, length, start in zip(shapes, lengths, starts, strict=True)
    )
    if offsets is not None:
        classes = op.Div(op.Shape(offsets, start=1, end=2), 2)
        each = op.Max(op.Div(output_dim, classes), 1)
        class_ = op.Mul(op.Div(op.const(np.arange(output_dim)), each), 2)
        part = bins * part_size // group_size
        shifts = op.Mul(emit_wide(op, offsets), dtype(trans_std))
        unequal = op.Not(op.Equal(op.Shape(offsets, end=1), op.Shape(rois, end=1)))
        class_ = required(op, "offsets_and_rois_differ_in_number", unequal, class_)
        shifts = op.Gather(op.Gather(shifts, part, axis=2), part, axis=3)
        x, y = (
            op.Add(position, op.Mul(op.Gather(shifts, op.Add(class_, i), axis=1), extent))
            for i, (position, extent) in enumerate(zip((x, y), extents, strict=True))
        )
    channel = op.const(np.arange(output_dim * group_size**2).reshape(1, output_dim, group_size, group_size))
    base = op.Mul(op.Add(op.Unsqueeze(op.Mul(batch, channels), [1, 2, 3]), channel), area)
    flat = op.Reshape(maps, [-1])
    steps = [op.Div(length, dtype(n)) for length, n in zip(lengths, (spatial_bins_x, spatial_bins_y), strict=True)]

    def step(op, iteration, condition, total, count):
        down, across = (op.Cast(f(iteration, spatial_bins_x), to=maps.dtype) for f in (op.Div, op.Mod))
        px, py = op.Add(x, op.Mul(steps[0], across)), op.Add(y, op.Mul(steps[1], down))
        flags = [op.GreaterOrEqual(p, -0.5) for p in (px, py)]
        flags += [op.LessOrEqual(px, limits[1]), op.LessOrEqual(py, limits[0])]
        inside = op.And(op.And(flags[0], flags[1]), op.And(flags[2], flags[3]))
        value = op.Where(inside, emit_bilinear(op, flat, base, py, px, size), dtype(0))
        return op.Identity(condition), op.Add(total, value), op.Add(count, op.Cast(inside, to=maps.dtype))

    zeros = op.ConstantOfShape(op.Shape(base), value=np.zeros(1, dtype))
    total, count = op.loop(spatial_bins_x * spatial_bins_y, op.const(np.array(True)), step, zeros, zeros)
    pooled = op.Div(total, op.Max(count, 1.0))
    return op.Cast(op.Where(op.Unsqueeze(real, [1, 2, 3]), pooled, dtype(0)), to=feat.dtype)
