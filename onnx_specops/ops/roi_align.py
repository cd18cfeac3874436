"""ROIAlign: regions of feature maps pooled to one size by bilinear samples."""

from __future__ import annotations

from typing import Literal

import numpy as np

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_columns, emit_wide, number_type, wide
from onnx_specops.ops._regions import (
    SAMPLES_OF_A_REGION,
    Bins,
    Line,
    SamplingRatio,
    check_maps,
    emit_pooled_samples,
    emit_real_regions,
    pooled_samples,
    real_regions,
)

_OFFSETS = {"asymmetric": (0.0, 0.0), "half_pixel_for_nn": (0.0, -0.5), "half_pixel": (0.5, -0.5)}


@operator(
    inputs={"feat": "T", "rois": "T", "batch_indices": "tensor(int64)"},
    outputs={"output": "T"},
    types={"T": FLOATS},
    products=[SAMPLES_OF_A_REGION],
)
def ROIAlign(
    feat,
    rois,
    batch_indices,
    *,
    pooled_h: Bins,
    pooled_w: Bins,
    sampling_ratio: SamplingRatio,
    spatial_scale: float,
    mode: Literal["avg", "max"] = "avg",
    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric",
):
    """Divides regions of feature maps into bins and computes the mean or the maximum of evenly spaced samples of each bin.

    Inputs:
        feat: ``[N, C, H, W]``.
        rois: ``[R, 4]``, ``x1, y1, x2, y2``.
        batch_indices: ``[R]``, the image of each region. The first -1 ends the list. The results of this region and of all
            regions after it are zeros.

    Attributes:
        pooled_h, pooled_w: the number of bins of a region.
        sampling_ratio: the number of samples of a bin along each axis. 0 means the size of the bin, rounded up.
        spatial_scale: the factor that maps coordinates to positions.
        mode: ``avg``, or ``max``: the largest sample, or 0 if all samples are negative.
        aligned_mode: ``asymmetric``: a region is at least 1 high and wide. ``half_pixel_for_nn``: positions are shifted
            by -0.5. ``half_pixel``: coordinates are shifted by 0.5 and positions by -0.5.

    Output: ``[R, C, pooled_h, pooled_w]``. A sample more than 1 outside the map is 0. A bin without samples is 0.

    ONNX's RoiAlign computes the maximum of the four weighted neighbors of a sample instead of the maximum of the samples.

    Source: OpenVINO specification, ROIAlign-9; the maximum as in OpenVINO's CPU plugin.
    """
    name = "ROIAlign"
    check_maps(name, feat, rois, 4)
    if batch_indices.shape != rois.shape[:1]:
        raise ValueError(f"{name}: batch_indices has the shape {list(batch_indices.shape)}, rois {list(rois.shape)}")
    maps = wide(feat)
    dtype = maps.dtype.type
    batch = real_regions(name, "batch_indices", batch_indices, len(maps))
    before, after = (dtype(offset) for offset in _OFFSETS[aligned_mode])
    corners = (wide(rois) + before) * dtype(spatial_scale) + after
    extents = corners[:, 2:] - corners[:, :2]
    if aligned_mode == "asymmetric":
        extents = np.maximum(extents, dtype(1))
    output = np.zeros((len(rois), maps.shape[1], pooled_h, pooled_w), dtype)
    for region, image in enumerate(batch):
        y, x = (
            Line.of(corners[region, i], extents[region, i], bins, sampling_ratio, -1, size)
            for i, bins, size in ((1, pooled_h, maps.shape[2]), (0, pooled_w, maps.shape[3]))
        )
        output[region] = pooled_samples(maps[image], y, x, (pooled_h, pooled_w), mode)
    return output.astype(feat.dtype)


@ROIAlign.infer_shapes
def _(node):
    return [pooled_shape(node)]


def pooled_shape(node):
    """Return the dimensions of ``[regions, channels, pooled_h, pooled_w]``."""
    maps, regions = node.shape(0), node.shape(1)
    sizes = node.attributes["pooled_h"], node.attributes["pooled_w"]
    return [regions[0] if regions else None, maps[1] if maps else None, *sizes]


@ROIAlign.body
def _(op, feat, rois, batch_indices, *, pooled_h, pooled_w, sampling_ratio, spatial_scale, mode, aligned_mode):
    maps, regions = emit_wide(op, feat), emit_wide(op, rois)
    dtype = number_type(maps)
    before, after = _OFFSETS[aligned_mode]
    if before:
        regions = op.Add(regions, dtype(before))
    regions = op.Mul(regions, dtype(spatial_scale))
    if after:
        regions = op.Add(regions, dtype(after))
    x1, y1, x2, y2 = emit_columns(op, regions)
    extent = [op.Sub(y2, y1), op.Sub(x2, x1)]
    if aligned_mode == "asymmetric":
        extent = [op.Max(e, 1.0) for e in extent]
    real, batch = emit_real_regions(op, batch_indices, op.Shape(maps, start=0, end=1))
    sizes = [op.Cast(op.Shape(maps, start=axis, end=axis + 1), to=maps.dtype) for axis in (2, 3)]
    reach = [(dtype(-1), size, dtype(0)) for size in sizes]
    bins = [pooled_h, pooled_w]
    pooled = emit_pooled_samples(op, maps, batch, [y1, x1], extent, bins, sampling_ratio, mode, reach)
    return op.Cast(op.Where(op.Unsqueeze(real, [1, 2, 3]), pooled, dtype(0)), to=feat.dtype)
