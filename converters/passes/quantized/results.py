"""The quantization of the result of a convolution or MatMul."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine, is_scale
from converters.passes.quantized.fused import Target, per_channel
from converters.passes.quantized.graph import Arrangement, factor_of, is_node, only_quantizers, only_user
from onnx_specops.graphs import constant_array


@dataclass(frozen=True)
class ResultQuantization:
    """The quantization of a result.

    Attributes:
        value: the input of the QuantizeLinear.
        affine: its scale and zero point.
        quantizer: the QuantizeLinear.
        shift: the addend before it, in units of the result.
        divisor: the divisor before it, one number or one for each channel.
        level_shift: the addend before rounding, in levels: one number, or one for each channel.
    """

    value: ir.Value
    affine: Affine
    quantizer: ir.Node
    shift: float = 0.0
    divisor: np.ndarray | float = 1.0
    level_shift: np.ndarray | float = 0.0


def quantization_of_tensor(node: ir.Node) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the scale and zero point of a QuantizeLinear of a whole tensor to 8 unsigned bits."""
    scale, zero = (constant_array(constant) for constant in (*node.inputs[1:], None)[:2])
    if scale is None or zero is None or scale.ndim or zero.dtype != np.uint8:
        return None
    return scale, zero


def quantization_of(work: Arrangement, value: ir.Value, axis: int = 1) -> ResultQuantization | None:
    """Return the 8-bit quantization of a value whose channels are along ``axis``.

    Scales per channel that come before it, of FakeQuantize or of SmoothQuant, are its divisor.
    """
    divisor: np.ndarray | float = 1.0
    user = only_user(value)
    if is_node(user, "Mul") and user is not None:
        factor = _factor_of(user, value, axis)
        if factor is None:
            return None
        value, divisor = user.outputs[0], 1 / factor
    value, shift = _after_shift(work, value, axis)
    if shift is None:
        return None  # the shifts differ along another axis
    user = only_user(value)
    if is_node(user, "Div") and user is not None and user.outputs[0] in work.divisions:
        value = user.outputs[0]
        along = work.divisions[value].scale_along(axis)
        if along is None:
            return None  # the scales differ along an axis other than the channels
        divisor = divisor * along
    quantizers = only_quantizers(value)
    if len(quantizers) != 1:
        return None
    scale, zero = (constant_array(constant) for constant in quantizers[0].inputs[1:])
    if scale is None or zero is None or scale.ndim or zero.dtype.itemsize != 1:
        return None
    return ResultQuantization(value, Affine(scale, zero), quantizers[0], divisor=divisor, level_shift=shift)


def _after_shift(work: Arrangement, value: ir.Value, axis: int) -> tuple[ir.Value, np.ndarray | float | None]:
    """Return the value after the shift of a quantization, and the shift in levels, perhaps for each channel along ``axis``.

    It is ``None`` if it differs along another axis.
    """
    user = only_user(value)
    if user is None or (inner := work.shifts.get(user.outputs[0])) is None:
        return value, 0.0
    return user.outputs[0], inner.shift_along(axis)


def _factor_of(node: ir.Node, value: ir.Value, axis: int) -> np.ndarray | None:
    """Return the positive constants that a Mul multiplies the channels of a value by."""
    constant = factor_of(node, value)
    size = None if value.shape is None or len(value.shape) <= axis else value.shape[axis]
    if constant is None or not isinstance(size, int):
        return None
    factor = per_channel(value, constant, size, axis)
    if factor is None:
        return None
    exact = factor.astype(np.float64)
    return exact if (is_scale(exact) & is_scale(1 / np.where(exact == 0, 1, exact))).all() else None


def target_of(work: Arrangement, value: ir.Value, channels: int, axis: int = 1) -> Target | None:
    """Return the quantization of a value with the given number of channels along ``axis``, possibly per channel."""
    if (quantization := quantization_of(work, value, axis)) is not None:
        scale, zero, quantizer, divisor, shift = (
            quantization.affine.scale,
            quantization.affine.zero_point,
            quantization.quantizer,
            quantization.divisor,
            quantization.level_shift,
        )
    else:
        value, found = _after_shift(work, value, axis)
        if found is None:
            return None
        shift, user = found, only_user(value)
        along = (
            None
            if user is None or user.outputs[0] not in work.divisions
            else work.divisions[user.outputs[0]].scale_along(axis)
        )
        if user is None or along is None or len(quantizers := only_quantizers(user.outputs[0])) != 1:
            return None
        constants = [constant_array(constant) for constant in quantizers[0].inputs[1:]]
        if constants[0] is None or constants[1] is None or (constants[0] != 1).any() or constants[1].size != channels:
            return None
        scale, zero, quantizer, divisor = np.ones([], np.float32), constants[1], quantizers[0], along
    return target_with(quantizer, scale, zero, divisor, channels, shift)


def target_with(
    quantizer: ir.Node,
    scale: np.ndarray,
    zero: np.ndarray,
    divisor: np.ndarray | float,
    channels: int,
    shift: np.ndarray | float = 0.0,
) -> Target | None:
    """Return a quantization by ``scale`` of values that were divided before, with a shift in levels."""
    steps = np.broadcast_to(np.asarray(scale, np.float64) * divisor, (channels,))
    if zero.dtype != np.uint8 or not is_scale(steps).all() or not is_scale(1 / steps).all():
        return None
    return Target(quantizer, 1 / steps, zero, np.broadcast_to(np.asarray(shift, np.float64), (channels,)))
