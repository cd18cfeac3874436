"""Forms of operators that pnnx converts, for ncnn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list, producer_of


class ConvForSpaceToDepth(Workaround):
    """Convert SpaceToDepth to a Conv whose weights are zeros and ones. pnnx (2026) orders the channels differently.

    Conditions: float32, and a known number of channels. An infinity or a NaN makes all elements of its block NaN.
    """

    operators = frozenset(("SpaceToDepth",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        size: int = node.attributes.get_int("blocksize", 1)
        if not isinstance(x, Value) or x.dtype != ir.DataType.FLOAT or x.dims is None or x.dims[1] is None:
            return None
        channels = x.dims[1]
        if channels == 1:
            return None
        weights = np.zeros((size, size, channels, channels, size, size), np.float32)
        for row in range(size):
            for column in range(size):
                weights[row, column, :, :, row, column] = np.eye(channels)
        kernel = op.const(weights.reshape(-1, channels, size, size))
        return [op.Conv(x, kernel, kernel_shape=[size, size], strides=[size, size])]


class DepthToSpaceForTranspose(Workaround):
    """Convert a Transpose of six dimensions and the Reshapes around it to DepthToSpace. ncnn has tensors of four dimensions.

    The first Reshape splits the channels to blocks, in either order, and the last merges each row and column of a block with
    those of the image.
    """

    operators = frozenset(("Reshape",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result = node.outputs[0]
        transposition = producer_of(node.inputs[0], "Transpose")
        split = None if transposition is None else producer_of(transposition.inputs[0], "Reshape")
        if transposition is None or split is None or not isinstance(result, Value) or not result.is_static:
            return None
        x, blocks = split.inputs[0], split.outputs[0]
        if not isinstance(x, Value) or not isinstance(blocks, Value) or x.dims is None or blocks.dims is None:
            return None
        modes: dict[tuple[int, ...], tuple[str, int]] = {(0, 1, 4, 2, 5, 3): ("CRD", 2), (0, 3, 4, 1, 5, 2): ("DCR", 1)}
        mode, place = modes.get(tuple(transposition.attributes.get_ints("perm", ())), ("", 0))
        if not mode or len(x.dims) != 4:
            return None
        batch, channels, height, width = x.dims
        size = blocks.dims[place]
        if not (batch and channels and height and width and size) or channels % size**2:
            return None
        depth = channels // size**2
        sizes = [depth, size, size] if mode == "CRD" else [size, size, depth]
        if blocks.dims != [batch, *sizes, height, width] or result.dims != [batch, depth, height * size, width * size]:
            return None
        return [op.DepthToSpace(x, blocksize=size, mode=mode)]


class SplitLastDimension(Workaround):
    """Split the last dimension of a tensor instead of a transposed dimension, such as the dimension of queries, keys and
    values.

    ncnn has tensors of four dimensions. Windows, tokens, the three projections, heads and channels are five dimensions.
    """

    operators = frozenset(("Split",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        transposition = producer_of(node.inputs[0], "Transpose")
        reshape = None if transposition is None else producer_of(transposition.inputs[0], "Reshape")
        if transposition is None or reshape is None:
            return None
        x, whole = reshape.inputs[0], reshape.outputs[0]
        if not isinstance(x, Value) or not isinstance(whole, Value) or not x.dims or whole.dims is None:
            return None
        permutation = list(transposition.attributes.get_ints("perm", ()))
        axis = node.attributes.get_int("axis", 0) % len(permutation)
        place, parts = permutation[axis], len(node.outputs)
        dims = [dim or 0 for dim in whole.dims]
        rest = math.prod(dims[place:])
        if len(dims) < 5 or 0 in dims or dims[place] != parts or x.dims[-1] != rest:
            return None
        if any(not isinstance(value, Value) or value.dims is None or value.dims[axis] != 1 for value in node.outputs):
            return None
        order = [source - (source > place) for source in permutation if source != place]
        pieces = op.Split(x, [rest // parts] * parts, axis=-1, outputs=parts)
        shaped = [op.Reshape(piece, dims[:place] + dims[place + 1 :]) for piece in pieces]
        return [op.Unsqueeze(op.Transpose(piece, perm=order), [axis]) for piece in shaped]


class SelectedParts(Workaround):
    """Slice the last dimension of a tensor instead of selecting a part of it along a dimension that a Transpose moves.

    For several such parts, pnnx (2026) writes a split along the first dimension, which it may interpret as the batch.
    Conditions: known sizes, and a Reshape that splits the last dimension to parts and elements.
    """

    operators = frozenset(("Gather",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        transposition, index = producer_of(node.inputs[0], "Transpose"), constant_array(node.inputs[1])
        reshape = None if transposition is None else producer_of(transposition.inputs[0], "Reshape")
        if transposition is None or reshape is None or index is None or index.ndim:
            return None
        x, whole = reshape.inputs[0], reshape.outputs[0]
        if not isinstance(x, Value) or not isinstance(whole, Value) or not x.is_static or not whole.is_static:
            return None
        permutation = list(transposition.attributes.get_ints("perm", ()))
        axis = node.attributes.get_int("axis", 0)
        dims = [dim or 0 for dim in whole.dims or ()]
        if not x.dims or 0 in dims or len(permutation) != len(dims) or axis != 0:
            return None
        place = permutation[axis]
        parts, rest = dims[place], math.prod(dims[place + 1 :])
        if x.dims[-1] != parts * rest or not -parts <= index < parts:
            return None
        start = int(index % parts) * rest
        part = op.Slice(x, [start], [start + rest], [len(x.dims) - 1])
        left = dims[:place] + dims[place + 1 :]
        shaped = part if part.dims == left else op.Reshape(part, left)
        order = [source - (source > place) for source in permutation if source != place]
        return [shaped if order == sorted(order) else op.Transpose(shaped, perm=order)]


class ColumnsByConv(Workaround):
    """Convert the columns of image blocks (im2col), which two Gathers select, to a Conv whose weights are zeros and ones.

    ncnn has tensors of four dimensions. Conditions: float32, known sizes, equal distances between the rows and columns, and
    a Reshape of rows and columns of blocks. An infinity or a NaN makes all elements of its block NaN.
    """

    operators = frozenset(("Reshape",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result, transposition = node.outputs[0], producer_of(node.inputs[0], "Transpose")
        columns = None if transposition is None else producer_of(transposition.inputs[0], "Gather")
        rows = None if columns is None else producer_of(columns.inputs[0], "Gather")
        if transposition is None or columns is None or rows is None or not isinstance(result, Value):
            return None
        x = rows.inputs[0]
        axes = [gather.attributes.get_int("axis", 0) for gather in (rows, columns)]
        if axes != [2, 4] or list(transposition.attributes.get_ints("perm", ())) != [0, 1, 2, 4, 3, 5]:
            return None
        if not isinstance(x, Value) or not x.is_static or x.rank != 4 or x.dtype != ir.DataType.FLOAT:
            return None
        batch, channels, *sizes = [dim or 0 for dim in x.dims or ()]
        steps = [_steps(constant_array(gather.inputs[1]), size) for gather, size in zip((rows, columns), sizes, strict=True)]
        if None in steps or 0 in (batch, channels):
            return None
        kernel, counts, dilations, strides = zip(*(step for step in steps if step is not None), strict=True)
        taps, blocks = math.prod(kernel), math.prod(counts)
        if result.dims != [batch, channels * taps, blocks]:
            return None
        weights = np.tile(np.eye(taps, dtype=np.float32), (channels, 1)).reshape(-1, 1, *kernel)
        image = op.Conv(x, weights, kernel_shape=kernel, dilations=dilations, strides=strides, group=channels)
        return [op.Reshape(image, [batch, channels * taps, blocks])]


def _steps(places: np.ndarray | None, size: int) -> tuple[int, int, int, int] | None:
    """Return the kernel, number of blocks, dilation and stride of a Conv that reads the places of its taps and blocks."""
    if places is None or places.ndim != 2 or not places.size or places[0, 0]:
        return None
    kernel, count = places.shape
    dilation = int(places[1, 0]) if kernel > 1 else 1
    stride = int(places[0, 1]) if count > 1 else size
    if min(dilation, stride) < 1 or (size - dilation * (kernel - 1) - 1) // stride + 1 != count:
        return None
    expected = np.arange(kernel)[:, None] * dilation + np.arange(count) * stride
    return (kernel, count, dilation, stride) if (places == expected).all() else None


class MergedAxes(Workaround):
    """Convert a Transpose of five or more dimensions to several Transposes of four dimensions and a batch of 1.

    ncnn has tensors of four dimensions, besides the batch. Dimensions that stay together are merged, and dimensions of 1
    removed. If more than four remain, each Transpose exchanges two groups of them.
    """

    operators = frozenset(("Transpose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, permutation = node.inputs[0], node.attributes.get_ints("perm", ())
        if not isinstance(x, Value) or not x.is_static or len(permutation) < 5:
            return None
        dims = [dim or 0 for dim in x.dims or ()]
        together: list[list[int]] = []
        for axis in permutation:
            if dims[axis] == 1:
                continue
            if together and _between(together[-1][-1], axis, dims):
                together[-1].append(axis)
            else:
                together.append([axis])
        sizes = {axes[0]: math.prod(dims[axis] for axis in axes) for axes in together}
        order, wanted = sorted(sizes), [axes[0] for axes in together]
        if 0 in dims or (len(dims) == 5 == len(order) + 1 and dims[0] == 1 and permutation[0] == 0):
            return None
        if len(order) <= 4 and order != wanted:
            x = op.Reshape(x, [1, *(sizes[axis] for axis in order)])
            x = op.Transpose(x, perm=[0, *(order.index(axis) + 1 for axis in wanted)])
            order = wanted
        while order != wanted:
            start = next(place for place, axis in enumerate(order) if axis != wanted[place])
            middle = end = order.index(wanted[start])
            while end < len(order) and order[end] == wanted[start + end - middle]:
                end += 1
            blocks = [order[:start], order[start:middle], order[middle:end], order[end:]]
            x = op.Reshape(x, [1, *(math.prod(sizes[axis] for axis in block) for block in blocks)])
            x = op.Transpose(x, perm=[0, 1, 3, 2, 4])
            order = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]
        return [op.Reshape(x, [dims[axis] for axis in permutation])]


def _between(axis: int, after: int, dims: Sequence[int]) -> bool:
    """Return whether an axis follows another, with dimensions of 1 between them."""
    return axis < after and all(dim == 1 for dim in dims[axis + 1 : after])


class NormalizedLines(Workaround):
    """Convert a LayerNormalization of several dimensions to a LayerNormalization of one dimension. pnnx (2026) normalizes
    the last dimension only.
    """

    operators = frozenset(("LayerNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = node.inputs[0], attributes_of(node)
        if not isinstance(x, Value) or not x.is_static or not x.dims or len(node.outputs) > 1:
            return None
        axis = attributes.pop("axis", -1) % len(x.dims)
        if axis == len(x.dims) - 1:
            return None
        whole = [dim or 0 for dim in x.dims]
        if any(isinstance(value, Value) and value.dims != whole[axis:] for value in node.inputs[1:]):
            return None
        factors = [None if value is None else op.Reshape(value, [-1]) for value in node.inputs[1:]]
        line = op.Reshape(x, [*whole[:axis], -1])
        return [op.Reshape(op.LayerNormalization(line, *factors, axis=-1, **attributes), whole)]


class BiasedNormalization(Workaround):
    """Add a bias of zeros to a LayerNormalization without one. ncnn requires both the scale and the bias, or neither, and
    pnnx (2026) fails.
    """

    operators = frozenset(("LayerNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, scale, *bias = node.inputs
        if (bias and bias[0] is not None) or not isinstance(scale, Value) or not scale.is_static or scale.dtype is None:
            return None
        zeros = np.zeros([dim or 0 for dim in scale.dims or ()], scale.dtype.numpy())
        result = op.LayerNormalization(x, scale, zeros, outputs=len(node.outputs), **attributes_of(node))
        return result if isinstance(result, tuple) else [result]


class EluForSelu(Workaround):
    """Convert Selu to Elu and Mul. pnnx (2026) lacks Selu."""

    operators = frozenset(("Selu",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype is None or x.rank is None:
            return None
        alpha: float = node.attributes.get_float("alpha", 1.67326319217681884765625)
        gamma: float = node.attributes.get_float("gamma", 1.05070102214813232421875)
        return [op.Mul(op.Elu(x, alpha=alpha), op.const([gamma] if x.rank else gamma, x.dtype))]


class SeparateFunctions(Workaround):
    """Swap the operands of an Add with an absolute value, and add the negative of Tanh instead of subtracting it.

    pnnx (2026) fuses them into Softsign and Tanhshrink, which ncnn does not support.
    """

    operators = frozenset(("Add", "Sub"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if node.op_type == "Add":
            return None if producer_of(a, "Abs") is None else [op.Add(b, a)]
        return None if producer_of(b, "Tanh") is None else [op.Add(a, op.Neg(b))]


class ReshapeBeforeExpand(Workaround):
    """Reshape a scalar before Expand to the rank of the result.

    For a scalar, pnnx (2026) computes the shape ``[1, 1]``. Condition: the rank of the result is known.
    """

    operators = frozenset(("Expand",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x, target), result = node.inputs, node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or x.rank != 0 or not result.rank:
            return None
        return [op.Expand(op.Reshape(x, [1] * result.rank), target)]


class ConcatForTile(Workaround):
    """Convert Tile to Concat. ncnn does not support the Tile that pnnx (2026) writes.

    Condition: each axis is repeated a known number of times, at most 64 in all.
    """

    operators = frozenset(("Tile",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result, repeats = node.inputs[0], constant_list(node.inputs[1])
        if not isinstance(result, Value) or not repeats or min(repeats) < 1 or math.prod(repeats) > _MOST_COPIES:
            return None
        for axis, count in enumerate(repeats):
            if count > 1:
                result = op.Concat(*[result] * count, axis=axis)
        return [result]


_MOST_COPIES = 64


class UniformConstants(Workaround):
    """Replace a constant operand whose numbers are equal along the first axis of the data by one number.

    pnnx (2026) may interpret the axis as the batch, which constants do not have. ncnn then computes results of another
    shape. An example is the number of elements of each embedding bag, if all bags have the same size.
    """

    operators = frozenset(("Add", "Div", "Mul", "Sub"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result = node.outputs[0]
        for place, value in enumerate(node.inputs):
            other, numbers = node.inputs[1 - place], constant_array(value)
            if numbers is None or not isinstance(other, Value) or not isinstance(result, Value):
                continue
            if not numbers.ndim or numbers.ndim != result.rank or numbers.shape[0] == 1:
                continue
            if other.dims != result.dims or not other.is_static:
                continue
            first = numbers.reshape(-1)[:1]
            if first.size and (numbers == first).all():
                given = list(node.inputs)
                given[place] = op.const(first)
                return [again(op, node, *given)]
        return None
