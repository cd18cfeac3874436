"""Integer convolutions and matrix multiplications, fused with everything that follows them."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.fused import ConvAttributes, Target, function_of, fuse
from converters.passes.quantized.graph import Arrangement, Quantized
from converters.passes.quantized.joins import quantizations
from converters.passes.quantized.residuals import addition_of
from converters.passes.quantized.results import target_of, target_with
from converters.passes.quantized.weights import Weights
from onnx_specops.graphs import constant_array

_MAX_REPEATED_PRODUCTS, _MAX_TARGETS = 128, 3
"""Up to this many products, computing a sum again takes less time than quantizing floats by channel."""


def fused(
    work: Arrangement,
    node: ir.Node,
    x: Quantized,
    found: Weights,
    scales: np.ndarray,
    bias: np.ndarray,
    tail: ir.Value,
    stated: ConvAttributes,
    *,
    only_quantized: bool = False,
) -> bool:
    """Fuse a convolution or MatMul with the function and the quantization that follow. Return whether it is possible.

    With ``only_quantized``, it is possible only if the result is quantized.
    """
    channels, axis = stated.shape[0], stated.axis
    function = function_of(tail, channels, axis)
    is_cheap = axis == 1 and prod(stated.shape[1:]) <= _MAX_REPEATED_PRODUCTS
    if is_cheap and (several := _several_targets(work, function.value, channels)):
        replaced = [fuse(work, node, x, found, scales, bias, stated, function, target) for target in several]
        return all(replaced)
    target = target_of(work, function.value, channels, axis)
    if target is None and only_quantized:
        return False
    if target is not None:
        addition = addition_of(work, target, channels, axis, lambda value: target_of(work, value, channels, axis))
        if addition is not None and fuse(work, node, x, found, scales, bias, stated, function, target, addition):
            return True
    return fuse(work, node, x, found, scales, bias, stated, function, target)


def _several_targets(work: Arrangement, value: ir.Value, channels: int) -> list[Target]:
    """Return the quantizations of a value that has several, one of them per channel, and no other consumers; otherwise
    empty.
    """
    found = quantizations(work, value)
    if not 1 < len(found) <= _MAX_TARGETS or all(one.division is None for one in found):
        return []
    targets = []
    for one in found:
        if (shift := one.shift_of_channels) is None:
            return []
        scale, zero = (constant_array(constant) for constant in one.quantizer.inputs[1:])
        if scale is None or zero is None or (scale.ndim and (one.division is None or (scale != 1).any())):
            return []
        divisor = 1.0 if one.division is None else one.division.scale
        targets.append(target_with(one.quantizer, scale.reshape(-1)[0], zero, divisor, channels, shift))
    return [target for target in targets if target is not None] if None not in targets else []
