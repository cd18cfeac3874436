"""ExperimentalDetectronDetectionOutput: decodes and suppresses the boxes of a two-stage detector."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    MostOrAll,
    Rows,
    emit_columns,
    emit_greedy,
    emit_range,
    emit_touching_suppressed,
    emit_wide,
    number_type,
    suppress,
    wide,
)
from onnx_specops.ops._partial_sort import partial_sort


@operator(
    inputs={"rois": "T", "deltas": "T", "scores": "T", "deltas_weights": "T"},
    outputs={"boxes": "T", "classes": "tensor(int64)", "box_scores": "T"},
    types={"T": FLOATS},
)
def ExperimentalDetectronDetectionOutput(
    rois,
    deltas,
    scores,
    deltas_weights,
    *,
    score_threshold: float,
    nms_threshold: float,
    post_nms_count: MostOrAll,
    max_detections_per_image: Rows,
    max_delta_log_wh: float,
):
    """Refines regions for each class except class 0, and applies non-maximum suppression to each class.

    Inputs:
        rois: ``[R, 4]``, ``x1, y1, x2, y2``, the corner pixels of the region, inclusive. An empty region has no score.
        deltas: ``[R, classes * 4]``: shifts of the center as fractions of the region, and logarithms of its scaling.
        scores: ``[R, classes]``.
        deltas_weights: ``[4]``, the divisors of the deltas.

    Attributes:
        score_threshold: the score that a box must exceed.
        nms_threshold: a box is removed if its overlap with a better box of its class exceeds this threshold.
        post_nms_count: the maximum number of boxes of a class that are kept. -1 means all.
        max_detections_per_image: the number of output boxes.
        max_delta_log_wh: the largest logarithm of a scaling.

    Outputs: boxes ``[M, 4]``, not negative, classes ``[M]`` and box_scores ``[M]``, where ``M`` is
    ``max_detections_per_image``. If more boxes remain, the best ones are ordered by descending score, equal scores by
    region, and those of one region as OpenVINO's CPU plugin orders them (in the body: by class). Otherwise all boxes are
    ordered by class, then by descending score, and zeros follow.

    Source: OpenVINO specification, ExperimentalDetectronDetectionOutput-6; order as in OpenVINO's CPU plugin.
    """
    name = "ExperimentalDetectronDetectionOutput"
    if rois.ndim != 2 or rois.shape[1] != 4 or scores.ndim != 2 or len(scores) != len(rois):
        raise ValueError(f"{name}: rois has the shape {list(rois.shape)}, scores {list(scores.shape)}")
    count, classes = scores.shape
    if deltas.shape != (count, classes * 4) or deltas_weights.size != 4:
        raise ValueError(f"{name}: deltas has the shape {list(deltas.shape)}, scores {list(scores.shape)}")
    regions, values = wide(rois), wide(scores)
    dtype = values.dtype.type
    shifts = wide(deltas).reshape(count, classes, 4) / wide(deltas_weights).reshape(4)
    boxes, sides = np.empty((count, classes, 4), dtype), []
    half, one = dtype(0.5), dtype(1)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in (0, 1):
            extent = (regions[:, i + 2] - regions[:, i] + one)[:, None]
            center = shifts[..., i] * extent + (regions[:, i, None] + half * extent)
            extent = np.exp(np.minimum(shifts[..., i + 2], dtype(max_delta_log_wh))) * extent
            boxes[..., i] = np.maximum(center - half * extent, 0)
            boxes[..., i + 2] = np.maximum(center + half * extent - one, 0)
            sides.append(boxes[..., i + 2] - boxes[..., i] + one)
    empty = (regions[:, 2] - regions[:, 0] <= 0) | (regions[:, 3] - regions[:, 1] <= 0)
    area = sides[0] * sides[1]
    boxes[empty], area[empty] = 0, 0
    values = np.where(empty[:, None], 0, values)
    kept = []
    for class_ in range(1, classes):
        candidates = np.flatnonzero(values[:, class_] > dtype(score_threshold))
        candidates = candidates[np.argsort(-values[candidates, class_], kind="stable")]
        limit = None if post_nms_count == -1 else post_nms_count
        found = suppress(boxes[candidates, class_], nms_threshold, 1, limit, area[candidates, class_])
        kept += [(region, class_) for region in candidates[found]]
    most = max_detections_per_image
    if len(kept) > most:
        kept = partial_sort(kept, most, lambda a, b: (-values[a], a[0]) < (-values[b], b[0]))
    at = np.array(kept, np.int64).reshape(-1, 2).T
    outputs = np.zeros((most, 4), dtype), np.zeros(most, np.int64), np.zeros(most, dtype)
    for output, found in zip(outputs, (boxes[at[0], at[1]], at[1], values[at[0], at[1]]), strict=True):
        output[: len(found)] = found
    return outputs[0].astype(scores.dtype), outputs[1], outputs[2].astype(scores.dtype)


@ExperimentalDetectronDetectionOutput.infer_shapes
def _(node):
    most = node.attributes["max_detections_per_image"]
    return [[most, 4], [most], [most]]


@ExperimentalDetectronDetectionOutput.body
def _(op, rois, deltas, scores, deltas_weights, **given):
    type_ = scores.dtype
    regions, shifts, values, weights = (emit_wide(op, x) for x in (rois, deltas, scores, deltas_weights))
    dtype = number_type(values)
    shape = op.Shape(values)
    shifts = op.Div(op.Reshape(shifts, op.Concat(shape, [4], axis=0), allowzero=1), op.Reshape(weights, [4]))
    shifts = emit_columns(op, op.Transpose(shifts, perm=[1, 0, 2]))  # [classes, R] each
    regions = emit_columns(op, regions)
    empty = op.Or(*(op.LessOrEqual(op.Sub(regions[i + 2], regions[i]), 0.0) for i in (0, 1)))
    starts, ends, sides = [], [], []
    for i in (0, 1):
        extent = op.Add(op.Sub(regions[i + 2], regions[i]), 1.0)
        center = op.Add(op.Mul(shifts[i], extent), op.Add(regions[i], op.Mul(extent, 0.5)))
        half = op.Mul(op.Mul(op.Exp(op.Min(shifts[i + 2], dtype(given["max_delta_log_wh"]))), extent), 0.5)
        starts.append(op.Max(op.Sub(center, half), 0.0))
        ends.append(op.Max(op.Sub(op.Add(center, half), 1.0), 0.0))
        sides.append(op.Add(op.Sub(ends[i], starts[i]), 1.0))
    zero = op.CastLike(0.0, values)
    *box, area = (op.Where(empty, zero, x) for x in (*starts, *ends, op.Mul(*sides)))
    values = op.Where(empty, zero, op.Transpose(values, perm=[1, 0]))

    class_ = op.Unsqueeze(emit_range(op, values, 0), [1])
    alive = op.And(op.Greater(values, dtype(given["score_threshold"])), op.Greater(class_, 0))
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [1], keepdims=1)
    best = op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0))
    values, order = op.TopK(op.Where(alive, values, -np.inf), best, axis=1, outputs=2)
    box, area = [op.GatherElements(c, order, axis=1) for c in box], op.GatherElements(area, order, axis=1)
    alive = op.Less(emit_range(op, order, 1), counts)
    limit = None if given["post_nms_count"] == -1 else op.const(given["post_nms_count"])
    suppressed = emit_touching_suppressed(op, box, dtype(given["nms_threshold"]), 1.0, area)
    kept = emit_greedy(op, alive, suppressed, limit)

    at = op.Transpose(op.NonZero(op.Cast(kept, to=Type.INT64)), perm=[1, 0])
    most = given["max_detections_per_image"]

    def the_best(op):
        # Regions are sorted first, which orders equal scores.
        region = op.GatherND(order, at)
        _, by_region = op.TopK(region, op.Shape(region), axis=0, largest=0, outputs=2)
        first = op.Gather(at, by_region, axis=0)
        _, by_score = op.TopK(op.GatherND(values, first), op.const([most]), axis=0, outputs=2)
        return op.Gather(first, by_score, axis=0)

    at = op.if_(op.Greater(op.Squeeze(op.Shape(at, start=0, end=1), [0]), most), the_best, lambda op: op.Identity(at))
    missing = op.Sub(most, op.Shape(at, start=0, end=1))
    boxes = op.Concat(*(op.Unsqueeze(op.GatherND(c, at), [1]) for c in box), axis=1)
    boxes = op.Pad(boxes, op.Concat([0, 0], missing, [0], axis=0))
    classes, scores = (
        op.Pad(x, op.Concat([0], missing, axis=0)) for x in (op.Gather(at, np.array(0), axis=1), op.GatherND(values, at))
    )
    return op.Cast(boxes, to=type_), classes, op.Cast(scores, to=type_)
