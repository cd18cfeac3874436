"""Interpolate: resizes a tensor along some of its axes, in all modes of OpenVINO."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import NUMERIC, LimitError, check_size, operator
from onnx_specops.ops._checks import FLOAT16S

Mode = Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
Coordinates = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]

# The maximum length of an axis. Coordinates are float32, which does not represent all larger integers.
MOST_SIZE = 2**24

_PILLOW = ("bilinear_pillow", "bicubic_pillow")


@operator(
    inputs={"image": "T", "sizes": "tensor(int64)", "scales": "tensor(float)"},
    outputs={"output": "T"},
    types={"T": NUMERIC},
)
def Interpolate(
    image,
    sizes,
    scales,
    *,
    axes: str,
    mode: Mode,
    coordinate_transformation_mode: Coordinates = "half_pixel",
    nearest_mode: Rounding = "round_prefer_floor",
    antialias: int = 0,
    cube_coeff: float = -0.75,
):
    """Resizes ``image`` along ``axes``, one axis after the other, to ``sizes``.

    Inputs:
        image: any shape. An empty axis cannot grow.
        sizes: ``[n]``, the output sizes along the n axes; a size that changes is at most 2**24.
        scales: ``[n]``, the divisors of output coordinates, usually the ratios of the sizes.

    Attributes:
        axes: the n axes, not negative, as a list such as ``"2,3"``.
        mode: ``nearest``; ``linear`` and ``linear_onnx`` (two neighbors; ``linear`` with ``antialias`` uses a triangle
            filter as wide as an output element); ``cubic`` (four neighbors); ``bilinear_pillow`` and ``bicubic_pillow``
            (as the Pillow library resizes images, always with its antialiasing).
        coordinate_transformation_mode: how output coordinates map to image coordinates: ``half_pixel``,
            ``pytorch_half_pixel``, ``asymmetric``, ``tf_half_pixel_for_nn`` or ``align_corners``. The Pillow modes
            ignore it.
        nearest_mode: how ``nearest`` rounds the coordinate: ``round_prefer_floor``, ``round_prefer_ceil``, ``floor``,
            ``ceil`` or ``simple`` (``ceil`` if the scale is less than 1, otherwise ``floor``).
        antialias: see ``linear``. It applies to all axes if any scale is less than 1.
        cube_coeff: the parameter *a* of ``cubic`` and ``bicubic_pillow``.

    Output: ``image`` with the given sizes along the axes. Coordinates are computed in float32. Integers are interpolated
    in float32, then rounded to nearest (ties to even) and saturated. The Pillow modes round 8-bit integers after each
    axis, last axis first. ``nearest`` copies values.

    Source: OpenVINO specification, Interpolate-11.
    """
    along = _parsed(axes)
    for name, value in (("sizes", sizes), ("scales", scales)):
        if value.shape != (len(along),):
            raise ValueError(f"Interpolate: {name} has the shape {list(value.shape)} for {len(along)} axes")
    if max(along, default=-1) >= image.ndim:
        raise ValueError(f"Interpolate: axes: {axes} are out of range for an image of rank {image.ndim}")
    narrowed = mode == "linear" and antialias and (scales < 1).any()
    accumulated = image.dtype
    if mode != "nearest" and (image.dtype.kind in "iu" or image.dtype.name in FLOAT16S):
        accumulated = np.dtype(np.float32)
    output = image.astype(accumulated, copy=False)
    stages = list(zip(along, sizes.tolist(), scales, strict=True))
    for axis, size, scale in reversed(stages) if mode in _PILLOW else stages:
        length = image.shape[axis]
        if size < 0 or (size > 0 and length == 0):
            raise ValueError(f"Interpolate: sizes: {length} elements along axis {axis} cannot become {size}")
        if size > MOST_SIZE and size != length:
            raise LimitError(f"Interpolate: sizes: {size} along axis {axis} is more than {MOST_SIZE}")
        resized = math.prod(output.shape) // max(length, 1) * size
        check_size("Interpolate: an image resized along some of the axes", resized, [image])
        if mode in _PILLOW or narrowed:
            check_size(f"Interpolate: the weights along axis {axis}", size * length, [image])
            if mode in _PILLOW:
                weights = _pillow_weights(length, size, mode, cube_coeff)
            else:
                weights = _triangle_weights(length, size, scale, coordinate_transformation_mode)
            product = np.tensordot(weights.astype(accumulated), output, (1, axis))
            output = np.moveaxis(product, 0, axis)
            if image.dtype.kind in "iu" and image.dtype.itemsize == 1:
                output = _rounded(output, image.dtype)
            continue
        coordinates = _coordinates(length, size, scale, coordinate_transformation_mode)
        shape = (-1, *[1] * (image.ndim - 1 - axis))
        total = 0
        for position, weight in _taps(coordinates, length, mode, nearest_mode, scale < 1, cube_coeff):
            position = np.nan_to_num(np.clip(position, 0, max(length - 1, 0)), nan=0)  # for a scale of NaN
            taken = np.take(output, position.astype(np.int64), axis)
            total = taken if weight is None else total + taken * weight.astype(accumulated).reshape(shape)
        output = total
    if image.dtype.kind in "iu" and mode != "nearest":
        output = _rounded(output, image.dtype)
    return np.asarray(output, order="C").astype(image.dtype, copy=False)


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    least, most = _limits(dtype)
    return np.clip(np.rint(x), least, most)


def _limits(dtype: np.dtype) -> tuple[np.float32, np.float32]:
    """Return the minimum and maximum of an integer type as float32 values within its range."""
    ends = np.iinfo(dtype)
    most = np.float32(ends.max)
    return np.float32(ends.min), most if int(most) <= ends.max else np.nextafter(most, np.float32(0))


def _parsed(axes: str) -> list[int]:
    parts = [part.strip() for part in axes.split(",")] if axes.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts) or len(set(parts)) != len(parts):
        raise ValueError(f"Interpolate: axes = {axes!r} is not a list of different axes")
    return [int(part) for part in parts]


def _coordinates(length: int, size: int, scale: np.float32, how: str) -> np.ndarray:
    """Return the input coordinate of every output coordinate, computed in float32."""
    x, half, one = np.arange(size, dtype=np.float32), np.float32(0.5), np.float32(1)
    if scale == 1 or size == length:
        return x
    if how == "align_corners":
        return x * np.float32(length - 1) / np.float32(size - 1) if size > 1 else x
    if how == "asymmetric":
        return x / scale
    if how == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if how == "pytorch_half_pixel" and size <= one:
        return np.zeros_like(x)
    return (x + half) / scale - half


def _taps(x: np.ndarray, length: int, mode: str, rounding: str, smaller: bool, a: float):
    """Return the positions that contribute to an element, with their weights (``None`` if there is one)."""
    floor = np.floor(x)
    rest = x - floor
    if mode == "nearest":
        if rounding == "simple":
            rounding = "ceil" if smaller else "floor"
        yield (
            {
                "floor": lambda: floor,
                "ceil": lambda: np.ceil(x),
                "round_prefer_floor": lambda: floor + (rest > 0.5),
                "round_prefer_ceil": lambda: floor + (rest >= 0.5),
            }[rounding](),
            None,
        )
    elif mode == "cubic":
        for k, distance in enumerate((1 + rest, rest, 1 - rest, 2 - rest)):
            yield floor + (k - 1), _cubic(distance, a, far=k in (0, 3))
    else:
        x = np.clip(x, 0, max(length - 1, 0))
        floor = np.floor(x)
        yield floor, 1 - (x - floor)
        yield floor + 1, x - floor


def _cubic(t: np.ndarray, a: float, far: bool) -> np.ndarray:
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if far else ((a + 2) * t - (a + 3)) * t * t + 1


def _triangle_weights(length: int, size: int, scale: np.float32, how: str) -> np.ndarray:
    """Return ``[size, length]``: weights by distance, in output elements."""
    distance = _coordinates(length, size, scale, how)[:, None] - np.arange(length, dtype=np.float32)
    return _normalized(np.maximum(0, 1 - np.abs(scale * distance)))


def _pillow_weights(length: int, size: int, mode: str, a: float) -> np.ndarray:
    """Return ``[size, length]``: a triangle, or a cubic curve of twice its width, at least as wide as an output element."""
    step = length / max(size, 1)
    center = (np.arange(size) + 0.5) * step
    t = np.abs((np.arange(length) + 0.5 - center[:, None]) / max(step, 1.0))
    if mode == "bilinear_pillow":
        return _normalized(np.maximum(0, 1 - t))
    return _normalized(np.where(t < 1, _cubic(t, a, far=False), np.where(t < 2, _cubic(t, a, far=True), 0)))


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


@Interpolate.infer_shapes
def _(node):
    shape, sizes, axes = node.shape(0), node.constant(1), node.attributes["axes"]
    if shape is None:
        return [None]
    for k, part in enumerate(axes.split(",") if axes.strip() else []):
        if int(part) < len(shape):
            shape[int(part)] = None if sizes is None or k >= sizes.size else int(sizes.reshape(-1)[k])
    return [shape]


_OF_RESIZE = frozenset(("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"))


@Interpolate.body_facts
def _(image, sizes, scales, *, axes, mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff):
    """Return whether ONNX's Resize computes the same: linearly, with the quotients of known sizes."""
    from onnx_specops.graphs import constant_array

    whole, factors = constant_array(sizes), constant_array(scales)
    lengths = [] if image.shape is None else list(image.shape)[2:]
    are_known = len(lengths) == 2 and all(isinstance(length, int) and length > 0 for length in lengths)
    is_linear = mode == "linear_onnx" and not antialias and coordinate_transformation_mode in _OF_RESIZE
    if not are_known or not is_linear or _parsed(axes) != [2, 3] or image.dtype != Type.FLOAT:
        return {"plain": False}
    if whole is None or factors is None or whole.shape != (2,) or factors.shape != (2,) or whole.min() < 1:
        return {"plain": False}
    return {"plain": bool((whole.astype(np.float32) / np.array(lengths, np.float32) == factors).all())}


@Interpolate.body
def _(op, image, sizes, scales, *, axes, mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff, plain):
    along = _parsed(axes)
    if plain:
        whole = op.Concat(op.Shape(image, end=2), op.Reshape(sizes, [2]), axis=0)  # of known length
        return op.Resize(
            image, None, None, whole, mode="linear", coordinate_transformation_mode=coordinate_transformation_mode
        )  # fmt: skip
    dtype, output = image.dtype, image
    floating = dtype in (Type.FLOAT, Type.DOUBLE)
    if mode != "nearest" and not floating:
        output = op.Cast(image, to=Type.FLOAT)
    smaller = op.Less(scales, 1.0)
    any_smaller = op.Greater(op.ReduceMax(op.Cast(smaller, to=Type.INT32), keepdims=0), 0)

    def rounded(x):
        least, most = _limits(dtype.numpy())
        return op.Clip(op.Round(x), float(least), float(most))

    stages = list(enumerate(along))
    for k, axis in reversed(stages) if mode in _PILLOW else stages:
        length, size = op.Shape(image, start=axis, end=axis + 1), op.Slice(sizes, [k], [k + 1])
        scale = op.Slice(scales, [k], [k + 1])
        if mode in _PILLOW:
            output = _product(op, _pillow_rows(op, length, size, mode, cube_coeff), output, axis)
            output = rounded(output) if dtype.is_integer() and dtype.itemsize == 1 else output
            continue
        x = _source(op, length, size, scale, coordinate_transformation_mode)
        if mode == "linear" and antialias:
            output = op.if_(
                any_smaller,
                lambda op, x=x, y=output, n=length, s=scale, a=axis: _product(op, _triangle_rows(op, x, n, s), y, a),
                lambda op, x=x, y=output, n=length, a=axis: _gathered(op, _linear(op, x, n), y, n, a),
            )
        elif mode == "nearest":
            down = op.Slice(smaller, [k], [k + 1])
            output = _gathered(op, [(_nearest(op, x, nearest_mode, down), None)], output, length, axis)
        else:
            taps = _cubic_taps(op, x, cube_coeff) if mode == "cubic" else _linear(op, x, length)
            output = _gathered(op, taps, output, length, axis)
    if mode != "nearest" and dtype.is_integer():
        output = rounded(output)
    return output if output.dtype == dtype else op.Cast(output, to=dtype)


def _source(op, length, size, scale, how):
    """Emit the coordinates of `_coordinates`, ``[size]``."""
    x = op.Cast(op.Range(0, op.Squeeze(size, [0]), 1), to=Type.FLOAT)
    whole = op.Or(op.Equal(scale, 1.0), op.Equal(size, length))
    if how == "align_corners":
        steps = [op.Cast(op.Sub(n, 1), to=Type.FLOAT) for n in (length, size)]
        moved = op.Div(op.Mul(x, steps[0]), steps[1])
        whole = op.Or(whole, op.LessOrEqual(size, 1))
    elif how == "asymmetric":
        moved = op.Div(x, scale)
    elif how == "tf_half_pixel_for_nn":
        moved = op.Div(op.Add(x, 0.5), scale)
    else:
        moved = op.Sub(op.Div(op.Add(x, 0.5), scale), 0.5)
        if how == "pytorch_half_pixel":
            whole = op.Or(whole, op.LessOrEqual(size, 1))
    return op.Where(whole, x, moved)


def _nearest(op, x, rounding, smaller):
    floor = op.Floor(x)
    if rounding == "floor":
        return floor
    if rounding == "ceil":
        return op.Ceil(x)
    if rounding == "simple":
        return op.Where(smaller, op.Ceil(x), floor)
    rest = op.Sub(x, floor)
    up = op.Greater(rest, 0.5) if rounding == "round_prefer_floor" else op.GreaterOrEqual(rest, 0.5)
    return op.Add(floor, op.Cast(up, to=Type.FLOAT))


def _linear(op, x, length):
    x = op.Min(op.Max(x, 0.0), op.Cast(op.Sub(length, 1), to=Type.FLOAT))
    floor = op.Floor(x)
    rest = op.Sub(x, floor)
    return [(floor, op.Sub(1.0, rest)), (op.Add(floor, 1.0), rest)]


def _cubic_taps(op, x, a):
    floor = op.Floor(x)
    rest = op.Sub(x, floor)
    distances = (op.Add(rest, 1.0), rest, op.Sub(1.0, rest), op.Sub(2.0, rest))
    return [(op.Add(floor, k - 1.0), _curve(op, t, a, far=k in (0, 3))) for k, t in enumerate(distances)]


def _curve(op, t, a, far):
    """Emit `_cubic` in the type of ``t``."""
    if far:
        return op.Sub(op.Mul(op.Add(op.Mul(op.Sub(op.Mul(t, a), 5 * a), t), 8 * a), t), 4 * a)
    return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(t, a + 2), a + 3), t), t), 1.0)


def _gathered(op, taps, x, length, axis):
    """Emit the weighted sum of the elements at the taps along the axis."""
    total = None
    after = op.Sub(op.Size(op.Shape(x)), axis + 1)
    ones = op.Expand(op.const([1]), op.Reshape(after, [1]))
    for position, weight in taps:
        index = op.Min(op.Max(op.Cast(position, to=Type.INT64), op.const([0])), op.Sub(length, 1))
        taken = op.Gather(x, index, axis=axis)
        if weight is not None:
            taken = op.Mul(taken, op.Reshape(op.Cast(weight, to=x.dtype), op.Concat([-1], ones, axis=0)))
        total = taken if total is None else op.Add(total, taken)
    return total


def _product(op, rows, x, axis):
    """Contract the axis of ``x`` with the columns of ``rows``."""
    shape = op.Shape(x)
    outer, inner = op.Slice(shape, [0], [axis]), op.Slice(shape, [axis + 1], [2**31])
    sizes = op.Concat(outer, op.Shape(rows, end=1), inner, axis=0)

    def product(op):
        before, after = op.ReduceProd(outer, keepdims=1), op.ReduceProd(inner, keepdims=1)
        # The Reshape of this branch rejects a 0 that would copy a missing dimension, even if the branch does not run.
        columns = op.Reshape(x, op.Concat(before, op.Slice(shape, [axis], [axis + 1]), after, axis=0), allowzero=1)
        return op.Reshape(op.MatMul(op.Cast(rows, to=x.dtype), columns), sizes, allowzero=1)

    # ONNX Runtime rejects a MatMul with a matrix and an empty batch of matrices.
    return op.if_(op.Equal(op.Mul(op.Size(x), op.Size(rows)), 0), lambda op: op.Expand(op.const(0, x.dtype), sizes), product)


def _positions(op, length, dtype):
    return op.Cast(op.Range(0, op.Squeeze(length, [0]), 1), to=dtype)


def _triangle_rows(op, x, length, scale):
    distance = op.Sub(op.Unsqueeze(x, [1]), _positions(op, length, Type.FLOAT))
    return _divided(op, op.Relu(op.Sub(1.0, op.Abs(op.Mul(distance, scale)))))


def _pillow_rows(op, length, size, mode, a):
    double = Type.DOUBLE
    step = op.Div(op.Cast(length, to=double), op.Cast(op.Max(size, op.const([1])), to=double))
    center = op.Mul(op.Add(_positions(op, size, double), 0.5), step)
    offset = op.Sub(op.Add(_positions(op, length, double), 0.5), op.Unsqueeze(center, [1]))
    t = op.Abs(op.Div(offset, op.Max(step, 1.0)))
    if mode == "bilinear_pillow":
        return _divided(op, op.Relu(op.Sub(1.0, t)))
    outer = op.Where(op.Less(t, 2.0), _curve(op, t, a, far=True), 0.0)
    return _divided(op, op.Where(op.Less(t, 1.0), _curve(op, t, a, far=False), outer))


def _divided(op, rows):
    """Divide rows by their nonzero sums."""
    total = op.ReduceSum(rows, [1], keepdims=1)
    return op.Div(rows, op.Where(op.Equal(total, 0.0), 1.0, total))
