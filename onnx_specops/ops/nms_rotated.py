"""NMSRotated: greedy suppression of overlapping rotated boxes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    emit_at,
    emit_columns,
    emit_greedy,
    emit_range,
    emit_scalar,
    emit_wide,
    greedy,
    wide,
)
from onnx_specops.ops._checks import scalar

# The corners of a box in order, as fractions of its width and height.
_ACROSS, _DOWN = (0.5, 0.5, -0.5, -0.5), (0.5, -0.5, -0.5, 0.5)


@operator(
    inputs={
        "boxes": "T",
        "scores": "T",
        "max_output_boxes_per_class": "tensor(int64)",
        "iou_threshold": "tensor(float)",
        "score_threshold": "tensor(float)",
    },
    outputs={"selected_indices": "tensor(int64)", "selected_scores": "T"},
    types={"T": FLOATS},
)
def NMSRotated(
    boxes,
    scores,
    max_output_boxes_per_class,
    iou_threshold,
    score_threshold,
    *,
    sort_result_descending: int = 1,
    clockwise: int = 1,
):
    """Applies non-maximum suppression to the rotated boxes of each class.

    Inputs:
        boxes: ``[batches, boxes, 5]``, ``center_x, center_y, width, height, angle`` (in radians).
        scores: ``[batches, classes, boxes]``. Boxes whose score exceeds ``score_threshold`` are candidates. Among equal
            scores, the lower index is first.
        max_output_boxes_per_class, iou_threshold, score_threshold: scalars or ``[1]``. Boxes with ``iou >
            iou_threshold`` are removed.

    Attributes:
        sort_result_descending: whether all selected boxes are ordered by descending score, equal scores by batch, class
            and box. If not, they are ordered by batch and class, then as they were selected.
        clockwise: whether angles are clockwise.

    Outputs: ``[selected, 3]`` each: ``batch, class, box`` and ``batch, class, score``.

    Source: OpenVINO specification, NMSRotated-13.
    """
    name = "NMSRotated"
    if boxes.ndim != 3 or boxes.shape[2] != 5:
        raise ValueError(f"{name}: boxes has the shape {list(boxes.shape)} instead of [batches, boxes, 5]")
    if scores.ndim != 3 or scores.shape[::2] != boxes.shape[:2]:
        raise ValueError(f"{name}: scores has the shape {list(scores.shape)}, boxes {list(boxes.shape)}")
    most = max(int(scalar(max_output_boxes_per_class, f"{name}: max_output_boxes_per_class")), 0)
    iou_threshold = scalar(iou_threshold, f"{name}: iou_threshold")
    score_threshold = scalar(score_threshold, f"{name}: score_threshold")
    values, coordinates = wide(scores), boxes.astype(np.float64)
    chosen = []
    for batch, class_ in np.ndindex(*scores.shape[:2]):
        score = values[batch, class_]
        candidates = np.flatnonzero(score > score_threshold)
        candidates = candidates[np.argsort(-score[candidates], kind="stable")]
        box = coordinates[batch, candidates]

        def suppressed(first, others, box=box):
            return _iou(box[first], box[others], clockwise) > iou_threshold

        kept = greedy(len(candidates), suppressed, most)
        chosen += [(batch, class_, int(i), score[i]) for i in candidates[kept]]
    if sort_result_descending:
        chosen.sort(key=lambda c: (-c[3], *c[:3]))
    indices = np.array([c[:3] for c in chosen], np.int64).reshape(-1, 3)
    triplets = np.array([(c[0], c[1], c[3]) for c in chosen], values.dtype).reshape(-1, 3)
    return indices, triplets.astype(scores.dtype)


def _iou(one, others, clockwise):
    """Compute the overlap of a box ``[5]`` with others ``[n, 5]``.

    The border of the intersection consists of the parts of each box's edges that are inside the other box. Its area is half
    the sum of the cross products of the ends of these parts. Coordinates are relative to the first box, whose edges are
    parallel to the axes. If edges of both boxes coincide, only those of the second box count, and only if they have the same
    direction.
    """
    sign = 1.0 if clockwise else -1.0
    angle = (others[:, 4] - one[4]) * sign
    turn, cosine, sine = (np.cos(one[4]), np.sin(one[4] * sign)), np.cos(angle), np.sin(angle)
    dx, dy = others[:, 0] - one[0], others[:, 1] - one[1]
    across, down = np.multiply.outer(others[:, 2], _ACROSS), np.multiply.outer(others[:, 3], _DOWN)  # [n, 4]
    x = (dx * turn[0] + dy * turn[1])[:, None] + across * cosine[:, None] - down * sine[:, None]
    y = (dy * turn[0] - dx * turn[1])[:, None] + across * sine[:, None] + down * cosine[:, None]
    ex, ey = np.roll(x, -1, 1) - x, np.roll(y, -1, 1) - y
    starts, ends = np.zeros_like(x), np.ones_like(x)
    for position, step, half, ahead in ((x, ex, one[2] / 2, -ey), (y, ey, one[3] / 2, ex)):
        for side in (1.0, -1.0):
            starts, ends = _clip(starts, ends, half - side * position, -side * step, side * ahead > 0)
    total = ((ends - starts).clip(0) * (x * ey - y * ex)).sum(axis=1)

    bx, by = np.multiply(_ACROSS, one[2]), np.multiply(_DOWN, one[3])
    fx, fy = np.roll(bx, -1) - bx, np.roll(by, -1) - by
    starts, ends = np.zeros_like(x), np.ones_like(x)
    for j in range(4):
        ax, ay, px, py = (c[:, j, None] for c in (ex, ey, x, y))
        starts, ends = _clip(starts, ends, ay * (bx - px) - ax * (by - py), ay * fx - ax * fy, False)
    total += ((ends - starts).clip(0) * (bx * fy - by * fx)).sum(axis=1)
    shared = np.abs(total) / 2
    areas = one[2] * one[3], others[:, 2] * others[:, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((areas[0] > 0) & (areas[1] > 0), shared / (areas[0] + areas[1] - shared), 0)


def _clip(starts, ends, distance, rate, on_border):
    """Return the part of each edge, from 0 to 1, where ``distance + t * rate`` is positive, or always 0 and
    ``on_border``.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -distance / rate
    starts = np.where(rate > 0, np.maximum(starts, t), starts)
    ends = np.where(rate < 0, np.minimum(ends, t), ends)
    outside = (distance < 0) | (distance == 0) & ~np.asarray(on_border)
    return starts, np.where((rate == 0) & outside, -1.0, ends)


@NMSRotated.infer_shapes
def _(_node):
    return [[None, 3], [None, 3]]


@NMSRotated.body
def _(op, boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, *, sort_result_descending, clockwise):
    type_ = scores.dtype
    scores = emit_wide(op, scores)
    most = op.Max(emit_scalar(op, max_output_boxes_per_class, Type.INT64), 0)
    iou_threshold = emit_scalar(op, iou_threshold, Type.DOUBLE)
    alive = op.Greater(scores, emit_scalar(op, score_threshold, scores.dtype))
    classes, count = op.Shape(scores, start=1, end=2), op.Shape(scores, start=2)
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [2], keepdims=1)
    best = op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0))
    ranked, order = op.TopK(op.Where(alive, scores, -np.inf), best, axis=2, outputs=2)
    alive = op.Less(emit_range(op, order, 2), counts)
    at = op.Add(op.Mul(op.Unsqueeze(emit_range(op, scores, 0), [1, 2]), count), order)

    # A group is a class of a batch.
    groups = op.Concat(op.ReduceProd(op.Shape(order, end=2)), op.Shape(order, start=2), axis=0)
    columns = emit_columns(op, op.Reshape(op.Cast(boxes, to=Type.DOUBLE), [-1, 5]), 5)
    box = [op.Reshape(op.Gather(c, at), groups, allowzero=1) for c in columns]
    alive, ranked, order = (op.Reshape(x, groups, allowzero=1) for x in (alive, ranked, order))

    def suppressed(op, first):
        return op.Greater(_emit_iou(op, emit_at(op, box, first), box, clockwise), iou_threshold)

    kept = op.Cast(emit_greedy(op, alive, suppressed, most), to=Type.INT64)
    at = op.Transpose(op.NonZero(kept), perm=[1, 0])
    group, score, found = op.Gather(at, np.array(0), axis=1), op.GatherND(ranked, at), op.GatherND(order, at)
    if sort_result_descending:
        score, by_score = op.TopK(score, op.Shape(score), axis=0, outputs=2)
        group, found = op.Gather(group, by_score, axis=0), op.Gather(found, by_score, axis=0)
    batch, class_ = op.Div(group, op.Max(classes, 1)), op.Mod(group, op.Max(classes, 1))
    indices = op.Concat(*(op.Unsqueeze(x, [1]) for x in (batch, class_, found)), axis=1)
    numbers = [*(op.Cast(x, to=score.dtype) for x in (batch, class_)), score]
    return indices, op.Cast(op.Concat(*(op.Unsqueeze(x, [1]) for x in numbers), axis=1), to=type_)


def _emit_iou(op, one, others, clockwise):
    """Emit the overlap of one box per group, five columns ``[groups, 1]``, with the others, ``[groups, boxes]``."""
    sign = 1.0 if clockwise else -1.0
    angle = op.Mul(op.Sub(others[4], one[4]), sign)
    cosine, sine = (op.Unsqueeze(x, [2]) for x in (op.Cos(angle), op.Sin(angle)))
    turn = op.Cos(one[4]), op.Sin(op.Mul(one[4], sign))
    dx, dy = op.Sub(others[0], one[0]), op.Sub(others[1], one[1])
    across, down = (
        op.Mul(op.Unsqueeze(side, [2]), np.array(share)) for side, share in ((others[2], _ACROSS), (others[3], _DOWN))
    )
    x = op.Unsqueeze(op.Add(op.Mul(dx, turn[0]), op.Mul(dy, turn[1])), [2])
    y = op.Unsqueeze(op.Sub(op.Mul(dy, turn[0]), op.Mul(dx, turn[1])), [2])
    x = op.Add(x, op.Sub(op.Mul(across, cosine), op.Mul(down, sine)))
    y = op.Add(y, op.Add(op.Mul(across, sine), op.Mul(down, cosine)))
    following = op.const(np.array([1, 2, 3, 0]))
    ex, ey = (op.Sub(op.Gather(c, following, axis=2), c) for c in (x, y))
    sides = [op.Unsqueeze(side, [2]) for side in one[2:4]]
    zero, whole = op.Mul(x, 0.0), op.Add(op.Mul(x, 0.0), 1.0)
    starts, ends = zero, whole
    for position, step, half, ahead in ((x, ex, sides[0], op.Neg(ey)), (y, ey, sides[1], ex)):
        half = op.Mul(half, 0.5)
        for side in (1.0, -1.0):
            distance = op.Sub(half, op.Mul(position, side))
            same = op.Greater(op.Mul(ahead, side), 0.0)
            starts, ends = _emit_clip(op, starts, ends, distance, op.Mul(step, -side), same)
    length = op.Max(op.Sub(ends, starts), 0.0)
    total = op.ReduceSum(op.Mul(length, op.Sub(op.Mul(x, ey), op.Mul(y, ex))), [2], keepdims=0)

    bx, by = (op.Mul(side, np.array(share)) for side, share in zip(sides, (_ACROSS, _DOWN), strict=True))
    fx, fy = (op.Sub(op.Gather(c, following, axis=2), c) for c in (bx, by))
    starts, ends = zero, whole
    for j in range(4):
        ax, ay, px, py = (op.Gather(c, [j], axis=2) for c in (ex, ey, x, y))
        distance = op.Sub(op.Mul(ay, op.Sub(bx, px)), op.Mul(ax, op.Sub(by, py)))
        starts, ends = _emit_clip(op, starts, ends, distance, op.Sub(op.Mul(ay, fx), op.Mul(ax, fy)), None)
    length = op.Max(op.Sub(ends, starts), 0.0)
    cross = op.Sub(op.Mul(bx, fy), op.Mul(by, fx))
    total = op.Add(total, op.ReduceSum(op.Mul(length, cross), [2], keepdims=0))
    shared = op.Mul(op.Abs(total), 0.5)
    areas = [op.Mul(one[2], one[3]), op.Mul(others[2], others[3])]
    real = op.And(*(op.Greater(area, 0.0) for area in areas))
    return op.Where(real, op.Div(shared, op.Sub(op.Add(*areas), shared)), op.CastLike(0.0, shared))


def _emit_clip(op, starts, ends, distance, rate, on_border):
    """Emit the part of each edge, from 0 to 1, where ``distance + t * rate`` is positive, or always 0 and ``on_border``."""
    still = op.Equal(rate, 0.0)
    t = op.Div(op.Neg(distance), op.Where(still, op.CastLike(1.0, rate), rate))
    starts = op.Where(op.Greater(rate, 0.0), op.Max(starts, t), starts)
    ends = op.Where(op.Less(rate, 0.0), op.Min(ends, t), ends)
    if on_border is None:
        outside = op.LessOrEqual(distance, 0.0)
    else:
        outside = op.Or(op.Less(distance, 0.0), op.And(op.Equal(distance, 0.0), op.Not(on_border)))
    return starts, op.Where(op.And(still, outside), op.CastLike(-1.0, ends), ends)
