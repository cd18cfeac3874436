"""Queries of shapes, changes of shapes, and repetition."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Context, Departure, omitted, rule
from converters.openvino.rules._indices import (
    as_indices,
    constant_axis,
    dim,
    flat_range,
    integers,
    length,
    normal_axis,
    product,
    rank_of,
    transposed,
    truncated_int64,
    vector,
)
from onnx_specops import partial_values
from onnx_specops.building import Builder, Value

_MAX_BOXES = Departure(
    where="the output of NonMaxSuppression-1, -3 or -4",
    cpu="gives the shape of the largest possible result",
    specification="gives the shape of the actual result",
    follows="specification",
)


@rule("ShapeOf", departs=[_MAX_BOXES])
def shape_of_1(op: Builder, data: Value):
    """ShapeOf-1: always int64."""
    return op.Shape(data)


@rule("ShapeOf", since="opset3", departs=[_MAX_BOXES])
def shape_of(op: Builder, data: Value, *, output_type: ElementType):
    """ShapeOf-3. OpenVINO rejects a layer without ``output_type``, although the specification makes it optional."""
    return as_indices(op, op.Shape(data), output_type)


@rule(
    "Reshape",
    departs=[
        Departure(
            where="data without elements, and a run-time pattern with elements",
            cpu="gives no elements",
            specification="does not allow such patterns",
            follows="runtime",
        ),
        Departure(
            where="a 0 that copies a dimension, if the number of elements differs from that of the data",
            cpu="drops elements, or reads out of bounds",
            specification="does not allow such patterns",
            follows="specification",
        ),
    ],
)
def reshape(op: Builder, data: Value, shape: Value, *, special_zero: bool):
    """Reshape-1: with ``special_zero``, 0 copies the dimension of ``data``. -1 is the remaining dimension.

    ONNX does not define -1 if another dimension is 0, so it is computed here if that may happen.
    """
    target = vector(op, shape)
    if not special_zero:
        return op.Reshape(data, target, allowzero=1)
    pattern = integers(shape) or partial_values.copying_target(data, target)
    if pattern is None:
        return op.Reshape(data, _target(op, data, target), allowzero=1)
    if -1 not in pattern or 0 not in pattern:
        return op.Reshape(data, target)
    if (pattern := _without_minus_one(data, pattern)) is not None:
        return op.Reshape(data, pattern)
    return op.Reshape(data, _target(op, data, target), allowzero=1)


def _without_minus_one(data: Value, pattern: list[int]) -> list[int] | None:
    """Replace the -1 of ``pattern`` by its dimension; return ``None`` if it depends on run-time dimensions."""
    dims, at = data.dims, pattern.index(-1)
    if dims is None or any(i >= len(dims) for i, d in enumerate(pattern) if d == 0):
        return None
    left = [(i, d) for i, d in enumerate(dims) if i >= len(pattern) or pattern[i] != 0]
    known = int(np.prod([d for _, d in left if d is not None], dtype=np.int64))
    divisor = int(np.prod([d for d in pattern if d > 0], dtype=np.int64))
    unknown = [i for i, d in left if d is None]
    if divisor and known % divisor == 0 and not unknown:
        return [known // divisor if d == -1 else d for d in pattern]
    if divisor == known and unknown == [at]:
        return [0 if d == -1 else d for d in pattern]
    return None


def _target(op: Builder, data: Value, pattern: Value) -> Value:
    """Return the dimensions of a ``pattern`` with its special 0 and -1."""
    dims, count = op.Shape(data), op.Shape(pattern)
    copied = op.Equal(pattern, 0)
    target = op.Where(copied, _resized(op, dims, count, 1), pattern)
    left = product(op, op.Where(_resized(op, copied, op.Shape(dims), False), 1, dims))
    taken = product(op, op.Where(op.Or(copied, op.Less(pattern, 0)), 1, pattern))
    return op.Where(op.Less(target, 0), op.Div(left, taken), target)


def _resized(op: Builder, x: Value, count: Value, fill: int | bool) -> Value:
    """Crop or pad the vector ``x`` to ``count`` elements."""
    filled = op.Expand(op.const(np.array([fill], dtype=np.int64 if fill else bool)), count)
    return op.Slice(op.Concat(x, filled, axis=0), [0], count)


@rule(
    "Squeeze",
    departs=[
        Departure(
            where="axes whose dimension is unknown, and other than 1 at run time",
            cpu="fails",
            reference="leaves it",
            follows="cpu",
        ),
    ],
)
def squeeze(op: Builder, data: Value, axes: Value | None = None, *, context: Context):
    """Squeeze-1: a dimension known to be other than 1 stays."""
    return _squeezed(op, data, axes, context)


@rule("Squeeze", since="opset15")
def squeeze_15(op: Builder, data: Value, axes: Value | None = None, *, allow_axis_skip: bool = False, context: Context):
    """Squeeze-15: ``allow_axis_skip`` only means that the rank of the result is known at run time."""
    return _squeezed(op, data, axes, context)


def _squeezed(op: Builder, data: Value, axes: Value | None, context: Context) -> Value:
    if axes is None:
        return op.Squeeze(data)
    dims, known, stated = data.dims, integers(axes), context.output_dims()
    if known is not None and not known:
        return op.Squeeze(data)
    if known is not None and dims == []:
        for axis in known:  # OpenVINO treats the axes of a scalar as those of a vector
            normal_axis(axis, 1)
        return data
    if known is not None and dims is not None:
        chosen = {normal_axis(axis, len(dims)) for axis in known}
        removed = sorted(axis for axis in chosen if dims[axis] in (1, None))
        if all(dims[axis] == 1 for axis in removed) or (stated is not None and len(stated) == len(dims) - len(removed)):
            return op.Squeeze(data, removed) if removed else data
    if known is not None and dims is None and stated is not None:
        return op.Squeeze(data, known)
    return op.if_(op.Equal(op.Size(axes), 0), lambda op: op.Squeeze(data), lambda op: _squeezed_at_run_time(op, data, axes))


def _squeezed_at_run_time(op: Builder, data: Value, axes: Value) -> Value:
    shape, rank = op.Shape(data), rank_of(op, data)
    axes = vector(op, axes)
    axes = op.Where(op.Less(axes, 0), op.Add(axes, rank), axes)
    named = op.Equal(op.Unsqueeze(flat_range(op, rank), [1]), op.Unsqueeze(axes, [0]))
    named = op.Cast(op.ReduceMax(op.Cast(named, to=ir.DataType.INT64), [1], keepdims=0), to=ir.DataType.BOOL)
    kept = op.Not(op.And(named, op.Equal(shape, 1)))
    return op.Reshape(data, op.Compress(shape, kept, axis=0), allowzero=1)


@rule("Unsqueeze")
def unsqueeze(op: Builder, data: Value, axes: Value):
    """Unsqueeze-1: a repeated axis counts once."""
    known = integers(axes)
    if known is None:
        return op.Unsqueeze(data, vector(op, axes))
    known = list(dict.fromkeys(known))
    return op.Unsqueeze(data, known) if known else data


@rule(
    "Transpose",
    departs=[
        Departure(
            where="an empty order, given at run time",
            cpu="fails",
            specification="reverses the dimensions",
            follows="specification",
        ),
    ],
)
def transpose(op: Builder, data: Value, order: Value):
    """Transpose-1: an empty order reverses the dimensions."""
    perm = integers(order)
    if perm and data.rank is not None and sorted(perm) != list(range(data.rank)):
        raise Malformed(f"its order {perm} does not permute the {data.rank} dimensions of its input")
    if perm:
        return op.Transpose(data, perm=perm)
    if perm is not None and data.rank is not None:
        return op.Transpose(data, perm=range(data.rank)[::-1])
    order = vector(op, order)
    if perm is not None or length(order) != data.rank or not data.rank:
        reverse = op.Sub(op.Sub(rank_of(op, data), 1), flat_range(op, rank_of(op, data)))
        order = op.if_(op.Equal(op.Size(order), 0), lambda op: reverse, lambda op: order)
    return transposed(op, data, order)


_NEGATIVE_SIZE = Departure(
    name="negative sizes",
    where="a negative number in the target shape",
    cpu="gives no elements on one thread, and fails on several, or crashes",
    reference="gives no elements, and rejects -1",
    follows="runtime",
)


@rule("Broadcast", departs=[_NEGATIVE_SIZE, omitted("mode", "none", "numpy")])
def broadcast_1(
    op: Builder,
    data: Value,
    target_shape: Value,
    axes_mapping: Value | None = None,
    *,
    mode: Literal["numpy", "explicit", "none"] = "none",
):
    """Broadcast-1: OpenVINO writes ``none`` for the explicit mode, and a mapping without effect for ``numpy``. Without a
    mapping, every mode is ``numpy``.
    """
    return _broadcast(op, data, target_shape, axes_mapping, explicit=mode != "numpy" and axes_mapping is not None)


@rule(
    "Broadcast",
    since="opset3",
    departs=[
        _NEGATIVE_SIZE,
        Departure(
            where="`mode=bidirectional` and a target shape of no dimensions, which is not constant",
            cpu="fails, or returns uninitialized memory",
            reference="gives the data",
            follows="reference",
        ),
        Departure(
            where="`bidirectional` to a constant shape with a 0",
            cpu="gives a dimension of 1",
            specification="has no elements",
            follows="specification",
        ),
    ],
)
def broadcast(
    op: Builder,
    data: Value,
    target_shape: Value,
    axes_mapping: Value | None = None,
    *,
    mode: Literal["numpy", "explicit", "bidirectional"] = "numpy",
):
    """Broadcast-3: ``bidirectional`` and ``numpy`` are equal if the target is at least as large."""
    return _broadcast(op, data, target_shape, axes_mapping, explicit=mode == "explicit")


def _broadcast(op: Builder, data: Value, target_shape: Value, axes_mapping: Value | None, explicit: bool) -> Value:
    target = vector(op, target_shape)
    if not explicit:
        return op.Expand(data, target)
    if axes_mapping is None:
        raise Malformed("it has no axes_mapping, which the explicit mode requires")
    mapping, rank = integers(axes_mapping), length(target)
    if mapping is not None and rank is not None:
        if sorted(set(mapping)) != mapping or any(not 0 <= axis < rank for axis in mapping):
            raise Malformed(f"its axes_mapping {mapping} is not ascending within the {rank} dimensions of its output")
        new = [axis for axis in range(rank) if axis not in mapping]
        return op.Expand(op.Unsqueeze(data, new) if new else data, target)
    ones = op.Expand(op.const([1]), op.Shape(target))
    shape = op.ScatterElements(ones, vector(op, axes_mapping), op.Shape(data), axis=0)
    return op.Expand(op.Reshape(data, shape, allowzero=1), target)


@rule(
    "Tile",
    departs=[
        Departure(
            where="repeats that are empty or not constant",
            cpu="may not write the result",
            reference="repeats the data",
            follows="reference",
        ),
    ],
)
def tile(op: Builder, data: Value, repeats: Value):
    """Tile-1: ones are prepended to the shorter of shape and repeats. A negative number of repeats is 0."""
    repeats = op.Max(vector(op, repeats), 0)
    rank, count = data.rank, length(repeats)
    if rank is not None and rank == count:
        return op.Tile(data, repeats)
    missing = op.Max(op.Sub(rank_of(op, data), op.Shape(repeats)), 0)
    repeats = op.Concat(op.Expand(op.const([1]), missing), repeats, axis=0)
    if rank is None or count is None or rank < count:
        ones = op.Expand(op.const([1]), op.Max(op.Sub(op.Shape(repeats), rank_of(op, data)), 0))
        data = op.Reshape(data, op.Concat(ones, op.Shape(data), axis=0), allowzero=1)
    return op.Tile(data, repeats)


@rule(
    "Concat",
    departs=[
        Departure(
            where="data without elements, of known dimensions and of unknown ones",
            cpu="omits the data of known dimensions",
            reference="includes all data",
            follows="reference",
        ),
    ],
)
def concat(op: Builder, *inputs: Value, axis: int):
    """Concat-1."""
    if not inputs:
        raise Malformed("it has no inputs")
    return op.Concat(*inputs, axis=axis)


@rule("Split")
def split(op: Builder, data: Value, axis: Value, *, num_splits: int, context: Context):
    """Split-1."""
    if num_splits < 1 or num_splits != len(context.layer.outputs):
        raise Malformed(f"it has {len(context.layer.outputs)} outputs and num_splits={num_splits}")
    at = constant_axis(axis, data.rank)
    if at is None:
        size = op.Div(op.Gather(op.Shape(data), vector(op, axis)), num_splits)
        return _slices(op, data, axis, [op.Mul(size, k) for k in range(num_splits + 1)])
    size = None if data.dims is None else data.dims[at]
    if size is None:
        lengths = op.Expand(op.Div(dim(op, data, at), num_splits), [num_splits])
        return op.Split(data, lengths, axis=at, outputs=num_splits)
    if size % num_splits:
        raise Malformed(f"it cannot split {size} elements into {num_splits} equal parts")
    return op.Split(data, axis=at, num_outputs=num_splits, outputs=num_splits)


@rule("VariadicSplit")
def variadic_split(op: Builder, data: Value, axis: Value, split_lengths: Value, *, context: Context):
    """VariadicSplit-1: one of the lengths may be -1, the remainder."""
    count = len(context.layer.outputs)
    axis, split_lengths = truncated_int64(op, axis), truncated_int64(op, split_lengths)
    lengths, known = vector(op, split_lengths), integers(split_lengths)
    if length(lengths) not in (None, count):
        raise Malformed(f"it has {count} outputs and {length(lengths)} split_lengths")
    if known is not None and (known.count(-1) > 1 or min(known) < -1):
        raise Malformed(f"its split_lengths are {known}; each must be 0 or more, and one of them may be -1")
    at = constant_axis(axis, data.rank)
    if known is None or -1 in known:
        open_ = op.Less(lengths, 0)
        dims = op.Shape(data)
        size = op.Gather(dims, vector(op, axis)) if at is None else dim(op, data, at)
        rest = op.Sub(size, op.ReduceSum(op.Where(open_, 0, lengths)))
        lengths = op.Where(open_, rest, lengths)
    if at is not None:
        return op.Split(data, lengths, axis=at, outputs=count)
    ends = op.CumSum(lengths, 0)
    return _slices(op, data, axis, [op.const([0]), *(op.Slice(ends, [k], [k + 1]) for k in range(count))])


def _slices(op: Builder, data: Value, axis: Value, bounds: list[Value]) -> list[Value]:
    """Split ``data`` along an axis that is known at run time only."""
    at = vector(op, axis)
    return [op.Slice(data, start, end, at) for start, end in itertools.pairwise(bounds)]
