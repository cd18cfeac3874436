"""Proposal: the proposals of a region proposal network."""

from __future__ import annotations

from typing import Literal

import numpy as np

from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    Most,
    Rows,
    emit_columns,
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


@operator(
    inputs={"class_probs": "T", "bbox_deltas": "T", "image_shape": "T", "anchors": "T"},
    outputs={"rois": "T", "probs": "T"},
    types={"T": FLOATS},
)
def Proposal(
    class_probs,
    bbox_deltas,
    image_shape,
    anchors,
    *,
    feat_stride: int,
    min_size: int,
    pre_nms_topn: Most,
    post_nms_topn: Rows,
    nms_thresh: float,
    box_coordinate_scale: float = 1.0,
    box_size_scale: float = 1.0,
    normalize: int = 0,
    clip_before_nms: int = 1,
    clip_after_nms: int = 0,
    framework: Literal["", "tensorflow"] = "",
):
    """Moves and scales anchors by predicted deltas, and applies non-maximum suppression to each image.

    Inputs:
        class_probs: ``[N, 2 * A, H, W]``. The second half of the channels contains the scores.
        bbox_deltas: ``[N, 4 * A, H, W]``: shifts of the center as fractions of the anchor, and logarithms of its
            scaling.
        image_shape: ``[3]`` or ``[4]``: height, width, then the scale of ``min_size``: one for both axes, or one for the
            height and one for the width.
        anchors: ``[A, 4]``, ``x1, y1, x2, y2`` relative to the first position.

    Attributes:
        feat_stride: the distance between adjacent positions, in pixels.
        min_size: the score of boxes whose width or height is smaller than this, multiplied by the scale of the image,
            becomes 0.
        pre_nms_topn, post_nms_topn: the number of boxes of an image that enter the suppression, and the number of its
            results.
        nms_thresh: a box is removed if its overlap with a better box exceeds this threshold.
        box_coordinate_scale, box_size_scale: the divisors of the deltas.
        normalize: whether the results are fractions of the image.
        clip_before_nms, clip_after_nms: whether boxes are clipped to the image.
        framework: ``""``: the corners are the outermost pixels of the box. ``"tensorflow"``: they are its edges, anchors
            are clipped, and x and y are swapped.

    Outputs: rois ``[N * post_nms_topn, 5]``, rows ``image, x1, y1, x2, y2``; a row that begins with -1 and rows of zeros
    follow the last box of an image. probs ``[N * post_nms_topn]``, their scores, then zeros.

    Equal scores are ordered as in OpenVINO's CPU plugin. The body orders them by position, then by anchor. (The plugin does
    not initialize the probabilities after the last box of an image.)

    Source: OpenVINO specification, Proposal-4.
    """
    name = "Proposal"
    _check(name, class_probs, bbox_deltas, image_shape, anchors)
    dtype = class_probs.dtype
    scores, deltas, image, anchors = (wide(x) for x in (class_probs, bbox_deltas, image_shape, anchors))
    if not np.isfinite(image).all() or (image[:2] <= 0).any() or (image[2:] < 0).any():
        raise ValueError(f"{name}: image_shape = {image.tolist()}: it must be positive, and its scale not negative")
    images, _, rows, columns = scores.shape
    count = len(anchors)
    tensorflow = framework == "tensorflow"
    offset = scores.dtype.type(0 if tensorflow else 1)
    # Positions are ordered by row, column, anchor: [N, H, W, A].
    scores = scores[:, count:].transpose(0, 2, 3, 1)
    deltas = deltas.reshape(images, count, 4, rows, columns).transpose(0, 3, 4, 1, 2)
    deltas = deltas / np.array([box_coordinate_scale] * 2 + [box_size_scale] * 2, deltas.dtype)
    height, width = (image[1], image[0]) if tensorflow else (image[0], image[1])
    down, across = (np.arange(n, dtype=scores.dtype) * scores.dtype.type(feat_stride) for n in (rows, columns))
    x, y = (down[:, None, None], across[:, None]) if tensorflow else (across[:, None], down[:, None, None])
    x1, y1, x2, y2 = anchors.T
    box = [x + x1, y + y1, x + x2, y + y2]
    limits = [width, height, width, height]
    if tensorflow:
        box = [np.clip(c, 0, limit) for c, limit in zip(box, limits, strict=True)]
    starts, ends = [], []
    half = scores.dtype.type(0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in (0, 1):
            extent = box[i + 2] - box[i] + offset
            center = deltas[..., i] * extent + (box[i] + half * extent)
            extent = np.exp(deltas[..., i + 2]) * extent
            starts.append(center - half * extent)
            ends.append(center + half * extent)
        box = [*starts, *ends]
        if clip_before_nms:
            box = [np.clip(c, 0, limit - offset) for c, limit in zip(box, limits, strict=True)]
        box_width, box_height = box[2] - box[0] + offset, box[3] - box[1] + offset
        smallest = np.array(min_size, scores.dtype)
        large = (smallest * image[-1] <= box_width) & (smallest * image[2] <= box_height)
        scores = (large * scores).reshape(images, count * rows * columns)
    boxes = np.stack(box, axis=-1).reshape(images, count * rows * columns, 4)

    rois = np.zeros((images, post_nms_topn, 5), scores.dtype)
    probs = np.zeros(rois.shape[:2], scores.dtype)
    for n in range(images):
        best = partially_sorted(scores[n], pre_nms_topn)
        kept = best[suppress(boxes[n, best], nms_thresh, offset, post_nms_topn)]
        found = boxes[n, kept]
        if clip_after_nms:
            found = np.clip(found, 0, np.array(limits, found.dtype))
        if normalize:
            found = found / np.array(limits, found.dtype)
        rois[n, : len(kept), 0], rois[n, : len(kept), 1:] = n, found
        rois[n, len(kept) : len(kept) + 1, 0] = -1
        probs[n, : len(kept)] = scores[n, kept]
    return rois.reshape(-1, 5).astype(dtype), probs.reshape(-1).astype(dtype)


def _check(name, class_probs, bbox_deltas, image_shape, anchors):
    if anchors.ndim != 2 or anchors.shape[1] != 4:
        raise ValueError(f"{name}: anchors has the shape {list(anchors.shape)} instead of [A, 4]")
    for what, given, channels in (("class_probs", class_probs, 2), ("bbox_deltas", bbox_deltas, 4)):
        if given.ndim != 4 or given.shape[1] != channels * len(anchors) or given.shape[2:] != class_probs.shape[2:]:
            raise ValueError(f"{name}: {what} has the shape {list(given.shape)} for {len(anchors)} anchors")
    if len(class_probs) != len(bbox_deltas):
        raise ValueError(f"{name}: class_probs is for {len(class_probs)} images, bbox_deltas for {len(bbox_deltas)}")
    if image_shape.shape not in ((3,), (4,)):
        raise ValueError(f"{name}: image_shape has the shape {list(image_shape.shape)} instead of [3] or [4]")


@Proposal.infer_shapes
def _(node):
    scores = node.shape(0)
    rows = scores[0] * node.attributes["post_nms_topn"] if scores and isinstance(scores[0], int) else None
    return [[rows, 5], [rows]]


@Proposal.body
def _(op, class_probs, bbox_deltas, image_shape, anchors, **given):
    type_ = class_probs.dtype
    scores, deltas, image, anchors = (emit_wide(op, x) for x in (class_probs, bbox_deltas, image_shape, anchors))
    dtype = number_type(scores)
    tensorflow = given["framework"] == "tensorflow"
    offset = 0.0 if tensorflow else 1.0
    images, count = op.Shape(scores, start=0, end=1), op.Shape(anchors, start=0, end=1)
    sides = [op.Gather(image, np.array(i), axis=0) for i in ((1, 0) if tensorflow else (0, 1))]  # height, width
    limits = [sides[1], sides[0]] * 2

    # Positions are ordered by row, column, anchor: [N, H, W, A].
    scores = op.Transpose(op.Slice(scores, count, [2**31], [1]), perm=[0, 2, 3, 1])
    grid = op.Concat(images, count, [4], op.Shape(deltas, start=2), axis=0)
    deltas = emit_columns(op, op.Transpose(op.Reshape(deltas, grid, allowzero=1), perm=[0, 3, 4, 1, 2]))
    scales = [dtype(given[s]) for s in ("box_coordinate_scale", "box_size_scale")]
    deltas = [op.Div(delta, scales[i // 2]) for i, delta in enumerate(deltas)]
    down, across = (
        op.Mul(op.Cast(op.Range(0, op.Squeeze(op.Shape(scores, start=i, end=i + 1), [0]), 1), to=scores.dtype), stride)
        for i, stride in ((1, dtype(given["feat_stride"])), (2, dtype(given["feat_stride"])))
    )
    down, across = op.Unsqueeze(down, [1, 2]), op.Unsqueeze(across, [1])
    shifts = (down, across) if tensorflow else (across, down)
    box = [op.Add(shifts[i % 2], column) for i, column in enumerate(emit_columns(op, anchors))]
    if tensorflow:
        box = [op.Max(op.Min(c, limit), 0.0) for c, limit in zip(box, limits, strict=True)]
    starts, ends = [], []
    for i in (0, 1):
        extent = op.Add(op.Sub(box[i + 2], box[i]), offset)
        center = op.Add(op.Mul(deltas[i], extent), op.Add(box[i], op.Mul(extent, 0.5)))
        half = op.Mul(op.Mul(op.Exp(deltas[i + 2]), extent), 0.5)
        starts.append(op.Sub(center, half))
        ends.append(op.Add(center, half))
    box = [*starts, *ends]
    if given["clip_before_nms"]:
        box = [op.Max(op.Min(c, op.Sub(limit, offset)), 0.0) for c, limit in zip(box, limits, strict=True)]
    smallest = [op.Mul(op.Gather(image, np.array(i), axis=0), dtype(given["min_size"])) for i in (-1, 2)]
    large = op.And(*(op.LessOrEqual(smallest[i], op.Add(op.Sub(box[i + 2], box[i]), offset)) for i in (0, 1)))
    flat = op.Concat(images, op.ReduceProd(op.Shape(scores, start=1)), axis=0)
    scores = op.Reshape(op.Mul(op.Cast(large, to=scores.dtype), scores), flat, allowzero=1)

    best = op.Min(op.Shape(scores, start=1), given["pre_nms_topn"])
    scores, order = op.TopK(scores, best, axis=1, outputs=2)
    box = [op.GatherElements(op.Reshape(c, flat, allowzero=1), order, axis=1) for c in box]
    suppressed = emit_touching_suppressed(op, box, dtype(given["nms_thresh"]), offset)
    most = given["post_nms_topn"]
    alive = op.Equal(order, order)
    kept = emit_greedy(op, alive, suppressed, op.const(most))
    at, valid, counts = emit_first(op, kept, most)
    positions = op.Range(0, most, 1)
    image = op.Cast(op.Unsqueeze(op.Range(0, op.Squeeze(images, [0]), 1), [1]), to=scores.dtype)
    end = op.Where(op.Equal(positions, counts), dtype(-1), dtype(0))
    numbers = [op.Where(op.Less(positions, counts), image, end)]
    for column, limit in zip(box, limits, strict=True):
        found = op.GatherElements(column, at, axis=1)
        if given["clip_after_nms"]:
            found = op.Max(op.Min(found, limit), 0.0)
        found = op.Div(found, limit) if given["normalize"] else found
        numbers.append(emit_padded(op, op.Where(valid, found, dtype(0)), most))
    rois = op.Reshape(op.Concat(*(op.Unsqueeze(x, [2]) for x in numbers), axis=2), [-1, 5])
    probs = emit_padded(op, op.Where(valid, op.GatherElements(scores, at, axis=1), dtype(0)), most)
    return op.Cast(rois, to=type_), op.Cast(op.Reshape(probs, [-1]), to=type_)
