"""ExperimentalDetectronGenerateProposalsSingleImage: the proposals of a region proposal network for one image."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    Most,
    Rows,
    emit_first,
    emit_greedy,
    emit_padded,
    emit_touching_suppressed,
    emit_wide,
    number_type,
    suppress,
    wide,
)
from onnx_specops.ops._partial_sort import partially_sorted
from onnx_specops.ops.generate_proposals import emit_refined, refined


@operator(
    inputs={"im_info": "T", "anchors": "T", "deltas": "T", "scores": "T"},
    outputs={"rois": "T", "roi_scores": "T"},
    types={"T": FLOATS},
)
def ExperimentalDetectronGenerateProposalsSingleImage(
    im_info,
    anchors,
    deltas,
    scores,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: Most,
    post_nms_count: Rows,
):
    """Moves and scales anchors by predicted deltas, and applies non-maximum suppression.

    Inputs:
        im_info: ``[3]``, the height, the width, and a number that is ignored.
        anchors: ``[H * W * A, 4]``, ``x1, y1, x2, y2``, the corner pixels of the anchor, inclusive.
        deltas: ``[4 * A, H, W]``: shifts of the center as fractions of the anchor, and logarithms of its scaling (at
            most log(1000 / 16)).
        scores: ``[A, H, W]``.

    Attributes:
        min_size: the score of boxes whose width or height is smaller becomes 0.
        nms_threshold: a box is removed if its overlap with a better box exceeds this threshold. Here the corners are edges.
        pre_nms_count, post_nms_count: the number of boxes that enter the suppression, and the largest number of its
            results.

    Outputs: rois ``[post_nms_count, 4]`` by descending score and roi_scores ``[post_nms_count]``; zeros follow the last
    box. Equal scores are ordered as in OpenVINO's CPU plugin. The body orders them by position, then by anchor.

    Source: OpenVINO specification, ExperimentalDetectronGenerateProposalsSingleImage-6; edges and pixels as in
    OpenVINO's CPU plugin.
    """
    name = "ExperimentalDetectronGenerateProposalsSingleImage"
    if scores.ndim != 3 or deltas.shape != (4 * scores.shape[0], *scores.shape[1:]):
        raise ValueError(f"{name}: deltas has the shape {list(deltas.shape)}, scores {list(scores.shape)}")
    if anchors.shape != (scores.size, 4) or im_info.shape != (3,):
        raise ValueError(f"{name}: anchors has the shape {list(anchors.shape)}, im_info {list(im_info.shape)}")
    info, shifts, given = (wide(x)[None] for x in (im_info, deltas, scores))
    boxes, values, sides = (x[0] for x in refined(info, wide(anchors), shifts, given, 1))
    values = values * (sides >= values.dtype.type(min_size)).all(axis=1)
    best = partially_sorted(values, pre_nms_count)
    kept = best[suppress(boxes[best], nms_threshold, 0, post_nms_count)]
    rois = np.zeros((post_nms_count, 4), scores.dtype)
    roi_scores = np.zeros(len(rois), scores.dtype)
    rois[: len(kept)], roi_scores[: len(kept)] = boxes[kept], values[kept]
    return rois, roi_scores


@ExperimentalDetectronGenerateProposalsSingleImage.infer_shapes
def _(node):
    most = node.attributes["post_nms_count"]
    return [[most, 4], [most]]


@ExperimentalDetectronGenerateProposalsSingleImage.body
def _(op, im_info, anchors, deltas, scores, *, min_size, nms_threshold, pre_nms_count, post_nms_count):
    type_ = scores.dtype
    info, deltas, scores = (op.Unsqueeze(x, [0]) for x in (emit_wide(op, im_info), deltas, scores))
    box, values, sides = emit_refined(op, info, anchors, deltas, scores, 1.0)
    dtype = number_type(values)
    large = op.And(*(op.GreaterOrEqual(side, dtype(min_size)) for side in sides))
    values = op.Mul(values, op.Cast(large, to=values.dtype))
    best = op.Min(op.Shape(values, start=1), pre_nms_count)
    values, order = op.TopK(values, best, axis=1, outputs=2)
    box = [op.GatherElements(c, order, axis=1) for c in box]
    suppressed = emit_touching_suppressed(op, box, dtype(nms_threshold), 0.0)
    most = post_nms_count
    kept = emit_greedy(op, op.Equal(order, order), suppressed, op.const(most))
    at, valid, _ = emit_first(op, kept, most)
    found = [op.Where(valid, op.GatherElements(c, at, axis=1), dtype(0)) for c in (*box, values)]
    *columns, roi_scores = (op.Cast(emit_padded(op, x, most), to=type_) for x in found)
    rois = op.Concat(*(op.Unsqueeze(x, [2]) for x in columns), axis=2)
    return op.Squeeze(rois, [0]), op.Squeeze(roi_scores, [0])
