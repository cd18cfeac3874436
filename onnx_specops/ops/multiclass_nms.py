"""MulticlassNms: suppression per class, with limits per image and an adaptive threshold."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, NoBodyError, operator
from onnx_specops.ops._boxes import (
    MostOrAll,
    areas,
    corners,
    emit_any,
    emit_areas,
    emit_at,
    emit_columns,
    emit_intersections,
    emit_range,
    emit_wide,
    intersections,
    number_type,
    wide,
)
from onnx_specops.ops._selection import SortResultType, emit_ordered, ordered


@operator(
    inputs={"boxes": "T", "scores": "T", "roisnum": "tensor(int64)"},
    outputs={"selected_outputs": "T", "selected_indices": "tensor(int64)", "selected_num": "tensor(int64)"},
    types={"T": FLOATS},
)
def MulticlassNms(
    boxes,
    scores,
    roisnum=None,
    *,
    sort_result_type: SortResultType = "none",
    sort_result_across_batch: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: MostOrAll = -1,
    keep_top_k: MostOrAll = -1,
    background_class: int = -1,
    normalized: int = 1,
    nms_eta: float = 1.0,
):
    """Applies non-maximum suppression to each class of each image.

    Inputs:
        boxes: ``[N, M, 4]``, two corners each, shared by all classes; or ``[C, sum of roisnum, 4]``.
        scores: ``[N, C, M]``; or ``[C, sum of roisnum]``.
        roisnum: ``[N]``, the number of boxes of each image, if ``scores`` has rank 2; otherwise omitted, empty or
            ignored.

    Attributes:
        sort_result_type: ``score``, ``classid`` or ``none``: the order of the results of each image (``none``: by
            score).
        sort_result_across_batch: whether ``score`` or ``classid`` orders the results of all images together.
        iou_threshold: a box is removed if its overlap with a better box reaches this threshold.
        score_threshold: the score that a box must reach.
        nms_top_k, keep_top_k: the number of boxes of a class that enter the suppression, and the number of boxes of an image
            that are kept. -1 means all.
        background_class: the class of the background, which is never a result. -1 means that there is none.
        normalized: whether the corners are edges of the box rather than its outermost pixels.
        nms_eta: in [0, 1). Each selected box multiplies ``iou_threshold`` by this, while the threshold is above 0.5. As
            in OpenVINO, a box whose score equals ``score_threshold`` is then compared only with the last selected box.

    Outputs: selected_outputs ``[n, 6]``, rows of class, score and box; selected_indices ``[n, 1]``, the index of the box
    in ``[N * M]``, or in ``[sum of roisnum, C]``; selected_num ``[N]``, the number of boxes of each image. Equal scores
    are ordered by class, then by box. (In OpenVINO's CPU plugin, the order of rows whose scores differ by less than 1e-6
    depends on its sorting algorithm.)

    Source: OpenVINO specification, MulticlassNms-9; comparisons as in OpenVINO's CPU plugin.
    """
    name = "MulticlassNms"
    shared = scores.ndim == 3
    sets = _sets(name, boxes, scores, None if shared else roisnum)
    coordinates, values = wide(boxes), wide(scores)
    classes = scores.shape[1 if shared else 0]
    selected = []
    for image, part in enumerate(sets):
        for class_ in range(classes):
            if class_ == background_class:
                continue
            at = (image, class_) if shared else (class_, part)
            score, box = values[at], coordinates[image] if shared else coordinates[at]
            candidates = np.flatnonzero(score >= score.dtype.type(score_threshold))
            candidates = candidates[np.argsort(-score[candidates], kind="stable")][
                : len(score) if nms_top_k < 0 else nms_top_k
            ]
            kept = _suppress(
                box[candidates], score[candidates], iou_threshold, score_threshold, 0 if normalized else 1, nms_eta
            )
            selected += [(image, class_, int(i), score[i]) for i in candidates[kept]]
    selected = ordered(
        selected, keep_top_k, sort_result_type == "classid", sort_result_type == "score", bool(sort_result_across_batch)
    )
    n, c, i = (np.array([s[k] for s in selected], np.int64) for k in range(3))
    start = np.array([part.start for part in sets], np.int64)
    if shared:
        found, indices = coordinates[n, i], n * boxes.shape[1] + i
    else:
        place = start[n] + i if len(start) else i
        found, indices = coordinates[c, place], place * classes + c
    score = np.array([s[3] for s in selected], values.dtype)
    outputs = np.concatenate([c[:, None].astype(values.dtype), score[:, None], found.reshape(-1, 4)], axis=1)
    return outputs.astype(scores.dtype), indices[:, None], np.bincount(n, minlength=len(sets)).astype(np.int64)


def _sets(name, boxes, scores, roisnum):
    """Return which boxes belong to each image."""
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise ValueError(f"{name}: boxes has the shape {list(boxes.shape)} instead of [N, M, 4]")
    if scores.ndim == 3:
        if scores.shape[::2] != boxes.shape[:2]:
            raise ValueError(f"{name}: scores has the shape {list(scores.shape)}, boxes {list(boxes.shape)}")
        return [slice(0, boxes.shape[1])] * len(boxes)
    if scores.shape != boxes.shape[:2] or roisnum is None or roisnum.ndim != 1:
        raise ValueError(
            f"{name}: scores has the shape {list(scores.shape)}, boxes {list(boxes.shape)}, and roisnum is needed"
        )
    counts = np.maximum(roisnum, 0).tolist()  # Python integers do not overflow
    ends = list(accumulate(counts))
    if ends and ends[-1] > scores.shape[1]:
        raise ValueError(f"{name}: roisnum sums to {ends[-1]}, scores has the shape {list(scores.shape)}")
    return [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]


def _suppress(boxes, scores, iou_threshold, score_threshold, offset, eta):
    columns = corners(boxes)
    dtype = boxes.dtype.type
    area = areas(columns, dtype(offset))
    threshold, adaptive = dtype(iou_threshold), 0 <= eta < 1
    lowest = scores == dtype(score_threshold) if adaptive else np.zeros(len(boxes), bool)
    overlap = np.full(len(boxes), np.nan, boxes.dtype)  # with all boxes selected so far; NaN before the first selection
    kept, at = [], 0
    while at < len(boxes):
        if overlap[at] >= threshold:
            at += 1
            continue
        kept.append(at)
        if adaptive and threshold > 0.5:
            threshold = threshold * dtype(eta)
        others = slice(at + 1, None)
        one, more = tuple(c[at] for c in columns), tuple(c[others] for c in columns)
        shared = intersections(one, more, dtype(offset))
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = shared / (area[at] + area[others] - shared)
        iou = np.where((area[at] > 0) & (area[others] > 0), iou, 0)
        overlap[others] = np.where(lowest[others], iou, np.fmax(overlap[others], iou))
        at += 1
    return np.array(kept, np.int64)


@MulticlassNms.infer_shapes
def _(node):
    scores, roisnum = node.shape(1), node.shape(2)
    images = None
    if scores:
        images = scores[0] if len(scores) == 3 else roisnum[0] if roisnum else None
    return [[None, 6], [None, 1], [images]]


@MulticlassNms.body
def _(op, boxes, scores, roisnum, **given):
    type_ = scores.dtype
    boxes, scores = emit_wide(op, boxes), emit_wide(op, scores)
    dtype = number_type(scores)
    columns = emit_columns(op, boxes)
    if scores.rank not in (2, 3):
        raise NoBodyError("MulticlassNms: whether classes share boxes depends on the rank of scores, which is unknown")
    shared = scores.rank == 3
    if shared:
        start = None
        count = op.Shape(scores, start=2)
        alive = op.GreaterOrEqual(scores, dtype(given["score_threshold"]))
        columns = [op.Reshape(c, [-1]) for c in columns]
    else:
        # Every image has all boxes, but only its own are alive.
        count = op.Shape(scores, start=1)
        roisnum = op.Max(roisnum, 0)
        start = op.Unsqueeze(op.CumSum(roisnum, 0, exclusive=1), [1, 2])
        position = op.Range(0, op.Squeeze(count, [0]), 1)
        mine = op.And(op.GreaterOrEqual(position, start), op.Less(position, op.Add(start, op.Unsqueeze(roisnum, [1, 2]))))
        alive = op.And(op.GreaterOrEqual(scores, dtype(given["score_threshold"])), mine)
        scores = op.Expand(scores, op.Shape(alive))
        columns = [op.Reshape(c, [-1]) for c in columns]
    class_ = op.Unsqueeze(emit_range(op, scores, 1), [1])
    alive = op.And(alive, op.Not(op.Equal(class_, given["background_class"])))
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [2], keepdims=1)
    if given["nms_top_k"] >= 0:
        counts = op.Min(counts, given["nms_top_k"])
    best = op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0))
    ranked, order = op.TopK(op.Where(alive, scores, -np.inf), best, axis=2, outputs=2)
    alive = op.Less(emit_range(op, order, 2), counts)
    image = op.Unsqueeze(emit_range(op, scores, 0), [1, 2])
    at = op.Add(op.Mul(image if shared else class_, count), order)

    groups = op.Concat(op.ReduceProd(op.Shape(order, end=2)), op.Shape(order, start=2), axis=0)
    box = [op.Reshape(op.Gather(c, at), groups, allowzero=1) for c in columns]
    kept = _emit_suppressed(
        op, box, op.Reshape(alive, groups, allowzero=1), op.Reshape(ranked, groups, allowzero=1), given, dtype
    )
    kept = op.Reshape(kept, op.Shape(order), allowzero=1)
    sort = given["sort_result_type"]
    across = bool(given["sort_result_across_batch"])
    n, c, i, score, numbers = emit_ordered(
        op, kept, ranked, order, given["keep_top_k"], sort == "classid", sort == "score", across
    )
    if shared:
        at = indices = op.Add(op.Mul(n, count), i)
    else:
        at = op.Add(op.Mul(c, count), i)
        indices = op.Add(op.Mul(i, op.Shape(scores, start=1, end=2)), c)
    numbers_of = [op.Cast(c, to=scores.dtype), score, *(op.Gather(column, at) for column in columns)]
    outputs = op.Concat(*(op.Unsqueeze(x, [1]) for x in numbers_of), axis=1)
    return op.Cast(outputs, to=type_), op.Unsqueeze(indices, [1]), numbers


def _emit_suppressed(op, box, alive, scores, given, dtype):
    """Return which boxes of each group (best first) are kept: bool ``[groups, boxes]``.

    Each step keeps the next box of every group whose overlap with all kept boxes is below the current threshold.
    """
    offset = 0.0 if given["normalized"] else 1.0
    adaptive = 0 <= given["nms_eta"] < 1
    area = emit_areas(op, box, offset)
    real = op.Greater(area, 0.0)
    positions = emit_range(op, alive, 1)
    lowest = op.Equal(scores, dtype(given["score_threshold"]))

    def step(op, _iteration, _condition, open_, overlap, threshold, kept):
        candidates = op.And(open_, op.Not(op.GreaterOrEqual(overlap, threshold)))
        first = op.ArgMax(op.Cast(candidates, to=Type.INT32), axis=1, keepdims=1)
        any_ = op.Greater(op.ReduceSum(op.Cast(candidates, to=Type.INT64), [1], keepdims=1), 0)
        kept = op.Or(kept, op.And(op.Equal(positions, first), candidates))
        open_ = op.And(open_, op.And(op.Greater(positions, first), any_))
        if adaptive:
            falls = op.And(any_, op.Greater(threshold, 0.5))
            threshold = op.Where(falls, op.Mul(threshold, dtype(given["nms_eta"])), threshold)
        else:
            threshold = op.Identity(threshold)
        shared = emit_intersections(op, emit_at(op, box, first), box, offset)
        own = op.GatherElements(area, first, axis=1)
        iou = op.Div(shared, op.Sub(op.Add(own, area), shared))
        iou = op.Where(op.And(op.And(real, op.Greater(own, 0.0)), op.Not(op.IsNaN(iou))), iou, dtype(0))
        most = op.Max(overlap, iou)
        overlap = op.Where(lowest, iou, most) if adaptive else most
        return emit_any(op, open_), open_, overlap, threshold, kept

    none = op.And(alive, op.Not(alive))
    start = op.Where(alive, dtype(-np.inf), dtype(-np.inf))
    # below the overlap of any boxes, so boxes without overlap are always kept
    least = max(given["iou_threshold"], float(np.finfo(dtype).min))
    threshold = op.Expand(op.const(np.full((1, 1), least, dtype)), op.Concat(op.Shape(alive, end=1), [1], axis=0))
    *_, kept = op.loop(None, emit_any(op, alive), step, alive, start, threshold, none)
    return kept
