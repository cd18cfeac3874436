"""Movement of elements: identity, reversal, rolling, shuffling, and exchange between channels, batch and space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import (
    INT64_MAX,
    INT64_MIN,
    coordinates,
    dim,
    flat_range,
    gather_at,
    integers,
    length,
    normal_axis,
    product,
    rank_of,
    strides,
    transposed,
    truncated_int64,
    vector,
)
from onnx_specops.building import Builder, Value

Order = Literal["blocks_first", "depth_first"]


@rule("Reverse")
def reverse(op: Builder, data: Value, reversed_axes: Value, *, mode: Literal["index", "mask"]):
    """Reverse-1."""
    if mode == "mask":
        if reversed_axes.dtype != ir.DataType.BOOL or not same_dims([length(reversed_axes)], [data.rank]):
            raise Malformed(
                f"its mask is {reversed_axes.dtype and reversed_axes.dtype.name} {reversed_axes.dims}; "
                "expected one boolean for each dimension of the data"
            )
        axes = op.Reshape(op.NonZero(reversed_axes), [-1])
    else:
        known = integers(reversed_axes)
        axes = vector(op, reversed_axes) if known is None else op.const(list(dict.fromkeys(known)))
        if known == []:
            return data
    count = op.Shape(axes)
    last, steps = op.Expand(op.const([-1]), count), op.Expand(op.const([-1]), count)
    return op.Slice(data, last, op.Expand(op.const([INT64_MIN]), count), axes, steps)


@rule("ReverseSequence")
def reverse_sequence(op: Builder, data: Value, seq_lengths: Value, *, batch_axis: int = 0, seq_axis: int = 1):
    """ReverseSequence-1. ONNX's operator supports only the first two axes."""
    batch, time = normal_axis(batch_axis, data.rank, "batch_axis"), normal_axis(seq_axis, data.rank, "seq_axis")
    if batch == time:
        raise Malformed(f"its batch_axis and its seq_axis are both {batch}")
    lengths = vector(op, truncated_int64(op, seq_lengths))
    if data.dims is not None and not same_dims(lengths.dims or [None], [data.dims[batch]]):
        raise Malformed(f"it has {length(lengths)} seq_lengths for {data.dims[batch]} sequences")
    if (known := integers(lengths)) and data.dims is not None and set(known) == {data.dims[time]}:
        return op.Slice(data, [-1], [INT64_MIN], [time], [-1])  # whole sequences, as in layers that go backwards
    if {batch, time} == {0, 1}:
        return op.ReverseSequence(data, lengths, batch_axis=batch, time_axis=time)
    rank = rank_of(op, data)
    front, axes = op.Mod(op.const([batch, time]), rank), flat_range(op, rank)
    named = op.Or(*(op.Equal(axes, op.Slice(front, [k], [k + 1])) for k in range(2)))
    order = op.Concat(front, op.Compress(axes, op.Not(named), axis=0), axis=0)
    moved = op.ReverseSequence(transposed(op, data, order), lengths, batch_axis=0, time_axis=1)
    # The position of each axis in the order.
    here = op.Equal(op.Unsqueeze(order, [0]), op.Unsqueeze(axes, [1]))
    return transposed(op, moved, op.ReduceSum(op.Where(here, op.Unsqueeze(axes, [0]), 0), [1], keepdims=0))


@rule(
    "Roll",
    since="opset7",
    departs=[
        Departure(
            where="one shift, a scalar, for several axes",
            cpu="rejects it",
            specification="shifts all the axes by it",
            follows="specification",
        ),
    ],
)
def roll(op: Builder, data: Value, shift: Value, axes: Value):
    """Roll-7: the shifts of a repeated axis are added. One shift applies to all axes."""
    axes, shift = vector(op, axes), vector(op, shift)
    known = integers(axes)
    if known is not None and data.rank is not None:
        axes = op.const([normal_axis(axis, data.rank) for axis in known])
    else:
        axes = op.Where(op.Less(axes, 0), op.Add(axes, rank_of(op, data)), axes)
    shift = op.Expand(shift, op.Shape(axes))
    if known is not None and data.rank is not None:
        for position, axis in enumerate(integers(axes) or []):
            size = op.Max(dim(op, data, axis), 1)
            start = op.Mod(op.Sub(0, op.Slice(shift, [position], [position + 1])), size)
            at = op.const([axis])
            data = op.Concat(op.Slice(data, start, [INT64_MAX], at), op.Slice(data, [0], start, at), axis=axis)
        return data
    dims = op.Shape(data)
    none = op.Expand(op.const([0]), rank_of(op, data))
    shifts = op.ScatterElements(none, axes, shift, axis=0, reduction="add")
    source = op.Mod(op.Sub(coordinates(op, dims), shifts), op.Max(dims, 1))
    return gather_at(op, data, op.ReduceSum(op.Mul(source, strides(op, dims)), [1], keepdims=0), dims)


@rule("ShuffleChannels")
def shuffle_channels(op: Builder, data: Value, *, axis: int = 1, group: int = 1):
    """ShuffleChannels-1."""
    at = normal_axis(axis, data.rank)
    _check_block(group, "group")
    before, after = op.Shape(data, end=at), op.Shape(data, start=at + 1) if at != -1 else op.const([1])
    size, groups = dim(op, data, at), op.const([group])
    split = op.Concat(product(op, before), groups, op.Div(size, group), product(op, after), axis=0)
    return _rearranged(op, data, split, [[0, 2, 1, 3]], op.Shape(data))


@rule("SpaceToDepth")
def space_to_depth(op: Builder, data: Value, *, mode: Order, block_size: int = 1):
    """SpaceToDepth-1, for any number of spatial dimensions. ONNX's operator supports two, and blocks first."""
    _check_block(block_size, "block_size")
    if data.rank == 4 and mode == "blocks_first" and data.dtype == ir.DataType.FLOAT:
        return op.SpaceToDepth(data, blocksize=block_size)
    front, space, count = _front_and_space(op, data)
    sizes = op.Expand(op.const([block_size]), count)
    inner = op.Div(space, sizes)
    outer = _counted(op, count, step=2, start=2)
    blocks = op.Add(outer, 1)
    order = [[0], blocks, [1], outer] if mode == "blocks_first" else [[0, 1], blocks, outer]
    depth = op.Mul(op.Slice(front, [1], [2]), product(op, sizes))
    shape = op.Concat(op.Slice(front, [0], [1]), depth, inner, axis=0)
    return _rearranged(op, data, op.Concat(front, _interleaved(op, inner, sizes), axis=0), order, shape)


@rule("DepthToSpace")
def depth_to_space(op: Builder, data: Value, *, mode: Order, block_size: int = 1):
    """DepthToSpace-1, for any number of spatial dimensions. ONNX's operator supports two."""
    _check_block(block_size, "block_size")
    if data.dims is not None and len(data.dims) > 2:
        channels, blocks = data.dims[1], block_size ** (len(data.dims) - 2)
        if channels is not None and channels % blocks:
            raise Malformed(f"its {channels} channels are not a multiple of {blocks}")
    if data.rank == 4 and data.dtype == ir.DataType.FLOAT:
        return op.DepthToSpace(data, blocksize=block_size, mode="DCR" if mode == "blocks_first" else "CRD")
    front, space, count = _front_and_space(op, data)
    sizes = op.Expand(op.const([block_size]), count)
    batch, depth = op.Slice(front, [0], [1]), op.Div(op.Slice(front, [1], [2]), product(op, sizes))
    split = [batch, sizes, depth, space] if mode == "blocks_first" else [batch, depth, sizes, space]
    blocks, places = (_counted(op, count, start=n) for n in ((1, 2) if mode == "blocks_first" else (2, 2)))
    places = op.Add(places, count)
    at = op.Add(count, 1) if mode == "blocks_first" else op.const([1])
    order = [[0], at, _interleaved(op, places, blocks)]
    shape = op.Concat(batch, depth, op.Mul(space, sizes), axis=0)
    return _rearranged(op, data, op.Concat(*split, axis=0), order, shape)


@rule(
    "SpaceToBatch",
    since="opset2",
    departs=[
        Departure(
            where="padding of several dimensions",
            cpu="fills part of it with data",
            specification="fills it with zeros",
            follows="specification",
        ),
    ],
)
def space_to_batch(op: Builder, data: Value, block_shape: Value, pads_begin: Value, pads_end: Value):
    """SpaceToBatch-2."""
    blocks, rank = _blocks(op, data, block_shape)
    data = op.Pad(data, op.Concat(vector(op, pads_begin), vector(op, pads_end), axis=0))
    inner = op.Div(op.Shape(data), blocks)
    shape = op.Mul(inner, _first(op, rank, product(op, blocks)))
    if (size := _square(data, block_shape)) is not None:
        split = op.Concat(op.Slice(inner, [0], [1]), [size * size], op.Slice(inner, [1], [4]), axis=0)
        return _rearranged(op, op.SpaceToDepth(data, blocksize=size), split, [[1, 0, 2, 3, 4]], shape)
    if (known := integers(block_shape)) is not None:
        places, order = _blocks_first(known)
        return _rearranged(op, data, op.Gather(op.Concat(inner, blocks, axis=0), places), [order], shape)
    outer = _counted(op, rank, step=2)
    return _rearranged(op, data, _interleaved(op, inner, blocks), [op.Add(outer, 1), outer], shape)


@rule("BatchToSpace", since="opset2")
def batch_to_space(op: Builder, data: Value, block_shape: Value, crops_begin: Value, crops_end: Value):
    """BatchToSpace-2."""
    blocks, rank = _blocks(op, data, block_shape)
    inner = op.Div(op.Shape(data), _first(op, rank, product(op, blocks)))
    outer = op.Mul(inner, blocks)
    cut = op.Add(vector(op, crops_begin), vector(op, crops_end))
    if outer.constant is not None and cut.constant is not None and (cut.constant > outer.constant).any():
        raise Malformed(f"its crops {cut.constant.tolist()} are larger than the dimensions {outer.constant.tolist()}")
    if (size := _square(data, block_shape)) is not None:
        depth = op.Mul(op.Slice(inner, [1], [2]), size * size)
        shape = op.Concat(op.Slice(inner, [0], [1]), depth, op.Slice(inner, [2], [4]), axis=0)
        deep = _rearranged(op, data, op.Concat([size * size], inner, axis=0), [[1, 0, 2, 3, 4]], shape)
        result = op.DepthToSpace(deep, blocksize=size, mode="DCR")
    elif (known := integers(block_shape)) is not None:
        places, first = _blocks_first(known)
        split = op.Gather(op.Concat(inner, blocks, axis=0), [places[i] for i in first])
        result = _rearranged(op, data, split, [[first.index(i) for i in range(len(first))]], outer)
    else:
        at = _counted(op, rank)
        order = [_interleaved(op, op.Add(at, rank), at)]
        result = _rearranged(op, data, op.Concat(blocks, inner, axis=0), order, outer)
    return op.Slice(result, vector(op, crops_begin), op.Sub(outer, vector(op, crops_end)))


def _rearranged(op: Builder, data: Value, split: Value, order: Sequence[Any], shape: Value) -> Value:
    """Reshape ``data`` to ``split``, permute its dimensions by ``order``, concatenated, and reshape it to ``shape``."""
    blocks = op.Reshape(data, split, allowzero=1)
    return op.Reshape(transposed(op, blocks, op.Concat(*order, axis=0)), shape, allowzero=1)


def _front_and_space(op: Builder, data: Value) -> tuple[Value, Value, Value]:
    """Return batch and channels, the spatial dimensions, and their number."""
    if data.rank is not None and data.rank < 3:
        raise Malformed(f"its input has the rank {data.rank} and no spatial dimensions")
    return op.Shape(data, end=2), op.Shape(data, start=2), op.Sub(rank_of(op, data), 2)


def _blocks(op: Builder, data: Value, block_shape: Value) -> tuple[Value, Value]:
    """Return the blocks of each dimension, and the number of dimensions."""
    known = integers(block_shape)
    if known is not None and (data.rank not in (None, len(known)) or min(known, default=1) < 1):
        raise Malformed(f"its block_shape is {known} for {data.rank} dimensions")
    blocks = vector(op, block_shape)
    return blocks, rank_of(op, data) if data.rank is not None else op.Shape(blocks)


def _square(data: Value, block_shape: Value) -> int | None:
    """Return the height and width of blocks that ONNX's SpaceToDepth and DepthToSpace support, which are faster in ONNX
    Runtime.
    """
    blocks = integers(block_shape)
    if data.rank != 4 or data.dtype != ir.DataType.FLOAT or blocks is None:
        return None
    return blocks[2] if blocks[:2] == [1, 1] and blocks[2] == blocks[3] > 1 else None


def _blocks_first(blocks: list[int]) -> tuple[list[int], list[int]]:
    """Return where the sizes of split dimensions are in the inner sizes followed by the blocks, and the order with blocks
    first. Blocks of 1 are omitted, because programs limit the number of dimensions.
    """
    rank = len(blocks)
    places = [place for axis, block in enumerate(blocks) for place in ([axis] if block == 1 else [axis, rank + axis])]
    return places, sorted(range(len(places)), key=lambda i: places[i] < rank)


def _counted(op: Builder, count: Value, step: int = 1, start: int = 0) -> Value:
    """Return ``count`` numbers from ``start`` with the step ``step``."""
    return op.Add(op.Mul(flat_range(op, count), step), start)


def _interleaved(op: Builder, a: Value, b: Value) -> Value:
    """Interleave the elements of two vectors."""
    return op.Reshape(op.Concat(op.Unsqueeze(a, [1]), op.Unsqueeze(b, [1]), axis=1), [-1])


def _first(op: Builder, rank: Value, factor: Value) -> Value:
    """Return ``factor`` for the first dimension, 1 for the others."""
    return op.Where(op.Equal(flat_range(op, rank), 0), factor, 1)


def _check_block(size: int, name: str) -> None:
    if not 1 <= size < 2**31:
        raise Malformed(f"its {name} is {size}; it must be from 1 to 2^31 - 1")


@rule("Identity", since="opset16")
def identity(op: Builder, x: Value):
    """Identity-16."""
    return op.Identity(x)
