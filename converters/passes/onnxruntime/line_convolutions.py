"""Depthwise convolutions of one dimension: ONNX Runtime (1.32) has a fast kernel for images only.

For 256 channels and kernels of size 33, a one-dimensional convolution takes 5 times as long as a convolution of an image
with one row. For kernels of size 3, it takes 1.7 times as long. The kernel for images requires a multiple of 4 channels.
"""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, of_weights, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

_CHANNELS, _LEAST = 4, 3


@rewrite("Conv", of_weights("Conv"), tolerance=1e-5)
def of_a_line(op: Builder, *, x: Value, weights: Value, whole: Value) -> Value | None:
    """Compute a depthwise convolution of float32 along one dimension as one of an image of one row."""
    node = whole.producer()
    assert node is not None
    attributes, shape = attributes_of(node), weights.dims
    # float16 is for GPUs.
    if x.dtype != ir.DataType.FLOAT or shape is None or len(shape) != 3 or attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    channels, per_group, size = shape
    if not channels or channels % _CHANNELS or (per_group, attributes.get("group", 1)) != (1, channels):
        return None
    if size is None or size < _LEAST:
        return None
    stated: dict[str, list[int]] = {}
    stated |= {name: [1, *attributes[name]] for name in ("kernel_shape", "strides", "dilations") if name in attributes}
    if "pads" in attributes:
        begin, end = attributes["pads"]
        stated["pads"] = [0, begin, 0, end]
    rows = op.Conv(op.Unsqueeze(x, [2]), op.Unsqueeze(weights, [2]), *node.inputs[2:], group=channels, **stated)
    line: Value = op.Squeeze(rows, [2])
    return line


class DepthwiseLines(PatternPass):
    """Compute depthwise convolutions of one dimension as those of images."""

    rewrites = (of_a_line,)
