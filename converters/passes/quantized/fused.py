"""Integer convolutions fused with the function and the quantization that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from converters.passes.activations import gelu_function
from converters.passes.layouts import channels_first
from converters.passes.quantized.affine import is_scale
from converters.passes.quantized.graph import Arrangement, Quantized, is_node, only_user
from converters.passes.quantized.weights import Weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import constant_array
from onnx_specops.ops._integer_lists import integer_list
from onnx_specops.ops.quantized_conv import MAX_PRODUCTS, MOST_CHANNELS
from onnx_specops.replacing import replace_value

if TYPE_CHECKING:
    from converters.passes.quantized.residuals import Addition

_LARGEST = 999_999
"""The largest number in the operator's lists."""

_CUT = 0.25
"""A limit within this distance of the lowest or highest level is rounded to it, even after rounding errors of float32."""


@dataclass(frozen=True)
class Function:
    """The function that is applied to a convolution's result.

    Attributes:
        name: the ``function`` of QuantizedConv.
        value: the result.
        alpha, beta: see QuantizedConv.
        slope: the slopes of "prelu", one for each channel.
    """

    name: str
    value: ir.Value
    alpha: float = 0.0
    beta: float = 0.0
    slope: np.ndarray | None = None

    def scaled(self, factor: np.ndarray) -> Function | None:
        """Return the function ``factor * f(x / factor)``, if it exists."""
        if self.name in ("none", "prelu"):
            return self
        if self.name != "clip":
            return None
        if self.alpha == 0 and self.beta == np.inf:
            return self
        if (factor != factor[0]).any():
            return None
        return Function("clip", self.value, self.alpha * float(factor[0]), self.beta * float(factor[0]))


def function_of(tail: ir.Value, channels: int, axis: int = 1) -> Function:
    """Return the function of a result that has no other consumers and whose channels are along ``axis``; "none" if there is
    none.
    """
    none = Function("none", tail)
    if (swish := _swish(tail)) is not None:
        return swish
    user = only_user(tail)
    if user is None or user.domain or not user.outputs or user.inputs[0] is not tail:
        return none
    value, stated = user.outputs[0], user.attributes
    match user.op_type:
        case "Relu":
            return Function("clip", value, 0.0, np.inf)
        case "Clip":
            limits = [None if limit is None else constant_array(limit) for limit in (*user.inputs[1:], None, None)][:2]
            if any(given is not None and known is None for given, known in zip(user.inputs[1:], limits, strict=False)):
                return none
            low, high = (
                otherwise if limit is None else float(limit)
                for limit, otherwise in zip(limits, (-np.inf, np.inf), strict=True)
            )
            return Function("clip", value, low, high) if low <= high else none
        case "LeakyRelu":
            slope = np.full(channels, stated.get_float("alpha", 0.01), np.float32)
            return Function("prelu", value, slope=slope)
        case "PRelu":
            found = per_channel(tail, constant_array(user.inputs[1]), channels, axis)
            return none if found is None else Function("prelu", value, slope=found)
        case "HardSigmoid":
            return Function("hard_sigmoid", value, stated.get_float("alpha", 0.2), stated.get_float("beta", 0.5))
        case "HardSwish":
            return Function("hard_swish", value, 1 / 6, 0.5)
        case "Sigmoid":
            return Function("sigmoid", value)
        case "Gelu":
            return Function(gelu_function(user), value)
        case "Elu":
            return Function("elu", value, stated.get_float("alpha", 1.0))
        case "Mish":
            return Function("mish", value)
    return none


def _swish(tail: ir.Value) -> Function | None:
    """Match ``tail * Sigmoid(tail * alpha)``."""
    users = list(tail.consumers())
    if len(users) != 2 or tail.is_graph_output():
        return None
    product = next((user for user in users if is_node(user, "Mul") and not _is_scaled(user, tail)), None)
    other = next((user for user in users if user is not product), None)
    if product is None or other is None:
        return None
    alpha, gate = 1.0, other
    if is_node(other, "Mul"):
        factor = next((constant_array(value) for value in other.inputs if value is not tail), None)
        following = only_user(other.outputs[0])
        if factor is None or factor.size != 1 or following is None:
            return None
        alpha, gate = float(factor.reshape(())), following
    if not is_node(gate, "Sigmoid") or only_user(gate.outputs[0]) is not product:
        return None
    shape = product.outputs[0].shape
    if tail.shape is None or shape is None or len(shape) != len(tail.shape):
        return None  # the factor has more dimensions
    return Function("swish", product.outputs[0], alpha) if np.isfinite(alpha) else None


def _is_scaled(node: ir.Node, value: ir.Value) -> bool:
    return any(constant_array(other) is not None for other in node.inputs if other is not value)


def per_channel(value: ir.Value, numbers: np.ndarray | None, channels: int, axis: int = 1) -> np.ndarray | None:
    """Return numbers that broadcast to a value as one number for each channel along ``axis``."""
    if numbers is None or value.shape is None or numbers.ndim > (rank := len(value.shape)):
        return None
    shape = [1] * (rank - numbers.ndim) + list(numbers.shape)
    if any(size != 1 for i, size in enumerate(shape) if i != axis) or shape[axis] not in (1, channels):
        return None
    return np.broadcast_to(numbers.astype(np.float32).reshape(-1), (channels,)).copy()


@dataclass(frozen=True)
class Target:
    """The quantization of a convolution's result.

    Attributes:
        quantizer: the QuantizeLinear.
        factor: the factor from results to integers, for each channel.
        zero_point: its zero point.
        shift: the addend before rounding, in levels, for each channel.
    """

    quantizer: ir.Node
    factor: np.ndarray
    zero_point: np.ndarray
    shift: np.ndarray


@dataclass(frozen=True)
class ConvAttributes:
    """The attributes of a Conv, or of a MatMul as a convolution of one pixel.

    Attributes:
        shape: the shape of the weights.
        strides, dilations, pads: for each spatial dimension; pads at the beginnings, then at the ends.
        group: the number of groups.
        channels_last: whether the channels of the node's input and result are the last dimension.
    """

    shape: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]
    group: int
    channels_last: bool = False

    @classmethod
    def of_product(cls, depth: int, columns: int, rank: int) -> ConvAttributes:
        """Return the attributes for a MatMul of ``[..., depth]`` with ``rank`` dimensions and ``[depth, columns]``."""
        pixel = [1] * (rank - 2)
        return cls((columns, depth, *pixel), pixel, pixel, [0, 0] * (rank - 2), 1, channels_last=True)

    @property
    def axis(self) -> int:
        """The axis of the channels of the node's result."""
        return len(self.shape) - 1 if self.channels_last else 1


@dataclass(frozen=True)
class Blocks:
    """The blocks of pixels that the channels of a convolution become: ``[..., blocks * M]`` to ``[..., M]``.

    Attributes:
        sizes: the size of a block in each spatial dimension.
        cut: the pixels at the beginning and the end of each dimension that the result lacks.
    """

    sizes: Sequence[int]
    cut: Sequence[tuple[int, int]]

    def arrange(self, op: Builder, value: Value, space: Sequence[int], channels: int) -> Value:
        """Move channels of ``[N, *space, blocks * channels]`` to blocks of pixels."""
        rank = len(space)
        if prod(self.sizes) > 1:
            value = op.Reshape(value, [*[0] * (rank + 1), *self.sizes, channels])
            order = [axis for i in range(rank) for axis in (1 + i, 1 + rank + i)]
            value = op.Transpose(value, perm=[0, *order, 1 + 2 * rank])
            value = op.Reshape(value, [0, *(a * b for a, b in zip(space, self.sizes, strict=True)), channels])
        if any(map(any, self.cut)):
            ends = [-end if end else np.iinfo(np.int64).max for _, end in self.cut]
            value = op.Slice(value, [begin for begin, _ in self.cut], ends, list(range(1, rank + 1)), [1] * rank)
        return value


def fuse(
    work: Arrangement,
    node: ir.Node,
    x: Quantized,
    found: Weights,
    scales: np.ndarray,
    bias: np.ndarray,
    stated: ConvAttributes,
    function: Function,
    target: Target | None,
    addition: Addition | None = None,
    blocks: Blocks | None = None,
) -> bool:
    """Replace a convolution by one node, with float results if there is no ``target``. Return whether it is possible.

    Args:
        work: the graph.
        node: the Conv or MatMul.
        x: its input.
        found: its weights.
        scales: the scales of the weights, one for each output channel.
        bias: its bias, one number for each output channel.
        stated: its attributes.
        function: the function of its result.
        target: the quantization of its result.
        addition: the addition to its quantized result.
        blocks: the blocks that its channels become, if the node is a transposed convolution. The input has known sizes.
    """
    shape = stated.shape
    numbers = [*stated.strides, *stated.dilations, *stated.pads]
    if not 3 <= len(shape) <= 5 or prod(shape[1:]) > MAX_PRODUCTS or not prod(shape) or max(numbers) > _LARGEST:
        return False
    if shape[1] * stated.group > MOST_CHANNELS or min(numbers) < 0 or x.affine.zero_point.dtype != np.uint8:
        return False
    # If channels have their own zero points, their scales are part of the weights.
    unit = scales.astype(np.float64) * (float(x.affine.scale) if x.affine.is_per_tensor else 1.0)
    if not is_scale(unit).all() or not np.isfinite(bias.astype(np.float32)).all():
        return False
    op = work.before(node)
    if (filters := signed(op, found)) is None:
        return False
    added = None
    if x.affine.offset is not None:
        bias, added = _offset(bias, scales, x, filters, stated)
        if not np.isfinite(bias.astype(np.float32)).all():
            return False
    factor, shift = (None, None) if target is None else (target.factor, target.shift)
    if factor is not None and target is not None and _is_line(function, target):
        unit, bias = unit * function.alpha, bias * function.alpha + function.beta
        function = Function("none", function.value)
    if target is not None and is_cut_anyway(function, target):
        function = Function("none", function.value)
    if factor is not None and (scaled := function.scaled(factor)) is not None and is_scale(unit * factor).all():
        # Merge both factors.
        unit, bias, factor, function = unit * factor, bias * factor, None, scaled
    if shift is not None and factor is None and function.name == "none":
        bias, shift = bias + shift, None
    if not all(np.isfinite(array.astype(np.float32)).all() for array in (bias, *([] if factor is None else [factor]))):
        return False
    rank = len(shape)
    pixels = x.integers if stated.channels_last else work.channels_last(op, x.integers, rank)
    if addition is not None:  # the addend may be computed after the convolution
        op = work.before(addition.target.quantizer)
    zero = np.zeros([], np.float32) if target is None else target.zero_point
    result = op.specops.QuantizedConv(
        pixels,
        filters,
        constant_value(unit.astype(np.float32)),
        constant_value(bias.astype(np.float32)),
        constant_value(x.affine.zero_point),
        constant_value(zero),
        None if factor is None else constant_value(factor.astype(np.float32)),
        None if function.slope is None else constant_value(function.slope),
        *([None] * 7 if addition is None else _added(work, op, addition, stated)),
        None if added is None else constant_value(added),
        None if shift is None or not shift.any() else constant_value(shift.astype(np.float32)),
        channels=shape[1] * stated.group,
        kernel=integer_list(shape[2:]),
        strides=integer_list(stated.strides),
        pads=integer_list(stated.pads),
        dilations=integer_list(stated.dilations),
        group=stated.group,
        function=function.name,
        alpha=function.alpha,
        beta=function.beta,
    )
    if addition is not None:
        target, function = addition.target, Function("none", addition.value)
    old = function.value if target is None else target.quantizer.outputs[0]
    if blocks is not None:
        sizes = [] if x.integers.shape is None else [size for size in list(x.integers.shape)[2:] if isinstance(size, int)]
        taps = zip(sizes, shape[2:], stated.pads, stated.pads[rank - 2 :], strict=False)
        space = [size + begin + end - kernel + 1 for size, kernel, begin, end in taps]
        result = blocks.arrange(op, result, space, shape[0] // prod(blocks.sizes))
    first = result if stated.channels_last else op.Transpose(result, perm=channels_first(rank))
    given = function.value.shape
    if given is not None:
        if not stated.channels_last:
            result.shape = ir.Shape([given[0], *given[2:], given[1]])
        first.shape = given
    # A number halfway between two levels may round to either.
    if not replace_value(old, first, tolerance=0.0 if target is None else 1e-3, level=0.0 if target is None else 1.0):
        return False
    if not stated.channels_last:
        work.last[first, op.graph] = result
    if target is not None:
        work.renew(first)
    return True


def _offset(
    bias: np.ndarray, scales: np.ndarray, x: Quantized, filters: Value, stated: ConvAttributes
) -> tuple[np.ndarray, np.ndarray | None]:
    """Add the effect of the offset of a convolution's input to its bias, or return the offset as an input of QuantizedConv.

    It is an input if some windows have padding, which the offset does not apply to, or if the weights are computed.
    """
    offset, numbers = x.affine.offset, constant_array(filters)
    assert offset is not None
    if any(stated.pads) or numbers is None:
        return bias, offset
    columns = numbers.astype(np.float64).reshape(stated.group, -1, *stated.shape[1:])
    of_channels = np.broadcast_to(offset, stated.shape[1] * stated.group).reshape(stated.group, -1)
    sums = np.einsum("gmct,gc->gm", columns.reshape(*columns.shape[:3], -1), of_channels).reshape(-1)
    scale = float(x.affine.scale) if x.affine.is_per_tensor else 1.0
    return bias + scales * scale * sums, None


def _added(work: Arrangement, op: Builder, addition: Addition, stated: ConvAttributes) -> list[ir.Value | None]:
    """Return the inputs of QuantizedConv that describe an addition."""
    integers = addition.addend.integers
    return [
        integers if stated.channels_last else work.channels_last(op, integers, len(stated.shape)),
        constant_value(addition.addend_scale),
        constant_value(addition.addend.affine.zero_point),
        constant_value(addition.scale),
        constant_value(addition.target.zero_point),
        None if addition.slope is None else constant_value(addition.slope),
        None if addition.bias is None else constant_value(addition.bias),
    ]


def _is_line(function: Function, target: Target) -> bool:
    """Return whether the quantization clips a HardSigmoid at its limits, 0 and 1."""
    is_hard = function.name == "hard_sigmoid" and function.alpha > 0
    return is_hard and not target.zero_point.any() and not target.shift.any() and bool((np.rint(target.factor) >= 255).all())


def is_cut_anyway(function: Function, target: Target) -> bool:
    """Return whether a quantization rounds everything that a function clips to its lowest or highest level."""
    if function.name != "clip":
        return False
    low, high = (limit * target.factor + target.shift for limit in (function.alpha, function.beta))
    zero = target.zero_point.astype(np.float64)
    return bool((low + zero <= _CUT).all() and (high + zero >= 255.0 - _CUT).all())


def is_signed(found: Weights) -> bool:
    """Return whether weights are int8 with the zero point 0, or can be converted to it."""
    zero = found.affine.zero_point
    return not zero.any() if zero.dtype == np.int8 else bool((zero == 128).all())


def signed(op: Builder, found: Weights) -> Value | None:
    """Return the integers of weights with the zero point 0 as int8; ``None`` if they have another zero point."""
    if not is_signed(found):
        return None
    if found.affine.zero_point.dtype == np.int8:
        return found.emit(op)
    if (numbers := constant_array(found.emit(op))) is None:
        return None
    return constant_value((numbers ^ np.uint8(128)).view(np.int8))
