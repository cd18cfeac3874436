"""NonMaxSuppression: greedy suppression of overlapping boxes, or the decay of their scores (Soft-NMS)."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    areas,
    emit_any,
    emit_areas,
    emit_at,
    emit_columns,
    emit_intersections,
    emit_range,
    emit_scalar,
    emit_wide,
    intersections,
    number_type,
    wide,
)
from onnx_specops.ops._checks import scalar


@operator(
    inputs={
        "boxes": "T",
        "scores": "T",
        "max_output_boxes_per_class": "tensor(int64)",
        "iou_threshold": "tensor(float)",
        "score_threshold": "tensor(float)",
        "soft_nms_sigma": "tensor(float)",
    },
    outputs={"selected_indices": "tensor(int64)", "selected_scores": "T"},
    types={"T": FLOATS},
)
def NonMaxSuppression(
    boxes,
    scores,
    max_output_boxes_per_class,
    iou_threshold,
    score_threshold,
    soft_nms_sigma,
    *,
    center_point_box: int = 0,
    sort_result_descending: int = 1,
):
    """Applies non-maximum suppression or Soft-NMS to the boxes of each class.

    Inputs:
        boxes: ``[batches, boxes, 4]``.
        scores: ``[batches, classes, boxes]``. Boxes whose score exceeds ``score_threshold`` are candidates. Among equal
            scores, the lower index is first.
        max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma: scalars or ``[1]``. If
            ``soft_nms_sigma`` is positive, a selected box multiplies the score of every other box by ``exp(-iou ** 2 /
            (2 * soft_nms_sigma))``, and a box whose score falls to ``score_threshold`` is removed. If not, a selected
            box removes those with ``iou >= iou_threshold``.

    Attributes:
        center_point_box: whether a box is ``[x_center, y_center, width, height]``. If not, it is two opposite corners,
            ``[y1, x1, y2, x2]``.
        sort_result_descending: whether all selected boxes are ordered by descending score, equal scores by batch, class
            and box. If not, they are ordered by batch and class, then as they were selected.

    Two boxes without area at the same position do not overlap, and do not affect each other. (In Soft-NMS, OpenVINO's CPU
    plugin gives the second an infinite score.)

    Outputs: ``[selected, 3]`` each: ``batch, class, box`` and ``batch, class, score``.

    ONNX's operator of the same name removes boxes only if ``iou > iou_threshold``, and does not have Soft-NMS.

    Source: OpenVINO specification, NonMaxSuppression-9; comparisons as in OpenVINO's CPU plugin.
    """
    name = "NonMaxSuppression"
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise ValueError(f"{name}: boxes has the shape {list(boxes.shape)} instead of [batches, boxes, 4]")
    if scores.ndim != 3 or scores.shape[::2] != boxes.shape[:2]:
        raise ValueError(f"{name}: scores has the shape {list(scores.shape)}, boxes {list(boxes.shape)}")
    most = int(scalar(max_output_boxes_per_class, f"{name}: max_output_boxes_per_class"))
    iou_threshold = scalar(iou_threshold, f"{name}: iou_threshold")
    score_threshold = scalar(score_threshold, f"{name}: score_threshold")
    sigma = scalar(soft_nms_sigma, f"{name}: soft_nms_sigma")
    coordinates = _corners(wide(boxes), center_point_box)
    values = wide(scores)
    scale = values.dtype.type(-0.5 / sigma) if sigma > 0 else None
    chosen = []
    for batch, class_ in np.ndindex(*scores.shape[:2]):
        box = tuple(c[batch] for c in coordinates)
        score = values[batch, class_].copy()
        alive = score > score_threshold
        area = areas(box)
        for _ in range(max(most, 0)):
            if not alive.any():
                break
            best = int(np.where(alive, score, -np.inf).argmax())
            if not alive[best]:  # all remaining scores are -inf
                best = int(alive.argmax())
            chosen.append((batch, class_, best, score[best]))
            alive[best] = False
            one = tuple(c[best] for c in box)
            with np.errstate(invalid="ignore", divide="ignore"):
                shared = intersections(one, box)
                iou = shared / (area + area[best] - shared)
            if scale is None:
                alive &= ~(iou >= iou_threshold)
            else:
                score = np.where(np.isnan(iou), score, score * np.exp(scale * iou * iou))
                alive &= ~(score <= score_threshold)
    if sort_result_descending:
        chosen.sort(key=lambda c: (-c[3], *c[:3]))
    indices = np.array([c[:3] for c in chosen], np.int64).reshape(-1, 3)
    triplets = np.array([(c[0], c[1], c[3]) for c in chosen], values.dtype).reshape(-1, 3)
    return indices, triplets.astype(scores.dtype)


def _corners(boxes, center_point_box):
    a, b, c, d = (boxes[..., i] for i in range(4))
    if center_point_box:
        half = boxes.dtype.type(0.5)
        return a - c * half, b - d * half, a + c * half, b + d * half
    return np.minimum(b, d), np.minimum(a, c), np.maximum(b, d), np.maximum(a, c)


@NonMaxSuppression.infer_shapes
def _(_node):
    return [[None, 3], [None, 3]]


@NonMaxSuppression.body
def _(
    op,
    boxes,
    scores,
    max_output_boxes_per_class,
    iou_threshold,
    score_threshold,
    soft_nms_sigma,
    *,
    center_point_box,
    sort_result_descending,
):
    type_ = scores.dtype
    boxes, scores = emit_wide(op, boxes), emit_wide(op, scores)
    most = op.Max(emit_scalar(op, max_output_boxes_per_class, Type.INT64), 0)
    iou_threshold, score_threshold, sigma = (
        emit_scalar(op, x, scores.dtype) for x in (iou_threshold, score_threshold, soft_nms_sigma)
    )
    soft = op.Greater(sigma, 0.0)
    scale = op.Where(soft, op.Div(-0.5, op.Where(soft, sigma, 1.0)), 0.0)
    lowest = float(np.finfo(number_type(scores)).min)

    # The candidates of every class, in box order, padded to the number of the class with the most.
    classes, count = op.Shape(scores, start=1, end=2), op.Shape(scores, start=2)
    alive = op.Greater(scores, score_threshold)
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [2], keepdims=1)
    places = op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0))
    _, order = op.TopK(op.Cast(alive, to=Type.INT32), places, axis=2, outputs=2)
    scores, alive = op.GatherElements(scores, order, axis=2), op.Less(emit_range(op, order, 2), counts)
    # A group is a class of a batch, with boxes as [groups, boxes].
    groups = op.Concat(op.ReduceProd(op.Shape(order, end=2)), places, axis=0)
    at = op.Add(op.Mul(op.Unsqueeze(emit_range(op, order, 0), [1, 2]), count), order)
    box = _emit_corners(op, emit_columns(op, op.Reshape(boxes, [-1, 4])), center_point_box)
    box = [op.Reshape(op.Gather(c, at), groups, allowzero=1) for c in box]
    scores, alive, order = (op.Reshape(x, groups, allowzero=1) for x in (scores, alive, order))
    area = emit_areas(op, box)
    positions = emit_range(op, scores, 1)

    def step(op, _iteration, _condition, scores, alive):
        candidates = op.Where(alive, op.Max(scores, lowest), -np.inf)
        best = op.ArgMax(candidates, axis=1, keepdims=1)
        chosen = op.And(op.Equal(positions, best), alive)
        shared = emit_intersections(op, emit_at(op, box, best), box)
        iou = op.Div(shared, op.Sub(op.Add(area, op.GatherElements(area, best, axis=1)), shared))
        score = op.GatherElements(scores, best, axis=1)
        decayed = op.Mul(scores, op.Exp(op.Mul(op.Mul(scale, iou), iou)))
        decayed = op.Where(op.And(soft, op.Not(op.IsNaN(iou))), decayed, scores)
        removed = op.Where(soft, op.LessOrEqual(decayed, score_threshold), op.GreaterOrEqual(iou, iou_threshold))
        valid = op.GatherElements(op.Cast(alive, to=Type.INT64), best, axis=1)
        alive = op.And(alive, op.Not(op.Or(chosen, removed)))
        record = (op.Squeeze(x, [1]) for x in (best, score, valid))
        return emit_any(op, alive), decayed, alive, *record

    _, _, best, score, valid = op.loop(most, emit_any(op, alive), step, scores, alive)
    # [steps, groups] each; the selected boxes by group.
    group, at = op.Split(op.NonZero(op.Transpose(valid, perm=[1, 0])), axis=0, num_outputs=2, outputs=2)
    picked = op.Concat(op.Transpose(at, perm=[1, 0]), op.Transpose(group, perm=[1, 0]), axis=1)
    best, score = op.GatherND(best, picked), op.GatherND(score, picked)
    group = op.Squeeze(group, [0])
    best = op.GatherND(order, op.Concat(op.Unsqueeze(group, [1]), op.Unsqueeze(best, [1]), axis=1))
    if sort_result_descending:
        # Sort by batch, class and box first, which orders equal scores. Within a group they are already sorted.
        score, order = op.TopK(score, op.Shape(score), axis=0, outputs=2)
        best, group = op.Gather(best, order, axis=0), op.Gather(group, order, axis=0)
    batch, class_ = op.Div(group, op.Max(classes, 1)), op.Mod(group, op.Max(classes, 1))
    indices = op.Concat(*(op.Unsqueeze(x, [1]) for x in (batch, class_, best)), axis=1)
    numbers = [op.Cast(x, to=score.dtype) for x in (batch, class_)]
    triplets = op.Concat(*(op.Unsqueeze(x, [1]) for x in (*numbers, score)), axis=1)
    return indices, op.Cast(triplets, to=type_)


def _emit_corners(op, columns, center_point_box):
    a, b, c, d = columns
    if center_point_box:
        width, height = op.Mul(c, 0.5), op.Mul(d, 0.5)
        return op.Sub(a, width), op.Sub(b, height), op.Add(a, width), op.Add(b, height)
    return op.Min(b, d), op.Min(a, c), op.Max(b, d), op.Max(a, c)
