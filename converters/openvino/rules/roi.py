"""Regions of feature maps in one size."""

from __future__ import annotations

from typing import Literal

from converters.openvino.rule import Unsupported, rule
from onnx_specops.building import Builder, Value


@rule("ROIPooling")
def roi_pooling(
    op: Builder,
    feat: Value,
    rois: Value,
    *,
    pooled_h: int | None = None,
    pooled_w: int | None = None,
    output_size: tuple[int, ...] | None = None,
    output_roi: tuple[int, ...] | None = None,
    spatial_scale: float,
    method: Literal["max", "bilinear"] = "max",
):
    """ROIPooling-1; its serializers write the size by three names."""
    sizes = [size for size in (output_roi, output_size) if size]
    if pooled_h is not None and pooled_w is not None:
        sizes.append((pooled_h, pooled_w))
    if not sizes or any(size != sizes[0] for size in sizes) or len(sizes[0]) != 2 or min(sizes[0]) < 1:
        raise Unsupported("its pooled_h and pooled_w are missing, contradict output_roi or are not positive")
    height, width = sizes[0]
    return op.specops.ROIPooling(
        feat, rois, pooled_h=height, pooled_w=width, spatial_scale=spatial_scale, method=method
    )  # fmt: skip
