"""Convolutions of images to few channels: ONNX Runtime (1.32) computes them in blocks of 16.

From 16 to 3 channels with windows of 9 x 9, 200 x 200 pixels take 13 ms. The domain's VolumeConv takes 4.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from converters.passes.patterns import PatternPass, of_weights, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.ops._integer_lists import integer_list

_MOST, _FEWEST_PIXELS = 4, 1 << 12


@rewrite("Conv", of_weights("Conv"), tolerance=1e-4)
def to_few_channels(op: Builder, *, x: Value, weights: Value, whole: Value) -> Value | None:
    """Compute a convolution of large float32 images to at most four channels as one of volumes of one slice."""
    node, shape = whole.producer(), weights.dims
    assert node is not None
    stated = node.attributes
    # float16 is for GPUs.
    if x.dtype != ir.DataType.FLOAT or shape is None or len(shape) != 4 or None in shape:
        return None
    pixels = x.dims[2:] if x.dims is not None else [None]
    if None in pixels or math.prod(size or 0 for size in pixels) < _FEWEST_PIXELS:
        return None
    if (shape[0] or 0) > _MOST or set(shape[2:]) == {1} or stated.get_int("group", 1) != 1:
        return None
    pads = list(stated.get_ints("pads", [0] * 4))
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or min(pads) < 0:
        return None
    strides, dilations = ([1, *stated.get_ints(name, [1, 1])] for name in ("strides", "dilations"))
    lists = {"strides": strides, "dilations": dilations, "pads": [0, *pads[:2], 0, *pads[2:]]}
    volumes, filters = op.Unsqueeze(x, [2]), op.Unsqueeze(weights, [2])
    stated_lists = {name: integer_list(numbers) for name, numbers in lists.items()}
    images: Value = op.Squeeze(op.specops.VolumeConv(volumes, filters, *node.inputs[2:], **stated_lists), [2])
    return images


class FewOutputs(PatternPass):
    """Compute convolutions of images to few channels by the domain's VolumeConv."""

    rewrites = (to_few_channels,)
