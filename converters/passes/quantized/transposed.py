"""Transposed convolutions in integers.

The output pixels at one offset within the stride are a convolution of the input. The convolutions for all offsets are
combined into one convolution, which has the output channels of all offsets. They then become blocks of output pixels.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.affine import Affine
from converters.passes.quantized.fused import Blocks, ConvAttributes, Function, Target, function_of, fuse, is_signed, signed
from converters.passes.quantized.graph import Arrangement, static_shape
from converters.passes.quantized.results import target_of
from converters.passes.quantized.weights import Weights, weights
from converters.passes.transposed_windows import TransposedAxis, convolved
from onnx_specops.building import constant_value
from onnx_specops.graphs import constant_array


def transposed_axes(node: ir.Node) -> list[TransposedAxis] | None:
    """Return the dimensions of a ConvTranspose with quantized weights, if a convolution can compute it."""
    filters = node.inputs[1]
    shape = None if filters is None else static_shape(filters)
    data = node.inputs[0]
    if shape is None or len(shape) < 3 or data is None or data.shape is None or len(data.shape) != len(shape):
        return None
    rank, stated = len(shape) - 2, node.attributes
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in stated or stated.get_int("group", 1) != 1:
        return None
    if set(stated.get_ints("dilations", [1])) != {1} or not all(isinstance(size, int) for size in list(data.shape)[2:]):
        return None
    if (found := weights(filters, axis=1)) is None or not is_signed(found):
        return None
    strides, more = stated.get_ints("strides", [1] * rank), stated.get_ints("output_padding", [0] * rank)
    pads = stated.get_ints("pads", [0] * 2 * rank)
    axes = [TransposedAxis.of(*one) for one in zip(shape[2:], strides, pads[:rank], pads[rank:], more, strict=True)]
    possible = [axis for axis in axes if axis is not None]
    return possible if len(possible) == len(axes) else None


def transposed_convolution(work: Arrangement, node: ir.Node) -> None:
    """Convert a ConvTranspose of a quantized tensor with quantized weights to a convolution in integers."""
    x, filters = node.inputs[:2]
    axes, found = transposed_axes(node), weights(filters, axis=1)
    if not work.contrib or x is None or filters is None or axes is None or found is None:
        return
    source = work.find(x)
    shape = static_shape(filters)
    if source is None or source.affine.bits != 8 or not source.affine.is_per_tensor or shape is None:
        return
    channels = shape[1]
    bias = np.zeros(channels)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        if (given := constant_array(node.inputs[2])) is None:
            return
        bias = bias + given
    tail = node.outputs[0]
    while (added := added_bias(tail, 1, channels, broadcast=True)) is not None:
        tail, bias = added[0].outputs[0], bias + elements(added[1], channels)
    op = work.before(node)
    numbers = constant_array(signed(op, found))
    if numbers is None:
        return
    blocks = int(np.prod([axis.stride for axis in axes]))
    matrix = constant_value(convolved(numbers, axes))
    of_blocks = Weights(lambda _: matrix, Affine(np.ones([], np.float32), np.zeros([], np.int8)))
    function = function_of(tail, channels)
    target = target_of(work, function.value, channels)
    stated = ConvAttributes(
        [blocks * channels, shape[0], *(axis.taps for axis in axes)],
        [1] * len(axes),
        [1] * len(axes),
        [axis.pads[side] for side in (0, 1) for axis in axes],
        1,
    )
    fuse(
        work,
        node,
        source,
        of_blocks,
        np.tile(np.broadcast_to(found.affine.scale, [channels]), blocks),
        np.tile(bias, blocks),
        stated,
        _repeated_function(function, blocks),
        None if target is None else _repeated(target, blocks),
        blocks=Blocks(tuple(axis.stride for axis in axes), tuple(axis.cut for axis in axes)),
    )


def _repeated(target: Target, blocks: int) -> Target:
    zero = target.zero_point
    factor, shift = (np.tile(numbers, blocks) for numbers in (target.factor, target.shift))
    return Target(target.quantizer, factor, np.tile(zero, blocks) if zero.ndim else zero, shift)


def _repeated_function(function: Function, blocks: int) -> Function:
    slope = None if function.slope is None else np.tile(function.slope, blocks)
    return Function(function.name, function.value, function.alpha, function.beta, slope)
