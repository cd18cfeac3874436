"""The operations of Detectron's networks."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Context, Departure, omitted, rule
from converters.openvino.rules._indices import scalar
from converters.openvino.rules._precision import selected_in_float32
from converters.openvino.rules._shapes import match_shapes
from converters.openvino.rules.roi import check_bins, check_places
from onnx_specops.building import Builder, Value

D = ir.DataType
_MAX_ROIS = 2**24  # maximum per image, which no network exceeds

UNORDERED = Departure(
    where="a NaN among the probabilities",
    cpu="orders it before or after others, and may omit others, depending on their positions",
    specification="leaves it undefined",
    follows="runtime",
)


@rule(
    "ExperimentalDetectronDetectionOutput",
    since="opset6",
    departs=[
        Departure(
            where="boxes that reach beyond the image's right or lower edge",
            cpu="leaves them unchanged",
            specification="clips them",
            follows="cpu",
        ),
        Departure(
            where="the background (class 0) without `class_agnostic_box_regression`",
            cpu="omits its boxes, as with that attribute",
            specification="includes them",
            follows="cpu",
        ),
    ],
)
def detection_output(
    op: Builder,
    rois: Value,
    deltas: Value,
    scores: Value,
    im_info: Value,
    *,
    score_threshold: float,
    nms_threshold: float,
    num_classes: int,
    post_nms_count: int,
    max_detections_per_image: int,
    class_agnostic_box_regression: bool = False,
    max_delta_log_wh: float,
    deltas_weights: tuple[float, ...],
    context: Context,
):
    """ExperimentalDetectronDetectionOutput-6: all classes except the first, the background.

    Elements that the specification does not define are 0.
    """
    del im_info, class_agnostic_box_regression
    match_shapes(rois=(rois, "R 4"), deltas=(deltas, f"R {4 * num_classes}"), scores=(scores, f"R {num_classes}"))
    if len(deltas_weights) != 4:
        raise Malformed(f"its deltas_weights has {len(deltas_weights)} numbers instead of four")
    detect = functools.partial(
        op.specops.ExperimentalDetectronDetectionOutput,
        score_threshold=score_threshold, nms_threshold=nms_threshold, post_nms_count=post_nms_count,
        max_detections_per_image=max_detections_per_image, max_delta_log_wh=max_delta_log_wh,
    )  # fmt: skip

    def detected(rois: Value, deltas: Value, scores: Value) -> Sequence[Value]:
        results: Sequence[Value] = detect(rois, deltas, scores, op.const(np.array(deltas_weights), rois.dtype))
        return results

    boxes, classes, box_scores = selected_in_float32(op, detected, rois, deltas, scores)
    return boxes, op.Cast(classes, to=context.output_type(1)), box_scores


@rule("ExperimentalDetectronGenerateProposalsSingleImage", since="opset6", departs=[UNORDERED])
def generate_proposals_single_image(
    op: Builder,
    im_info: Value,
    anchors: Value,
    deltas: Value,
    scores: Value,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
):
    """ExperimentalDetectronGenerateProposalsSingleImage-6."""
    match_shapes(im_info=(im_info, "3"), anchors=(anchors, "_ 4"), deltas=(deltas, "D H W"), scores=(scores, "A H W"))
    propose = functools.partial(
        op.specops.ExperimentalDetectronGenerateProposalsSingleImage,
        min_size=min_size, nms_threshold=nms_threshold, pre_nms_count=pre_nms_count, post_nms_count=post_nms_count,
    )  # fmt: skip
    return selected_in_float32(op, propose, im_info, anchors, deltas, scores)


@rule("ExperimentalDetectronPriorGridGenerator", since="opset6", departs=[omitted("flatten", "false", "true")])
def prior_grid_generator(
    op: Builder,
    priors: Value,
    featmap: Value,
    image: Value,
    *,
    flatten: bool = False,
    h: int = 0,
    w: int = 0,
    stride_x: float = 0.0,
    stride_y: float = 0.0,
):
    """ExperimentalDetectronPriorGridGenerator-6.

    If ``h`` or ``w`` make the grid smaller than the feature map, the elements that the specification does not define are 0.
    """
    if h < 0 or w < 0:
        raise Malformed(f"its h {h} or w {w} is negative")
    match_shapes(priors=(priors, "P 4"), featmap=(featmap, "_ C H W"), image=(image, "_ _ _ _"))
    full = op.Concat(op.Shape(featmap, start=2, end=4), op.Shape(priors, end=1), [4], axis=0)
    centers = []
    for axis, (count, stride) in enumerate(((h, stride_y), (w, stride_x))):
        cells = op.const([count]) if count else op.Shape(featmap, start=axis + 2, end=axis + 3)
        extent = op.Cast(op.Shape(image, start=axis + 2, end=axis + 3), to=D.FLOAT)
        step = op.const(np.float32(stride)) if stride else op.Div(extent, op.Cast(cells, to=D.FLOAT))
        positions = op.Cast(op.Range(0, scalar(op, cells), 1), to=D.FLOAT)
        centers.append(op.Mul(step, op.Add(positions, 0.5)))
    y, x = op.Unsqueeze(centers[0], [1, 2]), op.Unsqueeze(centers[1], [0, 2])
    columns = [op.Cast(op.Gather(priors, np.array(i), axis=1), to=D.FLOAT) for i in range(4)]
    sums = [op.Unsqueeze(op.Add(column, (x, y)[i % 2]), [3]) for i, column in enumerate(columns)]
    both = op.Shape(op.Add(x, y))
    grid = op.Concat(*(op.Expand(s, op.Concat(both, [1], axis=0)) for s in sums), axis=3)
    if h or w:
        size = op.ReduceProd(full)
        room = op.ConstantOfShape(size, value=np.zeros(1, np.float32))
        grid = op.Reshape(op.Slice(op.Concat(op.Reshape(grid, [-1]), room, axis=0), [0], size), full, allowzero=1)
    return op.Cast(op.Reshape(grid, [-1, 4]) if flatten else grid, to=priors.dtype)


@rule(
    "ExperimentalDetectronROIFeatureExtractor",
    since="opset6",
    departs=[
        Departure(
            where="the second output, for regions of several levels",
            cpu="keeps the input order",
            specification="orders them by level",
            follows="cpu",
        ),
    ],
)
def roi_feature_extractor(
    op: Builder,
    rois: Value,
    *pyramid: Value,
    output_size: int,
    sampling_ratio: int,
    pyramid_scales: tuple[int, ...],
    aligned: bool = False,
):
    """ExperimentalDetectronROIFeatureExtractor-6.

    Each region uses the pyramid level for its area. The result of a region without an area is zeros. The second output is
    the regions in input order.
    """
    check_bins(output_size, output_size, sampling_ratio)
    levels = len(pyramid)
    if not levels or len(pyramid_scales) < levels or min(pyramid_scales) < 1:
        raise Malformed(
            f"it has {levels} feature maps and {len(pyramid_scales)} pyramid_scales; expected a positive scale for each map"
        )
    match_shapes(rois=(rois, "R 4"), **{f"pyramid_{i}": (maps, "_ C _ _") for i, maps in enumerate(pyramid)})
    regions = rois if rois.dtype == D.FLOAT else op.Cast(rois, to=D.FLOAT)
    x1, y1, x2, y2 = (op.Gather(regions, np.array(i), axis=1) for i in range(4))
    area = op.Mul(op.Sub(x2, x1), op.Sub(y2, y1))
    size = op.Add(op.Div(op.Sqrt(op.Max(area, 0.0)), 224.0), 1e-6)
    # Round as a logarithm in float32, so that equal areas have equal levels.
    logarithm = op.Cast(op.Mul(op.Log(op.Cast(size, to=D.DOUBLE)), 1 / math.log(2)), to=D.FLOAT)
    level = op.Min(op.Max(op.Cast(op.Floor(op.Add(logarithm, 2.0)), to=D.INT64), 0), levels - 1)
    level = op.Where(op.Greater(area, 0.0), level, levels)

    features, order = [], []
    for index, (maps, scale) in enumerate(zip(pyramid, pyramid_scales, strict=False)):
        chosen = op.Reshape(op.NonZero(op.Cast(op.Equal(level, index), to=D.INT64)), [-1])
        mine = op.Gather(rois, chosen, axis=0)
        if aligned:
            mine = op.Sub(mine, 0.5 * scale)
        batch = op.Mul(chosen, 0)
        check_places(maps)
        features.append(
            op.RoiAlign(
                maps,
                mine,
                batch,
                output_height=output_size,
                output_width=output_size,
                sampling_ratio=sampling_ratio,
                spatial_scale=1 / scale,
                coordinate_transformation_mode="output_half_pixel",
            )
        )
        order.append(chosen)
    none = op.Reshape(op.NonZero(op.Cast(op.Equal(level, levels), to=D.INT64)), [-1])
    shape = op.Concat(op.Shape(none), op.Shape(pyramid[0], start=1, end=2), [output_size, output_size], axis=0)
    features.append(op.CastLike(op.ConstantOfShape(shape, value=np.zeros(1, np.float32)), rois))
    order = op.Concat(*order, none, axis=0)
    places = op.ScatterElements(order, order, op.Range(0, scalar(op, op.Shape(order)), 1), axis=0)
    return op.Gather(op.Concat(*features, axis=0), places, axis=0), rois


@rule(
    "ExperimentalDetectronTopKROIs",
    since="opset6",
    restrictions="equal scores stay in input order; among more than 16, OpenVINO's CPU plugin may select others",
    departs=[UNORDERED],
)
def top_k_rois(op: Builder, rois: Value, probs: Value, *, max_rois: int = 0):
    """ExperimentalDetectronTopKROIs-6: of equal probabilities, the first is selected first.

    Rows without a region, which the specification does not define, are 0.
    """
    if not 0 <= max_rois <= _MAX_ROIS:
        raise Malformed(f"its max_rois {max_rois} is out of range [0, {_MAX_ROIS}]")
    match_shapes(rois=(rois, "R 4"), probs=(probs, "R"))
    count = op.Min(op.Shape(probs), max_rois)
    _, best = op.TopK(probs, count, axis=0, outputs=2)
    return op.Pad(op.Gather(rois, best, axis=0), op.Concat([0, 0], op.Sub(max_rois, count), [0], axis=0))
