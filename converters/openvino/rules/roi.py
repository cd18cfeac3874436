"""Extraction of regions of feature maps, resized to a fixed size."""

from __future__ import annotations

from typing import Literal

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import int64
from converters.openvino.rules._precision import halves_in_float32
from converters.openvino.rules._shapes import match_shapes, of_rank
from converters.openvino.rules.detection import empty_input
from onnx_specops.building import Builder, Value
from onnx_specops.domain import find

_DYNAMIC = Departure(
    where="inputs of unknown dimensions", cpu="rejects them", specification="allows them", follows="specification"
)


@rule(
    "ROIPooling",
    departs=[
        Departure(
            where="infinity among the elements, with `bilinear`",
            cpu="gives NaN if another element has the weight 0",
            specification="leaves it undefined",
            follows="runtime",
        ),
        Departure(
            where="regions with a NaN, infinity or a number beyond i32, with `max`",
            cpu="depends on the processor's conversion to integers",
            specification="leaves it undefined",
            follows="runtime",
        ),
    ],
)
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
    """ROIPooling-1. Serializers use three different names for the size."""
    sizes = [size for size in (output_roi, output_size) if size]
    if pooled_h is not None and pooled_w is not None:
        sizes.append((pooled_h, pooled_w))
    if not sizes or any(size != sizes[0] for size in sizes) or len(sizes[0]) != 2:
        raise Malformed("its pooled_h and pooled_w are missing or contradict output_roi")
    height, width = sizes[0]
    match_shapes(feat=(feat, "N C H W"), rois=(rois, "R 5"))

    def pooled(feat: Value, rois: Value) -> Value:
        return op.specops.ROIPooling(
            feat, rois, pooled_h=height, pooled_w=width, spatial_scale=spatial_scale, method=method
        )  # fmt: skip

    return halves_in_float32(op, pooled, of_rank(op, feat, 4), of_rank(op, rois, 2))


@rule(
    "ROIAlign",
    since="opset3",
    departs=[
        Departure(
            where="a region without an area, `sampling_ratio` 0 and `half_pixel` or `half_pixel_for_nn`",
            cpu="gives NaN for `avg`, and returns uninitialized memory for `max`",
            reference="gives 0",
            follows="reference",
        ),
    ],
)
def roi_align(
    op: Builder,
    feat: Value,
    rois: Value,
    batch_indices: Value,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: Literal["avg", "max"],
    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric",
):
    """ROIAlign-3 (always ``asymmetric``) and -9.

    The mean is ONNX's. The maximum is not: ONNX uses the weighted neighbors of a sample. A bin without samples is 0.
    """
    match_shapes(feat=(feat, "N C H W"), rois=(rois, "R 4"), batch_indices=(batch_indices, "R"))
    batch = of_rank(op, int64(op, batch_indices), 1)
    check_bins(pooled_h, pooled_w, sampling_ratio)
    if mode == "max":

        def aligned(feat: Value, rois: Value) -> Value:
            return op.specops.ROIAlign(
                feat, rois, batch,
                pooled_h=pooled_h, pooled_w=pooled_w, sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
                mode=mode, aligned_mode=aligned_mode,
            )  # fmt: skip

        return halves_in_float32(op, aligned, of_rank(op, feat, 4), of_rank(op, rois, 2))
    if aligned_mode == "half_pixel":
        rois = op.Add(rois, 0.5)
    # A region with the image index -1 is disabled. Its result is undefined, but must not be an error.
    batch = op.Where(op.Equal(batch, -1), 0, batch)
    check_places(feat)
    return op.RoiAlign(
        feat, rois, batch,
        output_height=pooled_h, output_width=pooled_w, sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        coordinate_transformation_mode="output_half_pixel" if aligned_mode == "asymmetric" else "half_pixel",
    )  # fmt: skip


def check_places(maps: Value) -> None:
    """Raise `Malformed` if feature maps ``[N, C, H, W]`` are known to have no rows or columns."""
    if maps.dims is not None and 0 in maps.dims[2:]:
        raise Malformed(f"its feature maps {maps.dims} have no elements")


@rule(
    "ROIAlignRotated",
    since="opset15",
    departs=[
        Departure(
            where="a NaN or an infinity as the first element of a map, for samples beyond the map",
            cpu="makes them NaN",
            specification="leaves it undefined",
            follows="runtime",
        )
    ],
)
def roi_align_rotated(
    op: Builder,
    feat: Value,
    rois: Value,
    batch_indices: Value,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    clockwise_mode: bool,
):
    """ROIAlignRotated-15."""
    check_samples(sampling_ratio)
    match_shapes(feat=(feat, "N C H W"), rois=(rois, "R 5"), batch_indices=(batch_indices, "R"))

    def aligned(feat: Value, rois: Value) -> Value:
        return op.specops.ROIAlignRotated(
            feat, rois, of_rank(op, int64(op, batch_indices), 1),
            pooled_h=pooled_h, pooled_w=pooled_w, sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
            clockwise_mode=clockwise_mode,
        )  # fmt: skip

    return halves_in_float32(op, aligned, of_rank(op, feat, 4), of_rank(op, rois, 2))


def check_samples(sampling_ratio: int) -> None:
    """Raise `Malformed` for a negative number of samples, for which OpenVINO reads out of bounds or returns 0."""
    if sampling_ratio < 0:
        raise Malformed(
            f"sampling_ratio = {sampling_ratio} is less than 0",
            "give roi_align a sampling_ratio of 0 in the source; in PyTorch, its default of -1 means the same",
        )


def check_bins(pooled_h: int, pooled_w: int, sampling_ratio: int) -> None:
    """Apply the limits of ROIAlign, also for a node of ONNX's RoiAlign, which has none."""
    check_samples(sampling_ratio)
    sizes = {"pooled_h": pooled_h, "pooled_w": pooled_w, "sampling_ratio": sampling_ratio}
    find("ROIAlign").node_attributes({**sizes, "spatial_scale": 1.0})


@rule("PSROIPooling", departs=[_DYNAMIC])
def psroi_pooling(
    op: Builder,
    feat: Value,
    rois: Value,
    *,
    output_dim: int,
    group_size: int = 1,
    spatial_scale: float,
    mode: Literal["average", "bilinear"] = "average",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
):
    """PSROIPooling-1. The mode "average" has no bins."""
    if mode == "average":
        spatial_bins_x = spatial_bins_y = 1
    parts = group_size * group_size if mode == "average" else spatial_bins_x * spatial_bins_y
    _check_channels(feat, output_dim, parts)
    match_shapes(feat=(feat, "N C H W"), rois=(rois, "R 5"))

    def pooled(feat: Value, rois: Value) -> Value:
        return op.specops.PSROIPooling(
            feat, rois,
            output_dim=output_dim, group_size=group_size, spatial_scale=spatial_scale, mode=mode,
            spatial_bins_x=spatial_bins_x, spatial_bins_y=spatial_bins_y,
        )  # fmt: skip

    return halves_in_float32(op, pooled, feat, rois)


@rule("DeformablePSROIPooling", departs=[_DYNAMIC])
def deformable_psroi_pooling(
    op: Builder,
    feat: Value,
    rois: Value,
    offsets: Value | None = None,
    *,
    output_dim: int,
    spatial_scale: float,
    group_size: int = 1,
    mode: Literal["bilinear_deformable"] = "bilinear_deformable",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
    trans_std: float = 1.0,
    part_size: int = 1,
):
    """DeformablePSROIPooling-1."""
    _check_channels(feat, output_dim, group_size * group_size)
    match_shapes(feat=(feat, "N C H W"), rois=(rois, "R 5"), offsets=(offsets, f"R _ {part_size} {part_size}"))

    def pooled(feat: Value, rois: Value, offsets: Value) -> Value:
        return op.specops.DeformablePSROIPooling(
            feat, rois, offsets,
            output_dim=output_dim, spatial_scale=spatial_scale, group_size=group_size, spatial_bins_x=spatial_bins_x,
            spatial_bins_y=spatial_bins_y, trans_std=trans_std, part_size=part_size,
        )  # fmt: skip

    return halves_in_float32(op, pooled, feat, rois, offsets or empty_input(op, feat))


def _check_channels(feat: Value, output_dim: int, parts: int) -> None:
    channels = feat.dims[1] if feat.dims is not None and feat.rank == 4 else None
    if channels is not None and output_dim * parts > channels:
        raise Malformed(f"its {channels} channels are fewer than {output_dim} * {parts}")
