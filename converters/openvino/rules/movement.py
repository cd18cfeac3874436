"""Elements in another order: reversed, rolled, shuffled, moved between channels, batch and space."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import onnx_ir as ir

from converters.openvino.rule import Unsupported, rule
from converters.openvino.rules._indices import (
    FIRST,
    LAST,
    coordinates,
    dim,
    gather_at,
    integers,
    length,
    normal_axis,
    product,
    rank_of,
    strides,
    vector,
)
from onnx_specops.building import Builder, Value

Order = Literal["blocks_first", "depth_first"]


@rule("Reverse")
def reverse(op: Builder, data: Value, reversed_axes: Value, *, mode: Literal["index", "mask"]):
    """Reverse-1."""
    if mode == "mask":
        axes = op.Reshape(op.NonZero(op.Cast(reversed_axes, to=ir.DataType.BOOL)), [-1])
    else:
        known = integers(reversed_axes)
        axes = vector(op, reversed_axes) if known is None else op.const(list(dict.fromkeys(known)))
        if known == []:
            return data
    count = op.Shape(axes)
    last, steps = op.Expand(op.const([-1]), count), op.Expand(op.const([-1]), count)
    return op.Slice(data, last, op.Expand(op.const([FIRST]), count), axes, steps)


@rule("ReverseSequence")
def reverse_sequence(op: Builder, data: Value, seq_lengths: Value, *, batch_axis: int = 0, seq_axis: int = 1):
    """ReverseSequence-1: ONNX's own knows the first two axes only."""
    rank = data.rank
    batch, time = normal_axis(batch_axis, rank, "batch_axis"), normal_axis(seq_axis, rank, "seq_axis")
    if batch == time:
        raise Unsupported(f"its batch_axis and its seq_axis are both {batch}")
    lengths = vector(op, seq_lengths)
    if {batch, time} == {0, 1}:
        return op.ReverseSequence(data, lengths, batch_axis=batch, time_axis=time)
    if rank is None:
        raise Unsupported(f"it reverses along axis {time} of a tensor of unknown rank")
    perm = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    moved = op.ReverseSequence(op.Transpose(data, perm=perm), lengths, batch_axis=0, time_axis=1)
    return op.Transpose(moved, perm=sorted(range(rank), key=perm.__getitem__))


@rule("Roll", since="opset7")
def roll(op: Builder, data: Value, shift: Value, axes: Value):
    """Roll-7: the shifts of an axis that is named twice add up; one shift serves all axes."""
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
            data = op.Concat(op.Slice(data, start, [LAST], at), op.Slice(data, [0], start, at), axis=axis)
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
    split = [product(op, before), groups, op.Div(size, group), product(op, after)]
    return _rearranged(op, data, split, [0, 2, 1, 3], [op.Shape(data)])


@rule("SpaceToDepth")
def space_to_depth(op: Builder, data: Value, *, mode: Order, block_size: int = 1):
    """SpaceToDepth-1: of any number of spatial dimensions; ONNX's own knows two, and blocks first."""
    rank = _rank(data)
    _check_block(block_size, "block_size")
    if rank == 4 and mode == "blocks_first" and data.dtype == ir.DataType.FLOAT:
        return op.SpaceToDepth(data, blocksize=block_size)
    batch, channels, *space = (dim(op, data, k) for k in range(rank))
    inner = [op.Div(size, block_size) for size in space]
    split = [batch, channels, *itertools.chain(*((size, op.const([block_size])) for size in inner))]
    outer, blocks = range(2, 2 * rank - 2, 2), range(3, 2 * rank - 2, 2)
    perm = [0, *blocks, 1, *outer] if mode == "blocks_first" else [0, 1, *blocks, *outer]
    return _rearranged(op, data, split, perm, [batch, op.Mul(channels, block_size ** (rank - 2)), *inner])


@rule("DepthToSpace")
def depth_to_space(op: Builder, data: Value, *, mode: Order, block_size: int = 1):
    """DepthToSpace-1: of any number of spatial dimensions; ONNX's own knows two."""
    rank = _rank(data)
    _check_block(block_size, "block_size")
    if rank == 4 and data.dtype == ir.DataType.FLOAT:
        return op.DepthToSpace(data, blocksize=block_size, mode="DCR" if mode == "blocks_first" else "CRD")
    count = rank - 2
    batch, channels, *space = (dim(op, data, k) for k in range(rank))
    blocks = [op.const([block_size])] * count
    depth = op.Div(channels, block_size**count)
    split = [batch, *blocks, depth, *space] if mode == "blocks_first" else [batch, depth, *blocks, *space]
    at, first = (count + 1, 1) if mode == "blocks_first" else (1, 2)
    pairs = itertools.chain(*((rank + k, first + k) for k in range(count)))
    return _rearranged(op, data, split, [0, at, *pairs], [batch, depth, *(op.Mul(size, block_size) for size in space)])


@rule("SpaceToBatch", since="opset2")
def space_to_batch(op: Builder, data: Value, block_shape: Value, pads_begin: Value, pads_end: Value):
    """SpaceToBatch-2."""
    rank, blocks = _block_rank(op, data, block_shape)
    data = op.Pad(data, op.Concat(vector(op, pads_begin), vector(op, pads_end), axis=0))
    shape = [dim(op, data, k) for k in range(rank)]
    inner = [op.Div(size, block) for size, block in zip(shape, blocks, strict=True)]
    split = list(itertools.chain(*zip(inner, blocks, strict=True)))
    perm = [*range(1, 2 * rank, 2), *range(0, 2 * rank, 2)]
    return _rearranged(op, data, split, perm, [op.Mul(shape[0], product(op, op.Concat(*blocks, axis=0))), *inner[1:]])


@rule("BatchToSpace", since="opset2")
def batch_to_space(op: Builder, data: Value, block_shape: Value, crops_begin: Value, crops_end: Value):
    """BatchToSpace-2."""
    rank, blocks = _block_rank(op, data, block_shape)
    shape = [dim(op, data, k) for k in range(rank)]
    shape[0] = op.Div(shape[0], product(op, op.Concat(*blocks, axis=0)))
    perm = itertools.chain(*((rank + k, k) for k in range(rank)))
    outer = [op.Mul(size, block) for size, block in zip(shape, blocks, strict=True)]
    result = _rearranged(op, data, [*blocks, *shape], list(perm), outer)
    ends = op.Sub(op.Concat(*outer, axis=0), vector(op, crops_end))
    return op.Slice(result, vector(op, crops_begin), ends)


def _rearranged(op: Builder, data: Value, split: Sequence[Value], perm: Sequence[int], shape: Sequence[Value]) -> Value:
    """``data`` in the shape ``split``, transposed, in the shape ``shape`` (vectors of dimensions, one after the other)."""
    blocks = op.Transpose(op.Reshape(data, op.Concat(*split, axis=0), allowzero=1), perm=perm)
    return op.Reshape(blocks, op.Concat(*shape, axis=0), allowzero=1)


def _rank(data: Value) -> int:
    if data.rank is None:
        raise Unsupported("it rearranges a tensor of unknown rank")
    return data.rank


def _block_rank(op: Builder, data: Value, block_shape: Value) -> tuple[int, list[Value]]:
    """The rank of ``data`` and the blocks of each dimension."""
    rank = data.rank if data.rank is not None else length(block_shape)
    if not rank:
        raise Unsupported("it rearranges a tensor of unknown rank")
    known = integers(block_shape)
    if known is not None and (len(known) != rank or min(known) < 1):
        raise Unsupported(f"its block_shape is {known} for {rank} dimensions")
    blocks = vector(op, block_shape)
    return rank, [op.Slice(blocks, [k], [k + 1]) for k in range(rank)]


def _check_block(size: int, name: str) -> None:
    if not 1 <= size < 2**31:
        raise Unsupported(f"its {name} is {size}")
