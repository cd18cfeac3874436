"""Boxes: priors, proposals, regions, detections."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.inference_engine.rule import layer
from converters.openvino.rule import Context
from converters.openvino.rules import detection, patches, priors, proposals, roi
from converters.openvino.rules.detection import Detections
from onnx_specops.building import Builder, Value


@dataclass(frozen=True, kw_only=True)
class LayerDetections(Detections):
    """The attributes of DetectionOutput, with the defaults of these versions."""

    keep_top_k: tuple[int, ...] = (-1,)
    normalized: bool = True
    confidence_threshold: float = float(np.finfo(np.float32).min)
    clip: bool = False


@layer("DetectionOutput")
def detection_output(
    op: Builder,
    box_logits: Value,
    class_preds: Value,
    proposals: Value,
    aux_class_preds: Value | None = None,
    aux_box_preds: Value | None = None,
    *,
    num_classes: int,
    attributes: LayerDetections,
    context: Context,
):
    """DetectionOutput: like the first version in the opsets."""
    if attributes.decrease_label_id and not attributes.share_location:
        raise Unsupported(
            "with decrease_label_id but without share_location, the Inference Engine suppresses boxes by those of other "
            "classes",
            "convert the original model",
        )
    if attributes.keep_top_k[:1] == (0,):  # the Inference Engine does not set its output
        raise Malformed("its keep_top_k is 0; expected -1, or 1 or more", "check that the file is intact")
    stated = context.output_dims()
    # Without keep_top_k, only the file states the number of rows.
    if attributes.keep_top_k == (-1,) and stated is not None and len(stated) == 4 and stated[2] is not None:
        attributes = replace(attributes, keep_top_k=(stated[2],))
    usual = Detections(**{field.name: getattr(attributes, field.name) for field in fields(Detections)})
    if attributes.clip:  # the name of clip_before_nms in older files
        usual = replace(usual, clip_before_nms=True)
    flat = [value if value.rank == 2 else op.Reshape(value, [0, -1]) for value in (box_logits, class_preds)]
    return detection.detection_output_1(
        op, *flat, proposals, aux_class_preds, aux_box_preds, num_classes=num_classes, attributes=usual
    )


def _size(op: Builder, x: Value) -> Value:
    return op.Shape(x, start=2, end=4)


class PriorsInPixels(priors.PriorBoxes):
    """The attributes of PriorBox, whose sizes are always pixels."""

    of_image = False


@layer("PriorBox")
def prior_box(
    op: Builder,
    features: Value,
    image: Value,
    *,
    min_size: tuple[float, ...] = (),
    max_size: tuple[float, ...] = (),
    aspect_ratio: tuple[float, ...] = (),
    flip: bool = False,
    clip: bool = False,
    variance: tuple[float, ...] = (),
    step: float = 0.0,
    offset: float,
    scale_all_sizes: bool = True,
    fixed_size: tuple[float, ...] = (),
    fixed_ratio: tuple[float, ...] = (),
    density: tuple[float, ...] = (),
    img_size: int = 0,
    img_h: int = 0,
    img_w: int = 0,
    step_h: float = 0.0,
    step_w: float = 0.0,
):
    """PriorBox: the grid and the image have the sizes of the two inputs."""
    boxes = PriorsInPixels(
        min_size=min_size,
        max_size=max_size,
        aspect_ratio=aspect_ratio,
        flip=flip,
        clip=clip,
        variance=variance,
        step=step,
        offset=offset,
        scale_all_sizes=scale_all_sizes,
        fixed_size=fixed_size,
        fixed_ratio=fixed_ratio,
        density=density,
    )
    return _with_batch(op, priors.prior_box_1(op, _size(op, features), _size(op, image), priors=boxes))


@layer("PriorBoxClustered")
def prior_box_clustered(
    op: Builder,
    features: Value,
    image: Value,
    *,
    width: tuple[float, ...] = (),
    height: tuple[float, ...] = (),
    clip: bool = False,
    flip: bool = False,
    variance: tuple[float, ...] = (),
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float,
    img_size: int = 0,
    img_h: int = 0,
    img_w: int = 0,
    num_priors: int = 0,
):
    """PriorBoxClustered: grid and image have the sizes of the two inputs, except those that ``img_h`` and ``img_w`` give."""
    if len(variance) != 4:  # it writes as many numbers for each box, one box after the other
        raise Unsupported(
            f"it has {len(variance)} variances, and the Inference Engine does not set all variances of the output",
            "state four variances",
        )
    whole = _size(op, image)
    given = [op.const([n]) if n else op.Slice(whole, [k], [k + 1]) for k, n in enumerate((img_h, img_w))]
    size = op.Concat(*given, axis=0) if img_h or img_w else whole
    boxes = priors.prior_box_clustered(
        op,
        _size(op, features),
        size,
        width=width,
        height=height,
        clip=clip,
        step=step,
        step_w=step_w,
        step_h=step_h,
        offset=offset,
        variance=variance,
    )
    return _with_batch(op, boxes)


def _with_batch(op: Builder, boxes: Value) -> Value:
    return op.Unsqueeze(boxes, [0])


@layer("Proposal")
def proposal(
    op: Builder,
    class_probs: Value,
    bbox_deltas: Value,
    image: Value,
    *,
    base_size: int,
    pre_nms_topn: int,
    post_nms_topn: int,
    nms_thresh: float,
    feat_stride: int,
    min_size: int,
    ratio: tuple[float, ...],
    scale: tuple[float, ...],
    clip_before_nms: bool = True,
    clip_after_nms: bool = False,
    normalize: bool = False,
    box_size_scale: float = 1.0,
    box_coordinate_scale: float = 1.0,
    framework: str = "",
    for_deformable: int = 0,
    num_outputs: int = 0,
    context: Context,
):
    """Proposal: height, width and scales of the image are the first numbers of the third input's first row."""
    info = image if image.rank == 1 else op.Slice(image, [0], [1], [0])
    return proposals.proposal(
        op,
        class_probs,
        bbox_deltas,
        op.Slice(op.Reshape(info, [-1]), [0], [4]),
        base_size=base_size,
        pre_nms_topn=pre_nms_topn,
        post_nms_topn=post_nms_topn,
        nms_thresh=nms_thresh,
        feat_stride=feat_stride,
        min_size=min_size,
        ratio=ratio,
        scale=scale,
        clip_before_nms=clip_before_nms,
        clip_after_nms=clip_after_nms,
        normalize=normalize,
        box_size_scale=box_size_scale,
        box_coordinate_scale=box_coordinate_scale,
        framework="tensorflow" if framework == "tensorflow" else "",
        context=context,
    )


@layer("ROIPooling")
def roi_pooling(
    op: Builder,
    features: Value,
    rois: Value,
    *,
    pooled_h: int,
    pooled_w: int,
    spatial_scale: float,
    method: Literal["max", "bilinear"] = "max",
):
    """ROIPooling."""
    rois = rois if rois.rank == 2 else op.Reshape(rois, [-1, 5])
    size = (pooled_h, pooled_w)
    return roi.roi_pooling(op, features, rois, output_size=size, spatial_scale=spatial_scale, method=method)


@layer("PSROIPooling")
def psroi_pooling(
    op: Builder,
    features: Value,
    rois: Value,
    offsets: Value | None = None,
    *,
    output_dim: int,
    group_size: int,
    spatial_scale: float,
    mode: Literal["average", "bilinear", "bilinear_deformable"] = "average",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
    trans_std: float = 1.0,
    part_size: int = 1,
    no_trans: bool = True,
    pooled_height: int | None = None,
    pooled_width: int | None = None,
    context: Context,
):
    """PSROIPooling, including the deformable form.

    A region has pooled_height x pooled_width bins. The output has those in the file, or one for each group if the shapes of
    inputs are others.
    """
    rois = rois if rois.rank == 2 else op.Reshape(rois, [-1, 5])
    size, width = (group_size if given is None else given for given in (pooled_height, pooled_width))
    stated = context.output_dims()
    known = stated is not None and len(stated) == 4 and None not in stated[2:]
    rows, columns = (size_ or 0 for size_ in stated[2:]) if stated is not None and known else (group_size, group_size)
    if size != width or not (1 <= rows <= size and 1 <= columns <= size):
        raise Unsupported(f"{rows} x {columns} of {size} x {width} bins are not supported", _POOL_OUTSIDE)
    if mode == "bilinear_deformable":
        if spatial_bins_x != spatial_bins_y:
            message = f"it has {spatial_bins_x} x {spatial_bins_y} bins; other numbers for x and y are not supported"
            raise Unsupported(message, _POOL_OUTSIDE)
        if size != group_size:
            group = np.arange(size) * group_size // size  # each bin reads the group that it is in
            features = _regrouped(op, features, output_dim, group_size, group, group)
        result = roi.deformable_psroi_pooling(
            op,
            features,
            rois,
            None if no_trans else offsets,
            output_dim=output_dim,
            spatial_scale=spatial_scale,
            group_size=size,
            mode=mode,
            spatial_bins_x=spatial_bins_x,
            spatial_bins_y=spatial_bins_y,
            trans_std=trans_std,
            part_size=part_size,
        )
    else:
        if mode == "bilinear" and 1 in (rows, columns) and size > 1:
            raise Unsupported(f"{rows} x {columns} of {size} x {size} bilinear bins are not supported", _POOL_OUTSIDE)
        if mode == "average" and size != group_size:
            features = _regrouped(
                op, features, output_dim, group_size, *(np.arange(size) * (np.arange(size) < n) for n in (rows, columns))
            )
        result = roi.psroi_pooling(
            op,
            features,
            rois,
            output_dim=output_dim,
            group_size=size,
            spatial_scale=spatial_scale,
            mode=mode,
            spatial_bins_x=spatial_bins_x,
            spatial_bins_y=spatial_bins_y,
        )
    return result if rows == columns == size else op.Slice(result, [0, 0], [rows, columns], [2, 3])


_POOL_OUTSIDE = "remove the layer, and pool outside the model"


def _regrouped(
    op: Builder, features: Value, output_dim: int, groups: int, of_row: np.ndarray, of_column: np.ndarray
) -> Value:
    """Return the channels that each bin reads: those of the groups of its row and column."""
    channels = (np.arange(output_dim)[:, None, None] * groups + of_row[:, None]) * groups + of_column
    count = None if features.dims is None else features.dims[1]
    if count is not None and channels.max(initial=0) >= count:
        raise Unsupported(f"its bins read channel {channels.max()} of {count}", _POOL_OUTSIDE)
    return op.Gather(features, channels.reshape(-1).astype(np.int64), axis=1)


@layer("RegionYolo")
def region_yolo(
    op: Builder,
    data: Value,
    *,
    coords: int,
    classes: int,
    num: int,
    do_softmax: bool = True,
    mask: tuple[int, ...] = (),
    axis: int = 1,
    end_axis: int = -1,
    anchors: tuple[float, ...] = (),
    context: Context,
):
    """RegionYolo: with the output's shape in the file. Without a softmax and a mask, it does not change its input."""
    if not do_softmax and not mask:
        return op.Identity(data)
    result = detection.region_yolo(
        op,
        data,
        anchors=anchors,
        axis=axis,
        coords=coords,
        classes=classes,
        end_axis=end_axis,
        num=num,
        do_softmax=do_softmax,
        mask=mask,
    )
    stated = context.output_dims()
    if stated is None or None in stated or tuple(result.dims or ()) == stated:
        return result
    return op.Reshape(result, np.array(stated, np.int64))


@layer("ReorgYolo")
def reorg_yolo(op: Builder, data: Value, *, stride: int):
    """ReorgYolo."""
    return patches.reorg_yolo(op, data, stride=stride)


@layer("SimplerNMS")
def simpler_nms(
    op: Builder,
    scores: Value,
    deltas: Value,
    image: Value,
    *,
    min_bbox_size: int,
    feat_stride: int,
    pre_nms_topn: int,
    post_nms_topn: int,
    iou_threshold: float,
    scale: tuple[float, ...],
    cls_threshold: float = 0.0,
    context: Context,
):
    """SimplerNMS: proposals of anchors with a base of 16 and ratios of 0.5, 1 and 2, padded with rows of zeros."""
    if len(scale) != 3:
        raise Malformed(f"it has {len(scale)} scales; expected 3")
    if deltas.dims and scores.dims and (scores.dims[1] or 0) > (deltas.dims[1] or 0):
        scores, deltas = deltas, scores
    base, count = _anchors(scale), 9
    cells = op.Shape(scores, start=2, end=4)
    sizes = op.const((base[:, 2:] - base[:, :2] + 1).astype(np.float32))  # [9, 2]: width and height
    centers = op.const((base[:, :2] + (base[:, 2:] - base[:, :2] + 1) * np.float32(0.5)).astype(np.float32))
    # [H * W * 9, ...]: positions in row-major order, with the anchors of a position next to each other
    moved = op.Reshape(op.Transpose(op.Slice(deltas, [0], [1], [0]), perm=[0, 2, 3, 1]), [-1, count, 4])
    found = op.Slice(op.Transpose(op.Slice(scores, [0], [1], [0]), perm=[0, 2, 3, 1]), [count], [2 * count], [3])
    confidence = op.Reshape(found, [-1])
    shift = _grid(op, cells, feat_stride)  # [H * W, 1, 2]
    middle = op.Add(op.Add(op.Mul(op.Slice(moved, [0], [2], [2]), sizes), centers), shift)
    half = op.Mul(op.Mul(op.Exp(op.Slice(moved, [2], [4], [2])), sizes), 0.5)
    info = op.Reshape(image, [-1])
    floats = ir.DataType.FLOAT
    limit = op.Sub(op.Cast(op.Cast(op.Gather(info, [1, 0], axis=0), to=ir.DataType.INT64), to=floats), 1.0)
    low = op.Reshape(op.Max(op.Min(op.Sub(middle, half), limit), 0.0), [-1, 2])
    high = op.Reshape(op.Max(op.Min(op.Add(middle, half), limit), 0.0), [-1, 2])
    scaled = op.Floor(op.Gather(info, [2], axis=0))
    span = op.Add(op.Floor(op.Sub(high, low)), 1.0)
    large = op.ReduceMin(op.Cast(op.GreaterOrEqual(span, op.Mul(scaled, float(min_bbox_size))), to=floats), [1], keepdims=0)
    ranked = op.Where(op.And(op.Greater(large, 0.5), op.Greater(confidence, 0.0)), confidence, op.const(-1.0, floats))
    room = op.Min(op.Shape(ranked), [pre_nms_topn])
    best, order = op.node("TopK", ranked, room, axis=0, largest=1, sorted=1, outputs=2)
    boxes = op.Gather(op.Concat(low, high, axis=1), order, axis=0)
    # The areas include both edges.
    wide = op.Add(boxes, op.const(np.array([0, 0, 1, 1], np.float32)))
    kept = op.NonMaxSuppression(
        op.Unsqueeze(wide, [0]),
        op.Unsqueeze(best, [0, 1]),
        op.const(np.array([post_nms_topn], np.int64)),
        op.const(np.array([iou_threshold], np.float32)),
        op.const(np.array([0.0], np.float32)),
    )
    rows = op.Gather(boxes, op.Reshape(op.Slice(kept, [2], [3], [1]), [-1]), axis=0)
    rows = op.Pad(rows, op.Concat([0, 1], op.Sub(op.const([post_nms_topn]), op.Shape(rows, start=0, end=1)), [0], axis=0))
    stated = context.output_dims()
    return op.Reshape(rows, [post_nms_topn, 5]) if stated is None else rows


def _anchors(scales: tuple[float, ...]) -> np.ndarray:
    rows = []
    for ratio in (0.5, 1.0, 2.0):
        width = np.floor(np.sqrt(np.float32(256 / ratio)) + 0.5)
        height = np.floor(width * np.float32(ratio) + 0.5)
        for scale in scales:
            w, h = np.float32(width * scale), np.float32(height * scale)
            rows.append([7.5 - 0.5 * (w - 1), 7.5 - 0.5 * (h - 1), 7.5 + 0.5 * (w - 1), 7.5 + 0.5 * (h - 1)])
    return np.array(rows, np.float32)


def _grid(op: Builder, cells: Value, stride: int) -> Value:
    """Return x and y of each position, [H * W, 1, 2]."""
    height, width = op.Gather(cells, 0), op.Gather(cells, 1)
    ys, xs = op.Range(np.int64(0), height, np.int64(1)), op.Range(np.int64(0), width, np.int64(1))
    whole = op.Concat(cells, [1], axis=0)
    columns = op.Expand(op.Unsqueeze(xs, [0, 2]), whole)
    lines = op.Expand(op.Unsqueeze(ys, [1, 2]), whole)
    places = op.Reshape(op.Concat(columns, lines, axis=2), [-1, 1, 2])
    return op.Cast(op.Mul(places, stride), to=ir.DataType.FLOAT)


@layer("NonMaxSuppression", integers=True)
def non_max_suppression(
    op: Builder,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    *,
    center_point_box: bool = False,
    sort_result_descending: bool = True,
    output_type: str = "I64",
    context: Context,
):
    """NonMaxSuppression: with the number of rows in the file, padded with -1. Without limits, it selects all boxes.

    If the shapes of inputs are others than in the file, the output has a row for each box of each class.
    """
    whole = op.Shape(boxes, start=1, end=2) if most is None else op.Reshape(op.Cast(most, to=ir.DataType.INT64), [-1])
    limits = [
        op.const(np.array([usual], np.float32)) if x is None else op.Reshape(x, [-1])
        for x, usual in ((iou_threshold, 1.0), (score_threshold, 0.0))
    ]
    found = op.NonMaxSuppression(boxes, scores, whole, *limits, center_point_box=int(center_point_box))
    if sort_result_descending:
        place = [op.Reshape(op.Slice(found, [k], [k + 1], [1]), [-1]) for k in range(3)]
        indices = op.Concat(*[op.Unsqueeze(x, [1]) for x in place], axis=1)
        ranks = op.GatherND(scores, indices)
        _, order = op.node("TopK", ranks, op.Shape(ranks), axis=0, largest=1, sorted=1, outputs=2)
        found = op.Gather(found, order, axis=0)
    stated = context.output_dims()
    given = None if stated is None else stated[0]
    rows = op.ReduceProd(op.Shape(scores), keepdims=1) if given is None else op.const([given])
    rest = op.Max(op.Sub(rows, op.Shape(found, start=0, end=1)), [0])
    padded = op.Pad(found, op.Concat([0, 0], rest, [0], axis=0), op.const(-1, ir.DataType.INT64))
    return op.Cast(op.Slice(padded, [0], rows), to=ir.DataType.INT32)
