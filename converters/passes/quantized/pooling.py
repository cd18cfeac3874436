"""Averages of windows of a quantized tensor, in integers."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine
from converters.passes.quantized.fused import ConvAttributes
from converters.passes.quantized.fusion import fused
from converters.passes.quantized.graph import Arrangement
from converters.passes.quantized.weights import Weights
from onnx_specops.building import Builder, Value, constant_value


def average(work: Arrangement, node: ir.Node) -> None:
    """Convert an AveragePool of a quantized tensor to a depthwise convolution, whose sums it scales.

    ONNX Runtime's pooling of integers takes 50 times as long.

    Conditions: the model may contain ONNX Runtime's own operators; all windows have the same divisor, the padding is
    explicit, and no window exceeds it; and the result is quantized to 8 bits, perhaps after a function.
    """
    x, tail = node.inputs[0], node.outputs[0]
    source = None if x is None else work.quantized.get(x)
    if x is None or source is None or source.affine.bits != 8 or x.shape is None or not work.contrib:
        return
    stated, channels = node.attributes, x.shape[1] if len(x.shape) > 1 else None
    window, rank = list(stated.get_ints("kernel_shape", ())), len(x.shape)
    pads = list(stated.get_ints("pads", [0] * 2 * len(window)))
    if not 3 <= rank <= 5 or not isinstance(channels, int) or len(window) != rank - 2:
        return
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or stated.get_int("ceil_mode", 0) != 0:
        return
    if any(pads) and not stated.get_int("count_include_pad", 0):
        return
    shape, ones = (channels, 1, *window), [1] * len(window)
    strides, dilations = (list(stated.get_ints(name, ones)) for name in ("strides", "dilations"))

    def emit(_: Builder) -> Value:
        return constant_value(np.ones(shape, np.int8))

    weights = Weights(emit, Affine(np.ones([], np.float32), np.zeros([], np.int8)))
    attributes = ConvAttributes(shape, strides, dilations, pads, channels)
    scales = np.full(channels, 1 / prod(window))
    fused(work, node, source, weights, scales, np.zeros(channels), tail, attributes, only_quantized=True)
