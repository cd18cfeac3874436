"""A factor and an addend for each channel of a quantized tensor, as of a BatchNormalization, in integers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.affine import Affine
from converters.passes.quantized.convolutions import fused
from converters.passes.quantized.fused import ConvAttributes, per_channel
from converters.passes.quantized.graph import Arrangement
from converters.passes.quantized.weights import Weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import constant_array


def scaling(work: Arrangement, node: ir.Node) -> None:
    """Convert a Mul of a quantized tensor and a constant for each channel to a depthwise convolution of one pixel.

    Conditions: the model may contain ONNX Runtime's own operators, and the result is quantized to 8 bits, perhaps after an
    addition of constants and a function, and not used otherwise.
    """
    x = next((value for value in node.inputs if value is not None and value in work.quantized), None)
    if x is None or x.shape is None or not work.contrib or not 3 <= len(x.shape) <= 5:
        return
    channels, rank, source = x.shape[1], len(x.shape), work.quantized[x]
    other = next((value for value in node.inputs if value is not x), None)
    if not isinstance(channels, int) or source.affine.bits != 8 or node.outputs[0].shape is None:
        return
    factor = per_channel(x, constant_array(other), channels)
    if factor is None or not np.isfinite(factor).all():
        return
    tail, bias = node.outputs[0], np.zeros(channels)
    while (added := added_bias(tail, 1, channels, broadcast=True)) is not None:
        tail, bias = added[0].outputs[0], bias + elements(added[1], channels)
    shape = (channels, 1, *[1] * (rank - 2))
    signs = np.sign(factor).astype(np.int8).reshape(shape)

    def emit(_: Builder) -> Value:
        return constant_value(signs)

    found = Weights(emit, Affine(np.ones([], np.float32), np.zeros([], np.int8)))
    ones = [1] * (rank - 2)
    stated = ConvAttributes(shape, ones, ones, [0] * 2 * (rank - 2), channels)
    scales = np.where(factor == 0, np.float32(1), np.abs(factor))
    fused(work, node, source, found, scales, bias, tail, stated, only_quantized=True)
