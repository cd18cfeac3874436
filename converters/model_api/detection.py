"""Detectors whose outputs are boxes: SSD with one output, with three, or with boxes and labels.

Source: Model API, ``models/ssd.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.model_api.boxes import Boxes, areas, kept, names_of, results, suppress, to_image, where
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value

_FLOAT, _INT64 = ir.DataType.FLOAT, ir.DataType.INT64
_XAI = ("saliency_map", "feature_vector")
_MIN_AREA = 1


def ssd(model: Wrapped) -> Results:
    """Emit ``boxes`` int32 ``[n, 4]`` in pixels of the image, ``labels`` int64, ``scores`` float32 and ``label_names``."""
    op, config = model.op, model.config
    boxes = _parsed(model)
    boxes = kept(op, boxes, suppress(op, boxes, config))
    boxes = to_image(op, boxes, model.image, normalized=True)
    confident = op.Greater(boxes.scores, np.float32(config.number("confidence_threshold", 0.5)))
    large = op.Greater(areas(op, boxes.corners), _MIN_AREA)
    boxes = boxes.take(op, where(op, op.And(large, confident)))
    found = results(op, boxes, names_of(op, boxes.labels, config))
    return found | {name: model.outputs[name] for name in _XAI if name in model.outputs}


def _parsed(model: Wrapped) -> Boxes:
    op, outputs = model.op, model.outputs
    if len(outputs) == 1:
        rows = model.only()
        if rows.dims and rows.dims[-1] == 7:
            return _rows(op, op.Cast(rows, to=_FLOAT))
    named = [_named(outputs, part) for part in ("bboxes", "scores", "labels")]
    if None not in named:
        corners, scores, labels = (op.Gather(value, np.int64(0), axis=0) for value in named)
        return Boxes(op.Cast(corners, to=_FLOAT), op.Cast(scores, to=_FLOAT), op.Cast(labels, to=_INT64))
    fives = [v for v in outputs.values() if v.dims is not None and len(v.dims) in (2, 3) and v.dims[-1] == 5]
    if len(fives) != 1:
        raise Unsupported(f"its outputs {', '.join(outputs)} are not those of Model API's SSD")
    height, width = model.image.size()
    rows = op.Reshape(op.Cast(fives[0], to=_FLOAT), [-1, 5])
    corners = op.Div(op.Slice(rows, [0], [4], [1]), np.array([width, height, width, height], np.float32))
    scores = op.Reshape(op.Slice(rows, [4], [5], [1]), [-1])
    labels = _named(outputs, "labels")
    numbers = op.Expand(op.const(np.int64(0)), op.Shape(scores)) if labels is None else op.Reshape(labels, [-1])
    return Boxes(corners, scores, op.Cast(numbers, to=_INT64))


def _rows(op: Builder, rows: Value) -> Boxes:
    """Read the rows of DetectionOutput: image, label, score, corners."""
    flat = op.Reshape(rows, [-1, 7])
    columns = [op.Reshape(op.Slice(flat, [place], [place + 1], [1]), [-1]) for place in (1, 2)]
    return Boxes(op.Slice(flat, [3], [7], [1]), columns[1], op.Cast(columns[0], to=_INT64))


def _named(outputs: Mapping[str, Value], part: str) -> Value | None:
    """Return the only output whose name contains a word."""
    found = [value for name, value in outputs.items() if part in name]
    return found[0] if len(found) == 1 else None
