"""DetectionOutput: decodes and suppresses the boxes of a single-shot detector."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.attributes import Limits
from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import (
    MostOrAll,
    areas,
    corners,
    emit_areas,
    emit_at,
    emit_columns,
    emit_greedy,
    emit_intersections,
    emit_range,
    emit_wide,
    greedy,
    intersections,
    number_type,
    wide,
)
from onnx_specops.ops._checks import require_shapes

CORNER: Final = "caffe.PriorBoxParameter.CORNER"


@operator(
    inputs={"box_logits": "T", "class_preds": "T", "proposals": "T", "aux_class_preds": "T", "aux_box_preds": "T"},
    outputs={"output": "T"},
    types={"T": FLOATS},
)
def DetectionOutput(
    box_logits,
    class_preds,
    proposals,
    aux_class_preds=None,
    aux_box_preds=None,
    *,
    keep_top_k: Annotated[int, Limits(-(2**31), 2**20)],
    nms_threshold: float,
    background_label_id: int = 0,
    top_k: MostOrAll = -1,
    variance_encoded_in_target: int = 0,
    code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = CORNER,
    share_location: int = 1,
    confidence_threshold: float = 0.0,
    clip_after_nms: int = 0,
    clip_before_nms: int = 0,
    decrease_label_id: int = 0,
    normalized: int = 0,
    input_height: int = 1,
    input_width: int = 1,
    objectness_score: float = 0.0,
):
    """Decodes boxes from prior boxes and offsets, and applies non-maximum suppression to each class.

    Inputs. ``L`` is 1 if ``share_location`` is set, and otherwise the number of classes. A prior box has ``S`` = 4 numbers
    if ``normalized`` is set. Otherwise, it has 5 numbers. The first one is an image index, and -1 ends the priors of the
    image: box_logits: ``[N, priors * L * 4]``. class_preds: ``[N, priors * classes]``. proposals: ``[1 or N, 2, priors *
    S]``: the prior boxes ``x1, y1, x2, y2`` in the first row and their variances in the second. ``[1 or N, 1, priors * S]``
    if ``variance_encoded_in_target``. aux_class_preds: ``[N, priors * 2]``. A prior whose second number is below
    ``objectness_score`` is background. aux_box_preds: the shape of ``box_logits``; offsets that are applied to the priors
    first. Both auxiliary inputs may be omitted or empty.

    Attributes:
        keep_top_k: the number of boxes that are kept for an image. A negative number keeps all boxes.
        nms_threshold: a box is removed if its overlap with a better box of its class exceeds this threshold.
        background_label_id: the class of the background, which is never a result. -1 means that there is none.
        top_k: the number of candidates of each class (of each image if ``decrease_label_id``) that enter the suppression. -1
            means all.
        variance_encoded_in_target: whether the offsets are already scaled by the variances.
        code_type: ``caffe.PriorBoxParameter.CENTER_SIZE`` or ``caffe.PriorBoxParameter.CORNER``.
        share_location: whether all classes share the box of a prior.
        confidence_threshold: the score that a candidate must exceed (or reach, if ``decrease_label_id``).
        clip_before_nms, clip_after_nms: whether boxes are clipped to [0, 1].
        decrease_label_id: whether a prior is a candidate only for its best class other than 0, and the output labels are
            decreased by one.
        normalized: whether priors are fractions of the image. If not, they are divided by ``input_width`` and
            ``input_height``; as in OpenVINO, refined priors are divided a second time.
        objectness_score: see ``aux_class_preds``.

    Output: ``[1, 1, R, 7]``. Rows ``image, class, score, x1, y1, x2, y2`` are ordered by image, class and descending
    score. If there is room, a row that begins with -1 and rows of zeros follow. ``R`` is ``N * keep_top_k`` if
    ``keep_top_k`` is positive, ``N * top_k * classes`` if ``top_k`` is positive and ``keep_top_k`` is -1, and ``N * classes
    * priors`` otherwise.

    Equal scores are ordered by prior.

    Source: OpenVINO specification, DetectionOutput-8; ties and boxes with swapped corners as in OpenVINO's CPU plugin.
    """
    size = 4 if normalized else 5
    _check(
        box_logits, class_preds, proposals, aux_class_preds, aux_box_preds, size, share_location, variance_encoded_in_target
    )
    dtype = class_preds.dtype
    images, priors = len(class_preds), proposals.shape[2] // size
    classes = class_preds.shape[1] // priors
    scores = wide(class_preds).reshape(images, priors, classes)
    boxes_of = 1 if share_location else classes
    prior = wide(proposals)[:, 0].reshape(-1, 1, priors, size)
    ended = np.zeros((len(prior), priors), bool) if normalized else np.cumsum(prior[:, 0, :, 0] == -1, axis=1) > 0
    prior = prior[..., size - 4 :]
    sides = np.array([input_width, input_height] * 2, prior.dtype)
    variance = None if variance_encoded_in_target else wide(proposals)[:, 1, : 4 * priors].reshape(-1, 1, priors, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        for offsets in (aux_box_preds, box_logits):
            if offsets is not None:
                offsets = wide(offsets).reshape(images, priors, boxes_of, 4).transpose(0, 2, 1, 3)
                prior = prior if normalized else prior / sides  # applied twice to refined boxes
                prior = _decoded(prior, variance, offsets, code_type, clip_before_nms)
    boxes = prior
    if aux_class_preds is not None:
        background = wide(aux_class_preds).reshape(images, priors, 2)[:, :, 1] < scores.dtype.type(objectness_score)
        scores = np.where(background[..., None], np.arange(classes) == background_label_id, scores).astype(scores.dtype)
    scores = scores.transpose(0, 2, 1)

    rows = []
    for image in range(images):
        alive = ~ended[image if len(ended) > 1 else 0] & np.ones((classes, 1), bool)
        if decrease_label_id:
            alive = _best_classes(scores[image], alive, confidence_threshold, top_k)
        else:
            alive &= scores[image] > scores.dtype.type(confidence_threshold)
            alive[np.arange(classes) == background_label_id] = False
        kept = []
        for class_ in range(classes):
            candidates = np.flatnonzero(alive[class_])
            candidates = candidates[np.argsort(-scores[image, class_, candidates], kind="stable")]
            if not decrease_label_id and top_k != -1:
                candidates = candidates[:top_k]
            box = boxes[image, class_ % boxes_of][candidates]
            kept += [(class_, p) for p in candidates[_suppress(box, nms_threshold)]]
        if -1 < keep_top_k < len(kept):
            best = sorted(kept, key=lambda k: (-scores[image, k[0], k[1]], k[1], k[0]))[:keep_top_k]
            kept = sorted(best, key=lambda k: (k[0], -scores[image, k[0], k[1]], k[1]))
        for class_, p in kept:
            box = boxes[image, class_ % boxes_of, p]
            box = np.clip(box, 0, 1) if clip_after_nms else box
            rows.append([image, class_ - bool(decrease_label_id), scores[image, class_, p], *box])
    output = np.zeros((_rows(images, classes, priors, keep_top_k, top_k), 7), scores.dtype)
    rows = rows[: len(output)]
    if rows:
        output[: len(rows)] = rows
    if len(rows) < len(output):
        output[len(rows), 0] = -1
    return output.reshape(1, 1, -1, 7).astype(dtype)


def _check(box_logits, class_preds, proposals, aux_class_preds, aux_box_preds, size, share_location, encoded):
    name = "DetectionOutput"
    if proposals.ndim != 3 or proposals.shape[1] < 2 - bool(encoded) or proposals.shape[2] % size:
        rows = 1 if encoded else 2
        raise ValueError(f"{name}: proposals has the shape {list(proposals.shape)} instead of [N, {rows}, priors * {size}]")
    priors = proposals.shape[2] // size
    if class_preds.ndim != 2 or not priors or class_preds.shape[1] % priors:
        raise ValueError(f"{name}: class_preds has the shape {list(class_preds.shape)} for {priors} priors")
    images, classes = class_preds.shape[0], class_preds.shape[1] // priors
    numbers = (images, priors * 4 * (1 if share_location else classes))
    shapes = {
        "box_logits": (box_logits, numbers),
        "aux_class_preds": (aux_class_preds, (images, priors * 2)),
        "aux_box_preds": (aux_box_preds, numbers),
    }
    require_shapes(name, shapes)
    if proposals.shape[0] not in (1, images):
        raise ValueError(f"{name}: proposals are for {proposals.shape[0]} images, class_preds for {images}")


def _decoded(prior, variance, offsets, code_type, clip):
    offsets = offsets if variance is None else variance * offsets
    if code_type == CORNER:
        boxes = prior + offsets
    else:
        start, end = prior[..., :2], prior[..., 2:]
        extent = end - start
        center = offsets[..., :2] * extent + (start + end) / 2
        half = np.exp(offsets[..., 2:]) * extent / 2
        boxes = np.concatenate([center - half, center + half], axis=-1)
    return np.clip(boxes, 0, 1) if clip else boxes


def _best_classes(scores, alive, threshold, top_k):
    """Assign each prior to its best class except 0, and keep the ``top_k`` best priors."""
    candidates = alive & (scores >= scores.dtype.type(threshold)) & (scores > -1)
    candidates[:1] = False
    if not candidates.size:
        return candidates
    best = np.where(candidates, scores, -np.inf).argmax(axis=0)
    candidates &= np.arange(len(scores))[:, None] == best
    if top_k != -1:
        at = np.flatnonzero(candidates)
        at = at[np.argsort(-scores.reshape(-1)[at], kind="stable")][top_k:]
        candidates.reshape(-1)[at] = False
    return candidates


def _suppress(boxes, threshold):
    columns = corners(boxes)
    area = areas(columns)
    threshold = boxes.dtype.type(threshold)

    def suppressed(first, others):
        one, more = tuple(c[first] for c in columns), tuple(c[others] for c in columns)
        shared = intersections(one, more)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(shared > 0, shared / (area[first] + area[others] - shared), 0) > threshold

    return np.array(greedy(len(boxes), suppressed), np.int64)


def _rows(images, classes, priors, keep_top_k, top_k):
    return images * (keep_top_k if keep_top_k > 0 else classes * (top_k if _counts(keep_top_k, top_k) else priors))


def _counts(keep_top_k, top_k):
    """Whether ``top_k`` determines the number of rows because ``keep_top_k`` is not positive."""
    return keep_top_k == -1 and top_k > 0


@DetectionOutput.infer_shapes
def _(node):
    given = node.attributes
    predictions, proposals = node.shape(1), node.shape(2)
    rows = None
    if predictions and isinstance(predictions[0], int):
        if given["keep_top_k"] > 0:
            rows = predictions[0] * given["keep_top_k"]
        elif proposals and isinstance(predictions[1], int) and isinstance(proposals[2], int):
            priors = proposals[2] // (4 if given["normalized"] else 5)
            if priors:
                rows = _rows(predictions[0], predictions[1] // priors, priors, given["keep_top_k"], given["top_k"])
    return [[1, 1, rows, 7]]


@DetectionOutput.body
def _(op, box_logits, class_preds, proposals, aux_class_preds, aux_box_preds, **given):
    type_ = class_preds.dtype
    scores, prior = emit_wide(op, class_preds), emit_wide(op, proposals)
    dtype = number_type(scores)
    size = 4 if given["normalized"] else 5
    images, sets = op.Shape(scores, start=0, end=1), op.Shape(prior, start=0, end=1)
    priors = op.Div(op.Shape(prior, start=2), size)
    classes = op.Div(op.Shape(scores, start=1), priors)
    class_range = op.Range(0, op.Squeeze(classes, [0]), 1)
    shared = bool(given["share_location"])

    # Boxes are columns [images, classes or 1, priors].
    variances = None
    if not given["variance_encoded_in_target"]:
        row = op.Slice(op.Gather(prior, np.array(1), axis=1), [0], op.Mul(priors, 4), [1])
        variances = emit_columns(op, op.Reshape(row, op.Concat(sets, [1], priors, [4], axis=0), allowzero=1))
    row = op.Gather(prior, np.array(0), axis=1)
    rows = op.Reshape(row, op.Concat(sets, [1], priors, [size], axis=0), allowzero=1)
    columns = [op.Gather(rows, np.array(i), axis=-1) for i in range(size - 4, size)]
    sides = np.array([given["input_width"], given["input_height"]] * 2).astype(dtype)
    for offsets in (aux_box_preds, box_logits):
        if offsets is not None:
            offsets = op.Reshape(
                emit_wide(op, offsets), op.Concat(images, priors, [1] if shared else classes, [4], axis=0), allowzero=1
            )
            offsets = emit_columns(op, op.Transpose(offsets, perm=[0, 2, 1, 3]))
            if variances is not None:
                offsets = [op.Mul(v, o) for v, o in zip(variances, offsets, strict=True)]
            if not given["normalized"]:
                columns = [op.Div(column, side) for column, side in zip(columns, sides, strict=True)]
            columns = _emit_decoded(op, columns, offsets, given["code_type"])
            if given["clip_before_nms"]:
                columns = [op.Clip(column, 0.0, 1.0) for column in columns]

    scores = op.Reshape(scores, op.Concat(images, priors, classes, axis=0), allowzero=1)
    if aux_class_preds is not None:
        auxiliary = op.Reshape(emit_wide(op, aux_class_preds), op.Concat(images, priors, [2], axis=0), allowzero=1)
        objectness = op.Gather(auxiliary, [1], axis=2)
        only_background = op.Cast(op.Equal(class_range, given["background_label_id"]), to=scores.dtype)
        scores = op.Where(op.Less(objectness, dtype(given["objectness_score"])), only_background, scores)
    scores = op.Transpose(scores, perm=[0, 2, 1])
    alive = _emit_candidates(op, scores, rows, class_range, given)
    counts = op.ReduceSum(op.Cast(alive, to=Type.INT64), [2], keepdims=0)
    best = op.Max(op.ReduceMax(op.Concat(op.Reshape(counts, [-1]), [0], axis=0)), 0)  # 0 without images
    if given["top_k"] != -1 and not given["decrease_label_id"]:
        best = op.Min(best, given["top_k"])
    ordered, order = op.TopK(op.Where(alive, scores, -np.inf), best, axis=2, outputs=2)
    alive = op.Less(emit_range(op, order, 2), op.Unsqueeze(counts, [2]))

    # The candidates' boxes: positions in the flat columns. A group is a class of an image.
    image_range = op.Unsqueeze(op.Range(0, op.Squeeze(images, [0]), 1), [1, 2])
    set_of_boxes = image_range
    if not shared:
        set_of_boxes = op.Add(op.Mul(image_range, classes), op.Unsqueeze(class_range, [1]))
    at = op.Add(op.Mul(set_of_boxes, priors), order)
    groups = op.Concat(op.Mul(images, classes), op.Shape(order, start=2), axis=0)
    box = [op.Reshape(op.Gather(op.Reshape(c, [-1]), at), groups, allowzero=1) for c in columns]
    area = emit_areas(op, box)

    def suppressed(op, first):
        overlap = emit_intersections(op, emit_at(op, box, first), box)
        union = op.Sub(op.Add(op.GatherElements(area, first, axis=1), area), overlap)
        ratio = op.Where(op.Greater(overlap, 0.0), op.Div(overlap, union), 0.0)
        return op.Greater(ratio, dtype(given["nms_threshold"]))

    per_image = op.Concat(images, op.Mul(classes, op.Shape(order, start=2)), axis=0)
    kept = emit_greedy(op, op.Reshape(alive, groups, allowzero=1), suppressed)
    kept, ordered, order = (op.Reshape(x, per_image, allowzero=1) for x in (kept, ordered, order))
    if given["keep_top_k"] > -1:
        kept = _emit_best(op, kept, ordered, order, given["keep_top_k"])

    chosen = op.Transpose(op.NonZero(op.Cast(kept, to=Type.INT64)), perm=[1, 0])
    image, position = emit_columns(op, chosen, 2)
    class_ = op.Div(position, op.Max(op.Shape(box[0], start=1), 1))
    if given["decrease_label_id"]:
        class_ = op.Sub(class_, 1)
    numbers = [op.Cast(image, to=scores.dtype), op.Cast(class_, to=scores.dtype), op.GatherND(ordered, chosen)]
    for column in box:
        found = op.GatherND(op.Reshape(column, per_image, allowzero=1), chosen)
        numbers.append(op.Clip(found, 0.0, 1.0) if given["clip_after_nms"] else found)
    found = op.Concat(*(op.Unsqueeze(x, [1]) for x in numbers), axis=1)
    count = op.Mul(classes, given["top_k"] if _counts(given["keep_top_k"], given["top_k"]) else priors)
    rows = op.Mul(images, given["keep_top_k"] if given["keep_top_k"] > 0 else count)
    zeros = op.ConstantOfShape(op.Concat(rows, [7], axis=0), value=np.zeros(1, dtype))
    end = op.const(np.array([[-1, 0, 0, 0, 0, 0, 0]], dtype))
    output = op.Slice(op.Concat(found, end, zeros, axis=0), [0], rows, [0])
    return op.Cast(op.Unsqueeze(output, [0, 1]), to=type_)


def _emit_decoded(op, prior, offsets, code_type):
    if code_type == CORNER:
        return [op.Add(a, b) for a, b in zip(prior, offsets, strict=True)]
    starts, ends = [], []
    for i in (0, 1):
        extent = op.Sub(prior[i + 2], prior[i])
        center = op.Add(op.Mul(offsets[i], extent), op.Div(op.Add(prior[i], prior[i + 2]), 2.0))
        half = op.Div(op.Mul(op.Exp(offsets[i + 2]), extent), 2.0)
        starts.append(op.Sub(center, half))
        ends.append(op.Add(center, half))
    return [*starts, *ends]


def _emit_candidates(op, scores, rows, class_range, given):
    """Return which classes of which priors are candidates: bool ``[images, classes, priors]``."""
    threshold = number_type(scores)(given["confidence_threshold"])
    class_ = op.Unsqueeze(class_range, [1])
    if given["decrease_label_id"]:
        alive = op.And(op.GreaterOrEqual(scores, threshold), op.And(op.Greater(scores, -1.0), op.Greater(class_, 0)))
    else:
        alive = op.And(op.Greater(scores, threshold), op.Not(op.Equal(class_, given["background_label_id"])))
    if not given["normalized"]:
        ends = op.Cast(op.Equal(op.Gather(rows, np.array(0), axis=-1), -1.0), to=Type.INT64)
        alive = op.And(alive, op.Equal(op.CumSum(ends, 2), 0))
    if not given["decrease_label_id"]:
        return alive
    # Append a class that never wins, because ArgMax rejects an empty axis.
    contest = op.Pad(op.Where(alive, scores, -np.inf), [0, 0, 0, 0, 1, 0], number_type(scores)(-np.inf))
    best = op.ArgMax(contest, axis=1, keepdims=1)
    alive = op.And(alive, op.Equal(class_, best))
    if given["top_k"] == -1:
        return alive
    shape = op.Shape(alive)
    flat = op.Concat(op.Slice(shape, [0], [1]), [-1], axis=0)
    top = _emit_top(op, op.Reshape(alive, flat), op.Reshape(scores, flat), given["top_k"])
    return op.Reshape(top, shape, allowzero=1)


def _emit_best(op, kept, scores, priors, count):
    """Return the ``count`` best of ``kept`` ``[images, classes * candidates]``; equal scores by prior, then class."""
    _, by_prior = op.TopK(priors, op.Shape(priors, start=1), axis=1, largest=0, outputs=2)
    sorted_kept, sorted_scores = (op.GatherElements(x, by_prior, axis=1) for x in (kept, scores))
    best = _emit_top(op, sorted_kept, sorted_scores, count)
    none = op.And(kept, op.Not(kept))
    return op.ScatterElements(none, by_prior, best, axis=1)


def _emit_top(op, flags, scores, count):
    """Return ``flags`` ``[images, n]`` with only the ``count`` highest scores set, the first of equal ones."""
    best = op.Min(op.Shape(flags, start=1), count)
    _, at = op.TopK(op.Where(flags, scores, -np.inf), best, axis=1, outputs=2)
    none = op.And(flags, op.Not(flags))
    return op.ScatterElements(none, at, op.GatherElements(flags, at, axis=1), axis=1)
