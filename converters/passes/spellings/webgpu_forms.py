"""Rewrites to types and operators that WebGPU supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from converters.passes.sizes import parts_of_split
from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list

_SMALL = frozenset((ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8))
_INT64 = frozenset((ir.DataType.INT64,))
_MOVED = _SMALL | _INT64
_MOST_FIRST = 4096
_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))


class PaddedChannels(Workaround):
    """Add a channel of zeros to the input and the kernels of a Conv with 6, 9, 15, 18 or similar numbers of input channels.

    WebGPU (0.4) computes wrong numbers if the number of channels is a multiple of 3 but neither 3 nor a multiple of 4, and
    the number of output channels is a multiple of 4. Conditions: images or lines, one group, and not a matrix multiplication
    of the channels.
    """

    operators = frozenset(("Conv",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        if not isinstance(x, Value) or not isinstance(weights, Value) or weights.dtype is None:
            return None
        if weights.dims is None or None in weights.dims:
            return None
        kernels, channels, *kernel = (dim or 0 for dim in weights.dims)
        attributes = attributes_of(node)
        if attributes.get("group", 1) != 1 or len(kernel) > 2 or kernels % _LANES or not channels % _LANES:
            return None
        is_product = all(number == 1 for number in (*kernel, *attributes.get("strides", ())))
        if channels == _VECTOR or channels % _VECTOR or (is_product and not any(attributes.get("pads", ()))):
            return None
        zeros = [0] * len(weights.dims)
        wide = op.Pad(x, [*zeros, 0, 1, *zeros[2:]])
        return [again(op, node, wide, _lengthened(op, weights, 1, axis=1), *bias)]


_VECTOR = 3
_LANES = 4
"""The numbers of channels that its kernel reads at once."""


class OddGroups(Workaround):
    """Add a group of zeros to a Conv with an even number of groups, and remove its results.

    WebGPU (0.4) computes wrong numbers if the number of output channels per group is greater than 4 and not a multiple of 4.
    """

    operators = frozenset(("Conv",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        if not isinstance(x, Value) or not isinstance(weights, Value) or weights.dims is None or None in weights.dims:
            return None
        kernels, channels, *kernel = (dim or 0 for dim in weights.dims)
        groups = node.attributes.get_int("group", 1)
        if groups % 2 or kernels <= _LANES * groups or not kernels % (_LANES * groups) or len(kernel) > 2:
            return None
        zeros = [0] * len(weights.dims)
        wide = op.Pad(x, [*zeros, 0, channels, *zeros[2:]])
        more = kernels // groups
        given = [_lengthened(op, value, more) for value in (weights, *bias) if isinstance(value, Value)]
        result = op.Conv(wide, *given, **(attributes_of(node) | {"group": groups + 1}))
        return [op.Slice(result, [0], [kernels], [1])]


def _lengthened(op: Builder, value: Value, more: int, axis: int = 0) -> Value:
    """Return weights or a bias with zeros after the last element along an axis."""
    dims = [dim or 0 for dim in value.dims or ()]
    dims[axis] = more
    zeros = np.zeros(dims, value.dtype.numpy() if value.dtype else np.float32)
    array = constant_array(value)
    if array is None:
        return op.Concat(value, op.const(zeros), axis=axis)
    return op.const(np.concatenate([array, zeros.astype(array.dtype)], axis))


class SeveralTransposedKernels(Workaround):
    """Add a kernel of zeros to each group of a ConvTranspose, and remove its results.

    WebGPU (0.4) computes wrong numbers for several groups with one output channel and an even number of input channels each.
    """

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        if not isinstance(weights, Value) or weights.dims is None or None in weights.dims:
            return None
        channels, kernels, *kernel = (dim or 0 for dim in weights.dims)
        groups = node.attributes.get_int("group", 1)
        if groups == 1 or kernels != 1 or channels // groups % 2 or len(kernel) > 2:
            return None
        zeros = [0] * len(weights.dims)
        given = [op.Pad(weights, [*zeros, 0, 1, *zeros[2:]])]
        given += [op.Reshape(op.Pad(op.Unsqueeze(value, [1]), [0, 0, 0, 1]), [-1]) for value in bias if value is not None]
        result = op.ConvTranspose(x, *given, **attributes_of(node))
        return [op.Slice(result, [0], [2 * groups], [1], [2])]


class NarrowIntegers(Workaround):
    """Compute with 32-bit integers where the kernel has no booleans, bytes or 64-bit integers.

    Few kernels of WebGPU (0.4) support these types. It computes 64-bit integers with 32 bits, so the results do not change.
    """

    operators = frozenset((
        "ArgMax", "ArgMin", "Concat", "CumSum", "Equal", "Flatten", "GatherND", "Pad", "Pow", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ScatterElements", "ScatterND", "Split", "Squeeze", "Tile", "Transpose",
    ))  # fmt: skip
    _DATA: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "Concat": (), "Equal": (0, 1), "Pad": (0, 2), "Pow": (0, 1), "ScatterElements": (0, 2), "ScatterND": (0, 2),
    }  # fmt: skip
    """The inputs that have the type; ``()`` means all. For other operators, it is the first input."""
    _INT64_KERNELS = frozenset(("Concat", "Equal", "Tile"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        kept = _SMALL if node.op_type in self._INT64_KERNELS else _MOVED
        if not isinstance(x, Value) or x.dtype not in kept or any(value is None for value in node.outputs):
            return None
        places = self._DATA.get(node.op_type, (0,)) or range(len(node.inputs))
        given = list(node.inputs)
        for place in places:
            value = given[place] if place < len(given) else None
            if value is not None and (value.dtype is None or not value.dtype.is_floating_point()):  # an exponent may be one
                given[place] = op.Cast(value, to=ir.DataType.INT32)
        found = op.node(node.op_type, *given, outputs=len(node.outputs), **attributes_of(node))
        values: Sequence[Value] = [found] if isinstance(found, Value) else found
        return [
            value if value.dtype == result.dtype else op.Cast(value, to=result.dtype)
            for value, result in zip(values, node.outputs, strict=True)
        ]


class GatheredSlices(Workaround):
    """Convert a Slice of integers or booleans to Gather, and also a backward Slice that does not begin at the last element.

    WebGPU (0.4) slices floats only, and selects other elements for such backward slices. Conditions: known dimensions, or a
    slice of at most the first 4,096 elements.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, numbers = node.inputs[0], [constant_list(value) for value in node.inputs[1:]]
        if not isinstance(x, Value) or x.dtype is None or x.dims is None:
            return None
        if constant_array(x) is not None or len(numbers) < 2 or any(one is None for one in numbers):
            return None
        starts, ends, *rest = (one for one in numbers if one is not None)
        axes = rest[0] if rest else list(range(len(starts)))
        steps = rest[1] if len(rest) > 1 else [1] * len(starts)
        if x.dtype.is_floating_point() and not _begins_before_last(x.dims, starts, axes, steps):
            return None
        if any(x.dims[axis] is None for axis in axes):
            if len(axes) > 1 or starts != [0] or steps != [1] or not 0 < ends[0] <= _MOST_FIRST:
                return None
            axis = axes[0] % len(x.dims)
            size = op.Shape(op.Cast(x, to=ir.DataType.FLOAT), start=axis, end=axis + 1)
            places = op.Slice(np.arange(ends[0], dtype=np.float32), [0], size, [0])
            return [op.Gather(x, op.Cast(places, to=ir.DataType.INT64), axis=axis)]
        result: Value = x
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            size = x.dims[axis] or 0
            start, end = (place + size if place < 0 else place for place in (start, end))
            last = None if end < 0 and step < 0 else max(end, 0)
            indices = np.arange(size, dtype=np.int64)[max(start, 0) : last : step]
            if len(indices) < size or step < 0:
                result = op.Gather(result, op.const(indices), axis=axis % len(x.dims))
        return [result if result is not x else op.Identity(x)]


def _begins_before_last(
    dims: Sequence[int | None], starts: Sequence[int], axes: Sequence[int], steps: Sequence[int]
) -> bool:
    """Return whether a Slice goes backward from an element that is not the last one of a known dimension."""
    sizes = [dims[axis] for axis in axes]
    return any(
        step < 0 and size is not None and start != -1 and start < size - 1
        for start, step, size in zip(starts, steps, sizes, strict=True)
    )


class SlicesFromLast(Workaround):
    """Convert a backward Slice from one of the first elements to a Slice up to that element, and a backward Slice of the
    result.

    WebGPU (0.4) selects other elements unless the Slice begins at the last one. Conditions: constant start and end, and an
    end that is not counted from the last element.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, numbers = node.inputs[0], [constant_list(value) for value in node.inputs[1:]]
        if not isinstance(x, Value) or len(numbers) < 4 or any(one is None for one in numbers):
            return None
        parts = list(zip(*(one for one in numbers if one is not None), strict=True))
        found = [step < 0 <= start < _MOST for start, _, _, step in parts]
        if not any(found) or any(one and -_MOST < part[1] < 0 for one, part in zip(found, parts, strict=True)):
            return None
        result: Value = x
        for is_inner, (start, end, axis, step) in zip(found, parts, strict=True):
            if is_inner:
                result = op.Slice(result, [0], [start + 1], [axis])
            result = op.Slice(result, [-1 if is_inner else start], [end], [axis], [step])
        return [result]


_MOST = 2**31 - 1
"""An index above all sizes."""


class GatheredElements(Workaround):
    """Convert a GatherElements of integers or booleans of known shapes to a Gather of the flat tensor.

    WebGPU (0.4) gathers elements of floats only.
    """

    operators = frozenset(("GatherElements",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, indices = node.inputs
        if not isinstance(x, Value) or not isinstance(indices, Value) or x.dtype is None or x.dtype.is_floating_point():
            return None
        if not x.is_static or not indices.is_static or indices.dtype is None:
            return None
        sizes, dims = [dim or 0 for dim in x.dims or ()], [dim or 0 for dim in indices.dims or ()]
        axis = node.attributes.get_int("axis", 0) % len(sizes)
        steps = [int(np.prod(sizes[place + 1 :])) for place in range(len(sizes))]
        places = np.zeros(dims, np.int64)
        for place, count in enumerate(steps):
            if place != axis:
                shape = [-1 if other == place else 1 for other in range(len(dims))]
                places = places + (np.arange(dims[place]) * count).reshape(shape)
        zero, size, step = (op.const([number], indices.dtype) for number in (0, sizes[axis], steps[axis]))
        forward = op.Where(op.Less(indices, zero), op.Add(indices, size), indices)
        flat = op.Add(op.Mul(forward, step), op.const(places.astype(indices.dtype.numpy())))
        return [op.Gather(op.Reshape(x, [-1]), flat, axis=0)]


class NegatedAnd(Workaround):
    """Convert Or to And of the negations, and Xor to a comparison. WebGPU (0.4) does not support Or and Xor."""

    operators = frozenset(("Or", "Xor"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value):
            return None
        if node.op_type == "Or":
            return [op.Not(op.And(op.Not(a), op.Not(b)))]
        return [op.Not(op.Equal(op.Cast(a, to=ir.DataType.INT32), op.Cast(b, to=ir.DataType.INT32)))]


class ScalarExponents(Workaround):
    """Convert a constant exponent of one element to a scalar. WebGPU (0.4) fails for some other shapes."""

    operators = frozenset(("Pow",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, exponent = node.inputs
        array = constant_array(exponent)
        if not isinstance(x, Value) or x.rank is None or array is None or array.size != 1:
            return None
        if not 0 < array.ndim <= x.rank:
            return None
        return [op.Pow(x, op.const(array.reshape(())))]


_MOST_RESULTS = 7
"""A shader binds the input and all results of a Split. WebGPU guarantees eight storage buffers."""


class NestedSplits(Workaround):
    """Convert a Split with more than seven results to nested Splits.

    WebGPU (0.4) fails when it runs the node: a shader has at least eight storage buffers, but not many more. Condition: the
    sizes of the results are known.
    """

    operators = frozenset(("Split",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, parts = node.inputs[0], parts_of_split(node)
        if not isinstance(x, Value) or parts is None or len(node.outputs) <= _MOST_RESULTS:
            return None
        axis, sizes = parts
        return _parts(op, x, sizes, axis)


def _parts(op: Builder, x: Value, sizes: list[int], axis: int) -> list[Value]:
    """Emit Splits with few results, and return the parts with the given sizes."""
    if len(sizes) <= _MOST_RESULTS:
        return [x] if len(sizes) == 1 else list(op.Split(x, sizes, axis=axis, outputs=len(sizes)))
    count = min(_MOST_RESULTS, -(-len(sizes) // _MOST_RESULTS))
    bounds = [len(sizes) * index // count for index in range(count + 1)]
    groups = [sizes[start:end] for start, end in pairwise(bounds)]
    parts = op.Split(x, [sum(group) for group in groups], axis=axis, outputs=count)
    return [value for part, group in zip(parts, groups, strict=True) for value in _parts(op, part, group, axis)]
