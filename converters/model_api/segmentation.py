"""Semantic segmentation: the class of each pixel of the image.

Source: Model API, ``models/segmentation.py``.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.model_api.fixed_point import fixed_point_resized
from converters.model_api.image import Image
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8


def segmentation(model: Wrapped) -> Results:
    """Emit ``mask`` uint8 ``[height, width]``, and ``soft_prediction`` ``[height, width, classes]`` if requested.

    With both, a model with a ``feature_vector`` has a ``saliency_map`` uint8 ``[height, width, classes]``.
    """
    op, config = model.op, model.config
    maps = [value for name, value in model.outputs.items() if name != "feature_vector"]
    if len(maps) != 1 or maps[0].dims is None or len(maps[0].dims) not in (3, 4):
        raise Unsupported("it does not have exactly one output of three or four dimensions besides feature_vector")
    results: Results = {name: value for name, value in model.outputs.items() if name == "feature_vector"}
    scores = maps[0]
    classes = scores.dims[1] if scores.dims is not None and len(scores.dims) == 4 else 0
    if classes is not None and classes < 2:  # already class indices
        numbers = op.Reshape(scores, op.Slice(op.Shape(scores), [-2], [2**31 - 1]))
        return results | {"mask": resized_nearest(op, op.Cast(numbers, to=_UINT8), model.image)}
    soft = op.Transpose(op.Squeeze(op.Cast(scores, to=_FLOAT), [0]), perm=[1, 2, 0])
    strength = config.whole("blur_strength", -1)
    threshold = config.number("soft_threshold", float("-inf"))
    likely = soft
    if strength != -1 and threshold != float("inf"):
        likely = _blurred(op, soft, strength)
        likely = op.Where(op.Less(likely, np.float32(threshold)), np.float32(0), likely)
    mask = op.Cast(op.ArgMax(likely, axis=2, keepdims=0), to=_UINT8 if (classes or 257) <= 256 else ir.DataType.INT32)
    results["mask"] = resized_nearest(op, mask, model.image)
    if config.flag("return_soft_prediction", True):
        results["soft_prediction"] = shown = resized_nearest(op, soft, model.image)
        if "feature_vector" in results:
            results["saliency_map"] = _activations(op, shown)
    return results


def _activations(op: Builder, maps: Value) -> Value:
    """Return maps scaled to the range 0 to 255."""
    lowest, greatest = op.ReduceMin(maps, keepdims=0), op.ReduceMax(maps, keepdims=0)
    factor = op.Div(np.float32(255), op.Add(op.Sub(greatest, lowest), np.float32(1e-12)))
    return op.Cast(op.Round(op.Mul(op.Sub(maps, lowest), factor)), to=_UINT8)


def _blurred(op: Builder, maps: Value, strength: int) -> Value:
    """Return the mean of ``strength`` x ``strength`` pixels, mirrored at the edges without the edge itself, like
    ``cv2.blur``.
    """
    if strength < 1:
        raise Unsupported(f"its blur_strength is {strength}; expected 1 or more, or -1 for no blur")
    planes = op.Unsqueeze(op.Transpose(maps, perm=[2, 0, 1]), [0])
    before, after = strength // 2, strength - 1 - strength // 2
    padded = op.Pad(planes, [0, 0, before, before, 0, 0, after, after], mode="reflect")
    mean = op.AveragePool(padded, kernel_shape=[strength, strength])
    return op.Transpose(op.Squeeze(mean, [0]), perm=[1, 2, 0])


def resized_nearest(op: Builder, maps: Value, image: Image) -> Value:
    """Resize ``[height, width, ...]`` to the image's size like ``cv2.INTER_NEAREST``."""
    for axis, size in ((0, image.height), (1, image.width)):
        own = op.Slice(op.Shape(maps), [axis], [axis + 1])
        wide = op.Cast(own, to=_DOUBLE)
        # ONNX Runtime replaces Mul(x, Div(1, y)) with Div(x, y), which rounds differently
        factor = op.Reciprocal(op.Div(op.Cast(size, to=_DOUBLE), wide))
        places = op.Floor(op.Mul(op.Cast(op.Range(np.int64(0), size, np.int64(1)), to=_DOUBLE), factor))
        places = op.Min(op.Cast(places, to=_INT64), op.Sub(own, 1))
        maps = op.Gather(maps, places, axis=axis)
    return maps


def resized_linear(op: Builder, planes: Value, height: Value, width: Value) -> Value:
    """Resize float32 ``[n, h, w]`` like ``cv2.INTER_LINEAR`` of floats."""
    count = op.Shape(planes, end=1)
    sizes = op.Concat(count, [1], op.Unsqueeze(height, [0]), op.Unsqueeze(width, [0]), axis=0)
    resized = op.Resize(
        op.Unsqueeze(planes, [1]), None, None, sizes, mode="linear", coordinate_transformation_mode="half_pixel"
    )
    return op.Squeeze(resized, [1])


def resized_levels(op: Builder, levels: Value, image: Image) -> Value:
    """Resize uint8 ``[h, w]`` to the image's size, in the fixed-point arithmetic of ``cv2.INTER_LINEAR``."""
    return fixed_point_resized(op, levels, image.height, image.width, 0)
