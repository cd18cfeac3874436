"""ROIAlignRotated: rotated regions of feature maps pooled to one size by bilinear samples."""

from __future__ import annotations

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_columns, emit_wide, number_type, wide
from onnx_specops.ops._regions import (
    SAMPLES_OF_A_REGION,
    Bins,
    Line,
    SamplingRatio,
    check_maps,
    emit_pooled_samples,
    pooled_samples,
)
from onnx_specops.ops.roi_align import pooled_shape


@operator(
    inputs={"feat": "T", "rois": "T", "batch_indices": "tensor(int64)"},
    outputs={"output": "T"},
    types={"T": FLOATS},
    products=[SAMPLES_OF_A_REGION],
)
def ROIAlignRotated(
    feat,
    rois,
    batch_indices,
    *,
    pooled_h: Bins,
    pooled_w: Bins,
    sampling_ratio: SamplingRatio,
    spatial_scale: float,
    clockwise_mode: int,
):
    """Divides rotated regions of feature maps into bins and averages evenly spaced samples of each bin.

    Inputs:
        feat: ``[N, C, H, W]``.
        rois: ``[R, 5]``, ``center_x, center_y, width, height, angle`` (in radians).
        batch_indices: ``[R]``, the image of each region.

    Attributes:
        pooled_h, pooled_w: the number of bins of a region.
        sampling_ratio: the number of samples of a bin along each axis. 0 means the size of the bin, rounded up.
        spatial_scale: the factor that maps coordinates to positions, which are then shifted by -0.5.
        clockwise_mode: whether the angle is clockwise.

    Output: ``[R, C, pooled_h, pooled_w]``. A sample more than 1 outside the map is 0. A bin without samples is 0.

    Source: OpenVINO specification, ROIAlignRotated-15.
    """
    name = "ROIAlignRotated"
    check_maps(name, feat, rois, 5)
    if batch_indices.shape != rois.shape[:1]:
        raise ValueError(f"{name}: batch_indices has the shape {list(batch_indices.shape)}, rois {list(rois.shape)}")
    maps, regions = wide(feat), wide(rois)
    if (bad := np.flatnonzero((batch_indices < 0) | (batch_indices >= len(maps)))).size:
        raise IndexError(f"{name}: batch_indices[{bad[0]}] = {batch_indices[bad[0]]} is out of range [0, {len(maps) - 1}]")
    dtype = maps.dtype.type
    scale, half = dtype(spatial_scale), dtype(0.5)
    output = np.zeros((len(rois), maps.shape[1], pooled_h, pooled_w), dtype)
    for region, image in enumerate(batch_indices):
        center, extent, angle = regions[region, :2] * scale - half, regions[region, 2:4] * scale, regions[region, 4]
        cosine, sine = np.cos(angle), np.sin(-angle if clockwise_mode else angle)

        def rotate(y, x, center=center, cosine=cosine, sine=sine):
            return y * cosine - x * sine + center[1], y * sine + x * cosine + center[0]

        reach = _reach(maps.shape[2:], center.astype(np.float64), float(cosine), float(sine))
        y, x = (
            Line.of(-extent[i] / dtype(2), extent[i], bins, sampling_ratio, *ends)
            for i, bins, ends in ((1, pooled_h, reach[0]), (0, pooled_w, reach[1]))
        )
        output[region] = pooled_samples(maps[image], y, x, (pooled_h, pooled_w), "avg", rotate)
    return output.astype(feat.dtype)


def _reach(size, center, cosine, sine):
    """Return the range of a map along the vertical and horizontal axes of a rotated region, relative to its center.

    The third number of each result is the sum of the center's absolute coordinates.
    """
    down, across = (np.array([-1.0, n]) - c for n, c in zip(size, center[::-1], strict=True))
    parts = ((down * cosine, across * sine), (across * cosine, down * -sine))
    return [(a.min() + b.min(), a.max() + b.max(), np.abs(center).sum()) for a, b in parts]


@ROIAlignRotated.infer_shapes
def _(node):
    return [pooled_shape(node)]


@ROIAlignRotated.body
def _(op, feat, rois, batch_indices, *, pooled_h, pooled_w, sampling_ratio, spatial_scale, clockwise_mode):
    maps, regions = emit_wide(op, feat), emit_wide(op, rois)
    dtype = number_type(maps)
    *box, angle = emit_columns(op, regions, 5)
    center_x, center_y, width, height = (op.Mul(column, dtype(spatial_scale)) for column in box)
    center = [op.Unsqueeze(op.Sub(c, 0.5), [1, 2]) for c in (center_y, center_x)]
    cosine, sine = (op.Unsqueeze(x, [1, 2]) for x in (op.Cos(angle), op.Sin(angle)))
    if clockwise_mode:
        sine = op.Neg(sine)

    def rotate(op, y, x):
        down = op.Sub(op.Mul(y, cosine), op.Mul(x, sine))
        across = op.Add(op.Mul(y, sine), op.Mul(x, cosine))
        return op.Add(down, center[0]), op.Add(across, center[1])

    images = op.Shape(maps, start=0, end=1)
    beyond = op.Or(op.Less(batch_indices, 0), op.GreaterOrEqual(batch_indices, images))
    batch = required(op, "batch_indices_out_of_range", beyond, batch_indices)
    start = [op.Div(op.Neg(e), 2.0) for e in (height, width)]
    reach = _emit_reach(op, maps, *(op.Squeeze(x, [2]) for x in (*center, cosine, sine)))
    bins = [pooled_h, pooled_w]
    pooled = emit_pooled_samples(op, maps, batch, start, [height, width], bins, sampling_ratio, "avg", reach, rotate)
    return op.Cast(pooled, to=feat.dtype)


def _emit_reach(op, maps, center_y, center_x, cosine, sine):
    """Emit `_reach` for each region, ``[R, 1]``."""
    ends = [
        (op.Sub(-1.0, center), op.Sub(op.Cast(op.Shape(maps, start=axis, end=axis + 1), to=maps.dtype), center))
        for axis, center in ((2, center_y), (3, center_x))
    ]
    down, across = ends
    offset = op.Add(op.Abs(center_y), op.Abs(center_x))
    reach = []
    for (a, rotated_a), (b, rotated_b) in (((down, cosine), (across, sine)), ((across, cosine), (down, op.Neg(sine)))):
        one, other = ([op.Mul(end, by) for end in pair] for pair, by in ((a, rotated_a), (b, rotated_b)))
        reach.append((op.Add(op.Min(*one), op.Min(*other)), op.Add(op.Max(*one), op.Max(*other)), offset))
    return reach
