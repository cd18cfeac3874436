"""MatrixNms: scores lowered by overlaps with better boxes, all at once."""

from __future__ import annotations

from typing import Literal

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import MostOrAll, emit_at, emit_columns, emit_range, emit_wide, number_type, wide
from onnx_specops.ops._partial_sort import partially_sorted
from onnx_specops.ops._selection import SortResultType, emit_ordered, ordered


@operator(
    inputs={"boxes": "T", "scores": "T"},
    outputs={"selected_outputs": "T", "selected_indices": "tensor(int64)", "valid_outputs": "tensor(int64)"},
    types={"T": FLOATS},
)
def MatrixNms(
    boxes,
    scores,
    *,
    sort_result_type: SortResultType = "none",
    sort_result_across_batch: int = 0,
    score_threshold: float = 0.0,
    nms_top_k: MostOrAll = -1,
    keep_top_k: MostOrAll = -1,
    background_class: int = -1,
    decay_function: Literal["linear", "gaussian"] = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    normalized: int = 1,
):
    """Decreases the score of each box by its overlaps with better boxes of its class, and selects boxes by score.

    Inputs:
        boxes: ``[N, M, 4]``, two corners each.
        scores: ``[N, C, M]``.

    Attributes:
        sort_result_type: ``score``, ``classid`` or ``none``. Without ``sort_result_across_batch`` the results of each
            image are always ordered by score.
        sort_result_across_batch: whether ``score`` or ``classid`` orders the results of all images together.
        score_threshold: the score that a box must exceed.
        nms_top_k, keep_top_k: the number of candidate boxes of a class, and the number of boxes of an image that are kept.
            -1 means all.
        background_class: the class of the background, which is never a result. -1 means that there is none.
        decay_function: the factor by which a better box decreases the score of a box that it overlaps by ``iou``. ``m``
            is the largest overlap of the better box with boxes better than itself. ``linear``: ``(1 - iou) / (1 - m)``;
            ``gaussian``: ``exp((m ** 2 - iou ** 2) * gaussian_sigma)``. The smallest factor applies, at most 1.
        gaussian_sigma: see ``decay_function``.
        post_threshold: the score that a box must exceed after the decrease.
        normalized: whether the corners are edges of the box rather than its outermost pixels.

    Outputs: selected_outputs ``[n, 6]``, rows of class, score and box; selected_indices ``[n, 1]``, the index of the box
    in ``[N * M]``; valid_outputs ``[N]``, the number of boxes of each image. Equal scores are ordered by class, then by box.
    Among boxes of equal score, the better one is that of OpenVINO's CPU plugin. In the body, it is the first one.

    Source: OpenVINO specification, MatrixNms-8; order and comparisons as in OpenVINO's CPU plugin.
    """
    name = "MatrixNms"
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.ndim != 3 or scores.shape[::2] != boxes.shape[:2]:
        raise ValueError(f"{name}: boxes has the shape {list(boxes.shape)}, scores {list(scores.shape)}")
    coordinates, values = wide(boxes), wide(scores)
    dtype = values.dtype.type
    selected = []
    for image in range(len(boxes)):
        for class_ in range(scores.shape[1]):
            if class_ == background_class:
                continue
            score = values[image, class_]
            candidates = np.flatnonzero(score > dtype(score_threshold))
            most = len(candidates) if nms_top_k < 0 else nms_top_k
            candidates = candidates[partially_sorted(score[candidates], most)]
            decay = _decays(
                coordinates[image, candidates], decay_function, dtype(gaussian_sigma), dtype(0 if normalized else 1)
            )
            lowered = score[candidates] * decay
            selected += [
                (image, class_, int(i), s) for i, s in zip(candidates, lowered, strict=True) if s > dtype(post_threshold)
            ]
    across = bool(sort_result_across_batch)
    by_class = across and sort_result_type == "classid"
    selected = ordered(selected, keep_top_k, by_class, sort_result_type == "score", across)
    n, c, i = (np.array([s[k] for s in selected], np.int64) for k in range(3))
    score = np.array([s[3] for s in selected], values.dtype)
    outputs = np.concatenate([c[:, None].astype(values.dtype), score[:, None], coordinates[n, i].reshape(-1, 4)], axis=1)
    numbers = np.bincount(n, minlength=len(boxes)).astype(np.int64)
    return outputs.astype(scores.dtype), (n * boxes.shape[1] + i)[:, None], numbers


def _decays(boxes, function, sigma, offset):
    """Return the decay factor of each box, best first."""
    one = boxes.dtype.type(1)
    x1, y1, x2, y2 = boxes.T
    area = np.where((x2 < x1) | (y2 < y1), 0, (x2 - x1 + offset) * (y2 - y1 + offset))
    decay, most = np.ones(len(boxes), boxes.dtype), np.zeros(len(boxes), boxes.dtype)
    for j in range(len(boxes)):
        later = slice(j + 1, None)
        left, top = np.maximum(x1[j], x1[later]), np.maximum(y1[j], y1[later])
        right, bottom = np.minimum(x2[j], x2[later]), np.minimum(y2[j], y2[later])
        shared = (right - left + offset) * (bottom - top + offset)
        apart = (x1[later] > x2[j]) | (x2[later] < x1[j]) | (y1[later] > y2[j]) | (y2[later] < y1[j])
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            iou = np.where(apart, 0, shared / (area[j] + area[later] - shared))
            if function == "linear":
                factor = (one - iou) / (one - most[j] + boxes.dtype.type(1e-10))
            else:
                factor = np.exp((most[j] * most[j] - iou * iou) * sigma)
        decay[later] = np.fmin(decay[later], factor)
        most[later] = np.fmax(most[later], iou)
    return decay


@MatrixNms.infer_shapes
def _(node):
    scores = node.shape(1)
    return [[None, 6], [None, 1], [scores[0] if scores else None]]


@MatrixNms.body
def _(op, boxes, scores, **given):
    type_ = scores.dtype
    boxes, scores = emit_wide(op, boxes), emit_wide(op, scores)
    dtype = number_type(scores)
    columns = [op.Reshape(c, [-1]) for c in emit_columns(op, boxes)]
    count = op.Shape(scores, start=2)
    class_ = op.Unsqueeze(emit_range(op, scores, 1), [1])
    alive = op.And(op.Greater(scores, dtype(given["score_threshold"])), op.Not(op.Equal(class_, given["background_class"])))
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [2], keepdims=1)
    if given["nms_top_k"] >= 0:
        counts = op.Min(counts, given["nms_top_k"])
    best = op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0))
    ranked, order = op.TopK(op.Where(alive, scores, -np.inf), best, axis=2, outputs=2)
    alive = op.Less(emit_range(op, order, 2), counts)
    image = op.Mul(op.Unsqueeze(emit_range(op, scores, 0), [1, 2]), count)
    at = op.Add(image, order)

    groups = op.Concat(op.ReduceProd(op.Shape(order, end=2)), op.Shape(order, start=2), axis=0)
    box = [op.Reshape(op.Gather(c, at), groups, allowzero=1) for c in columns]
    decay = _emit_decays(op, box, given, dtype)
    lowered = op.Mul(ranked, op.Reshape(decay, op.Shape(order), allowzero=1))
    kept = op.And(alive, op.Greater(lowered, dtype(given["post_threshold"])))
    # In box order, which orders equal lowered scores.
    _, by_box = op.TopK(order, op.Shape(order, start=2), axis=2, largest=0, outputs=2)
    kept, lowered, order = (op.GatherElements(x, by_box, axis=2) for x in (kept, lowered, order))
    across = bool(given["sort_result_across_batch"])
    by_class = across and given["sort_result_type"] == "classid"
    by_score = given["sort_result_type"] == "score"
    n, c, i, score, numbers = emit_ordered(op, kept, lowered, order, given["keep_top_k"], by_class, by_score, across)
    indices = op.Add(op.Mul(n, count), i)
    numbers_of = [op.Cast(c, to=scores.dtype), score, *(op.Gather(column, indices) for column in columns)]
    outputs = op.Concat(*(op.Unsqueeze(x, [1]) for x in numbers_of), axis=1)
    return op.Cast(outputs, to=type_), op.Unsqueeze(indices, [1]), numbers


def _emit_decays(op, box, given, dtype):
    """Return the decay factor of each box of each group, best first: ``[groups, boxes]``. Each step handles one suppressing
    box.
    """
    offset = 0.0 if given["normalized"] else 1.0
    x1, y1, x2, y2 = box
    sides = [op.Sub(x2, x1), op.Sub(y2, y1)]
    inverted = op.Or(*(op.Less(side, 0.0) for side in sides))
    area = op.Mul(*(op.Add(side, offset) if offset else side for side in sides))
    area = op.Where(inverted, dtype(0), area)
    positions = emit_range(op, area, 1)

    def step(op, iteration, condition, decay, most):
        at = op.Expand(iteration, op.Concat(op.Shape(area, end=1), [1], axis=0))
        one = emit_at(op, box, at)
        highest = op.GatherElements(most, at, axis=1)
        sides = [op.Sub(op.Min(one[k + 2], box[k + 2]), op.Max(one[k], box[k])) for k in (0, 1)]
        shared = op.Mul(*(op.Add(side, offset) if offset else side for side in sides))
        apart = [op.Greater(box[k], one[k + 2]) for k in (0, 1)] + [op.Less(box[k + 2], one[k]) for k in (0, 1)]
        apart = op.Or(op.Or(apart[0], apart[1]), op.Or(apart[2], apart[3]))
        iou = op.Div(shared, op.Sub(op.Add(op.GatherElements(area, at, axis=1), area), shared))
        iou = op.Where(apart, dtype(0), iou)
        later = op.And(op.Greater(positions, iteration), op.Not(op.IsNaN(iou)))
        if given["decay_function"] == "linear":
            factor = op.Div(op.Sub(1.0, iou), op.Add(op.Sub(1.0, highest), dtype(1e-10)))
        else:
            factor = op.Exp(op.Mul(op.Sub(op.Mul(highest, highest), op.Mul(iou, iou)), dtype(given["gaussian_sigma"])))
        later_and_real = op.And(later, op.Not(op.IsNaN(factor)))
        decay = op.Where(later_and_real, op.Min(decay, factor), decay)
        return op.Identity(condition), decay, op.Where(later, op.Max(most, iou), most)

    ones = op.ConstantOfShape(op.Shape(area), value=np.ones(1, dtype))
    zeros = op.ConstantOfShape(op.Shape(area), value=np.zeros(1, dtype))
    steps = op.Squeeze(op.Shape(area, start=1), [0])
    decay, _ = op.loop(steps, op.const(np.array(True)), step, ones, zeros)
    return decay
