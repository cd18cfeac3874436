"""Resizing: interpolation along axes, and sampling of an image at given positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.graph import Layer
from converters.openvino.rule import AttributeGroup, Context, Departure, rule
from converters.openvino.rules._fused_resizing import is_fused_with_next_layers
from converters.openvino.rules._onnxruntime import RESIZED, RESIZED_TO_NEAREST, interpolates
from converters.openvino.rules._precision import ZERO_WEIGHT, integers_in_float32, saturated_8_bits
from onnx_specops.building import Builder, Value
from onnx_specops.padding import pad

# The maximum rank in OpenVINO's CPU plugin.
_MAX_RANK = 8
_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
_PILLOW = ("bilinear_pillow", "bicubic_pillow")
_INT64, _FLOAT = ir.DataType.INT64, ir.DataType.FLOAT

_CUBIC_3D = Departure(
    where="`cubic` of three-dimensional data along the first axis and others",
    cpu="gives wrong numbers",
    reference="interpolates along all of them",
    follows="reference",
)
_ANTIALIAS = Departure(
    where="`linear` with `antialias`, the channels second",
    cpu="ignores `antialias`",
    specification="widens the kernel if it reduces the image",
    follows="specification",
)
_INTEGERS = Departure(
    where="`linear`, `linear_onnx` and `cubic` of i8 and u8",
    cpu="rounds and saturates the result",
    reference="truncates it",
    follows="cpu",
)
_INTEGERS_5D = Departure(
    where="`linear` of five-dimensional i8 and u8",
    cpu="truncates the result",
    reference="rounds the result",
    follows="cpu",
)
_FUSED = {("linear", 4), ("linear_onnx", 4), ("linear_onnx", 5), ("cubic", 4)}
"""The modes and ranks that the CPU plugin fuses with the operations that follow."""
_UNROUNDED = Departure(
    where="i8 and u8 with dynamic dimensions, before a Convert to floats and a function of these",
    cpu="fuses them, without rounding in between",
    reference="rounds to integers in between",
    follows="cpu",
)
_WITHOUT_PLACES = Departure(
    where="images without rows or columns",
    cpu="returns uninitialized memory",
    reference="gives zeros, returns uninitialized memory, or crashes, depending on the attributes",
    follows="runtime",
)
_OVERFLOW = Departure(
    where="a finite position whose coordinate in pixels is beyond the range of f32",
    cpu="gives NaN with `bilinear` and `bicubic`",
    specification="is beyond the image",
    follows="specification",
)
_NO_PIXEL = Departure(
    where="a NaN or a positive infinity as position, with `nearest` and `border`",
    cpu="takes the last pixel",
    reference="takes the first pixel",
    follows="cpu",
)
_FAR_REFLECTIONS = Departure(
    where="`reflection` of positions more than 2^24 pixels from the image, and with `nearest` of a NaN and of infinity",
    cpu="selects a pixel that depends on rounding",
    reference="selects another pixel",
    follows="runtime",
)

Coordinates = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]


@dataclass(frozen=True, kw_only=True)
class Resizing(AttributeGroup):
    """The attributes of Interpolate-4 and Interpolate-11."""

    shape_calculation_mode: Literal["sizes", "scales"]
    coordinate_transformation_mode: Coordinates = "half_pixel"
    nearest_mode: Rounding = "round_prefer_floor"
    antialias: bool = False
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    cube_coeff: float = -0.75


class _Method(NamedTuple):
    """The interpolation method, whether the file states the exact scales, and whether OpenVINO's CPU plugin uses the
    reference kernel.
    """

    mode: str
    coordinates: str
    rounding: str
    antialias: bool
    cube_coeff: float
    exact: bool
    by_reference: bool = False


@rule(
    "Interpolate",
    restrictions="pads along its axes only (OpenVINO states another shape for others)",
    departs=[_WITHOUT_PLACES],
)
def interpolate_1(
    op: Builder,
    data: Value,
    target_spatial_shape: Value,
    *,
    axes: tuple[int, ...],
    mode: Literal["nearest", "linear", "linear_onnx", "cubic"],
    align_corners: bool = True,
    antialias: bool = False,
    pads_begin: tuple[int, ...] = (),
    pads_end: tuple[int, ...] = (),
):
    """Interpolate-1: like Interpolate-4 with sizes. Its attributes and the rank determine the coordinates."""
    rank = len(axes) + 2 if data.rank is None else data.rank
    coordinates: Coordinates = "asymmetric"
    if align_corners:
        coordinates = "align_corners"
    elif mode.startswith("linear") and not any(pads_begin + pads_end) and (rank, sorted(axes)) != (4, [2, 3]):
        coordinates = "half_pixel"
    if mode == "linear" and rank < 5:
        mode = "linear_onnx"
    sizes = op.Cast(target_spatial_shape, to=_INT64)
    along = op.const(sorted(axes))
    data = _padded(op, data, pads_begin, pads_end)
    scales = _quotients(op, data, along, sizes)
    return _interpolated(op, data, sizes, scales, along, _Method(mode, coordinates, "simple", antialias, -0.75, False))


@rule(
    "Interpolate",
    since="opset4",
    departs=[_ANTIALIAS, _CUBIC_3D, _INTEGERS, _INTEGERS_5D, _UNROUNDED, ZERO_WEIGHT, _WITHOUT_PLACES],
)
def interpolate_4(
    op: Builder,
    image: Value,
    sizes: Value,
    scales: Value,
    axes: Value | None = None,
    *,
    mode: Literal["nearest", "linear", "linear_onnx", "cubic"],
    resizing: Resizing,
    context: Context,
):
    """Interpolate-4."""
    given = sizes if resizing.shape_calculation_mode == "sizes" else scales
    return _resized_as_given(op, image, given, axes, mode, resizing, context)


@rule(
    "Interpolate",
    since="opset11",
    departs=[
        _ANTIALIAS,
        _CUBIC_3D,
        _INTEGERS,
        _INTEGERS_5D,
        _UNROUNDED,
        ZERO_WEIGHT,
        _WITHOUT_PLACES,
        Departure(
            where="`bilinear_pillow` of four-dimensional i8 and u8",
            cpu="rounds halves to even",
            reference="rounds them away from zero, and after each of the two axes",
            follows="cpu",
        ),
        Departure(
            where="axes other than the last two, or the middle ones of four, with `bilinear_pillow` or `bicubic_pillow`",
            cpu="gives wrong numbers",
            reference="interpolates along them",
            follows="reference",
        ),
        Departure(
            where="two- and three-dimensional i8 and u8 with `bilinear_pillow` or `bicubic_pillow`",
            cpu="rounds once, after both axes",
            reference="rounds after each of the two axes",
            follows="cpu",
        ),
        Departure(
            where="`bicubic_pillow` with a `cube_coeff` other than -0.5, constant axes and up to four dimensions",
            cpu="uses -0.5",
            specification="uses the attribute",
            follows="cpu",
        ),
    ],
)
def interpolate_11(
    op: Builder,
    image: Value,
    scales_or_sizes: Value,
    axes: Value | None = None,
    *,
    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"],
    resizing: Resizing,
    context: Context,
):
    """Interpolate-11."""
    return _resized_as_given(op, image, scales_or_sizes, axes, mode, resizing, context)


def _resized_as_given(
    op: Builder, image: Value, given: Value, axes: Value | None, mode: str, how: Resizing, context: Context
) -> Value:
    """Interpolate to sizes or by scales, whichever are given."""
    is_candidate = (
        (mode, image.rank) in _FUSED
        and image.dtype in _BYTES
        and not _is_by_reference(image, axes, mode)
        and is_fused_with_next_layers(context.layer)
    )
    if is_candidate and image.dtype is not None and _is_dynamic(context.layer, image, given, axes, how):
        exact = interpolated(op, op.Cast(image, to=_FLOAT), given, axes, mode, how)
        limits = np.iinfo(image.dtype.numpy())
        rounded = op.Cast(op.Clip(op.Round(exact), float(limits.min), float(limits.max)), to=image.dtype)
        rounded.unrounded = True  # for a Convert that uses the unrounded numbers
        return rounded
    return interpolated(op, image, given, axes, mode, how)


def _is_dynamic(layer: Layer, image: Value, given: Value, axes: Value | None, how: Resizing) -> bool:
    """Return whether some dimensions of the result are unknown to OpenVINO.

    Dimensions in the file become unknown if the user reshapes the model, so they are not considered.
    """
    stated = layer.outputs[0].dims
    if stated is not None and None not in stated:
        return False
    along = np.arange(image.rank or 0) if axes is None else axes.constant
    if image.dims is None or given.constant is None or along is None:
        return True
    resized = [int(axis) for axis in along.reshape(-1)]
    is_size = how.shape_calculation_mode == "sizes"
    return any(dim is None and not (is_size and axis in resized) for axis, dim in enumerate(image.dims))


def interpolated(op: Builder, image: Value, given: Value, axes: Value | None, mode: str, how: Resizing) -> Value:
    """Interpolate a value, regardless of the operations that follow."""
    by_reference = _is_by_reference(image, axes, mode)
    image, sizes, scales, along = _inputs(op, image, given, axes, how)
    exact = how.shape_calculation_mode == "scales"
    # PyTorch's antialiased bicubic interpolation has the coefficient -0.5, but OpenVINO's frontend writes -0.75.
    cube_coeff = -0.5 if mode == "bicubic_pillow" and not by_reference else how.cube_coeff
    coordinates, rounding = how.coordinate_transformation_mode, how.nearest_mode
    method = _Method(mode, coordinates, rounding, how.antialias, cube_coeff, exact, by_reference)
    return _interpolated(op, image, sizes, scales, along, method)


def _is_by_reference(image: Value, axes: Value | None, mode: str) -> bool:
    """Return whether OpenVINO's CPU plugin, whose kernels support few ranks and constant axes, uses the reference kernel."""
    if axes is not None and axes.constant is None:
        return True
    return image.rank is not None and image.rank > (4 if mode in _PILLOW else 5)


@rule("GridSample", since="opset9", departs=[_WITHOUT_PLACES, _OVERFLOW, _NO_PIXEL, _FAR_REFLECTIONS])
def grid_sample(
    op: Builder,
    data: Value,
    grid: Value,
    *,
    align_corners: bool = False,
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
):
    """GridSample-9."""
    if data.dims is not None and 0 in data.dims:  # nothing to sample: zeros
        shape = op.Concat(op.Shape(data, end=2), op.Shape(grid, start=1, end=3), axis=0)
        return op.Expand(op.const(0, data.dtype), shape)
    names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    places = op.Cast(grid, to=_FLOAT) if grid.dtype != _FLOAT else grid
    return integers_in_float32(
        op,
        lambda x: op.GridSample(x, places, mode=names[mode], padding_mode=padding_mode, align_corners=int(align_corners)),
        data,
    )


def _padded(op: Builder, image: Value, pads_begin: Sequence[int], pads_end: Sequence[int]) -> Value:
    """Pad the image with zeros. The lists may be shorter than its rank."""
    if not any(pads_begin) and not any(pads_end):
        return image
    count = max(len(pads_begin), len(pads_end))
    if (image.rank is not None and count > image.rank) or min(*pads_begin, *pads_end, 0) < 0:
        raise Malformed(f"pads_begin {list(pads_begin)} and pads_end {list(pads_end)} do not fit the rank {image.rank}")
    begin, end = ([*pads, *[0] * (count - len(pads))] for pads in (pads_begin, pads_end))
    return pad(op, image, range(count), begin, end)


def _all_axes(op: Builder, image: Value, given: Value) -> Value:
    """Return all axes of the image. ``given`` has a size or scale for each of them."""
    rank = given.dims[0] if image.rank is None and given.dims else image.rank
    return op.Range(0, op.Size(op.Shape(image)), 1) if rank is None else op.const(list(range(rank)))


def _quotients(op: Builder, image: Value, along: Value, sizes: Value) -> Value:
    lengths = op.Gather(op.Shape(image), along, axis=0)
    return op.Div(op.Cast(sizes, to=_FLOAT), op.Cast(lengths, to=_FLOAT))


def _inputs(op: Builder, image: Value, given: Value, axes: Value | None, how: Resizing) -> tuple[Value, Value, Value, Value]:
    """Return the padded image, and the sizes and scales along axes."""
    if axes is not None:
        along = op.Cast(axes, to=_INT64)
    else:
        along = _all_axes(op, image, given)
    counts = [x.dims[0] if x.dims else None for x in (given, along)]
    if None not in counts and counts[0] != counts[1]:
        raise Malformed(f"it has {counts[0]} sizes or scales for {counts[1]} axes")
    image = _padded(op, image, how.pads_begin, how.pads_end)
    if how.shape_calculation_mode == "sizes":
        sizes = op.Cast(given, to=_INT64)
        return image, sizes, _quotients(op, image, along, sizes), along
    scales = op.Cast(given, to=_FLOAT)
    lengths = op.Gather(op.Shape(image), along, axis=0)
    # OpenVINO tolerates a scale whose rounding makes the product slightly less than the intended integer.
    slack = np.float32(1e-6)
    if scales.constant is not None and lengths.constant is not None and scales.dims == lengths.dims:
        product = (scales.constant + slack) * lengths.constant.astype(np.float32)
        if np.isfinite(product).all() and (np.abs(product) < 2**31).all():
            return image, op.const(np.floor(product).astype(np.int64)), scales, along
    product = op.Mul(op.Add(scales, slack), op.Cast(lengths, to=_FLOAT))
    return image, op.Cast(op.Floor(product), to=_INT64), scales, along


def _interpolated(op: Builder, image: Value, sizes: Value, scales: Value, along: Value, method: _Method) -> Value:
    """Emit ONNX's Resize if ONNX Runtime computes the same results, and otherwise the custom operator Interpolate."""
    if image.dims is not None and 0 in image.dims:  # zeros, if the result is not empty
        return op.Expand(op.const(0, image.dtype), op.ScatterElements(op.Shape(image), along, sizes))
    if image.dtype in _BYTES and (result := _of_bytes(op, image, sizes, scales, along, method)) is not None:
        return result
    if along.constant is None:
        if image.rank is None:
            return _with_leading_ones(op, image, sizes, scales, along, method)
        rank = image.rank
        # The axes are known at run time only, so resize along all of them.
        sizes = op.ScatterElements(op.Shape(image), along, sizes)
        scales = op.ScatterElements(op.const(np.ones(rank, np.float32)), along, scales)
        axes = list(range(rank))
    else:
        axes = [int(axis) for axis in along.constant.reshape(-1)]
        max_rank = 64 if image.rank is None else image.rank
        if any(not 0 <= axis < max_rank for axis in axes) or len(set(axes)) != len(axes):
            raise Malformed(f"its axes are {axes} for a rank of {image.rank}")
        counts = [value.dims[0] for value in (sizes, scales) if value.dims and value.dims[0] is not None]
        if any(count != len(axes) for count in counts):
            raise Malformed(f"it has {counts[0]} sizes or scales for {len(axes)} axes")
        if not axes:
            return op.Identity(image)
        if method.mode in _PILLOW and axes != sorted(axes):  # 8-bit integers are rounded along the last axis first
            order = np.argsort(axes)
            axes, sizes, scales = sorted(axes), op.Gather(sizes, order, axis=0), op.Gather(scales, order, axis=0)
        if not sizes.is_static:
            sizes = op.Reshape(sizes, [len(axes)])  # ONNX's inference needs a known number
        resized = _resized(op, image, sizes, scales, axes, method)
        if resized is not None:
            return resized
    return op.specops.Interpolate(
        image,
        sizes,
        scales,
        axes=",".join(map(str, axes)),
        mode=method.mode,
        coordinate_transformation_mode=method.coordinates,
        nearest_mode=method.rounding,
        antialias=int(method.antialias),
        cube_coeff=method.cube_coeff,
    )


def _of_bytes(op: Builder, image: Value, sizes: Value, scales: Value, along: Value, method: _Method) -> Value | None:
    """Interpolate 8-bit integers in float32 and convert the result; return ``None`` if the operators convert it correctly:
    to the nearest integers, ties to even, and after each axis with Pillow.
    """
    mode, rank, dtype = method.mode, image.rank, image.dtype
    once = mode in _PILLOW and not method.by_reference and rank in (2, 3)
    whole = mode == "linear" and method.by_reference
    if method.by_reference:
        truncates = mode in ("cubic", "linear_onnx")
    else:
        truncates = mode in ("linear", "cubic") and rank in (5, None)
    if dtype is None or not (truncates or once or whole):
        return None
    result = _interpolated(op, op.Cast(image, to=_FLOAT), sizes, scales, along, method)
    if once:
        return saturated_8_bits(op, result, dtype)
    if whole:  # halves are rounded away from zero
        result = op.Where(op.Less(result, 0.0), op.Ceil(op.Sub(result, 0.5)), op.Floor(op.Add(result, 0.5)))
    elif rank is None and not method.by_reference:
        limits = np.iinfo(dtype.numpy())
        bounded = op.Clip(op.Round(result), float(limits.min), float(limits.max))
        result = op.Where(op.Equal(op.Size(op.Shape(image)), 5), result, bounded)
    return op.Cast(op.Cast(result, to=ir.DataType.INT32), to=dtype)  # truncated, and wraps beyond the range


def _with_leading_ones(op: Builder, image: Value, sizes: Value, scales: Value, along: Value, method: _Method) -> Value:
    """Convert an image of unknown rank to one of the maximum rank, which changes along its last axes only."""
    shape = op.Shape(image)
    more = op.Sub(_MAX_RANK, op.Shape(shape))
    types = [(image.dtype, [None] * _MAX_RANK)]
    wide = op.Reshape(image, op.Concat(op.Expand(op.const([1]), more), shape, axis=0), types=types, allowzero=1)
    result = _interpolated(op, wide, sizes, scales, op.Add(along, more), method)
    return op.Reshape(result, op.ScatterElements(shape, along, sizes), allowzero=1)


def _resized(op: Builder, image: Value, sizes: Value, scales: Value, axes: list[int], method: _Method) -> Value | None:
    """Emit ONNX's Resize; return ``None`` if ONNX Runtime's differs or does not support the case."""
    mode, coordinates, rounding, antialias, cube_coeff, exact, _ = method
    rank = image.rank
    factors = None if scales.constant is None else [float(s) for s in scales.constant.reshape(-1)]
    attributes: dict[str, object] = {"axes": axes}
    if mode == "nearest":
        if image.dtype not in RESIZED_TO_NEAREST:
            return None
        whole = factors is not None and all(f >= 1 and f.is_integer() for f in factors)
        if rounding == "simple":
            if factors is None or (any(f < 1 for f in factors) and any(f > 1 for f in factors)):
                return None
            rounding = "ceil" if any(f < 1 for f in factors) else "floor"
        if coordinates == "tf_half_pixel_for_nn":
            # The mode is deprecated in ONNX. With whole scales, the additional half element does not matter when rounding
            # down.
            if not whole or rounding != "floor":
                return None
            coordinates = "asymmetric"
        if rounding.startswith("round") and coordinates != "align_corners" and not whole:
            return None  # the rounding error of a coordinate halfway between two elements selects one
        attributes |= {"mode": "nearest", "nearest_mode": rounding}
    elif image.dtype not in RESIZED or coordinates == "tf_half_pixel_for_nn" or not interpolates(mode, rank, axes):
        return None
    elif mode == "cubic":
        attributes |= {"mode": "cubic", "cubic_coeff_a": cube_coeff}
    elif mode == "linear_onnx" or (mode == "linear" and not antialias):
        attributes["mode"] = "linear"
    else:
        return None
    attributes["coordinate_transformation_mode"] = coordinates
    if not exact:
        return op.Resize(image, None, None, _for_all_axes(op, image, sizes, attributes), **attributes)
    if factors is None:
        return None
    lengths = [None if image.dims is None else image.dims[axis] for axis in axes]
    for factor, length, size in zip(
        factors, lengths, [None] * len(axes) if sizes.constant is None else sizes.constant, strict=True
    ):
        # ONNX computes the size itself, without OpenVINO's tolerance, and also scales if the size does not change.
        if length is None or size is None:
            if not (factor.is_integer() or (factor < 1 and (4 * factor).is_integer())):
                return None
        else:
            found = {int(np.float32(factor) * np.float32(length)), int(factor * length)}
            if found != {size} or (size == length and factor != 1):
                return None
    return op.Resize(image, None, _for_all_axes(op, image, scales, attributes), **attributes)


def _for_all_axes(op: Builder, image: Value, given: Value, attributes: dict[str, object]) -> Value:
    """Return sizes or scales for all axes of an image of known rank, and remove the axes from its ``attributes``.

    All opsets have this form, and ONNX Runtime (1.31) assumes it when it moves a Transpose past a Resize.
    """
    if image.dims is None:
        return given
    axes = list(attributes.pop("axes"))  # type: ignore[call-overload]
    is_size = given.dtype == _INT64
    if given.constant is not None and (
        not is_size or all(isinstance(d, int) for k, d in enumerate(image.dims) if k not in axes)
    ):
        whole = np.array(image.dims if is_size else [1] * len(image.dims), object)
        whole[axes] = given.constant.reshape(-1).tolist()
        return op.const(whole.astype(given.constant.dtype))
    if sorted(axes) == axes and len(axes) == len(image.dims):
        return given
    others = op.Shape(image) if is_size else op.const(np.ones(len(image.dims), np.float32))
    return op.ScatterElements(others, op.const(np.array(axes, np.int64)), given)
