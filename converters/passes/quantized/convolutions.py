"""Integer convolutions.

ONNX Runtime's integer convolution returns integers with one scale. If an operator other than a quantization follows, such as
an activation function, the result must be floats. The convolution then becomes im2col and a matrix multiplication.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.layouts import channels_first, channels_last
from converters.passes.quantized.affine import Affine, is_scale
from converters.passes.quantized.fused import ConvAttributes
from converters.passes.quantized.fusion import fused
from converters.passes.quantized.graph import Arrangement, Quantized, is_node, only_user, static_shape
from converters.passes.quantized.matmuls import multiply
from converters.passes.quantized.results import ResultQuantization, quantization_of
from converters.passes.quantized.weights import Weights, weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import attributes_of, constant_array

_LARGEST_BIAS = 2**30
_MIN_CHANNELS = 16
"""With fewer channels, the neighborhoods cost more than integers save."""


@dataclass(frozen=True)
class _Attributes:
    """The attributes of a Conv."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    group: int

    @classmethod
    def of(cls, node: ir.Node, kernel: Sequence[int]) -> _Attributes | None:
        """Read the attributes; return ``None`` if the padding is not explicit."""
        if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
            return None
        rank, stated = len(kernel), node.attributes
        return cls(
            tuple(kernel),
            tuple(stated.get_ints("strides", [1] * rank)),
            tuple(stated.get_ints("dilations", [1] * rank)),
            tuple(stated.get_ints("pads", [0] * 2 * rank)),
            stated.get_int("group", 1),
        )

    def listed(self) -> tuple[Sequence[int], Sequence[int], Sequence[int], int]:
        """The strides, dilations, pads and group."""
        return self.strides, self.dilations, self.pads, self.group


def convolution(work: Arrangement, node: ir.Node) -> None:
    """Convert a Conv of a quantized tensor with quantized weights to integers if it is worthwhile."""
    x, filters = node.inputs[:2]
    found = weights(filters, axis=0)
    shape = None if filters is None else static_shape(filters)
    if x is None or found is None or shape is None:
        return
    scales = np.broadcast_to(found.affine.scale, shape[:1])
    source = work.find(x)
    if source is None and x in work.channels:
        # Scales of channels are merged into the weights if each of these belongs to one channel.
        steps, outer = work.channels[x]
        own, groups = outer.scale_along(1), node.attributes.get_int("group", 1)
        if shape[1] == 1 and own is not None and own.size in (1, groups):
            known, own = work.quantized[steps], np.repeat(np.broadcast_to(own, groups), shape[0] // groups)
            source, scales, x = replace(known, affine=replace(known.affine, offset=outer.offset)), scales * own, steps
    stated = _Attributes.of(node, shape[2:])
    if source is None or source.affine.bits != 8 or stated is None:
        return
    bias = np.zeros(shape[0])
    if len(node.inputs) > 2:
        if (given := constant_array(node.inputs[2])) is None:
            return
        bias = bias + given
    tail = node.outputs[0]
    while (added := added_bias(tail, 1, len(bias), broadcast=True)) is not None:
        tail, bias = added[0].outputs[0], bias + elements(added[1], len(bias))
    op = work.before(node)
    is_per_tensor = source.affine.is_per_tensor
    # ONNX Runtime's integer convolution rounds biases to integers, which changes one result in a thousand.
    if work.contrib and fused(work, node, source, found, scales, bias, tail, ConvAttributes(shape, *stated.listed())):
        return
    if source.affine.offset is not None:
        return  # only QuantizedConv has offsets
    if (
        is_per_tensor
        and (quantization := _quantization(work, tail)) is not None
        and _in_integers(work, node, source, found, scales, bias, quantization, op)
    ):
        return
    if is_per_tensor and stated.group == 1 and (all(size == 1 for size in stated.kernel) or shape[1] >= _MIN_CHANNELS):
        weights_affine = Affine(scales.astype(np.float32), np.broadcast_to(found.affine.zero_point, shape[:1]), 1)
        work.replace(node, _as_product(work, op, source, found, weights_affine, stated, shape, bias), tail)
    elif x is not node.inputs[0]:
        rank = len(shape)
        numbers = op.at(21).Cast(found.emit(op), to=ir.DataType.FLOAT)
        if found.affine.zero_point.any():
            numbers = op.Sub(numbers, found.affine.zero_point.astype(np.float32).reshape(-1, *[1] * (rank - 1)))
        node.replace_input_with(0, x)
        node.replace_input_with(1, op.Mul(numbers, op.const(scales.astype(np.float32).reshape(-1, *[1] * (rank - 1)))))


def _in_integers(
    work: Arrangement,
    node: ir.Node,
    x: Quantized,
    found: Weights,
    scales: np.ndarray,
    bias: np.ndarray,
    quantization: ResultQuantization,
    op: Builder,
) -> bool:
    """Convert a convolution to one with integer inputs and outputs. Return whether it is possible."""
    if found.affine.zero_point.dtype == np.int8 and found.affine.zero_point.any():
        return False
    scales, bias = scales / quantization.divisor, (bias + quantization.shift) / quantization.divisor
    bias = bias + quantization.level_shift * quantization.affine.scale
    unit = scales.astype(np.float64) * float(x.affine.scale)
    with np.errstate(all="ignore"):
        whole = np.rint(bias / unit)
    # A unit that is 0 or infinite in float32 is not a number that can be used.
    if not (np.abs(whole) <= _LARGEST_BIAS).all() or not is_scale(unit).all():
        return False
    zeros = np.broadcast_to(found.affine.zero_point, scales.shape)
    inputs = [x.affine.dequantize(op, x.integers), _shortest(scales, zeros).dequantize(op, found.emit(op))]
    if whole.any():
        terms = _shortest(unit, np.zeros(unit.shape, np.int32))
        inputs.append(terms.dequantize(op, constant_value(whole.astype(np.int32))))
    result = op.Conv(*inputs, **attributes_of(node))
    result.shape = quantization.value.shape
    quantization.quantizer.replace_input_with(0, result)
    quantization.quantizer.replace_input_with(1, op.place(constant_value(quantization.affine.scale)))
    return True


def _as_product(
    work: Arrangement,
    op: Builder,
    x: Quantized,
    found: Weights,
    weights_affine: Affine,
    stated: _Attributes,
    shape: Sequence[int],
    bias: np.ndarray,
) -> Value:
    """Emit a convolution as a product of neighborhoods and weights."""
    rank = len(shape)
    pixels = op.Transpose(x.integers, perm=channels_last(rank))
    if any(stated.pads):
        half = len(stated.pads) // 2
        pads = [0, *stated.pads[:half], 0, 0, *stated.pads[half:], 0]
        pixels = op.Pad(pixels, pads, constant_value(x.affine.zero_point))
    spatial = list(range(1, rank - 1))
    neighbors = []
    for offsets in itertools.product(*(range(size) for size in stated.kernel)):
        begins = [offset * step for offset, step in zip(offsets, stated.dilations, strict=True)]
        # The last neighbor ends at the end of the data. The others end as far before it as they begin before the last one.
        ends = [begin - (size - 1) * step for begin, size, step in zip(begins, stated.kernel, stated.dilations, strict=True)]
        ends = [end if end < 0 else np.iinfo(np.int64).max for end in ends]
        is_all = not any(begins) and all(end > 0 for end in ends) and all(step == 1 for step in stated.strides)
        neighbors.append(pixels if is_all else op.Slice(pixels, begins, ends, spatial, list(stated.strides)))
    around = neighbors[0] if len(neighbors) == 1 else op.Concat(*neighbors, axis=-1)
    rows = prod(shape[1:])
    matrix = op.Transpose(found.emit(op), perm=[*range(2, rank), 1, 0])
    right = Quantized(op.Reshape(matrix, [rows, shape[0]]), weights_affine)
    added = bias.astype(np.float32) if bias.any() else None
    result = multiply(work, op, Quantized(around, x.affine), right, added)
    result.shape = ir.Shape([None] * rank) if result.shape is None else result.shape
    return op.Transpose(result, perm=channels_first(rank))


def _shortest(scales: np.ndarray, zeros: np.ndarray) -> Affine:
    """Return one scale and zero point for the whole tensor if those of all channels are equal."""
    scales = scales.astype(np.float32)
    if (scales == scales[0]).all() and (zeros == zeros[0]).all():
        return Affine(scales[0], zeros[0])
    return Affine(scales, zeros, 0)


# -- nodes after a convolution --------------------------------------------------------------------------------------------


def _quantization(work: Arrangement, tail: ir.Value) -> ResultQuantization | None:
    """Return the quantization of a convolution's result; ``None`` if the result must be floats."""
    user = only_user(tail)
    if user is None:
        return None
    if (quantization := quantization_of(work, tail)) is not None:
        return quantization
    following = quantization_of(work, user.outputs[0])
    if following is None or np.any(following.level_shift):
        return None
    if _is_redundant_clip(user, following):
        return following
    if np.all(following.divisor == 1) and (line := _clipped_line(user, following.affine)) is not None:
        slope, shift = line
        return ResultQuantization(
            following.value, following.affine.scaled(1 / slope), following.quantizer, shift=shift / slope
        )
    return None


def _is_redundant_clip(node: ir.Node, quantization: ResultQuantization) -> bool:
    """Return whether a node clips only numbers that the quantization clips as well."""
    if not quantization.affine.starts_at_zero:
        return False
    if is_node(node, "Relu"):
        return True
    if not is_node(node, "Clip"):
        return False
    if any(value is not None and constant_array(value) is None for value in node.inputs[1:]):
        return False  # a limit is computed at run time
    low, high = ([constant_array(value) for value in node.inputs[1:]] + [None, None])[:2]
    top = float(np.max(quantization.affine.scale * 255 * quantization.divisor))
    return (low is None or float(low) <= 0) and (high is None or float(high) >= top)


def _clipped_line(node: ir.Node, affine: Affine) -> tuple[float, float] | None:
    """Return slope and shift of a HardSigmoid whose limits are those of the quantization."""
    if not is_node(node, "HardSigmoid") or not affine.starts_at_zero:
        return None
    alpha, beta = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    return (alpha, beta) if alpha > 0 and np.rint(1 / float(affine.scale)) >= 255 else None
