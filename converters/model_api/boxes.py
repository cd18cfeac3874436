"""Boxes of Model API's detectors: suppression, mapping to the caller's image, filtering and names.

Source: Model API, ``models/utils.py`` and ``models/detection_model.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.model_api.configuration import Configuration
from converters.model_api.image import Image
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT32, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64


@dataclass(frozen=True)
class Boxes:
    """Detections: corners ``[n, 4]`` (x1, y1, x2, y2), scores ``[n]`` and labels ``[n]`` (int64)."""

    corners: Value
    scores: Value
    labels: Value

    def take(self, op: Builder, chosen: Value) -> Boxes:
        """Return the detections at the positions ``chosen``."""
        return Boxes(*(op.Gather(value, chosen, axis=0) for value in (self.corners, self.scores, self.labels)))


def where(op: Builder, condition: Value) -> Value:
    """Return the positions, int64 ``[k]``, at which a boolean vector is true."""
    return op.Squeeze(op.NonZero(condition), [0])


def corners_of(op: Builder, centers: Value) -> Value:
    """Convert ``[n, 4]`` center_x, center_y, width, height to corners."""
    center, size = op.Slice(centers, [0], [2], [1]), op.Slice(centers, [2], [4], [1])
    half = op.Div(size, np.float32(2))
    return op.Concat(op.Sub(center, half), op.Add(center, half), axis=1)


def suppress(op: Builder, boxes: Boxes, config: Configuration, *, inclusive: bool = False) -> Value | None:
    """Emit non-maximum suppression with ``nms_execute``, ``agnostic_nms``, ``iou_threshold`` and ``nms_max_predictions``.

    Args:
        op: the graph builder.
        boxes: the candidates.
        config: the model's parameters.
        inclusive: whether corners are pixels that belong to the box.

    Returns:
        The positions of the remaining boxes, by descending score, int64 ``[k]``; ``None`` without suppression.
    """
    if not config.flag("nms_execute"):
        return None
    most = config.whole("nms_max_predictions", 200)
    corners = op.Cast(boxes.corners, to=_FLOAT)
    if config.flag("agnostic_nms"):
        candidates = None
        if most:  # only the best candidates, before the suppression
            count = op.Min(op.Shape(boxes.scores), [most])
            _, candidates = op.TopK(boxes.scores, count, axis=0, outputs=2)
            corners = op.Gather(corners, candidates, axis=0)
        scores = boxes.scores if candidates is None else op.Gather(boxes.scores, candidates, axis=0)
        kept = _suppressed(op, corners, scores, config, inclusive)
        return kept if candidates is None else op.Gather(candidates, kept, axis=0)
    # As in Model API, boxes of different classes are moved apart, which rounds their corners.
    lowest = np.array([np.finfo(np.float32).min], np.float32)
    greatest = op.ReduceMax(op.Concat(op.Reshape(corners, [-1]), lowest, axis=0), keepdims=0)
    offsets = op.Mul(op.Cast(boxes.labels, to=_FLOAT), op.Add(greatest, np.float32(1)))
    corners = op.Add(corners, op.Unsqueeze(offsets, [1]))
    kept = _suppressed(op, corners, boxes.scores, config, inclusive)
    return op.Slice(kept, [0], [most]) if most else kept


def _suppressed(op: Builder, corners: Value, scores: Value, config: Configuration, inclusive: bool) -> Value:
    if inclusive:
        corners = op.Add(corners, np.array([0, 0, 1, 1], np.float32))
    chosen = op.NonMaxSuppression(
        op.Unsqueeze(corners, [0]),
        op.Unsqueeze(op.Cast(scores, to=_FLOAT), [0, 1]),
        op.Shape(scores),
        np.array([config.number("iou_threshold", 0.5)], np.float32),
    )
    return op.Squeeze(op.Slice(chosen, [2], [3], [1]), [1])


def kept(op: Builder, boxes: Boxes, positions: Value | None) -> Boxes:
    """Return the boxes at the positions, or all boxes for ``None``."""
    return boxes if positions is None else boxes.take(op, positions)


def to_image(op: Builder, boxes: Boxes, image: Image, *, normalized: bool) -> Boxes:
    """Convert boxes to pixels of the caller's image, int32, clipped to it.

    Args:
        op: the graph builder.
        boxes: the boxes in the network's image.
        image: the image.
        normalized: whether corners are fractions of the network's image.
    """
    x, y, pad_x, pad_y = image.geometry(op)
    corners = op.Cast(boxes.corners, to=_FLOAT)
    if normalized:
        height, width = image.size()
        corners = op.Mul(corners, np.array([width, height, width, height], np.float32))
        pads, scales = (_twice(op, [op.Cast(v, to=_FLOAT) for v in pair]) for pair in ((pad_x, pad_y), (x, y)))
        corners = op.Mul(op.Sub(corners, pads), scales)
    else:  # in float64, with each step rounded
        pads, scales = (_twice(op, [op.Cast(v, to=_DOUBLE) for v in pair]) for pair in ((pad_x, pad_y), (x, y)))
        corners = op.Cast(op.Sub(op.Cast(corners, to=_DOUBLE), pads), to=_FLOAT)
        corners = op.Cast(op.Mul(op.Cast(corners, to=_DOUBLE), scales), to=_FLOAT)
    bounds = _twice(op, [op.Cast(image.width, to=_FLOAT), op.Cast(image.height, to=_FLOAT)])
    clipped = op.Max(op.Min(op.Round(corners), bounds), np.float32(0))
    return replace(boxes, corners=op.Cast(clipped, to=_INT32))


def _twice(op: Builder, pair: list[Value]) -> Value:
    vector = [op.Unsqueeze(value, [0]) for value in pair]
    return op.Concat(*vector, *vector, axis=0)


def areas(op: Builder, corners: Value) -> Value:
    """Return the areas of integer boxes, int64 ``[n]``."""
    sides = op.Sub(op.Slice(corners, [2], [4], [1]), op.Slice(corners, [0], [2], [1]))
    return op.ReduceProd(op.Cast(sides, to=_INT64), [1], keepdims=0)


def names_of(op: Builder, labels: Value, config: Configuration, classes: int | None = None) -> Value | None:
    """Return the names of labels, string ``[n]``: those of the model, and ``#5`` etc. for its other classes.

    Returns:
        ``None`` if the model has no names.
    """
    names = config.labels
    if not names:
        return None
    names += [f"#{number}" for number in range(len(names), max(classes or 0, len(names) + 1))]
    numbers = op.Max(op.Min(op.Cast(labels, to=_INT64), len(names) - 1), 0)
    return op.Gather(op.const(np.array(names, object)), numbers, axis=0)


def results(op: Builder, boxes: Boxes, names: Value | None) -> dict[str, Value | None]:
    """Return the outputs of a detector."""
    labels, scores = op.Cast(boxes.labels, to=_INT64), op.Cast(boxes.scores, to=_FLOAT)
    return {"boxes": boxes.corners, "labels": labels, "scores": scores, "label_names": names}
