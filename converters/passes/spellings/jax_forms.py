"""Rewrites to operators that jaxonnxruntime supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.spellings.single_elements import decomposed
from converters.passes.transposed_windows import TransposedAxis, convolved
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list


class NormalizedRows(Workaround):
    """Convert InstanceNormalization to means and arithmetic. jaxonnxruntime (0.3) lacks it."""

    operators = frozenset(("InstanceNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return [decomposed(op, node)]


class ExpandedMovement(Workaround):
    """Convert Tile, DepthToSpace and SpaceToDepth of known sizes to Reshape, Transpose and Expand.

    jaxonnxruntime (0.3) lacks them.
    """

    operators = frozenset(("DepthToSpace", "SpaceToDepth", "Tile"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or not x.is_static or not x.dims or 0 in x.dims:
            return None
        dims = [dim or 0 for dim in x.dims]
        if node.op_type == "Tile":
            repeats = constant_list(node.inputs[1])
            if repeats is None or min(repeats) < 1:  # Reshape takes 0 as a dimension of its input
                return None
            rows = op.Reshape(x, [size for dim in dims for size in (1, dim)])
            wide = op.Expand(rows, [size for pair in zip(repeats, dims, strict=True) for size in pair])
            return [op.Reshape(wide, [count * dim for count, dim in zip(repeats, dims, strict=True)])]
        block = node.attributes.get_int("blocksize", 1)
        batch, channels, height, width = dims
        if node.op_type == "SpaceToDepth":
            cells = op.Reshape(x, [batch, channels, height // block, block, width // block, block])
            moved = op.Transpose(cells, perm=[0, 3, 5, 1, 2, 4])
            return [op.Reshape(moved, [batch, channels * block**2, height // block, width // block])]
        left = channels // block**2
        if node.attributes.get_string("mode", "DCR") == "DCR":
            cells, order = op.Reshape(x, [batch, block, block, left, height, width]), [0, 3, 4, 1, 5, 2]
        else:
            cells, order = op.Reshape(x, [batch, left, block, block, height, width]), [0, 1, 4, 2, 5, 3]
        return [op.Reshape(op.Transpose(cells, perm=order), [batch, left, height * block, width * block])]


class ConvForConvTranspose(Workaround):
    """Convert ConvTranspose of known sizes with constant weights to Conv, whose channels become blocks of pixels.

    jaxonnxruntime (0.3) lacks it. Conditions: no dilations, ``auto_pad`` or ``output_shape``, and less padding than the
    kernel. An infinite pixel may give NaN.
    """

    operators = frozenset(("ConvTranspose",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = (cast(Value, value) for value in node.inputs if value is not None)
        numbers, stated = constant_array(weights), node.attributes
        if numbers is None or not x.is_static or not x.dims or 0 in x.dims or 0 in numbers.shape:
            return None
        if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in stated:
            return None
        rank, dims = numbers.ndim - 2, [dim or 0 for dim in x.dims]
        if set(stated.get_ints("dilations", [1])) != {1}:
            return None
        strides, pads = (
            list(stated.get_ints(name, [k] * n)) for name, k, n in (("strides", 1, rank), ("pads", 0, 2 * rank))
        )
        more = stated.get_ints("output_padding", [0] * rank)
        found = [
            TransposedAxis.of(*one) for one in zip(numbers.shape[2:], strides, pads[:rank], pads[rank:], more, strict=True)
        ]
        axes = [axis for axis in found if axis is not None]
        if len(axes) < rank:
            return None
        group = stated.get_int("group", 1)
        parts = [x] if group == 1 else op.Split(x, [dims[1] // group] * group, axis=1, outputs=group)
        results = [
            _blocks(op, part, own, axes, [dims[0], dims[1] // group, *dims[2:]])
            for part, own in zip(parts, np.split(numbers, group), strict=True)
        ]
        result = results[0] if group == 1 else op.Concat(*results, axis=1)
        return [op.Add(result, op.Reshape(bias[0], [-1, *[1] * rank])) if bias else result]


class TriangularSums(Workaround):
    """Convert CumSum along a known axis of known size to a multiplication by a triangular matrix of 0 and 1.

    jaxonnxruntime (0.3) and pnnx (2026) lack it. An infinite number makes all sums along the axis infinite or NaN.
    """

    operators = frozenset(("CumSum",))
    finite = True
    most_dimensions: ClassVar[int] = 8
    """The number of dimensions of a tensor that the program multiplies by a matrix."""

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, axes = node.inputs[0], constant_list(node.inputs[1])
        if not isinstance(x, Value) or axes is None or not x.rank or x.dims is None or x.dtype is None:
            return None
        axis = axes[0] % x.rank
        size = x.dims[axis]
        has_rows = x.rank > self.most_dimensions
        if not size or size > _MOST_ROWS or (has_rows and not x.is_static):
            return None
        before = np.arange(size)[:, None] + node.attributes.get_int("exclusive", 0) <= np.arange(size)
        matrix = op.const(before.T if node.attributes.get_int("reverse", 0) else before, x.dtype)
        order = list(range(x.rank))
        order[axis], order[-1] = order[-1], order[axis]
        last = axis == x.rank - 1
        lines = x if last else op.Transpose(x, perm=order)
        sums = op.MatMul(op.Reshape(lines, [-1, size]) if has_rows else lines, matrix)
        if has_rows:
            sums = op.Reshape(sums, [x.dims[axis] or 0 for axis in order])
        return [sums if last else op.Transpose(sums, perm=order)]


_MOST_ROWS = 4096
"""The largest size of a triangular matrix."""


class SumsForNorms(Workaround):
    """Convert ReduceL1, ReduceL2 and ReduceSumSquare to ReduceSum, and ReduceMin of floats to ReduceMax.

    jaxonnxruntime (0.3) lacks them.
    """

    operators = frozenset(("ReduceL1", "ReduceL2", "ReduceMin", "ReduceSumSquare"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x, *axes), name = node.inputs, node.op_type
        if not isinstance(x, Value) or x.dtype is None or not x.dtype.is_floating_point():
            return None
        if name == "ReduceMin":
            return [op.Neg(op.ReduceMax(op.Neg(x), *axes, **attributes_of(node)))]
        sums = op.ReduceSum(op.Abs(x) if name == "ReduceL1" else op.Mul(x, x), *axes, **attributes_of(node))
        return [op.Sqrt(sums) if name == "ReduceL2" else sums]


def _blocks(op: Builder, x: Value, numbers: np.ndarray, axes: Sequence[TransposedAxis], dims: Sequence[int]) -> Value:
    """Return a transposed convolution of one group by Conv."""
    rank, strides, channels = len(axes), [axis.stride for axis in axes], numbers.shape[1]
    padded = [axis.pads[side] for side in (0, 1) for axis in axes]
    filters = convolved(numbers, axes)
    result = op.Conv(x, op.const(filters), kernel_shape=list(filters.shape[2:]), pads=padded)
    sizes = [size + sum(axis.pads) - axis.taps + 1 for size, axis in zip(dims[2:], axes, strict=True)]
    apart = op.Reshape(result, [dims[0], *strides, channels, *sizes])
    order = [place for axis in range(rank) for place in (rank + 2 + axis, 1 + axis)]
    moved = op.Transpose(apart, perm=[0, rank + 1, *order])
    result = op.Reshape(moved, [dims[0], channels, *(a * b for a, b in zip(sizes, strides, strict=True))])
    if any(any(axis.cut) for axis in axes):
        ends = [size * axis.stride - axis.cut[1] for size, axis in zip(sizes, axes, strict=True)]
        result = op.Slice(result, [axis.cut[0] for axis in axes], ends, list(range(2, rank + 2)))
    return cast(Value, result)


@rewrite("Greater", lambda op, a, b: op.Greater(a, b))
def less(op: Builder, *, a: Value, b: Value) -> Value:
    """Return b < a."""
    result: Value = op.Less(b, a)
    return result


@rewrite("GreaterOrEqual", lambda op, a, b: op.GreaterOrEqual(a, b))
def less_or_equal(op: Builder, *, a: Value, b: Value) -> Value:
    """Return b <= a."""
    result: Value = op.LessOrEqual(b, a)
    return result


@rewrite("Floor", lambda op, x: op.Floor(x))
def ceiling(op: Builder, *, x: Value) -> Value:
    """Return -Ceil(-x)."""
    result: Value = op.Neg(op.Ceil(op.Neg(x)))
    return result


@rewrite("HardSigmoid", lambda op, x: op.HardSigmoid(x, _outputs=["whole"]))
def clipped_line(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Return alpha * x + beta between 0 and 1."""
    node = whole.producer()
    assert node is not None
    if x.dtype is None or not x.rank:
        return None
    alpha, beta = (
        op.const(np.array([node.attributes.get_float(name, number)]), x.dtype)
        for name, number in (("alpha", 0.2), ("beta", 0.5))
    )
    return _clipped(op, op.Add(op.Mul(x, alpha), beta))


@rewrite("HardSwish", lambda op, x: op.HardSwish(x))
def clipped_factor(op: Builder, *, x: Value) -> Value | None:
    """Return the product of x and x / 6 + 0.5 between 0 and 1."""
    if x.dtype is None or not x.rank:
        return None
    sixth, half = (op.const(np.array([number]), x.dtype) for number in (1 / 6, 0.5))
    result: Value = op.Mul(x, _clipped(op, op.Add(op.Mul(x, sixth), half)))
    return result


@rewrite("Clip", lambda op, x, low, high: op.Clip(x, low, high))
def bounded(op: Builder, *, x: Value, low: Value, high: Value) -> Value:
    """Return Min(Max(x, low), high)."""
    result: Value = op.Min(op.Max(x, low), high)
    return result


def _clipped(op: Builder, x: Value) -> Value:
    zero, one = (op.const(np.array([number]), x.dtype) for number in (0.0, 1.0))
    result: Value = op.Min(op.Max(x, zero), one)
    return result


class LessForGreater(PatternPass):
    """Convert Greater and GreaterOrEqual to Less and LessOrEqual, Floor to Ceil, and HardSigmoid, HardSwish and
    Clip to Max and Min.

    jaxonnxruntime (0.3) lacks them. Its Clip fails with current releases of JAX.
    """

    rewrites = (less, less_or_equal, ceiling, clipped_line, clipped_factor, bounded)
