"""Action classification of videos.

Source: Model API, ``models/action_classification.py``, which preprocesses frames with OpenCV.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Unsupported
from converters.model_api.boxes import names_of
from converters.model_api.configuration import Configuration
from converters.model_api.fixed_point import fixed_point_resized
from converters.model_api.image import RESIZES, Image, cropped
from converters.model_api.wrapper import Results, Wrapped
from converters.options import Channels
from onnx_specops.building import Builder, Value, new_value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8


def video_layout(network: Value, stated: str) -> str:
    """Return ``NSCTHW`` or ``NSTHWC``: the stated layout, or else that in which the channel dimension is up to 4."""
    letters = "".join(letter for letter in stated.upper() if letter.isalpha())
    if letters in ("NSCTHW", "NSTHWC"):
        return letters
    dims = network.dims or [None] * 6
    return "NSTHWC" if dims[5] in range(1, 5) else "NSCTHW"


def video_input(network: Value, layout: str) -> Value:
    """The input ``[frames, height, width, channels]`` of a graph with its preprocessing."""
    dims = dict(zip(video_layout(network, layout), network.dims or [None] * 6, strict=True))
    if dims["N"] not in (1, None) or dims["S"] not in (1, None):
        raise Unsupported("its input has several clips: set one clip with --input-shape")
    return new_value(_UINT8, [dims["T"] or "frames", "height", "width", dims["C"]], "video")


def prepare_video(
    op: Builder, given: Value, network: Value, layout: str, config: Configuration, channels: Channels
) -> Image:
    """Emit the preprocessing of a video.

    Args:
        op: the graph builder.
        given: the video, ``[frames, height, width, channels]``.
        network: the network's input, of six dimensions.
        layout: its layout as the model states it, or empty.
        config: the model's parameters.
        channels: the order of the caller's channels.
    """
    letters = video_layout(network, layout)
    dims = dict(zip(letters, network.dims or [None] * 6, strict=True))
    rows, columns = dims["H"], dims["W"]
    if rows is None or columns is None:
        raise Unsupported("the height and width of its frames are dynamic: set them with --input-shape")
    shape = op.Shape(given)
    height, width = (op.Squeeze(op.Slice(shape, [axis], [axis + 1]), [0]) for axis in (1, 2))
    resize_type = config.text("resize_type", "standard", RESIZES)
    pixels = _resized(op, given, height, width, (rows, columns), resize_type, config)
    reverse = config.flag("reverse_input_channels")
    if dims["C"] == 3 and (channels == "rgb") != reverse:
        pixels = op.Gather(pixels, [2, 1, 0], axis=3)
    mean, scale = config.numbers("mean_values"), config.numbers("scale_values")
    if mean or scale:
        pixels = op.Cast(pixels, to=_DOUBLE)
        pixels = op.Sub(pixels, np.array(mean, np.float32).astype(np.float64)) if mean else pixels
        pixels = op.Div(pixels, np.array(scale, np.float32).astype(np.float64)) if scale else pixels
    pixels = op.Unsqueeze(op.Cast(pixels, to=network.dtype or _FLOAT), [0, 1])
    if letters == "NSCTHW":
        pixels = op.Transpose(pixels, perm=[0, 1, 5, 2, 3, 4])
    return Image(given, pixels, height, width, rows, columns, resize_type)


def _resized(
    op: Builder, frames: Value, height: Value, width: Value, size: tuple[int, int], resize_type: str, config: Configuration
) -> Value:
    rows, columns = size
    if resize_type == "standard":
        return fixed_point_resized(op, frames, op.const(np.int64(rows)), op.const(np.int64(columns)), 1, others=1)
    if resize_type == "crop":
        own = [op.Unsqueeze(side, [0]) for side in (height, width)]
        frames = cropped(op, frames, own, size, opencv=True)
        return fixed_point_resized(op, frames, op.const(np.int64(rows)), op.const(np.int64(columns)), 1, others=1)
    sides = [op.Cast(side, to=_DOUBLE) for side in (height, width)]
    scale = op.Min(*(op.Div(float(whole), side) for whole, side in zip(size, sides, strict=True)))
    fitted = [op.Cast(op.Round(op.Mul(side, scale)), to=_INT64) for side in sides]
    frames = fixed_point_resized(op, frames, fitted[0], fitted[1], 1, others=1)
    missing = [op.Unsqueeze(op.Sub(np.int64(whole), side), [0]) for whole, side in zip(size, fitted, strict=True)]
    letterbox = resize_type == "fit_to_window_letterbox"
    begins = [op.Div(side, 2) for side in missing] if letterbox else [op.const([0])] * 2
    ends = [op.Sub(side, begin) for side, begin in zip(missing, begins, strict=True)]
    pads = op.Concat([0], *begins, [0, 0], *ends, [0], axis=0)
    value = config.whole("pad_value", 0) if letterbox else 0
    return op.Pad(frames, pads, op.const(value, _UINT8))


def action(model: Wrapped) -> Results:
    """``labels`` int64 ``[1]``, the class with the highest score, ``scores`` float32 ``[1]`` and ``label_names``."""
    op = model.op
    scores = op.Reshape(op.Cast(next(iter(model.outputs.values())), to=_FLOAT), [-1])
    label = op.ArgMax(scores, axis=0, keepdims=1)
    return {
        "labels": label,
        "scores": op.Gather(scores, label, axis=0),
        "label_names": names_of(op, label, model.config),
    }
