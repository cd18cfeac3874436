"""Images and their patches: ExtractImagePatches, ReorgYolo, Col2Im."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import rule
from converters.openvino.rules._indices import dim, flat_range, vector
from onnx_specops.building import Builder, Value
from onnx_specops.padding import pad

_MAX_SLICES = 64  # with more, Gather is faster


@rule("ExtractImagePatches", since="opset3")
def extract_image_patches(
    op: Builder,
    data: Value,
    *,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    auto_pad: Literal["valid", "same_upper", "same_lower"],
):
    """ExtractImagePatches-3: channels vary fastest, then the positions in a patch."""
    for name, values in (("sizes", sizes), ("strides", strides), ("rates", rates)):
        if len(values) != 2 or min(values) < 1:
            raise Malformed(f"its attribute {name} is {list(values)}; expected two positive numbers")
    counts = []
    for axis, size, stride, rate in zip((2, 3), sizes, strides, rates, strict=True):
        reach = (size - 1) * rate + 1
        length = op.Shape(data, start=axis, end=axis + 1)
        if auto_pad == "valid":
            count = op.Max(op.Div(op.Sub(op.Add(length, stride), reach), stride), 0)
        else:
            count = op.Div(op.Add(length, stride - 1), stride)
            missing = op.Max(op.Sub(op.Add(op.Mul(op.Sub(count, 1), stride), reach), length), 0)
            half = op.Div(missing, 2)
            rest = op.Sub(missing, half)
            before, after = (half, rest) if auto_pad == "same_upper" else (rest, half)
            data = pad(op, data, [axis], [before], [after])
        counts.append(count)
    if sizes == strides and sizes[0] == sizes[1] and rates == (1, 1) and data.dtype == ir.DataType.FLOAT:
        used = op.Mul(op.Concat(*counts, axis=0), sizes[0])
        return op.SpaceToDepth(op.Slice(data, [0, 0], used, [2, 3]), blocksize=sizes[0])
    if sizes[0] * sizes[1] <= _MAX_SLICES:
        extent = op.Mul(op.Concat(*counts, axis=0), list(strides))
        starts = [[row * rates[0], column * rates[1]] for row in range(sizes[0]) for column in range(sizes[1])]
        places = [op.Slice(data, start, op.Add(extent, start), [2, 3], list(strides)) for start in starts]
        return op.Concat(*places, axis=1)
    return _gathered_patches(op, data, counts, sizes, strides, rates)


def _gathered_patches(
    op: Builder,
    data: Value,
    counts: Sequence[Value],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
) -> Value:
    """Gather rows and columns patch by patch."""
    # Each axis becomes two: the patch and the position in it. After the rows are gathered, the columns are axis 4.
    for axis, count, size, stride, rate in zip((2, 4), counts, sizes, strides, rates, strict=True):
        starts = op.Mul(op.Range(np.int64(0), op.Squeeze(count, [0]), np.int64(1)), stride)
        if size > 4096:
            raise Malformed(f"its attribute sizes has {size} elements along one axis; the maximum is 4096")
        data = op.Gather(data, op.Add(op.Unsqueeze(starts, [1]), np.arange(0, size * rate, rate)), axis=axis)
    # [N, C, rows, size, columns, size] to [N, size, size, C, rows, columns]
    patches = op.Transpose(data, perm=[0, 3, 5, 1, 2, 4])
    shape = op.Shape(patches)
    depth = op.ReduceProd(op.Slice(shape, [1], [4]), keepdims=1)
    return op.Reshape(patches, op.Concat(op.Slice(shape, [0], [1]), depth, op.Slice(shape, [4], [6]), axis=0), allowzero=1)


@rule("ReorgYolo", since="opset2")
def reorg_yolo(op: Builder, data: Value, *, stride: int):
    """ReorgYolo-1: the order of darknet, which reads the data as if the height and width were ``stride`` times as large."""
    if stride < 1:
        raise Malformed(f"stride={stride} is not positive")
    batch, channels, rows, columns = (dim(op, data, axis) for axis in range(4))
    square = stride * stride
    if channels.constant is not None and int(channels.constant[0]) < square:
        raise Malformed(f"its {int(channels.constant[0])} channels are fewer than stride * stride = {square}")
    shape = op.Concat(batch, op.Mul(channels, square), op.Div(rows, stride), op.Div(columns, stride), axis=0)
    if channels.constant is None or int(channels.constant[0]) % square:
        return op.Reshape(_reorganized(op, data, stride), shape, allowzero=1)
    fewer = op.Div(channels, square)
    if data.dtype == ir.DataType.FLOAT:
        larger = op.Concat(batch, fewer, op.Mul(rows, stride), op.Mul(columns, stride), axis=0)
        return op.Reshape(op.SpaceToDepth(op.Reshape(data, larger, allowzero=1), blocksize=stride), shape, allowzero=1)
    blocks = op.Concat(batch, fewer, rows, [stride], columns, [stride], axis=0)
    moved = op.Transpose(op.Reshape(data, blocks, allowzero=1), perm=[0, 3, 5, 1, 2, 4])
    return op.Reshape(moved, shape, allowzero=1)


def _reorganized(op: Builder, data: Value, stride: int) -> Value:
    """Reorganize any number of channels. Those beyond the last multiple of ``stride * stride`` follow the last row."""
    batch, channel, row, column = (
        op.Unsqueeze(flat_range(op, dim(op, data, axis)), [k for k in range(4) if k != axis]) for axis in range(4)
    )
    fewer, height, width = (
        op.Div(dim(op, data, 1), stride * stride), op.Mul(dim(op, data, 2), stride), op.Mul(dim(op, data, 3), stride),
    )  # fmt: skip
    block = op.Div(channel, fewer)
    image = op.Add(op.Mul(batch, fewer), op.Mod(channel, fewer))
    line = op.Add(op.Mul(image, height), op.Add(op.Mul(row, stride), op.Div(block, stride)))
    places = op.Add(op.Mul(line, width), op.Add(op.Mul(column, stride), op.Mod(block, stride)))
    return op.Gather(op.Reshape(data, [-1]), places)


@rule("Col2Im", since="opset15")
def col2im(
    op: Builder,
    data: Value,
    output_size: Value,
    kernel_size: Value,
    *,
    strides: tuple[int, ...] = (1, 1),
    dilations: tuple[int, ...] = (1, 1),
    pads_begin: tuple[int, ...] = (0, 0),
    pads_end: tuple[int, ...] = (0, 0),
):
    """Col2Im-15, with or without a batch."""
    for name, given in (("strides", strides), ("dilations", dilations), ("pads_begin", pads_begin), ("pads_end", pads_end)):
        if len(given) != 2 or min(given) < (0 if name.startswith("pads") else 1) or max(given) >= 2**31:
            least = 0 if name.startswith("pads") else 1
            raise Malformed(f"its {name} are {list(given)}; expected two numbers from {least} to 2^31 - 1")
    image, block = vector(op, output_size), vector(op, kernel_size)
    _check_columns(data, image, block, strides, dilations, list(zip(pads_begin, pads_end, strict=True)))
    # Add a batch of one.
    columns = data if data.rank == 3 else op.Reshape(data, op.Concat([-1], op.Shape(data, start=-2), axis=0))
    pads = [*pads_begin, *pads_end]
    images = op.Col2Im(columns, image, block, strides=strides, dilations=dilations, pads=pads)
    if data.rank == 3:
        return images
    return op.Reshape(images, op.Concat(op.Shape(data, end=-2), op.Shape(images, start=1), axis=0), allowzero=1)


def _check_columns(data: Value, image: Value, block: Value, strides, dilations, pads) -> None:
    """Reject columns whose number or size does not fit the images."""
    if image.dims not in (None, [2], [None]) or block.dims not in (None, [2], [None]):
        raise Malformed(
            f"its output_size has the shape {image.dims}, its kernel_size {block.dims}; expected two elements each"
        )
    if data.dims is None or block.constant is None:
        return
    if len(data.dims) not in (2, 3):
        raise Malformed(f"its input has the rank {len(data.dims)} instead of 2 or 3")
    kernel, (rows, columns) = block.constant.tolist(), data.dims[-2:]
    if rows is not None and (min(kernel) < 1 or rows % math.prod(kernel)):
        raise Malformed(f"its columns of {rows} elements cannot contain blocks of {kernel}")
    if columns is None or image.constant is None:
        return
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    padded = [size + sum(pad) for size, pad in zip(image.constant.tolist(), pads, strict=True)]
    places = [(size - part) // stride + 1 for size, part, stride in zip(padded, reach, strides, strict=True)]
    if columns != math.prod(places):
        raise Malformed(f"it has {columns} columns, but {places} blocks fit into an image")
