"""Images rearranged into channels: ExtractImagePatches, ReorgYolo."""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.openvino.rule import Unsupported, rule
from onnx_specops.building import Builder, Value


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
    """ExtractImagePatches-3: rows and columns are gathered patch by patch; channels vary fastest."""
    for name, values in (("sizes", sizes), ("strides", strides), ("rates", rates)):
        if len(values) != 2 or min(values) < 1:
            raise Unsupported(f"its attribute {name} is {list(values)}, not two positive numbers")
    # Each axis becomes two, the patch and the place in it: the columns stand fifth once the rows are gathered.
    for axis, size, stride, rate in zip((2, 4), sizes, strides, rates, strict=True):
        reach = (size - 1) * rate + 1
        length = op.Shape(data, start=axis, end=axis + 1)
        if auto_pad == "valid":
            count = op.Max(op.Div(op.Sub(op.Add(length, stride), reach), stride), 0)
        else:
            count = op.Div(op.Add(length, stride - 1), stride)
            missing = op.Max(op.Sub(op.Add(op.Mul(op.Sub(count, 1), stride), reach), length), 0)
            least = op.Div(missing, 2)
            most = op.Sub(missing, least)
            before, after = (least, most) if auto_pad == "same_upper" else (most, least)
            data = op.Pad(data, op.Concat(before, after, axis=0), None, [axis])
        starts = op.Mul(op.Range(np.int64(0), op.Squeeze(count, [0]), np.int64(1)), stride)
        inside = np.arange(0, size * rate, rate) if size <= 4096 else None
        if inside is None:
            raise Unsupported(f"its attribute sizes asks for patches of {size} elements along one axis")
        places = op.Add(op.Unsqueeze(starts, [1]), inside)
        data = op.Gather(data, places, axis=axis)
    # [N, C, rows, size, columns, size] to [N, size, size, C, rows, columns]
    patches = op.Transpose(data, perm=[0, 3, 5, 1, 2, 4])
    shape = op.Shape(patches)
    depth = op.ReduceProd(op.Slice(shape, [1], [4]), keepdims=1)
    return op.Reshape(patches, op.Concat(op.Slice(shape, [0], [1]), depth, op.Slice(shape, [4], [6]), axis=0), allowzero=1)


@rule("ReorgYolo", since="opset2")
def reorg_yolo(op: Builder, data: Value, *, stride: int):
    """ReorgYolo-1: darknet's order, in which the data are read as if they had ``stride`` times the height and width."""
    if stride < 1:
        raise Unsupported(f"stride={stride} is not positive")
    shape = op.Shape(data)
    batch, channels = op.Slice(shape, [0], [1]), op.Slice(shape, [1], [2])
    rows, columns = op.Slice(shape, [2], [3]), op.Slice(shape, [3], [4])
    square = stride * stride
    if channels.constant is not None and int(channels.constant[0]) % square:
        raise Unsupported(f"its {int(channels.constant[0])} channels are not a multiple of stride * stride = {square}")
    fewer = op.Div(channels, square)
    blocks = op.Reshape(data, op.Concat(batch, fewer, rows, [stride], columns, [stride], axis=0), allowzero=1)
    moved = op.Transpose(blocks, perm=[0, 3, 5, 1, 2, 4])
    more = op.Mul(channels, square)
    return op.Reshape(moved, op.Concat(batch, more, op.Div(rows, stride), op.Div(columns, stride), axis=0), allowzero=1)
