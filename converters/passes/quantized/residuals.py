"""Additions of a quantized tensor to the quantized result of a convolution, as in residual networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.affine import is_scale
from converters.passes.quantized.fused import Target, function_of, is_cut_anyway, per_channel
from converters.passes.quantized.graph import Arrangement, Quantized, factor_of, is_node, only_user


@dataclass(frozen=True)
class Addition:
    """The addition of a second tensor to a quantized result.

    Attributes:
        addend: the second tensor.
        addend_scale, scale: the scales of both in units of the sum's quantization, one or one for each channel.
        bias: the addend of the sum in these units, for each channel; ``None`` if there is none.
        slope: the slope of the sum below zero, for each channel.
        value: the sum after its function.
        target: the quantization of the sum.
    """

    addend: Quantized
    addend_scale: np.ndarray
    scale: np.ndarray
    bias: np.ndarray | None
    slope: np.ndarray | None
    value: ir.Value
    target: Target


def addition_of(
    work: Arrangement, result: Target, channels: int, axis: int, target_of: Callable[[ir.Value], Target | None]
) -> Addition | None:
    """Return the addition that follows the quantization of a convolution's result.

    Conditions: the result and the second tensor have the same shape, and one scale and zero point each; nothing else uses
    the result; and the sum is quantized to 8 bits, perhaps after factors and addends of channels (BatchNormalization), Relu,
    LeakyRelu or PRelu, and not used otherwise.

    Args:
        work: the graph.
        result: the quantization of the convolution's result.
        channels: the number of channels.
        axis: the axis of the channels.
        target_of: returns the quantization of a value.
    """
    dequantizer = only_user(result.quantizer.outputs[0])
    if dequantizer is None or not is_node(dequantizer, "DequantizeLinear"):
        return None
    value = dequantizer.outputs[0]
    node = only_user(value)
    if node is not None and node.outputs[0] in work.offset:
        value, node = node.outputs[0], only_user(node.outputs[0])
    first = work.find(value)
    if node is None or first is None or not is_node(node, "Add"):
        return None
    other = next((given for given in node.inputs if given is not None and given is not value), None)
    second = work.find(other)
    if other is None or second is None or not _have_one_shape(value, other, node.outputs[0]):
        return None
    zero = first.affine.zero_point
    if not first.affine.is_per_tensor or not second.affine.is_per_tensor or (result.zero_point != zero).any():
        return None
    if zero.dtype != np.uint8 or second.affine.zero_point.dtype != np.uint8:
        return None
    tail, factor, bias = _line_of(node.outputs[0], channels, axis)
    for part in (first.affine, second.affine):
        if part.offset is not None:
            bias = bias + factor * float(part.scale) * float(part.offset)
    function = function_of(tail, channels, axis)
    if (target := target_of(function.value)) is None:
        return None
    factor, bias = factor * target.factor, bias * target.factor
    scales = [known.affine.scale.astype(np.float64) * factor for known in (first, second)]
    if not all((is_scale(np.abs(number)) | (number == 0)).all() for number in (*scales, bias)):
        return None
    slope = function.slope
    if function.name == "clip":
        if not is_cut_anyway(function, target):
            if (function.alpha, function.beta) != (0, np.inf):
                return None
            slope = np.zeros(channels, np.float32)
    elif function.name not in ("none", "prelu"):
        return None
    if slope is not None and target.shift.any():
        return None  # the shift is added after the slope
    bias = bias + target.shift
    added = bias.astype(np.float32) if bias.any() else None
    return Addition(second, _shortest(scales[1]), _shortest(scales[0]), added, slope, function.value, target)


def _line_of(value: ir.Value, channels: int, axis: int) -> tuple[ir.Value, np.ndarray, np.ndarray]:
    """Return the value after per-channel factors and addends, and their total factor and addend."""
    factor, bias = np.ones(channels), np.zeros(channels)
    while True:
        if (added := added_bias(value, axis, channels, broadcast=True)) is not None:
            value, bias = added[0].outputs[0], bias + elements(added[1], channels)
            continue
        user = only_user(value)
        constant = None if user is None else factor_of(user, value)
        found = None if constant is None else per_channel(value, constant, channels, axis)
        if user is None or found is None:
            return value, factor, bias
        value, factor, bias = user.outputs[0], factor * found, bias * found


def _have_one_shape(*values: ir.Value) -> bool:
    """Return whether values have the same known shape."""
    shapes = [None if value.shape is None else [getattr(dim, "value", dim) for dim in value.shape] for value in values]
    return shapes[0] is not None and None not in shapes[0] and all(shape == shapes[0] for shape in shapes)


def _shortest(scale: np.ndarray) -> np.ndarray:
    """Return scales as float32, one if all are equal."""
    scale = scale.astype(np.float32)
    return scale[0] if (scale == scale[0]).all() else scale
