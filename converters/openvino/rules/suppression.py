"""Suppression of overlapping boxes. The number of remaining boxes depends on the data, regardless of the file."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Context, Departure, rule
from converters.openvino.rules._indices import vector
from converters.openvino.rules._precision import selected_in_float32
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

D = ir.DataType


_REACHED = Departure(
    where="boxes whose overlap equals `iou_threshold`",
    cpu="removes them",
    specification="removes only those that exceed it",
    follows="cpu",
)
_NONE = Departure(
    where="a `max_output_boxes_per_class` of 0 or less",
    cpu="does not set the number of boxes",
    specification="gives 0 for it",
    follows="specification",
)
_NO_CANDIDATES = Departure(
    where="no boxes, or a `nms_top_k` or `keep_top_k` of 0",
    cpu="does not set the numbers of boxes",
    specification="gives 0 for them",
    follows="specification",
)


@rule(
    "NonMaxSuppression",
    departs=[
        _REACHED,
        _NONE,
        Departure(
            where="boxes whose score equals `score_threshold`",
            cpu="removes them",
            specification="keeps them",
            follows="cpu",
        ),
    ],
)
def non_max_suppression(
    op: Builder,
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    soft_nms_sigma: Value | None = None,
    *,
    box_encoding: Literal["corner", "center"] = "corner",
    sort_result_descending: bool = True,
    output_type: ElementType = ElementType.I64,
    context: Context,
):
    """NonMaxSuppression-1 to -9. Versions before -5 have no decay, and only the indices as output (int64 in -1).

    The result is not padded. It has one row for each selected box, regardless of the file.
    """
    limits = max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma
    indices, selected_scores = _suppress(op, boxes, scores, *limits, box_encoding == "center", sort_result_descending)
    to = data_type(output_type)
    results = [context.ignore_stated_dims(_cast(op, indices, to))]
    if len(context.layer.outputs) > 1:
        valid = _cast(op, op.Shape(indices, start=0, end=1), to)
        results += [context.ignore_stated_dims(_cast(op, selected_scores, context.output_type(1))), valid]
    return results[: len(context.layer.outputs)]


def _suppress(
    op: Builder,
    boxes: Value,
    scores: Value,
    max_boxes: Value | None,
    iou_threshold: Value | None,
    score_threshold: Value | None,
    sigma: Value | None,
    center: bool,
    descending: bool,
) -> tuple[Value, Value]:
    """Return indices and scores (float32) of the selected boxes.

    A selected box removes boxes whose overlap reaches the threshold. For a positive threshold, ONNX's operator is equal with
    the next smaller float32. Other thresholds, or a decay, need the domain's own operator. ONNX's operator selects the boxes
    of a class by descending scores, so those of a single class of a single image are sorted already.
    """
    match_shapes(boxes=(boxes, "N M 4"), scores=(scores, "N C M"), max_output_boxes_per_class=(max_boxes, "1| "))
    match_shapes(
        iou_threshold=(iou_threshold, "1| "), score_threshold=(score_threshold, "1| "), soft_nms_sigma=(sigma, "1| ")
    )
    boxes, scores = (_cast(op, x, D.FLOAT) for x in (boxes, scores))
    max_boxes = op.const(np.zeros(1, np.int64)) if max_boxes is None else vector(op, max_boxes)
    iou, threshold, decay = (_float(op, x) for x in (iou_threshold, score_threshold, sigma))

    def standard(op: Builder) -> tuple[Value, Value]:
        below = op.Min(op.Mul(iou, np.float32(1 - 2**-24)), 1.0)
        indices = op.NonMaxSuppression(boxes, scores, max_boxes, below, threshold, center_point_box=int(center))
        score = op.GatherND(scores, indices)
        if descending and (scores.dims is None or scores.dims[:2] != [1, 1]):
            score, best = op.TopK(score, op.Shape(score), axis=0, outputs=2)
            indices = op.Gather(indices, best, axis=0)
        where = op.Cast(op.Slice(indices, [0], [2], [1]), to=D.FLOAT)
        return indices, op.Concat(where, op.Unsqueeze(score, [1]), axis=1)

    def own(op: Builder) -> tuple[Value, Value]:
        return op.specops.NonMaxSuppression(
            boxes, scores, max_boxes, iou, threshold, decay,
            center_point_box=int(center), sort_result_descending=int(descending),
        )  # fmt: skip

    plain = op.And(op.Greater(iou, 0.0), op.Not(op.Greater(decay, 0.0)))
    return op.if_(op.Reshape(plain, np.zeros(0, np.int64)), standard, own)


def _cast(op: Builder, x: Value, to: ir.DataType) -> Value:
    return x if x.dtype == to else op.Cast(x, to=to)


def _float(op: Builder, x: Value | None) -> Value:
    """Convert a scalar or a tensor of one element, by default 0, to a float32 vector of one element."""
    if x is None:
        return op.const(np.zeros(1, np.float32))
    return op.Reshape(_cast(op, x, D.FLOAT), [1])


@rule(
    "NMSRotated",
    since="opset13",
    departs=[_NONE],
)
def nms_rotated(
    op: Builder,
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: Value,
    iou_threshold: Value,
    score_threshold: Value,
    *,
    sort_result_descending: bool = True,
    output_type: ElementType = ElementType.I64,
    clockwise: bool = True,
    context: Context,
):
    """NMSRotated-13."""
    match_shapes(
        boxes=(boxes, "N M 5"), scores=(scores, "N C M"), max_output_boxes_per_class=(max_output_boxes_per_class, "1| ")
    )
    match_shapes(iou_threshold=(iou_threshold, "1| "), score_threshold=(score_threshold, "1| "))
    limits = vector(op, max_output_boxes_per_class), _float(op, iou_threshold), _float(op, score_threshold)
    select = functools.partial(op.specops.NMSRotated, sort_result_descending=sort_result_descending, clockwise=clockwise)
    indices, selected_scores = selected_in_float32(op, lambda boxes, scores: select(boxes, scores, *limits), boxes, scores)
    to = data_type(output_type)
    valid = _cast(op, op.Shape(indices, start=0, end=1), to)
    return (
        context.ignore_stated_dims(_cast(op, indices, to)),
        context.ignore_stated_dims(_cast(op, selected_scores, context.output_type(1))),
        valid,
    )


SortResultType = Literal["none", "classid", "score"]


@rule("MulticlassNms", since="opset8", departs=[_REACHED, _NO_CANDIDATES])
def multiclass_nms(
    op: Builder,
    boxes: Value,
    scores: Value,
    roisnum: Value | None = None,
    *,
    sort_result_type: SortResultType = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = ElementType.I64,
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    normalized: bool = True,
    nms_eta: float = 1.0,
    context: Context,
):
    """MulticlassNms-8 and -9. The latter supports separate boxes for each class, with ``roisnum``.

    Boxes whose overlap reaches the threshold are removed.
    """
    if scores.rank == 2:
        match_shapes(boxes=(boxes, "C M 4"), scores=(scores, "C M"), roisnum=(roisnum, "N"))
        if roisnum is None:
            raise Malformed("its scores of rank 2 need the input 'roisnum'")
    else:
        match_shapes(boxes=(boxes, "N M 4"), scores=(scores, "N C M"), roisnum=(roisnum, "_"))
    counts = op.const(np.zeros(0, np.int64)) if roisnum is None else _cast(op, roisnum, D.INT64)
    select = functools.partial(
        op.specops.MulticlassNms,
        sort_result_type=sort_result_type, sort_result_across_batch=sort_result_across_batch, iou_threshold=iou_threshold,
        score_threshold=score_threshold, nms_top_k=nms_top_k, keep_top_k=keep_top_k, background_class=background_class,
        normalized=normalized, nms_eta=nms_eta,
    )  # fmt: skip
    outputs, indices, numbers = selected_in_float32(op, lambda boxes, scores: select(boxes, scores, counts), boxes, scores)
    to = data_type(output_type)
    return context.ignore_stated_dims(outputs), context.ignore_stated_dims(_cast(op, indices, to)), _cast(op, numbers, to)


@rule(
    "MatrixNms",
    since="opset8",
    departs=[
        Departure(
            where="no class except the background, with boxes of unknown dimensions",
            cpu="fails, or gives no counts",
            specification="selects nothing",
            follows="specification",
        ),
        Departure(
            where="no selected boxes",
            cpu="does not set the numbers of boxes",
            specification="gives 0 for them",
            follows="specification",
        ),
        Departure(
            where="a NaN among the scores",
            cpu="selects it, and may order or omit others incorrectly",
            specification="selects only scores above `score_threshold`",
            follows="specification",
        ),
    ],
)
def matrix_nms(
    op: Builder,
    boxes: Value,
    scores: Value,
    *,
    sort_result_type: SortResultType = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = ElementType.I64,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    decay_function: Literal["linear", "gaussian"] = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    normalized: bool = True,
    context: Context,
):
    """MatrixNms-8."""
    match_shapes(boxes=(boxes, "N M 4"), scores=(scores, "N C M"))
    select = functools.partial(
        op.specops.MatrixNms,
        sort_result_type=sort_result_type, sort_result_across_batch=sort_result_across_batch, nms_top_k=nms_top_k,
        keep_top_k=keep_top_k, background_class=background_class, score_threshold=score_threshold,
        decay_function=decay_function, gaussian_sigma=gaussian_sigma, post_threshold=post_threshold, normalized=normalized,
    )  # fmt: skip
    outputs, indices, numbers = selected_in_float32(op, select, boxes, scores)
    to = data_type(output_type)
    return context.ignore_stated_dims(outputs), context.ignore_stated_dims(_cast(op, indices, to)), _cast(op, numbers, to)
