"""Instance segmentation: a box and a mask for each object. Masks have the size of the image.

Source: Model API, ``models/instance_segmentation.py`` and ``models/yolo_seg.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.boxes import Boxes, areas, kept, names_of, results, suppress, to_image, where
from converters.model_api.configuration import Configuration
from converters.model_api.regions import rotated_rectangle
from converters.model_api.segmentation import resized_linear
from converters.model_api.wrapper import Results, Wrapped
from converters.model_api.yolo import best_classes
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT32, _INT64, _UINT8 = (
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8,
)  # fmt: skip
_XAI = ("saliency_map", "feature_vector")

Paint = Callable[[Builder, Value, Value], Value]
"""Turns a mask ``[h, w]`` and its box, int32 ``[4]``, into a mask of the image, uint8."""


def mask_rcnn(model: Wrapped) -> Results:
    """Emit instances with masks that cover their boxes."""

    def paint(op: Builder, mask: Value, box: Value) -> Value:
        return pasted(op, mask, box, model.image.height, model.image.width)

    return _instances(model, paint)


def detr(model: Wrapped) -> Results:
    """Emit instances with masks that cover the image."""

    def paint(op: Builder, mask: Value, _box: Value) -> Value:
        sized = resized_linear(op, op.Unsqueeze(mask, [0]), model.image.height, model.image.width)
        return _above_half(op, op.Squeeze(sized, [0]))

    return _instances(model, paint)


def _instances(model: Wrapped, paint: Paint) -> Results:
    """Emit ``boxes`` int32 ``[n, 4]``, ``labels`` int64, ``scores`` float32, ``masks`` uint8 ``[n, height, width]``.

    The ``task_type`` ``rotated_detection`` adds ``rotated_rects`` float32 ``[n, 5]``. A model with a ``feature_vector`` has
    a ``saliency_map`` uint8 ``[labels, height, width]``: where there are objects of each label.
    """
    op, config = model.op, model.config
    boxes, masks, by_class = _parsed(model)
    boxes = to_image(op, boxes, model.image, normalized=False)
    confident = op.Greater(boxes.scores, np.float32(config.number("confidence_threshold", 0.5)))
    valid = op.And(confident, op.Greater(areas(op, boxes.corners), 1))
    if config.labels:
        valid = op.And(valid, op.Less(boxes.labels, len(config.labels)))
    chosen = where(op, valid)
    boxes, masks = boxes.take(op, chosen), op.Gather(masks, chosen, axis=0)
    positions = suppress(op, boxes, config)
    boxes = kept(op, boxes, positions)
    masks = masks if positions is None else op.Gather(masks, positions, axis=0)
    if by_class:  # one mask for each class
        rows = op.Range(np.int64(0), op.Squeeze(op.Shape(boxes.labels), [0]), np.int64(1))
        masks = op.GatherND(masks, op.Concat(op.Unsqueeze(rows, [1]), op.Unsqueeze(boxes.labels, [1]), axis=1))
    found = results(op, boxes, names_of(op, boxes.labels, config))
    whole = config.flag("postprocess_semantic_masks", True)
    explained = "feature_vector" in model.outputs
    images = painted(op, masks, boxes.corners, paint) if whole or explained else masks
    if explained:
        found |= {"feature_vector": model.outputs["feature_vector"], "saliency_map": _by_label(op, images, boxes, model)}
    masks = images if whole else masks
    return found | {"masks": masks, "rotated_rects": rotated(op, masks) if is_rotated(config) else None}


def is_rotated(config: Configuration) -> bool:
    """Return whether a model's results are rotated rectangles."""
    return config.text("task_type") == "rotated_detection"


def rotated(op: Builder, masks: Value) -> Value:
    """Return the smallest rotated rectangle of each mask, float32 ``[n, 5]``: center, width, height, angle in degrees."""

    def step(op: Builder, number: Value, condition: Value) -> tuple[Value, Value]:
        return op.Identity(condition), rotated_rectangle(op, op.Gather(masks, number, axis=0))

    return op.loop(op.Squeeze(op.Shape(masks, end=1), [0]), np.array(True), step)


def _by_label(op: Builder, masks: Value, boxes: Boxes, model: Wrapped) -> Value:
    """Return 255 at the objects of each label, uint8 ``[labels, height, width]``; label 1 is the first, 0 the last."""
    count = len(model.config.labels)
    if not count:
        raise Malformed("it has a feature_vector, but no labels")
    places = op.Mod(op.Add(boxes.labels, count - 1), count)
    of_label = op.Cast(op.Equal(op.Unsqueeze(op.Range(0, count, 1), [1]), op.Unsqueeze(places, [0])), to=_FLOAT)
    # The masks of no objects do not have the image's size.
    size = op.Concat(op.Unsqueeze(model.image.height, [0]), op.Unsqueeze(model.image.width, [0]), axis=0)
    pixels = op.Reshape(op.Cast(masks, to=_FLOAT), op.Concat(op.Shape(masks, end=1), op.ReduceProd(size), axis=0))
    covered = op.Greater(op.MatMul(of_label, pixels), np.float32(0))
    levels = op.Where(covered, op.const(np.uint8(255)), op.const(np.uint8(0)))
    return op.Reshape(levels, op.Concat([count], size, axis=0))


def _parsed(model: Wrapped) -> tuple[Boxes, Value, bool]:
    op, outputs = model.op, model.outputs
    if {"boxes", "classes", "scores", "raw_masks"} <= outputs.keys():
        labels, masks = op.Cast(outputs["classes"], to=_INT64), op.Cast(outputs["raw_masks"], to=_FLOAT)
        corners, scores = (op.Cast(outputs[name], to=_FLOAT) for name in ("boxes", "scores"))
        return Boxes(corners, scores, labels), masks, True
    plain = {name: v for name, v in outputs.items() if name not in _XAI and not name.startswith("TopK")}
    ranks = {v.rank: v for v in plain.values()}
    for first in (1, 2):  # without a batch, and with one
        if set(ranks) >= {first, first + 1, first + 2}:
            labels, rows, masks = (ranks[first + step] for step in range(3))
            if first == 2:
                labels, rows, masks = (op.Gather(value, np.int64(0), axis=0) for value in (labels, rows, masks))
            rows = op.Cast(rows, to=_FLOAT)
            scores = op.Squeeze(op.Slice(rows, [4], [5], [1]), [1])
            shifted = op.Add(op.Cast(labels, to=_INT64), 1)  # 0 is the background
            return Boxes(op.Slice(rows, [0], [4], [1]), scores, shifted), op.Cast(masks, to=_FLOAT), False
    raise Unsupported(f"its outputs {', '.join(outputs)} are not the labels, boxes and masks of instances")


def painted(op: Builder, masks: Value, corners: Value, paint: Paint) -> Value:
    """Emit a mask of the image's size for each object, in a loop, because all masks at once would need much memory."""
    count = op.Squeeze(op.Shape(corners, end=1), [0])

    def step(op: Builder, number: Value, condition: Value) -> tuple[Value, Value]:
        mask, box = op.Gather(masks, number, axis=0), op.Gather(corners, number, axis=0)
        return op.Identity(condition), paint(op, mask, box)

    return op.loop(count, np.array(True), step)


def _above_half(op: Builder, mask: Value) -> Value:
    return op.Cast(op.Greater(mask, np.float32(0.5)), to=_UINT8)


def pasted(op: Builder, mask: Value, box: Value, height: Value, width: Value) -> Value:
    """Resize a mask with a border of zeros to its box with that border, and insert it into an image of zeros."""
    bordered = op.Pad(mask, [1, 1, 1, 1])
    size = op.Shape(bordered)
    rows = op.Cast(op.Gather(size, np.int64(0), axis=0), to=_DOUBLE)
    expansion = op.Div(rows, op.Sub(rows, 2.0))
    corners = op.Cast(box, to=_DOUBLE)
    first, last = op.Slice(corners, [0], [2]), op.Slice(corners, [2], [4])
    half = op.Mul(op.Mul(op.Sub(last, first), 0.5), expansion)
    center = op.Mul(op.Add(last, first), 0.5)
    begins, ends = (op.Cast(side, to=_INT64) for side in (op.Sub(center, half), op.Add(center, half)))
    weights = []
    for axis, side, place in ((0, height, 1), (1, width, 0)):
        begin, end = (op.Gather(value, np.int64(place), axis=0) for value in (begins, ends))
        count = op.Gather(size, np.int64(axis), axis=0)
        weights.append(_weights(op, side, begin, end, count))
    down, across = weights
    return _above_half(op, op.MatMul(op.MatMul(down, bordered), op.Transpose(across, perm=[1, 0])))


def _weights(op: Builder, side: Value, begin: Value, end: Value, count: Value) -> Value:
    """Return the weights of ``count`` elements at each position of an image's side, linear between two neighbors.

    Returns:
        Float32 ``[side, count]``, with zeros at positions before ``begin`` and after ``end``.
    """
    positions = op.Range(np.int64(0), side, np.int64(1))
    length = op.Max(op.Add(op.Sub(end, begin), 1), 1)
    scale = op.Div(op.Cast(count, to=_DOUBLE), op.Cast(length, to=_DOUBLE))
    offset = op.Add(op.Cast(op.Sub(positions, begin), to=_DOUBLE), 0.5)
    source = op.Cast(op.Sub(op.Mul(offset, scale), 0.5), to=_FLOAT)
    source = op.Max(op.Min(source, op.Cast(op.Sub(count, 1), to=_FLOAT)), np.float32(0))
    elements = op.Cast(op.Range(np.int64(0), count, np.int64(1)), to=_FLOAT)
    apart = op.Abs(op.Sub(op.Unsqueeze(source, [1]), op.Unsqueeze(elements, [0])))
    worth = op.Max(op.Sub(np.float32(1), apart), np.float32(0))
    inside = op.And(op.GreaterOrEqual(positions, begin), op.LessOrEqual(positions, end))
    return op.Mul(worth, op.Unsqueeze(op.Cast(inside, to=_FLOAT), [1]))


def yolo_seg(model: Wrapped) -> Results:
    """Emit Ultralytics' segmentation: boxes with coefficients ``[1, 4 + classes + k, n]``, and ``k`` mask prototypes."""
    op, config, image = model.op, model.config, model.image
    ranks = {value.rank: op.Cast(value, to=_FLOAT) for value in model.outputs.values()}
    if set(ranks) != {3, 4} or len(model.outputs) != 2:
        raise Unsupported("it does not have two outputs, boxes [1, numbers, n] and prototypes [1, k, height, width]")
    prediction, prototypes = op.Squeeze(ranks[3], [0]), op.Squeeze(ranks[4], [0])
    dims, numbers = prototypes.dims or [], (prediction.dims or [None])[0]
    if numbers is None or None in dims:
        raise Unsupported("the sizes of its outputs are unknown: set the size of its image with --input-shape")
    count, rows, columns = (int(d or 0) for d in dims)
    boxes, coefficients = best_classes(op, prediction, model, numbers - 4 - count)
    positions = suppress(op, boxes, config)
    boxes = kept(op, boxes, positions)
    coefficients = coefficients if positions is None else op.Gather(coefficients, positions, axis=0)
    masks = op.Sigmoid(op.Reshape(op.MatMul(coefficients, op.Reshape(prototypes, [count, -1])), [-1, rows, columns]))
    height, width = image.size()
    scale = np.array([columns / width, rows / height] * 2, np.float32)
    edges = op.Mul(boxes.corners, scale)
    x, y, pad_x, pad_y = image.geometry(op)
    shown = [
        op.Cast(op.Round(op.Div(op.Cast(s, to=_DOUBLE), f)), to=_INT64) for s, f in ((image.height, y), (image.width, x))
    ]
    begins = [op.Unsqueeze(pad, [0]) for pad in (pad_y, pad_x)]
    ends = [op.Add(begin, op.Unsqueeze(size, [0])) for begin, size in zip(begins, shown, strict=True)]

    def paint(op: Builder, mask: Value, edge: Value) -> Value:
        column, row = np.arange(columns, dtype=np.float32), np.arange(rows, dtype=np.float32)
        x1, y1, x2, y2 = (op.Gather(edge, np.int64(place), axis=0) for place in range(4))
        across = op.And(op.GreaterOrEqual(column, x1), op.Less(column, x2))
        down = op.And(op.GreaterOrEqual(row, y1), op.Less(row, y2))
        inside = op.And(op.Unsqueeze(down, [1]), op.Unsqueeze(across, [0]))
        cut = op.Unsqueeze(op.Mul(mask, op.Cast(inside, to=_FLOAT)), [0])
        wide = resized_linear(op, cut, op.const(np.int64(height)), op.const(np.int64(width)))
        part = op.Slice(wide, op.Concat(*begins, axis=0), op.Concat(*ends, axis=0), [1, 2])
        return _above_half(op, op.Squeeze(resized_linear(op, part, image.height, image.width), [0]))

    masks = painted(op, masks, edges, paint)
    boxes = to_image(op, boxes, image, normalized=False)
    names = names_of(op, boxes.labels, config, numbers - 4 - count)
    found = results(op, replace(boxes, labels=op.Add(boxes.labels, 1)), names)
    return found | {"masks": masks, "rotated_rects": rotated(op, masks) if is_rotated(config) else None}
