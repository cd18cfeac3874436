"""Keypoints of SimCC networks, which classify each coordinate.

Source: Model API, ``models/keypoint_detection.py``; Li and others, "SimCC" (2022).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE
_SHARPNESS = np.float32(150.0 * 6.0)


def keypoints(model: Wrapped) -> Results:
    """Emit ``keypoints`` float32 ``[n, 2]``, x and y in pixels of the image, and ``scores`` float32 ``[n]``."""
    op = model.op
    if len(model.outputs) != 2:
        raise Unsupported("it does not have two outputs, the classes of x and of y")
    axes = [op.Reshape(op.Cast(value, to=_FLOAT), [-1, _size(value)]) for value in model.outputs.values()]
    places = [op.Cast(op.ArgMax(axis, axis=1, keepdims=0), to=_FLOAT) for axis in axes]
    plain = op.Min(*(op.ReduceMax(axis, [1], keepdims=0) for axis in axes))
    hidden = op.LessOrEqual(plain, np.float32(0))
    found = [op.Div(op.Where(hidden, np.float32(-1), place), np.float32(2)) for place in places]
    scores = plain
    if model.config.flag("apply_softmax", True):
        scores = op.Min(*(op.ReduceMax(_softmax(op, axis), [1], keepdims=0) for axis in axes))
    x, y, pad_x, pad_y = model.image.geometry(op)
    mapped = []
    for place, pad, scale in zip(found, (pad_x, pad_y), (x, y), strict=True):
        shifted = op.Sub(op.Cast(place, to=_DOUBLE), op.Cast(pad, to=_DOUBLE))
        mapped.append(op.Unsqueeze(op.Cast(op.Mul(shifted, scale), to=_FLOAT), [1]))
    return {"keypoints": op.Concat(*mapped, axis=1), "scores": scores}


def _size(value: Value) -> int:
    size = value.dims[-1] if value.dims else None
    if size is None:
        raise Unsupported("the number of its classes of x and y is unknown: set the size of its image with --input-shape")
    return size


def _softmax(op: Builder, logits: Value) -> Value:
    return op.Softmax(op.Mul(logits, _SHARPNESS), axis=1)
