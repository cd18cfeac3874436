"""The image input: resizing, normalization and layout as in Model API, before the network's own input.

Source: Model API, ``adapters/openvino_adapter.py``, ``embed_preprocessing``: the same steps in the same order, with
OpenVINO's Interpolate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.configuration import Configuration
from converters.model_api.fixed_point import fixed_point_resized, halved
from converters.model_api.interpolation import cubic_bytes, linear_bytes
from converters.model_api.sizes import size_along
from converters.openvino.rules.interpolate import Resizing, interpolated
from converters.options import Channels
from onnx_specops.building import Builder, Value, new_value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8
_HEIGHT, _WIDTH = 1, 2

_TYPES = {"u8": _UINT8, "f32": _FLOAT, "u16": ir.DataType.UINT16, "i16": ir.DataType.INT16}
_LARGEST = {"u8": 255.0, "u16": 65535.0, "i16": 32767.0, "f32": 1.0}
RESIZES = ("standard", "fit_to_window", "fit_to_window_letterbox", "crop")
_MODES = ("LINEAR", "CUBIC", "NEAREST")
_OF_BYTES = {"linear": linear_bytes, "cubic": cubic_bytes}


@dataclass(frozen=True)
class Image:
    """An image and its preprocessing.

    Attributes:
        input: the graph's input, ``[height, width, channels]``.
        prepared: the replacement of the network's own input.
        height, width: the size of the image, int64 scalars.
        network_height, network_width: the image size of the network; ``None`` if it supports any.
        resize_type: how the image was resized.
    """

    input: Value
    prepared: Value
    height: Value
    width: Value
    network_height: int | None
    network_width: int | None
    resize_type: str

    def size(self) -> tuple[int, int]:
        """Return the network's height and width. Raise `Unsupported` if they are dynamic."""
        if self.network_height is None or self.network_width is None:
            raise Unsupported("the height and width of its image are dynamic: set them with --input-shape")
        return self.network_height, self.network_width

    def geometry(self, op: Builder) -> tuple[Value, Value, Value, Value]:
        """Return the mapping of positions in the network's image to the caller's: ``(position - pad) * scale``.

        Returns:
            Scalars: the scales of x and y, float64, and the pads of x and y, int64.
        """
        height, width = self.size()
        x = op.Div(op.Cast(self.width, to=_DOUBLE), float(width))
        y = op.Div(op.Cast(self.height, to=_DOUBLE), float(height))
        pads = [op.const(np.int64(0)), op.const(np.int64(0))]
        if self.resize_type in ("fit_to_window", "fit_to_window_letterbox"):
            x = y = op.Max(x, y)
            if self.resize_type == "fit_to_window_letterbox":
                # Python's round and ONNX's both round ties to even.
                pads = [
                    op.Div(op.Sub(np.int64(size), op.Cast(op.Round(op.Div(op.Cast(own, to=_DOUBLE), x)), to=_INT64)), 2)
                    for own, size in ((self.width, width), (self.height, height))
                ]
        return x, y, pads[0], pads[1]


def image_layout(value: Value, stated: str) -> str:
    """Return ``NCHW`` or ``NHWC``: the stated layout, or else that in which the channel dimension is up to 4."""
    letters = "".join(letter for letter in stated.upper() if letter.isalpha())
    if letters in ("NCHW", "NHWC"):
        return letters
    dims = value.dims or []
    return "NCHW" if len(dims) == 4 and dims[1] in range(1, 5) else "NHWC"


def image_input(network: Value, layout: str, config: Configuration) -> Value:
    """The input ``[height, width, channels]`` of a graph with its preprocessing.

    Args:
        network: the network's image input, of four dimensions.
        layout: ``NCHW`` or ``NHWC``.
        config: the model's parameters.
    """
    dims = dict(zip(layout, network.dims or [None] * 4, strict=True))
    if dims["N"] not in (1, None):
        raise Unsupported(f"its batch size is {dims['N']}: set it to 1 with --input-shape")
    if config.flag("embedded_processing"):
        return new_value(network.dtype, ["height", "width", dims["C"]], "image")
    count = 1 if config.flag("intensity_repeat_channels") else dims["C"]
    return new_value(_TYPES[config.text("input_dtype", "u8", tuple(_TYPES))], ["height", "width", count], "image")


def prepare(
    op: Builder,
    given: Value,
    network: Value,
    layout: str,
    config: Configuration,
    channels: Channels,
    *,
    in_unit: bool = False,
    opencv: bool = False,
) -> Image:
    """Emit the preprocessing of an image.

    Args:
        op: the builder, which inserts before the network's nodes.
        given: the image, ``[height, width, channels]``.
        network: the network's image input, of four dimensions.
        layout: ``NCHW`` or ``NHWC``.
        config: the model's parameters.
        channels: the order of the caller's channels.
        in_unit: whether a network with a dynamic image size expects pixels from 0 to 1 without other preprocessing.
        opencv: whether uint8 images that keep their aspect ratio are resized as in OpenCV.
    """
    dims = dict(zip(layout, network.dims or [None] * 4, strict=True))
    if config.flag("embedded_processing"):  # the graph has it already
        height, width = (size_along(op, given, axis) for axis in (0, 1))
        pixels = op.Unsqueeze(given, [0])
        if dims["C"] == 3 and channels == "rgb":
            pixels = op.Gather(pixels, [2, 1, 0], axis=3)
        own = config.whole("orig_height"), config.whole("orig_width")
        return Image(given, pixels, height, width, *own, _resize_type(config))
    repeated = config.flag("intensity_repeat_channels")
    text = config.text("input_dtype", "u8", tuple(_TYPES))
    height, width = (size_along(op, given, axis) for axis in (0, 1))
    pixels = op.Unsqueeze(given, [0])
    if repeated:
        pixels = op.Tile(pixels, [1, 1, 1, 3])
    resize_type = _resize_type(config)
    if isinstance(dims["H"], int) and isinstance(dims["W"], int):
        if text != "u8":
            pixels = op.Cast(pixels, to=_FLOAT)
        pixels = _resized(op, pixels, (dims["H"], dims["W"]), resize_type, config, opencv and text == "u8")
        in_unit = False
        pixels = _intensities(op, pixels, text, config)
    elif (mode := config.text("intensity_mode", "none")) == "percentile" and not in_unit:
        pixels = _intensities(op, pixels, text, config)
    elif mode != "none" and not in_unit:
        raise Unsupported(
            "Model API ignores its intensity_mode if the size of its image is dynamic: set the size with --input-shape"
        )
    if dims["C"] == 3 and not repeated and (channels == "rgb") != (config.flag("reverse_input_channels") and not in_unit):
        pixels = op.Gather(pixels, [2, 1, 0], axis=3)
    pixels = op.Cast(pixels, to=_FLOAT)
    if in_unit:
        pixels = op.Div(pixels, np.float32(255)) if text == "u8" else pixels
    else:
        if mean := config.numbers("mean_values"):
            pixels = op.Sub(pixels, np.array(mean, np.float32))
        if scale := config.numbers("scale_values"):
            pixels = op.Div(pixels, np.array(scale, np.float32))
    if layout == "NCHW":
        pixels = op.Transpose(pixels, perm=[0, 3, 1, 2])
    prepared = pixels if network.dtype == _FLOAT else op.Cast(pixels, to=network.dtype)
    size = [dims[letter] if isinstance(dims[letter], int) else None for letter in "HW"]
    return Image(given, prepared, height, width, size[0], size[1], resize_type)


def _resize_type(config: Configuration) -> str:
    return config.text("resize_type", "standard", RESIZES)


def _resized(
    op: Builder, pixels: Value, size: tuple[int, int], resize_type: str, config: Configuration, opencv: bool
) -> Value:
    """Resize to ``[1, height, width, channels]`` of the network's size."""
    mode = config.text("interpolation_mode", "LINEAR", _MODES).lower()
    if resize_type == "standard":
        return _interpolated(op, pixels, op.const(list(size)), mode)
    shape = op.Shape(pixels)
    own = [op.Slice(shape, [axis], [axis + 1]) for axis in (_HEIGHT, _WIDTH)]
    if resize_type == "crop":
        return _interpolated(op, cropped(op, pixels, own, size, opencv=False), op.const(list(size)), "linear")
    sides = [op.Cast(side, to=_FLOAT) for side in own]
    scale = op.Min(*(op.Div(np.array([whole], np.float32), side) for whole, side in zip(size, sides, strict=True)))
    fitted = [op.Cast(op.Round(op.Mul(side, scale)), to=_INT64) for side in sides]
    if opencv and mode == "linear":
        exact = [op.Cast(side, to=ir.DataType.DOUBLE) for side in own]
        grown = op.Min(*(op.Div(np.array([float(whole)]), side) for whole, side in zip(size, exact, strict=True)))
        fitted = [op.Cast(op.Round(op.Mul(side, grown)), to=_INT64) for side in exact]
        height, width = (op.Squeeze(side, [0]) for side in fitted)
        scale, given = op.Squeeze(grown, [0]), pixels
        pixels = op.if_(
            op.Equal(scale, 0.5),
            lambda op: halved(op, given, height, width),
            lambda op: fixed_point_resized(op, given, height, width, 1, others=1, scale=scale),
        )
    else:
        pixels = _interpolated(op, pixels, op.Concat(*fitted, axis=0), mode)
    missing = [op.Sub([whole], side) for whole, side in zip(size, fitted, strict=True)]
    begins = [op.Div(side, 2) for side in missing] if resize_type == "fit_to_window_letterbox" else [op.const([0])] * 2
    ends = [op.Sub(side, begin) for side, begin in zip(missing, begins, strict=True)]
    pads = op.Concat([0], *begins, [0], [0], *ends, [0], axis=0)
    value = config.whole("pad_value", 0)
    if not 0 <= value <= (255 if pixels.dtype == _UINT8 else 65535):
        raise Malformed(f"model_info/pad_value is {value}; its pixels cannot represent it")
    padded = op.Pad(pixels, pads, op.const(value, pixels.dtype))
    return op.Reshape(padded, [1, *size, (pixels.dims or [-1] * 4)[3] or -1])  # makes the shape known


def cropped(op: Builder, pixels: Value, own: list[Value], size: tuple[int, int], *, opencv: bool) -> Value:
    """Crop the center of an image to the network's aspect ratio, which Model API computes as height by width.

    Args:
        op: the graph builder.
        pixels: ``[n, height, width, channels]``.
        own: the height and width, ``[1]``.
        size: the network's height and width.
        opencv: whether to compute the crop as Model API's functions for OpenCV, not as its graphs.
    """
    height, width = own
    ratio = size[0] / size[1]
    if ratio == 1:
        shorter = op.Min(height, width)
        begins = [op.Div(op.Sub(side, shorter), 2) for side in own]
        ends = [op.Add(begin, shorter) for begin in begins]
        return op.Slice(pixels, op.Concat(*begins, axis=0), op.Concat(*ends, axis=0), [_HEIGHT, _WIDTH])
    other, cut, axis = (height, width, _WIDTH) if ratio < 1 else (width, height, _HEIGHT)
    if opencv:
        exact = op.Cast(other, to=_DOUBLE)
        length = op.Cast(op.Floor(op.Mul(exact, ratio) if ratio < 1 else op.Div(exact, ratio)), to=_INT64)
        begin = op.Cast(op.Floor(op.Div(op.Cast(op.Sub(cut, length), to=_DOUBLE), 2.0)), to=_INT64)
    else:
        length = op.Cast(op.Floor(op.Mul(op.Cast(other, to=_FLOAT), np.float32(ratio))), to=_INT64)
        begin = op.Div(op.Sub(cut, length), 2)
    return op.Slice(pixels, begin, op.Add(begin, length), [axis])


def _interpolated(op: Builder, pixels: Value, sizes: Value, mode: str) -> Value:
    if pixels.dtype == _UINT8 and mode in _OF_BYTES:
        height, width = (op.Squeeze(op.Slice(sizes, [place], [place + 1]), [0]) for place in (0, 1))
        return _OF_BYTES[mode](op, pixels, height, width)
    resizing = Resizing(shape_calculation_mode="sizes")
    return interpolated(op, pixels, sizes, op.const([_HEIGHT, _WIDTH]), mode, resizing)


def _intensities(op: Builder, pixels: Value, text: str, config: Configuration) -> Value:
    """Scale pixels by ``intensity_mode``."""
    modes = ("none", "scale_to_unit", "window", "percentile", "range_scale")
    mode = config.text("intensity_mode", "none", modes)
    if mode == "none":
        return pixels
    if mode == "percentile":
        return _between_percentiles(op, pixels, config)
    floats = op.Cast(pixels, to=_FLOAT)
    largest = config.number("intensity_max_value")
    if mode == "scale_to_unit":
        return op.Div(floats, np.float32(_LARGEST[text] if largest is None else largest))
    if mode == "window":
        center, span = config.number("intensity_window_center"), config.number("intensity_window_width")
        if center is None or not span:
            raise Malformed("its intensity_mode 'window' needs intensity_window_center and intensity_window_width")
        scaled = op.Div(op.Sub(floats, np.float32(center - span / 2)), np.float32(span))
        return op.Clip(scaled, np.float32(0), np.float32(1))
    factor, least = config.number("intensity_scale_factor", 1.0), config.number("intensity_min_value", 0.0)
    largest = 1e9 if largest is None else largest
    bounded = op.Clip(op.Mul(floats, np.float32(factor)), np.float32(least), np.float32(largest))
    return op.Div(op.Sub(bounded, np.float32(least)), np.float32(largest - least)) if largest != least else bounded


def _between_percentiles(op: Builder, pixels: Value, config: Configuration) -> Value:
    """Scale the intensities between two percentiles of all values to the range from 0 to 1.

    Model API does this only if it prepares images in Python.
    """
    ends = [config.number("intensity_percentile_low", 1.0), config.number("intensity_percentile_high", 99.0)]
    if not 0 <= ends[0] <= 100 or not 0 <= ends[1] <= 100:
        raise Malformed(
            f"its intensity_percentile_low {ends[0]} and intensity_percentile_high {ends[1]} are not in 0 to 100"
        )
    floats = op.Cast(pixels, to=_FLOAT)
    flat = op.Reshape(floats, [-1])
    ordered, _ = op.TopK(flat, op.Shape(flat), axis=0, largest=0, outputs=2)
    last = op.Sub(op.Shape(flat), 1)
    low, high = (_percentile(op, ordered, last, end) for end in ends)
    span = op.Sub(high, low)
    flat_image = op.Equal(span, np.float32(0))
    scaled = op.Div(op.Sub(floats, low), op.Where(flat_image, np.float32(1), span))
    return op.Where(flat_image, np.float32(0), op.Clip(scaled, np.float32(0), np.float32(1)))


def _percentile(op: Builder, ordered: Value, last: Value, percent: float) -> Value:
    """Return ``numpy.percentile`` of ordered values, which interpolates between two of them from the nearer one."""
    place = op.Mul(op.Cast(last, to=_DOUBLE), percent / 100)
    lower = op.Floor(place)
    share = op.Sub(place, lower)
    index = op.Cast(lower, to=_INT64)
    a, b = (op.Cast(op.Gather(ordered, at, axis=0), to=_DOUBLE) for at in (index, op.Min(op.Add(index, 1), last)))
    apart = op.Sub(b, a)
    near = op.Add(a, op.Mul(apart, share))
    far = op.Sub(b, op.Mul(apart, op.Sub(1.0, share)))
    return op.Cast(op.Where(op.GreaterOrEqual(share, 0.5), far, near), to=_FLOAT)
