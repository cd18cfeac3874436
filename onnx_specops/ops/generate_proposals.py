"""GenerateProposals: the proposals of a region proposal network, without padding."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    Most,
    emit_columns,
    emit_greedy,
    emit_touching_suppressed,
    emit_wide,
    number_type,
    suppress,
    wide,
)
from onnx_specops.ops._partial_sort import partially_sorted

MOST_SCALING = math.log(1000 / 16)


@operator(
    inputs={"im_info": "T", "anchors": "T", "boxesdeltas": "T", "scores": "T"},
    outputs={"rpnrois": "T", "rpnscores": "T", "rpnroisnum": "tensor(int64)"},
    types={"T": FLOATS},
)
def GenerateProposals(
    im_info,
    anchors,
    boxesdeltas,
    scores,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: Most,
    post_nms_count: Most,
    normalized: int = 1,
):
    """Moves and scales anchors by predicted deltas, and applies non-maximum suppression to each image.

    Inputs:
        im_info: ``[N, 2]``, ``[N, 3]`` or ``[N, 4]``: height, width, then the scale of ``min_size``: one for both axes,
            or one for the height and one for the width.
        anchors: ``[H, W, A, 4]`` or ``[H * W * A, 4]``, ``x1, y1, x2, y2``.
        boxesdeltas: ``[N, 4 * A, H, W]``: shifts of the center as fractions of the anchor, and logarithms of its scaling
            (at most log(1000 / 16)).
        scores: ``[N, A, H, W]``.

    Attributes:
        min_size: boxes whose width or height is smaller than this, multiplied by the scale of the image, are dropped.
        nms_threshold: a box is removed if its overlap with a better box exceeds this threshold.
        pre_nms_count, post_nms_count: the number of boxes of an image that enter the suppression, and the largest number
            of its results.
        normalized: whether the corners are edges of the box rather than its outermost pixels.

    Outputs: rpnrois ``[rois, 4]`` by image and descending score; rpnscores ``[rois]``; rpnroisnum ``[N]``, the number of
    boxes of each image. Equal scores are ordered as in OpenVINO's CPU plugin. The body orders them by position, then by
    anchor.

    Source: OpenVINO specification, GenerateProposals-9.
    """
    name = "GenerateProposals"
    _check(name, im_info, anchors, boxesdeltas, scores)
    offset = 0 if normalized else 1
    boxes, values, sides = refined(wide(im_info), wide(anchors), wide(boxesdeltas), wide(scores), offset)
    info, dtype = wide(im_info), values.dtype.type
    # The scales of width and height.
    scales = np.ones((len(info), 2), dtype) if info.shape[1] == 2 else info[:, [-1, 2]]
    small = (sides < (dtype(min_size) * scales)[:, None]).any(axis=2)
    kept = []
    for n in range(len(info)):
        best = partially_sorted(values[n], pre_nms_count)
        kept.append(best[suppress(boxes[n, best], nms_threshold, offset, post_nms_count, dead=small[n, best])])
    image = np.repeat(np.arange(len(info)), [len(k) for k in kept])
    at = np.concatenate([np.zeros(0, np.int64), *kept])
    numbers = np.array([len(k) for k in kept], np.int64)
    return boxes[image, at].astype(scores.dtype), values[image, at].astype(scores.dtype), numbers


def refined(info, anchors, deltas, scores, offset):
    """Return the boxes ``[N, H * W * A, 4]`` decoded from anchors, their scores, and their widths and heights."""
    images, count, rows, columns = scores.shape
    dtype = scores.dtype.type
    offset, half = dtype(offset), dtype(0.5)
    anchors = anchors.reshape(-1, 4)
    values = scores.transpose(0, 2, 3, 1).reshape(images, count * rows * columns)
    deltas = deltas.reshape(images, count, 4, rows, columns).transpose(0, 3, 4, 1, 2)
    deltas = deltas.reshape(images, count * rows * columns, 4)
    boxes = np.empty_like(deltas)
    limits = info[:, 1::-1] - offset
    with np.errstate(over="ignore", invalid="ignore"):
        for i in (0, 1):
            extent = anchors[:, i + 2] - anchors[:, i] + offset
            center = deltas[..., i] * extent + (anchors[:, i] + half * extent)
            extent = np.exp(np.minimum(deltas[..., i + 2], dtype(MOST_SCALING))) * extent
            boxes[..., i] = center - half * extent
            boxes[..., i + 2] = center + half * extent - offset
        boxes = np.maximum(np.minimum(boxes, np.concatenate([limits, limits], axis=1)[:, None]), 0)
    return boxes, values, boxes[..., 2:] - boxes[..., :2] + offset


def _check(name, im_info, anchors, boxesdeltas, scores):
    if scores.ndim != 4:
        raise ValueError(f"{name}: scores has the shape {list(scores.shape)} instead of [N, A, H, W]")
    images, count, rows, columns = scores.shape
    if boxesdeltas.shape != (images, 4 * count, rows, columns):
        raise ValueError(f"{name}: boxesdeltas has the shape {list(boxesdeltas.shape)}, scores {list(scores.shape)}")
    if anchors.shape[-1:] != (4,) or anchors.size != 4 * count * rows * columns:
        raise ValueError(f"{name}: anchors has the shape {list(anchors.shape)}, scores {list(scores.shape)}")
    if im_info.ndim != 2 or len(im_info) != images or im_info.shape[1] not in (2, 3, 4):
        raise ValueError(f"{name}: im_info has the shape {list(im_info.shape)} instead of [{images}, 3] or [{images}, 4]")


@GenerateProposals.infer_shapes
def _(node):
    scores = node.shape(3)
    return [[None, 4], [None], [scores[0] if scores else None]]


@GenerateProposals.body
def _(op, im_info, anchors, boxesdeltas, scores, **given):
    type_ = scores.dtype
    info = emit_wide(op, im_info)
    offset = 0.0 if given["normalized"] else 1.0
    box, values, sides = emit_refined(op, info, anchors, boxesdeltas, scores, offset)
    dtype = number_type(values)
    images = op.Shape(values, start=0, end=1)
    # The scale of the width is the last number, that of the height the third. With only two numbers, both are 1.
    padded = op.Concat(info, op.Expand(op.CastLike(1.0, info), op.Concat(images, [1], axis=0)), axis=1)
    last = op.Max(op.Sub(op.Shape(info, start=1), 1), 2)
    least = [op.Mul(op.Gather(padded, i, axis=1), dtype(given["min_size"])) for i in (last, op.const([2]))]
    large = op.And(*(op.GreaterOrEqual(side, size) for side, size in zip(sides, least, strict=True)))

    best = op.Min(op.Shape(values, start=1), given["pre_nms_count"])
    values, order = op.TopK(values, best, axis=1, outputs=2)
    box = [op.GatherElements(c, order, axis=1) for c in box]
    alive = op.GatherElements(large, order, axis=1)
    suppressed = emit_touching_suppressed(op, box, dtype(given["nms_threshold"]), offset)
    kept = op.Cast(emit_greedy(op, alive, suppressed, op.const(given["post_nms_count"])), to=Type.INT64)
    at = op.Transpose(op.NonZero(kept), perm=[1, 0])
    rois = op.Concat(*(op.Unsqueeze(op.GatherND(c, at), [1]) for c in box), axis=1)
    numbers = op.ReduceSum(kept, [1], keepdims=0)
    return op.Cast(rois, to=type_), op.Cast(op.GatherND(values, at), to=type_), numbers


def emit_refined(op, info, anchors, deltas, scores, offset):
    """Return the columns ``[N, H * W * A]`` of the boxes decoded from anchors, their scores, and their widths and
    heights.
    """
    anchors, deltas, values = (emit_wide(op, x) for x in (anchors, deltas, scores))
    dtype = number_type(values)
    positions = op.ReduceProd(op.Shape(values, start=1))
    flat = op.Concat(op.Shape(values, start=0, end=1), positions, axis=0)
    values = op.Reshape(op.Transpose(values, perm=[0, 2, 3, 1]), flat, allowzero=1)
    grid = op.Concat(op.Shape(scores, end=2), [4], op.Shape(scores, start=2), axis=0)
    deltas = op.Transpose(op.Reshape(deltas, grid, allowzero=1), perm=[0, 3, 4, 1, 2])
    deltas = emit_columns(op, op.Reshape(deltas, op.Concat(flat, [4], axis=0), allowzero=1))
    anchors = emit_columns(op, op.Reshape(anchors, op.Concat(positions, [4], axis=0), allowzero=1))
    starts, ends, sides = [], [], []
    for i, limit in ((0, op.Gather(info, [1], axis=1)), (1, op.Gather(info, [0], axis=1))):
        extent = op.Add(op.Sub(anchors[i + 2], anchors[i]), offset)
        center = op.Add(op.Mul(deltas[i], extent), op.Add(anchors[i], op.Mul(extent, 0.5)))
        scaling = op.Exp(op.Min(deltas[i + 2], dtype(MOST_SCALING)))
        half = op.Mul(op.Mul(scaling, extent), 0.5)
        limit = op.Sub(limit, offset)
        starts.append(op.Max(op.Min(op.Sub(center, half), limit), 0.0))
        ends.append(op.Max(op.Min(op.Sub(op.Add(center, half), offset), limit), 0.0))
        sides.append(op.Add(op.Sub(ends[i], starts[i]), offset))
    return [*starts, *ends], values, sides
