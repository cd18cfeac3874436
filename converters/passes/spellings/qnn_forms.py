"""Forms that Qualcomm's HTP computes more precisely."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.spellings.jax_forms import TriangularSums
from converters.passes.spellings.padding import constant_pads
from converters.passes.spellings.qnn_limits import LOWEST
from converters.passes.spellings.resize_matrices import ResizeOfNcnn
from converters.passes.workaround import Workaround, again
from converters.targets.limits import free_scales
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, producer_of

_IMAGE = 4

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class SeparateActivations(Workaround):
    """Limit the input of a Sigmoid, Tanh or Gelu after a convolution or matrix multiplication to numbers above -60,000.

    For smaller numbers, the function equals its limit. Otherwise, QNN's HTP (2.7) fuses the two nodes, even with an Add
    between them. Sigmoid and Tanh then differ by up to 0.005 and 0.007, and Gelu of small numbers loses two bits.
    """

    operators = frozenset(("Gelu", "Sigmoid", "Tanh"))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype is None:
            return None
        add = producer_of(x, "Add")
        values = [x] if add is None else [x, *add.inputs]
        if all(producer_of(value, product) is None for value in values for product in _PRODUCTS):
            return None
        limited = op.Max(x, op.const(LOWEST, x.dtype))
        return [op.node(node.op_type, limited, **attributes_of(node))]


class SeparateTransposes(Workaround):
    """Insert a Max with -60,000 between a Transpose and a multiplication by several constant matrices if another Transpose
    follows.

    QNN's HTP (2.7) merges the three nodes, and multiplies by other matrices of the constant. Both Transposes exchange the
    middle two of four dimensions.
    """

    operators = frozenset(("MatMul",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights = node.inputs
        matrices = constant_array(weights)
        if not isinstance(x, Value) or x.dtype is None or matrices is None or math.prod(matrices.shape[:-2]) == 1:
            return None
        users = [use.node for use in node.outputs[0].uses()]
        if not _exchanges(producer_of(x, "Transpose")) or not any(map(_exchanges, users)):
            return None
        return [again(op, node, op.Max(x, op.const(LOWEST, x.dtype)), weights)]


def _exchanges(node: ir.Node | None) -> bool:
    """Return whether a node exchanges the middle two of four dimensions."""
    return node is not None and node.op_type == "Transpose" and list(node.attributes.get_ints("perm", ())) == [0, 2, 1, 3]


class ExpandedSoftplus(Workaround):
    """Convert Softplus and Mish to Exp and Log, and HardSigmoid to Mul, Add and Clip.

    For tensors in the layout of images, the results of QNN's HTP (2.7) differ by up to 0.7 for Softplus, and by up to 0.5
    for HardSigmoid.
    """

    operators = frozenset(("HardSigmoid", "Mish", "Softplus"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype is None or not x.rank:
            return None

        def number(element: float) -> Value:
            result: Value = op.const(np.array([element]), x.dtype)
            return result

        if node.op_type == "HardSigmoid":
            alpha, beta = (node.attributes.get_float(name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
            line = op.Add(op.Mul(x, number(alpha)), number(beta))
            return [op.Clip(line, op.const(0.0, x.dtype), op.const(1.0, x.dtype))]
        small = op.Log(op.Add(op.Exp(op.Neg(op.Abs(x))), number(1.0)))
        softplus = op.Add(op.Max(x, number(0.0)), small)
        return [softplus if node.op_type == "Softplus" else op.Mul(x, op.Tanh(softplus))]


class ResizeOfHTP(ResizeOfNcnn):
    """Convert each nearest Resize to a Resize with asymmetric coordinates and rounding down, or to Gather.

    A linear Resize whose scales differ from the ratios of the sizes, or that computes a single row or column with
    `pytorch_half_pixel`, becomes matrix multiplications. QNN's HTP (2.7) selects other elements, uses the sizes instead of
    the scales, and computes a single row at the center of the image.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        if node.attributes.get_string("mode", "nearest") == "nearest":
            return False
        mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        return not free_scales.applies(node) and not (mode == "pytorch_half_pixel" and 1 in (result.dims or ())[2:])


class FloorPooling(Workaround):
    """Convert the ``ceil_mode`` of AveragePool to padding at the end.

    If a window extends beyond the tensor, QNN's HTP (2.7) divides by the size of the whole window, and reads out of bounds.
    Conditions: known sizes, windows that begin within the tensor, and ``count_include_pad=0``.
    """

    operators = frozenset(("AveragePool",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        attributes = attributes_of(node)
        if not attributes.pop("ceil_mode", 0) or not isinstance(x, Value) or not isinstance(result, Value):
            return None
        kernel = attributes["kernel_shape"]
        strides, dilations = (list(attributes.get(name) or [1] * len(kernel)) for name in ("strides", "dilations"))
        pads = list(attributes.get("pads") or [0] * 2 * len(kernel))
        if not x.is_static or not result.is_static or attributes.get("auto_pad", "NOTSET") != "NOTSET":
            return None
        if attributes.pop("count_include_pad", 0) and any(pads):
            return None
        sizes, counts = ([dim or 0 for dim in (value.dims or ())[2:]] for value in (x, result))
        half = len(kernel)
        for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            covered = (count - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
            missing = max(covered - pads[axis] - size - pads[axis + half], 0)
            starts_outside = (count - 1) * strides[axis] >= pads[axis] + size
            if starts_outside or pads[axis + half] + missing >= kernel[axis]:
                return None
            pads[axis + half] += missing
        return [op.node(node.op_type, x, **(attributes | {"pads": pads}))]


class ConvForAveragePool(Workaround):
    """Convert an AveragePool to a Conv if it has one channel, a kernel that is not square, or almost as much padding as the
    kernel.

    QNN's HTP (2.7) computes other numbers. With ``count_include_pad=0``, factors correct the sums at the border. Conditions:
    an image of known size that is not the result of DequantizeLinear, no ``ceil_mode``, and no dilations.
    """

    operators = frozenset(("AveragePool",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result, attributes = node.inputs[0], node.outputs[0], attributes_of(node)
        if not isinstance(x, Value) or not isinstance(result, Value) or not x.is_static or not result.is_static:
            return None
        kernel = list(attributes["kernel_shape"])
        pads, strides = list(attributes.get("pads") or [0] * 4), list(attributes.get("strides") or [1, 1])
        if x.rank != _IMAGE or x.dtype != ir.DataType.FLOAT or producer_of(x, "DequantizeLinear") is not None:
            return None
        channels, *sizes = (dim or 0 for dim in (x.dims or ())[1:])
        counts = [dim or 0 for dim in (result.dims or ())[2:]]
        if attributes.get("ceil_mode", 0) or any(step != 1 for step in attributes.get("dilations") or ()):
            return None
        almost = any(pad and pad >= size - 1 for pad, size in zip(pads, kernel * 2, strict=True))
        if attributes.get("auto_pad", "NOTSET") != "NOTSET" or kernel == sizes:
            return None
        if channels > 1 and kernel[0] == kernel[1] and not almost:
            return None
        counted = not any(pads) or attributes.get("count_include_pad", 0)
        factors = np.ones(1)
        for axis in (0, 1):
            places = np.arange(counts[axis])[:, None] * strides[axis] - pads[axis] + np.arange(kernel[axis])
            within = ((places >= 0) & (places < sizes[axis])).sum(1)
            if not counted and not within.all():
                return None
            factors = factors[..., None] * kernel[axis] / np.maximum(within, 1)
        weights = np.full((channels, 1, *kernel), 1 / (kernel[0] * kernel[1]), np.float32)
        means = op.Conv(x, op.const(weights), group=channels, pads=pads, strides=strides, kernel_shape=kernel)
        return [means if counted else op.Mul(means, op.const(factors.reshape(1, 1, *counts).astype(np.float32)))]


class ConcatenatedEnds(Workaround):
    """Pad the end of the last axis by a Concat if the end of another axis is padded and the beginning of the last axis is
    not.

    QNN's HTP (2.7) fills such padding of at most four dimensions with other numbers, even if it is split into two Pads.
    Conditions: floats of known dimensions that are not the result of DequantizeLinear, a constant value, and constant pads
    that are not negative.
    """

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if (padding := constant_pads(node)) is None:
            return None
        ends, number = padding
        if not isinstance(x, Value) or not x.is_static or x.dtype not in _FLOATS or not 2 <= len(x.dims or ()) <= 4:
            return None
        rank, fill = len(x.dims or ()), constant_array(number)
        if (number is not None and fill is None) or producer_of(x, "DequantizeLinear") is not None:
            return None
        width = ends[-1]
        if ends[rank - 1] or not width or not any(ends[rank:-1]):
            return None
        dims = [(dim or 0) + ends[axis] + ends[axis + rank] for axis, dim in enumerate(x.dims or ())]
        column = np.full([*dims[:-1], width], 0 if fill is None else fill.reshape(()), x.dtype.numpy())
        return [op.Concat(op.Pad(x, [*ends[:-1], 0], number), op.const(column), axis=rank - 1)]


class MaxBeforePad(Workaround):
    """Insert a Max with -60,000 between a Cast from float16 and a Pad with a constant number other than 0.

    QNN's HTP (2.7) merges the Cast and the Pad, and fills the padding with other numbers.
    """

    operators = frozenset(("Pad",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads, *others = node.inputs
        before = producer_of(x, "Cast")
        if before is None or before.inputs[0] is None or before.inputs[0].dtype != ir.DataType.FLOAT16:
            return None
        if node.attributes.get_string("mode", "constant") != "constant" or not others or others[0] is None:
            return None
        fill = constant_array(others[0])
        if not isinstance(x, Value) or x.dtype != ir.DataType.FLOAT or (fill is not None and not fill.any()):
            return None
        return [again(op, node, op.Max(x, op.const(LOWEST, x.dtype)), pads, *others)]


class PadBeforeConv(Workaround):
    """Move padding that is at least as wide as the kernel of a Conv to a Pad before it.

    QNN's HTP (2.7) computes other numbers. A Max with -60,000 prevents ONNX Runtime from moving the padding back.
    """

    operators = frozenset(("Conv",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        attributes = attributes_of(node)
        pads = list(attributes.get("pads") or ())
        if not isinstance(x, Value) or not isinstance(weights, Value) or not weights.is_static or not pads:
            return None
        kernel = [dim or 0 for dim in (weights.dims or ())[2:]]
        dilations = attributes.get("dilations") or [1] * len(kernel)
        spans = [(size - 1) * apart + 1 for size, apart in zip(kernel, dilations, strict=True)]
        if all(pad < span for pad, span in zip(pads, spans * 2, strict=True)) or spans == [1] * len(spans):
            return None
        half = len(kernel)
        padded = op.Pad(x, [0, 0, *pads[:half], 0, 0, *pads[half:]])
        padded = op.Max(padded, op.const(LOWEST, x.dtype))
        return [op.Conv(padded, weights, *bias, **{name: value for name, value in attributes.items() if name != "pads"})]


_MOVES = frozenset((
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "MaxPool", "Pad", "Reshape", "Slice", "SpaceToDepth", "Squeeze",
    "Transpose", "Unsqueeze",
))  # fmt: skip


class QuantizedMoves(Workaround):
    """Dequantize integers before an operator that moves or selects them, and quantize the result.

    QNN (2.7) recognizes quantized operators by these adjacent nodes. Without them, it rejects Concat, MaxPool, Pad and
    Transpose of integers. All nodes use the same scale, so the integers do not change.
    """

    operators = _MOVES

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *others = given = list(node.inputs)
        if not isinstance(x, Value) or x.dtype not in (ir.DataType.UINT8, ir.DataType.INT8) or len(node.outputs) != 1:
            return None
        scales = {_scale(value) for value in (given if node.op_type == "Concat" else given[:1])}
        if len(scales) != 1 or (found := scales.pop()) is None:
            return None
        scale, zero = np.float32(found[0]), np.array(found[1], x.dtype.numpy())
        if node.op_type == "Concat":
            others = [op.DequantizeLinear(value, scale, zero) for value in others]
        if node.op_type == "Pad" and node.attributes.get_string("mode", "constant") == "constant":
            fill = others[1] if len(others) > 1 else None
            border = np.zeros((), x.dtype.numpy()) if fill is None else constant_array(fill)
            if border is None:
                return None
            others[1:2] = [op.const((border.astype(np.float32) - np.float32(zero)) * scale)]
        moved = op.node(node.op_type, op.DequantizeLinear(x, scale, zero), *others, **attributes_of(node))
        return [op.QuantizeLinear(moved, scale, zero)]


class ScalesOfQuantizations(Workaround):
    """Dequantize integers with the scale and zero point of their quantization, then multiply and add.

    QNN (2.7) ignores the scale and zero point of a DequantizeLinear if a QuantizeLinear with different ones precedes it, for
    example because of a factor in attention.
    """

    operators = frozenset(("DequantizeLinear",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *given = (*node.inputs, None)[:3]
        scale, zero = (None if value is None else constant_array(value) for value in given)
        if not isinstance(x, Value) or x.dtype is None or scale is None or zero is None or scale.ndim:
            return None
        if (found := _scale(x)) is None or found == (float(scale), int(zero)):
            return None
        own = op.DequantizeLinear(x, np.float32(found[0]), np.array(found[1], x.dtype.numpy()))
        factor, offset = np.float32(float(scale) / found[0]), np.float32(float(scale) * (found[1] - int(zero)))
        scaled = op.Mul(own, factor)
        return [op.Add(scaled, offset) if offset else scaled]


class SeparateQuantizations(Workaround):
    """Insert a Max of twice the same input between a DequantizeLinear and a QuantizeLinear with another scale or zero point.

    ONNX Runtime (1.31, 1.32) merges these nodes and a QuantizeLinear before them into one quantization, which rounds
    differently. A Max with a constant is not quantized, and QNN's HTP (2.7) then computes wrong numbers after a MaxPool.
    Condition: no other node reads the integers or the floats between them.
    """

    operators = frozenset(("QuantizeLinear",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *given = node.inputs
        middle = producer_of(x, "DequantizeLinear")
        if not isinstance(x, Value) or middle is None or x.is_graph_output() or len(list(x.uses())) != 1:
            return None
        integers = middle.inputs[0]
        first = producer_of(integers, "QuantizeLinear")
        if first is None or integers is None or integers.is_graph_output() or len(list(integers.uses())) != 1:
            return None
        pairs = zip(given, first.inputs[1:], strict=False)
        if len(given) == len(first.inputs) - 1 and all(_is_same(*pair) for pair in pairs):
            return None
        return [op.node("QuantizeLinear", op.Max(x, x), *given, **attributes_of(node))]


def _is_same(one: ir.Value | None, other: ir.Value | None) -> bool:
    first, second = constant_array(one), constant_array(other)
    return one is other or (first is not None and second is not None and np.array_equal(first, second))


def _scale(value: ir.Value | None) -> tuple[float, int] | None:
    """Return the scale and zero point of the QuantizeLinear that computes a value, if they are one constant."""
    quantizer = None if value is None else value.producer()
    if quantizer is None or quantizer.op_type != "QuantizeLinear" or len(quantizer.inputs) < 3:
        return None
    scale, zero = (None if given is None else constant_array(given) for given in quantizer.inputs[1:3])
    return None if scale is None or zero is None or scale.ndim else (float(scale), int(zero))


class WeightsOfFloatResults(Workaround):
    """Store the weights of a matrix multiplication or convolution as floats, unless its result is quantized.

    QNN (2.7) computes such nodes in floating point, and leaves the DequantizeLinear of the weights to the CPU. It supports a
    scale per column for convolutions only.
    """

    operators = frozenset(("DequantizeLinear",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        numbers = [None if value is None else constant_array(value) for value in node.inputs]
        if not numbers or any(array is None for array in numbers) or "block_size" in node.attributes:
            return None
        users = list(node.outputs[0].consumers())
        if not users or any(user.op_type not in _PRODUCTS or user.domain for user in users):
            return None
        stored, scale, zero = (array for array in (*numbers, np.zeros((), np.int8))[:3] if array is not None)
        if all(_is_quantized(user) and (not scale.ndim or user.op_type == "Conv") for user in users):
            return None
        axis = node.attributes.get_int("axis", 1)
        column = [-1 if place == axis % max(stored.ndim, 1) else 1 for place in range(stored.ndim)] if scale.ndim else []
        steps = stored.astype(np.float32) - zero.astype(np.float32).reshape(column if zero.ndim else [])
        return [op.const(steps * scale.reshape(column))]


def _is_quantized(node: ir.Node) -> bool:
    """Return whether the data of a product, and only its result after a function, are quantized."""
    data = None if node.inputs[0] is None else node.inputs[0].producer()
    value = node.outputs[0]
    while (
        len(users := list(value.consumers())) == 1 and users[0].op_type in ("Clip", "Relu") and not value.is_graph_output()
    ):
        value = users[0].outputs[0]
    is_stored = bool(users) and not value.is_graph_output() and all(user.op_type == "QuantizeLinear" for user in users)
    return is_stored and data is not None and data.op_type == "DequantizeLinear"


_MOST_DIMENSIONS = 5


class KernelsOfStrides(Workaround):
    """Add zeros to the kernels of a depthwise Conv with 3x3 kernels and strides of 4, or 1x1 kernels and strides of 3.

    QNN's HTP (2.7) computes wrong numbers if there are more than 32 channels. Afterwards, the kernels are as large as the
    strides.
    """

    operators = frozenset(("Conv",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        kernels, attributes = constant_array(weights), attributes_of(node)
        if kernels is None or kernels.shape[1] != 1 or attributes.get("group", 1) != kernels.shape[0]:
            return None
        sizes, strides = kernels.shape[2:], attributes.get("strides", ())
        if not strides or not _INCORRECT_STRIDES.issuperset(zip(sizes, strides, strict=True)):
            return None
        if attributes.get("auto_pad", "NOTSET") != "NOTSET" or max(attributes.get("dilations", (1,))) > 1:
            return None
        added, rank = [stride - size for size, stride in zip(sizes, strides, strict=True)], len(sizes)
        pads = list(attributes.get("pads", [0] * 2 * rank))
        pads[rank:] = [pad + more for pad, more in zip(pads[rank:], added, strict=True)]
        wide = np.pad(kernels, [(0, 0), (0, 0), *((0, more) for more in added)])
        return [again(op, node, x, op.const(wide), *bias, kernel_shape=list(strides), pads=pads)]


_INCORRECT_STRIDES = frozenset(((1, 3), (3, 4)))
"""Sizes of kernels, with strides."""


class SumsOfProducts(TriangularSums):
    """Convert CumSum of floats along a known axis of known size to a multiplication by a triangular matrix of 0 and 1.

    QNN's HTP (2.7) adds in float16, one number after another, and has errors of several percent after 2,000 numbers. It
    supports up to four dimensions, and neither ``reverse`` nor ``exclusive``. An infinite number makes all sums along the
    axis infinite or NaN.
    """

    most_dimensions = _IMAGE

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        return None if x is None or x.dtype is None or x.dtype.is_integer() else super().replacement(op, node)


class FiveDimensions(Workaround):
    """Merge dimensions for a Gather of five or more known dimensions, and for a reduction of six or more.

    QNN's HTP (2.7) supports tensors of up to five dimensions, and selects other elements if indices of two or more
    dimensions give a result of five. The rewrite merges the dimensions of the indices, and the dimensions before and after
    the axes of a Gather or reduction, which must be adjacent. Gather along another axis than the first stays as it is if the
    indices are a vector and the dimensions are at most five.
    """

    operators = frozenset(("Gather", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or not x.is_static or not result.is_static:
            return None
        dims, to = [size or 0 for size in x.dims or ()], [size or 0 for size in result.dims or ()]
        if max(len(dims), len(to)) < _MOST_DIMENSIONS or 0 in dims or 0 in to or len(node.inputs) < 2:
            return None
        if node.op_type == "Gather":
            return self._gathered(op, node, dims, to)
        numbers = None if node.inputs[1] is None else constant_array(node.inputs[1])
        if numbers is None or max(len(dims), len(to)) == _MOST_DIMENSIONS:
            return None
        axes = sorted({int(axis) % len(dims) for axis in numbers.reshape(-1)})
        if not axes or axes != list(range(axes[0], axes[-1] + 1)):
            return None
        parts = dims[: axes[0]], dims[axes[0] : axes[-1] + 1], dims[axes[-1] + 1 :]
        merged = op.Reshape(x, [int(np.prod(part)) for part in parts])
        return [op.Reshape(op.node(node.op_type, merged, op.const([1]), keepdims=0), to)]

    def _gathered(self, op: Builder, node: ir.Node, dims: list[int], to: list[int]) -> Sequence[Value] | None:
        x, indices = node.inputs
        axis = node.attributes.get_int("axis", 0) % len(dims)
        if not isinstance(indices, Value) or indices.rank is None:
            return None
        if indices.rank < 2 and (max(len(dims), len(to)) == _MOST_DIMENSIONS and axis):
            return None
        constant = constant_array(indices)
        places = op.Reshape(indices, [-1]) if constant is None else op.const(constant.reshape(-1))
        before, after = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
        if before == 1:
            return [op.Reshape(op.Gather(op.Reshape(x, [dims[axis], after]), places, axis=0), to)]
        return [op.Reshape(op.Gather(op.Reshape(x, [before, dims[axis], after]), places, axis=1), to)]
