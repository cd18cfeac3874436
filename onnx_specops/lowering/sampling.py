"""Resizing, and sampling images between their pixels."""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.domain import find
from onnx_specops.lowering.adapters import (
    SAME,
    LoweringBuilder,
    NotRepresentableError,
    along,
    below,
    in_float32,
    need_rank,
)

D = ir.DataType


@below(19, "Resize")
def resize_symmetric(op: LoweringBuilder, x, roi=None, scales=None, sizes=None, **attributes):
    if attributes.get("coordinate_transformation_mode") == "half_pixel_symmetric":
        raise NotRepresentableError("Resize with the coordinates half_pixel_symmetric")
    return SAME


@below(18, "Resize")
def resize_axes(
    op: LoweringBuilder, x, roi=None, scales=None, sizes=None, *, axes=None, antialias=0,
    keep_aspect_ratio_policy="stretch", **attributes,
):  # fmt: skip
    """Resize all axes; those that were not named keep their size."""
    if antialias or keep_aspect_ratio_policy != "stretch":
        raise NotRepresentableError("Resize with antialias" if antialias else "Resize with keep_aspect_ratio_policy")
    if axes is not None:
        rank = need_rank(x, "Resize with axes")
        places = along(axes, rank)
        if roi is not None:
            whole = op.const(np.r_[np.zeros(rank), np.ones(rank)].astype(np.float32))
            roi = _insert(op, roi, whole, [*places, *(place + rank for place in places)])
        if scales is not None:
            scales = _insert(op, scales, op.const(np.ones(rank, np.float32)), places)
        if sizes is not None:
            sizes = _insert(op, sizes, op.Shape(x), places)
    if op.opset < 13:
        none = op.const(np.zeros(0, np.float32))
        roi, scales = roi if roi is not None else none, scales if scales is not None else none
    return op.old.Resize(x, roi, scales, sizes, **attributes)


def _insert(op: Builder, given: Value, others: Value, places: list[int]) -> Value:
    """Insert the given numbers into the others at their positions."""
    count = (others.dims or [0])[0] or 0
    if places == list(range(count)):
        return given
    whole = [op.Slice(others, [i], [i + 1], [0]) for i in range(count)]
    for i, place in enumerate(places):
        whole[place] = op.Slice(given, [i], [i + 1], [0])
    return op.Concat(*whole, axis=0)


@below(19, "AveragePool")
def average_pool(
    op: LoweringBuilder, x, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET", ceil_mode=0,
    count_include_pad=0, node,
):  # fmt: skip
    """Replace dilated windows by a convolution, and ``ceil_mode`` by padding if the dimensions are known."""
    count = len(kernel_shape)
    strides, dilations, pads = strides or [1] * count, dilations or [1] * count, list(pads or [0] * 2 * count)
    spread = any(d != 1 for d in dilations)
    sizes = [(value.dims or [None] * (count + 2))[2:] for value in (x, node.outputs[0])]
    if ceil_mode and not count_include_pad:
        for i, (size, result) in enumerate(zip(*sizes, strict=True)):
            if size is not None and result is not None:
                extent = (kernel_shape[i] - 1) * dilations[i] + 1
                missing = (result - 1) * strides[i] + extent - size - pads[i]
                if missing < 0:  # no window reaches the last elements
                    x = op.Slice(x, [0], [size + missing], [2 + i])
                pads[count + i] = max(0, missing)
        ceil_mode = int(None in sizes[0] + sizes[1])
    if spread and (ceil_mode or auto_pad != "NOTSET"):
        raise NotRepresentableError("AveragePool with dilations and ceil_mode")
    given = {"kernel_shape": kernel_shape, "strides": strides, "pads": pads if auto_pad == "NOTSET" else None}
    if not spread:
        return op.old.AveragePool(
            x, **given, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
            auto_pad=None if auto_pad == "NOTSET" else auto_pad,
            types=[(x.dtype, node.outputs[0].dims)] if ceil_mode else None,
        )  # fmt: skip
    return _spread_average(op, x, **given, dilations=dilations, count_include_pad=count_include_pad)


@in_float32
def _spread_average(op: LoweringBuilder, x, *, kernel_shape, count_include_pad, **given):
    """Sum the dilated windows with a convolution."""
    shape = op.Shape(x, start=2)
    flat = op.Reshape(x, op.Concat([-1, 1], shape, axis=0))
    area = int(np.prod(kernel_shape))
    window = op.const(np.full([1, 1, *kernel_shape], 1 if not count_include_pad else 1 / area, x.dtype.numpy()))
    total = op.Conv(flat, window, kernel_shape=kernel_shape, **given)
    if not count_include_pad:
        one = op.const(np.ones([1] * (len(kernel_shape) + 2), x.dtype.numpy()))
        ones = op.Expand(one, op.Concat([1, 1], shape, axis=0))
        total = op.Div(total, op.Conv(ones, window, kernel_shape=kernel_shape, **given))
    return op.Reshape(total, op.Concat(op.Shape(x, end=2), op.Shape(total, start=2), axis=0))


@below(16, "RoiAlign")
def roi_align(
    op: LoweringBuilder, x, rois, batch, *, coordinate_transformation_mode="half_pixel", mode="avg", output_height=1,
    output_width=1, sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    """Half-pixel alignment uses the body of the domain's operator. The older RoiAlign enlarges small regions."""
    if coordinate_transformation_mode == "output_half_pixel":
        return op.old.RoiAlign(
            x, rois, batch, mode=mode, output_height=output_height, output_width=output_width,
            sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        )  # fmt: skip
    body = find("ROIAlign").emit_body
    if mode != "avg" or body is None:
        raise NotRepresentableError("RoiAlign with the coordinates half_pixel")
    return in_float32(body)(
        op, x, rois, batch, pooled_h=output_height, pooled_w=output_width, sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale, mode="avg", aligned_mode="half_pixel_for_nn",
    )  # fmt: skip


# -- points between pixels ------------------------------------------------------------------------------------------------


@below(20, "GridSample")
def grid_sample_names(op: LoweringBuilder, x, grid, *, mode="linear", padding_mode="zeros", align_corners=0):
    if op.opset < 16 or (x.rank or grid.rank) not in (4, None):
        return SAME
    names = {"linear": "bilinear", "cubic": "bicubic"}
    return op.old.GridSample(
        x, grid, mode=names.get(mode, mode), padding_mode=padding_mode, align_corners=align_corners
    )  # fmt: skip


@below(20, "GridSample")
@in_float32
def grid_sample(op: LoweringBuilder, x, grid, *, mode="linear", padding_mode="zeros", align_corners=0):
    """Compute the sampling element by element, for images only."""
    if 4 not in (x.rank, grid.rank):
        raise NotRepresentableError("GridSample of volumes, or of unknown rank")
    sizes = [op.Cast(op.Shape(x, start=i, end=i + 1), to=grid.dtype) for i in (2, 3)]
    places = []
    for size, k in zip(sizes, (1, 0), strict=True):
        place = op.Add(op.Gather(grid, k, axis=-1), 1)
        if align_corners:
            place = op.Mul(op.Div(place, 2), op.Sub(size, 1))
        else:
            place = op.Div(op.Sub(op.Mul(place, size), 1), 2)
        if mode == "nearest":
            place = op.Round(place)
        low, high = (op.const(0, grid.dtype), op.Sub(size, 1)) if align_corners else (
            op.const(-0.5, grid.dtype), op.Sub(size, 0.5))  # fmt: skip
        # The positions of the sixteen neighbors are mirrored or clamped individually.
        if mode == "cubic":
            pass
        elif padding_mode == "border":
            place = op.Where(op.Or(op.Less(place, low), op.Greater(place, high)), _bounded(op, place, size), place)
        elif padding_mode == "reflection":
            place = op.Where(op.Or(op.Less(place, low), op.Greater(place, high)), _reflected(op, place, low, high), place)
        places.append(place)
    flat = _rows(op, x)
    batch = op.Unsqueeze(op.Range(0, op.Squeeze(op.Shape(x, end=1), [0]), 1), [1, 2])

    def pixel(row: Value, column: Value) -> Value:
        return _pixel(op, flat, batch, x, [row, column], padding_mode, align_corners)

    if mode == "nearest":
        found = pixel(*places)
    else:
        floors = [op.Floor(place) for place in places]
        parts = [op.Sub(place, floor) for place, floor in zip(places, floors, strict=True)]
        reach, weights = ([0, 1], _linear) if mode == "linear" else ([-1, 0, 1, 2], _cubic)
        rows, columns = (weights(op, part) for part in parts)
        found = reduce(
            op.Add,
            (
                op.Mul(
                    op.Unsqueeze(op.Cast(op.Mul(wr, wc), to=x.dtype), [-1]),
                    pixel(op.Add(floors[0], i), op.Add(floors[1], j)),
                )
                for i, wr in zip(reach, rows, strict=True)
                for j, wc in zip(reach, columns, strict=True)
            ),
        )
    return op.Transpose(found, perm=[0, 3, 1, 2])


def _linear(op: Builder, part: Value) -> list[Value]:
    return [op.Sub(op.const(1, part.dtype), part), part]


def _cubic(op: Builder, part: Value, a: float = -0.75) -> list[Value]:
    def outer(t: Value) -> Value:  # for distances from 1 to 2
        return op.Sub(op.Mul(op.Add(op.Mul(op.Sub(op.Mul(t, a), 5 * a), t), 8 * a), t), 4 * a)

    def inner(t: Value) -> Value:  # for distances from 0 to 1
        return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(t, a + 2), a + 3), t), t), 1)

    rest = op.Sub(op.const(1, part.dtype), part)
    return [outer(op.Add(part, 1)), inner(part), inner(rest), outer(op.Add(rest, 1))]


def _bounded(op: Builder, place: Value, size: Value) -> Value:
    return op.Max(op.Min(place, op.Sub(size, 1)), 0)


def _reflected(op: Builder, place: Value, low: Value, high: Value) -> Value:
    """Mirror at both borders, repeatedly if necessary."""
    width = op.Sub(high, low)
    away = op.Where(op.Less(place, low), op.Sub(low, place), op.Sub(place, high))
    times = op.Floor(op.Div(away, width))
    rest = op.Sub(away, op.Mul(times, width))
    even = op.Equal(op.Mul(op.Floor(op.Div(times, 2)), 2), times)
    from_low, from_high = op.Add(low, rest), op.Sub(high, rest)
    below_low = op.Where(even, from_low, from_high)
    return op.Where(op.Less(place, low), below_low, op.Where(even, from_high, from_low))


def _rows(op: Builder, x: Value) -> Value:
    """Reshape images ``[N, C, H, W]`` to one row of channels for each pixel."""
    last = op.Transpose(x, perm=[0, 2, 3, 1])
    return op.Reshape(last, op.Concat([-1], op.Shape(x, start=1, end=2), axis=0))


def _pixel(
    op: Builder, flat: Value, batch: Value, x: Value, at: list[Value], padding_mode: str, align_corners: int = 0
) -> Value:
    """Return the pixels at integer coordinates, with padding beyond the borders."""
    inside, places = None, []
    for place, axis in zip(at, (2, 3), strict=True):
        size = op.Cast(op.Shape(x, start=axis, end=axis + 1), to=place.dtype)
        if padding_mode == "reflection":
            half = 0.0 if align_corners else 0.5
            low, high = op.const(-half, place.dtype), op.Sub(size, 1 - half)
            outside = op.Or(op.Less(place, low), op.Greater(place, high))
            place = op.Where(outside, _reflected(op, place, low, high), place)
        ok = op.And(op.GreaterOrEqual(place, 0), op.Less(place, size))
        inside = ok if inside is None else op.And(inside, ok)
        # Integers cannot be NaN.
        last = op.Sub(op.Shape(x, start=axis, end=axis + 1), 1)
        places.append(op.Max(op.Min(op.Cast(place, to=D.INT64), last), 0))
    height, width = (op.Shape(x, start=axis, end=axis + 1) for axis in (2, 3))
    index = op.Add(op.Mul(op.Add(op.Mul(batch, height), places[0]), width), places[1])
    found = op.Gather(flat, index, axis=0)
    if padding_mode != "zeros":
        return found
    assert inside is not None
    return op.Where(op.Unsqueeze(inside, [-1]), found, op.const(0, x.dtype))


@below(19, "DeformConv")
@in_float32
def deform_conv(
    op: LoweringBuilder, x, weights, offset, bias=None, mask=None, *, strides=None, pads=None, dilations=None, group=1,
    offset_group=1, kernel_shape=None,
):  # fmt: skip
    """Gather the samples of each window, then compute one MatMul for each group."""
    if 4 not in (x.rank, weights.rank, offset.rank):
        raise NotRepresentableError("DeformConv of inputs other than images")
    strides, dilations, pads = strides or [1, 1], dilations or [1, 1], pads or [0] * 4
    taps, spots = op.Shape(weights, start=2), op.Shape(offset, start=2)
    batch = op.Shape(x, end=1)
    # One dimension each: batch and offset group, kernel row, kernel column, row, column.
    each = op.Concat([-1], taps, spots, axis=0)
    moved = op.Reshape(offset, op.Concat([-1], taps, [2], spots, axis=0))
    at = []
    for k in range(2):
        tap = op.Mul(op.Range(0, op.Gather(taps, k), 1), dilations[k])
        start = op.Sub(op.Mul(op.Range(0, op.Gather(spots, k), 1), strides[k]), pads[k])
        base = op.Add(op.Unsqueeze(tap, [1 - k, 2, 3]), op.Unsqueeze(start, [0, 1, 3 - k]))
        at.append(op.Add(op.Cast(base, to=offset.dtype), op.Gather(moved, k, axis=3)))
    # Offset groups become images.
    shape = op.Concat(op.Mul(batch, offset_group), [-1], op.Shape(x, start=2), axis=0)
    images = op.Reshape(x, shape)
    flat = _rows(op, images)
    number = op.Unsqueeze(op.Range(0, op.Squeeze(op.Mul(batch, offset_group), [0]), 1), [1, 2, 3, 4])
    floors = [op.Floor(place) for place in at]
    parts = [_linear(op, op.Sub(place, floor)) for place, floor in zip(at, floors, strict=True)]
    total = reduce(
        op.Add,
        (
            op.Mul(
                op.Unsqueeze(op.Cast(op.Mul(parts[0][i], parts[1][j]), to=x.dtype), [-1]),
                _pixel(op, flat, number, images, [op.Add(floors[0], i), op.Add(floors[1], j)], "zeros"),
            )
            for i in range(2)
            for j in range(2)
        ),
    )
    if mask is not None:
        total = op.Mul(total, op.Unsqueeze(op.Reshape(mask, each), [-1]))
    # [N * offset groups, kernel, kernel, rows, columns, channels] -> [N, groups, channels * kernel, outputs]
    columns = op.Transpose(total, perm=[0, 5, 1, 2, 3, 4])
    outputs = op.Shape(weights, end=1)
    depth = op.Mul(op.Shape(weights, start=1, end=2), op.ReduceProd(taps, keepdims=1))
    columns = op.Reshape(columns, op.Concat([-1, group], depth, op.ReduceProd(spots, keepdims=1), axis=0))
    kernel = op.Reshape(weights, op.Concat([group], op.Div(outputs, group), depth, axis=0))
    result = op.Reshape(op.MatMul(kernel, columns), op.Concat([-1], outputs, spots, axis=0))
    return result if bias is None else op.Add(result, op.Unsqueeze(bias, [1, 2]))


@below(18, "Col2Im")
def col2im(op: LoweringBuilder, x, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    """Use a transposed convolution that moves each row of a column to its position in the block."""
    if (count := (image_shape.dims or block_shape.dims or [None])[0]) is None:
        raise NotRepresentableError("Col2Im of images of unknown rank")
    strides, dilations, pads = strides or [1] * count, dilations or [1] * count, pads or [0] * 2 * count
    taps = op.ReduceProd(block_shape, keepdims=1)
    order = op.Range(0, op.Squeeze(taps, [0]), 1)
    places = op.Cast(op.Equal(op.Unsqueeze(order, [1]), order), to=x.dtype)
    kernel = op.Reshape(places, op.Concat(taps, [1], block_shape, axis=0))
    room = op.Add(image_shape, [a + b for a, b in zip(pads[:count], pads[count:], strict=True)])
    extent = op.Add(op.Mul(op.Sub(block_shape, 1), dilations), 1)
    windows = op.Add(op.Div(op.Sub(room, extent), strides), 1)
    columns = op.Reshape(x, op.Concat([-1], taps, windows, axis=0))
    images = op.ConvTranspose(columns, kernel, strides=strides, dilations=dilations)
    reached = op.Add(op.Mul(op.Sub(windows, 1), strides), extent)
    missing = op.Sub(op.Sub(room, reached), pads[count:])
    before = op.Neg(op.const(pads[:count]))
    images = op.Pad(images, op.Concat([0, 0], before, [0, 0], missing, axis=0))
    channels = op.Div(op.Shape(x, start=1, end=2), taps)
    return op.Reshape(images, op.Concat([-1], channels, image_shape, axis=0))
