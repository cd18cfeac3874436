"""Anomaly detection: Anomalib's models, whose output is a map or all predictions.

Source: Model API, ``models/anomaly.py``.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.regions import boxes_of_regions
from converters.model_api.segmentation import resized_levels
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value

_FLOAT, _UINT8 = ir.DataType.FLOAT, ir.DataType.UINT8
_PREDICTED = ("pred_score", "pred_label", "pred_mask", "anomaly_map")


def anomaly(model: Wrapped) -> Results:
    """Emit ``pred_score`` float32, ``pred_label`` (a name, or the network's output), ``anomaly_map`` and ``pred_mask``
    uint8.

    Both maps have the size of the image. The mask is 1 for anomalies. The task ``detection`` adds ``pred_boxes``, int32
    ``[n, 4]``, around the outermost regions of the mask.
    """
    op, config = model.op, model.config
    task = config.text("task", "classification", ("classification", "segmentation", "detection"))
    if all(name in model.outputs for name in _PREDICTED):
        score = op.Reshape(op.Cast(model.outputs["pred_score"], to=_FLOAT), [])
        label: Value = op.Reshape(model.outputs["pred_label"], [])
        heat, mask = (_plane(op, model.outputs[name]) for name in ("anomaly_map", "pred_mask"))
    else:
        heat = _plane(op, next(iter(model.outputs.values())))
        names = config.labels
        if len(names) < 2:
            raise Malformed("model_info/labels has fewer than two labels; expected a normal and an anomalous one")
        image_threshold = np.float32(config.number("image_threshold", 0.5))
        pixel_threshold = np.float32(config.number("pixel_threshold", 0.5))
        scale = np.float32(config.number("normalization_scale", 1.0))
        raw = op.ReduceMax(heat, keepdims=0)
        mask = op.Cast(op.GreaterOrEqual(heat, pixel_threshold), to=_FLOAT)
        heat = _normalized(op, heat, pixel_threshold, scale)
        anomalous = op.Greater(raw, image_threshold)
        score = _normalized(op, raw, image_threshold, scale)
        score = op.Where(anomalous, score, op.Sub(np.float32(1), score))
        label = op.Gather(op.const(np.array(names[:2], object)), op.Cast(anomalous, to=ir.DataType.INT64), axis=0)
    levels = op.Round(op.Mul(heat, np.float32(255)))
    mask = resized_levels(op, op.Cast(mask, to=_UINT8), model.image)
    boxes = op.Cast(boxes_of_regions(op, mask), to=ir.DataType.INT32) if task == "detection" else None
    return {
        "pred_score": score,
        "pred_label": label,
        "anomaly_map": resized_levels(op, op.Cast(levels, to=_UINT8), model.image),
        "pred_mask": mask,
        "pred_boxes": boxes,
    }


def _plane(op: Builder, value: Value) -> Value:
    """Return the last two dimensions of a map in float32."""
    if value.rank is None or value.rank < 2:
        raise Unsupported("its output is not an anomaly map")
    return op.Reshape(op.Cast(value, to=_FLOAT), op.Slice(op.Shape(value), [-2], [2**31 - 1]))


def _normalized(op: Builder, values: Value, threshold: np.float32, scale: np.float32) -> Value:
    return op.Clip(op.Add(op.Div(op.Sub(values, threshold), scale), np.float32(0.5)), np.float32(0), np.float32(1))
