"""Layers that move elements: shapes, slices, orders."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.inference_engine.rule import layer
from converters.inference_engine.rules._slices import Masks, slices
from converters.openvino.rule import Context
from converters.openvino.rules import movement, padding, slicing
from converters.openvino.rules import shape as opset
from converters.openvino.rules._indices import int64, integers, vector
from onnx_specops.building import Builder, Value


def _stated(data: Value, context: Context) -> np.ndarray | None:
    """Return the output's dimensions in the file, which have priority if the data has the file's shape."""
    stated = context.output_dims()
    if stated is None or None in stated or not data.is_static:
        return None
    return np.array(stated, np.int64)


@layer("Reshape", integers=True)
def reshape(op: Builder, data: Value, shape: Value | None = None, *, dim: tuple[int, ...] = (), context: Context):
    """Reshape: 0 keeps a dimension, -1 is the remainder. The dimensions in the file have priority."""
    if (stated := _stated(data, context)) is not None:
        return op.Reshape(data, stated)
    if shape is not None:
        return op.Reshape(data, vector(op, _whole(op, shape)))
    if not dim:
        raise Malformed("it has neither a second input nor an attribute dim")
    return op.Reshape(data, list(dim))


@layer("Shape", integers=True)
def shape_of(op: Builder, data: Value):
    """Shape: the dimensions."""
    return op.Cast(op.Shape(data), to=ir.DataType.INT32)


@layer("Flatten", integers=True)
def flatten(op: Builder, data: Value, *, axis: int = 0, end_axis: int = -1, context: Context):
    """Flatten: the dimensions from ``axis`` to ``end_axis`` are merged. The dimensions in the file have priority."""
    if (stated := _stated(data, context)) is not None:
        return op.Reshape(data, stated)
    if data.rank is None:
        raise Unsupported("the rank of its data is unknown", "set the shape of the model's input with --input-shape")
    first, last = (a + data.rank if a < 0 else a for a in (axis, end_axis))
    if not 0 <= first <= last < max(data.rank, 1):
        raise Malformed(f"its axes {axis} to {end_axis} are out of range for {data.rank} dimensions")
    shape = op.Shape(data)
    return op.Reshape(data, op.Concat(op.Slice(shape, [0], [first]), [-1], op.Slice(shape, [last + 1], [2**31]), axis=0))


@layer("Permute", integers=True)
def permute(op: Builder, data: Value, *, order: tuple[int, ...]):
    """Permute."""
    if sorted(order) != list(range(len(order))) or data.rank not in (None, len(order)):
        raise Malformed(f"its order {list(order)} does not permute {data.rank} dimensions")
    return op.Transpose(data, perm=list(order))


@layer("Concat", integers=True)
def concat(op: Builder, *inputs: Value, axis: int = 1):
    """Concat."""
    return op.Concat(*_of_one_type(op, inputs), axis=axis)


@layer("Split", "Slice", integers=True)
def split(op: Builder, data: Value, *, axis: int = 1, out_sizes: tuple[int, ...] = (), context: Context):
    """Split: into the outputs' sizes in the file, also for inputs of other shapes."""
    if data.rank is not None and not 0 <= axis < data.rank:
        raise Malformed(f"its axis {axis} is out of range for {data.rank} dimensions")
    sizes, whole = list(out_sizes), None if data.dims is None else data.dims[axis]
    fits = whole is None or sum(sizes) == whole or (len(sizes) == 1 and sizes[0] <= whole)
    if len(sizes) != len(context.layer.outputs) or not fits:
        raise Malformed(f"the sizes of its outputs are {sizes}, and the size of its input {whole}")
    if len(sizes) == 1:
        return op.Identity(data) if data.dims is None or data.dims[axis] == sizes[0] else op.Slice(data, [0], sizes, [axis])
    return op.node("Split", data, op.const(np.array(sizes, np.int64)), axis=axis, outputs=len(sizes))


@layer("Tile", integers=True)
def tile(op: Builder, data: Value, *, axis: int = -1, tiles: int):
    """Tile: repetition along an axis."""
    if data.rank is None:
        raise Unsupported("the rank of its data is unknown", "set the shape of the model's input with --input-shape")
    if not -data.rank <= axis < data.rank or tiles < 1:
        raise Malformed(f"its axis {axis} or tiles={tiles} is out of range for {data.rank} dimensions")
    repeats = [1] * data.rank
    repeats[axis] = tiles
    return op.Tile(data, repeats)


@layer("Crop", integers=True)
def crop(
    op: Builder,
    data: Value,
    like: Value | None = None,
    *,
    axis: tuple[int, ...],
    offset: tuple[int, ...] = (),
    dim: tuple[int, ...] = (),
    crop_begin: tuple[int, ...] = (),
    crop_end: tuple[int, ...] = (),
    context: Context,
):
    """Crop: ``dim`` elements from ``offset``, as many as in the second input, or all except the last ``crop_end``."""
    begin = crop_begin or offset or (0,) * len(axis)
    stated = context.output_dims()
    if len(begin) != len(axis) or (dim and len(dim) != len(axis)) or (crop_end and len(crop_end) != len(axis)):
        raise Malformed(f"its axes {list(axis)} and offsets {list(begin)} differ in length")
    if data.rank is not None and any(not 0 <= a < data.rank for a in axis):
        raise Malformed(f"its axes {list(axis)} are out of range for {data.rank} dimensions")
    if stated is not None and None not in stated and len(stated) == data.rank:
        # Axes that the layer does not name start at 0.
        first = [dict(zip(axis, begin, strict=True)).get(a, 0) for a in range(len(stated))]
        sizes = [size for size in stated if size is not None]
        return op.Slice(data, first, [b + size for b, size in zip(first, sizes, strict=True)], [*range(len(stated))])
    if like is not None:
        end = op.Add(op.Gather(op.Shape(like), list(axis), axis=0), list(begin))
        return op.Slice(data, list(begin), end, list(axis))
    if dim:
        return op.Slice(data, list(begin), [b + size for b, size in zip(begin, dim, strict=True)], list(axis))
    end = op.Sub(op.Gather(op.Shape(data), list(axis), axis=0), list(crop_end) or [0] * len(axis))
    return op.Slice(data, list(begin), end, list(axis))


@layer("Squeeze", integers=True)
def squeeze(op: Builder, data: Value, axes: Value | None = None, *, context: Context):
    """Squeeze: to the dimensions in the file, regardless of the axes."""
    if (stated := _stated(data, context)) is not None:
        return op.Reshape(data, stated)
    return opset.squeeze(op, data, None if axes is None else vector(op, _whole(op, axes)), context=context)


@layer("Unsqueeze", integers=True)
def unsqueeze(op: Builder, data: Value, axes: Value, *, context: Context):
    """Unsqueeze: to the dimensions in the file, regardless of the axes."""
    if (stated := _stated(data, context)) is not None:
        return op.Reshape(data, stated)
    return opset.unsqueeze(op, data, vector(op, _whole(op, axes)))


@layer("ShuffleChannels", integers=True)
def shuffle_channels(op: Builder, data: Value, *, axis: int = 1, group: int = 1):
    """ShuffleChannels."""
    return movement.shuffle_channels(op, data, axis=axis, group=group)


@layer("DepthToSpace", integers=True)
def depth_to_space(op: Builder, data: Value, *, block_size: int = 1):
    """DepthToSpace: blocks first."""
    return movement.depth_to_space(op, data, mode="blocks_first", block_size=block_size)


@layer("SpaceToDepth", integers=True)
def space_to_depth(op: Builder, data: Value, *, block_size: int = 1):
    """SpaceToDepth: blocks first."""
    return movement.space_to_depth(op, data, mode="blocks_first", block_size=block_size)


@layer("SpaceToBatch", integers=True)
def space_to_batch(op: Builder, data: Value, block_shape: Value, pads_begin: Value, pads_end: Value):
    """SpaceToBatch."""
    return movement.space_to_batch(op, data, *(_whole(op, x) for x in (block_shape, pads_begin, pads_end)))


@layer("BatchToSpace", integers=True)
def batch_to_space(op: Builder, data: Value, block_shape: Value, crops_begin: Value, crops_end: Value):
    """BatchToSpace."""
    return movement.batch_to_space(op, data, *(_whole(op, x) for x in (block_shape, crops_begin, crops_end)))


@layer("ReverseSequence", integers=True)
def reverse_sequence(op: Builder, data: Value, seq_lengths: Value, *, seq_axis: int = 1, batch_axis: int = 0):
    """ReverseSequence."""
    return movement.reverse_sequence(op, data, _whole(op, seq_lengths), seq_axis=seq_axis, batch_axis=batch_axis)


@layer("Broadcast", integers=True)
def broadcast(op: Builder, data: Value, shape: Value):
    """Broadcast, with NumPy's rules."""
    return op.Expand(data, vector(op, _whole(op, shape)))


@layer("Pad", integers=True)
def pad(
    op: Builder,
    data: Value,
    *,
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
    pad_value: float = 0.0,
):
    """Pad."""
    value = op.const(pad_value, data.dtype)
    begin, end = op.const(np.array(pads_begin, np.int64)), op.const(np.array(pads_end, np.int64))
    return padding.pad_1(op, data, begin, end, value, pad_mode=pad_mode)


@layer("StridedSlice", integers=True)
def strided_slice(
    op: Builder,
    data: Value,
    begin: Value,
    end: Value,
    strides: Value | None = None,
    *,
    begin_mask: tuple[int, ...] = (),
    end_mask: tuple[int, ...] = (),
    ellipsis_mask: tuple[int, ...] = (),
    new_axis_mask: tuple[int, ...] = (),
    shrink_axis_mask: tuple[int, ...] = (),
    context: Context,
):
    """StridedSlice: elements of begin and end are used if their mask is 1, which is the default."""
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    known = [integers(_whole(op, x)) for x in (begin, end, strides) if x is not None]
    bounds = [numbers for numbers in known if numbers is not None]
    if data.dims is not None and len(bounds) == len(known):
        at = slices(data.dims, [*bounds, []][:3], masks)
        data = op.Slice(data, at.starts, at.stops, [*range(len(at.starts))], at.steps)
        data = op.Squeeze(data, at.shrunk) if at.shrunk else data
        return op.Unsqueeze(data, at.new) if at.new else data
    count = (begin.dims or [None])[0]
    kept_begin, kept_end = (_mask(mask, count) for mask in (begin_mask, end_mask))
    parts = [_whole(op, x) for x in (begin, end)] + ([] if strides is None else [_whole(op, strides)])
    return slicing.strided_slice(
        op,
        data,
        *parts,
        begin_mask=tuple(1 - m for m in kept_begin),
        end_mask=tuple(1 - m for m in kept_end),
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
        ellipsis_mask=ellipsis_mask,
        context=context,
    )


def _mask(mask: tuple[int, ...], count: int | None) -> tuple[int, ...]:
    return (*mask, *[1] * ((count or 0) - len(mask)))


def _whole(op: Builder, x: Value) -> Value:
    """Convert shapes and axes, which may be stored as floats, to int64."""
    if x.constant is not None:
        return op.const(x.constant.astype(np.int64))
    return int64(op, x) if x.dtype is None or x.dtype.is_integer() else op.Cast(x, to=ir.DataType.INT64)


def _of_one_type(op: Builder, values: tuple[Value, ...]) -> list[Value]:
    kinds = {value.dtype for value in values}
    return list(values) if len(kinds) == 1 else [op.Cast(value, to=ir.DataType.FLOAT) for value in values]
