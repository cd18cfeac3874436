"""Poolings: averages and maxima over sliding windows, and over a given number of windows."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import INT64_MAX, dim, index_type
from converters.openvino.rules._onnxruntime import accepts_pads, computes_padding
from converters.openvino.rules._precision import HALVES
from converters.openvino.rules._value_ranges import bounds
from converters.openvino.rules._windows import (
    LARGER_WINDOWS,
    MaybeDilated,
    Sliding,
    Window,
    ceil_divide,
    check_fits,
    pad_spatial,
    spatial_shape,
    window,
)
from converters.openvino.rules.reductions import reduce_mean
from onnx_specops.building import Builder, Value

Rounding = Literal["floor", "ceil"]
RoundingTorch = Literal["floor", "ceil", "ceil_torch"]

_SAME = Departure(
    where="`auto_pad` `same_upper` or `same_lower`, of data of unknown dimensions",
    cpu="pads as with `same_upper`, and reads out of bounds",
    specification="pads as specified",
    reference="pads as with `same_upper`",
    follows="specification",
)
# ONNX Runtime's kernels differ in both, and a guard would cost each pooling a pass over its data.
_NOT_FINITE = (
    Departure(
        where="a NaN among the elements",
        cpu="ignores it",
        specification="leaves it undefined",
        follows="runtime",
    ),
    Departure(
        where="minus infinity only",
        cpu="gives the lowest finite number",
        specification="gives the maximum",
        follows="runtime",
    ),
)
_RANK = "the rank of the data or the length of output_shape must be known"

_INT64 = ir.DataType.INT64
_WIDE = (ir.DataType.INT64, ir.DataType.UINT64)
_EXACT = 2**53  # up to it, float64 represents each integer
_MAX_WINDOWS = 64  # along an axis, with one node for each


_OF_PADDING = Departure(
    where="windows that contain only padding, as with `ceil` and `dilations`",
    cpu="gives NaN, the mean of no elements",
    specification="leaves it undefined",
    follows="runtime",
)


_HALFWAY = Departure(
    name="integers",
    where="i8 and u8 whose mean is halfway between two integers",
    cpu="multiplies the sum by a rounded factor, which may give either integer",
    specification="does not define the rounding",
    follows="runtime",
)


@rule("AvgPool", departs=[LARGER_WINDOWS, _OF_PADDING, _HALFWAY])
def avg_pool_1(
    op: Builder,
    data: Value,
    *,
    sliding: Sliding,
    kernel: tuple[int, ...],
    exclude_pad: bool,
    rounding_type: Rounding = "floor",
):
    """AvgPool-1."""
    return _average(op, data, kernel, sliding.window(), exclude_pad, rounding_type)


@rule("AvgPool", since="opset14", departs=[LARGER_WINDOWS, _OF_PADDING, _HALFWAY])
def avg_pool_14(
    op: Builder,
    data: Value,
    *,
    sliding: Sliding,
    kernel: tuple[int, ...],
    exclude_pad: bool,
    rounding_type: RoundingTorch = "floor",
):
    """AvgPool-14."""
    return _average(op, data, kernel, sliding.window(), exclude_pad, rounding_type)


@rule("AvgPool", since="opset16", departs=[LARGER_WINDOWS, _OF_PADDING, _HALFWAY])
def avg_pool_16(
    op: Builder,
    data: Value,
    *,
    sliding: MaybeDilated,
    kernel: tuple[int, ...],
    exclude_pad: bool,
    rounding_type: RoundingTorch = "floor",
):
    """AvgPool-16."""
    at = sliding.window()
    return _average(op, data, kernel, at, exclude_pad, rounding_type)


@rule("MaxPool", departs=[LARGER_WINDOWS, *_NOT_FINITE])
def max_pool_1(
    op: Builder,
    data: Value,
    *,
    sliding: Sliding,
    kernel: tuple[int, ...],
    rounding_type: Rounding = "floor",
):
    """MaxPool-1."""
    return _maximum(op, data, kernel, sliding.window(), rounding_type)[0]


@rule("MaxPool", since="opset8", departs=[_SAME, LARGER_WINDOWS, *_NOT_FINITE])
def max_pool_8(
    op: Builder,
    data: Value,
    *,
    sliding: MaybeDilated,
    kernel: tuple[int, ...],
    rounding_type: Rounding = "floor",
    index_element_type: ElementType = ElementType.I64,
    axis: int = 0,
):
    """MaxPool-8: the indices count from the start of the dimension ``axis``."""
    at = sliding.window()
    return _maximum_with_indices(op, data, kernel, at, rounding_type, index_element_type, axis)


@rule("MaxPool", since="opset14", departs=[_SAME, LARGER_WINDOWS, *_NOT_FINITE])
def max_pool_14(
    op: Builder,
    data: Value,
    *,
    sliding: MaybeDilated,
    kernel: tuple[int, ...],
    rounding_type: RoundingTorch = "floor",
    index_element_type: ElementType = ElementType.I64,
    axis: int = 0,
):
    """MaxPool-14: the indices count from the start of the dimension ``axis``."""
    at = sliding.window()
    return _maximum_with_indices(op, data, kernel, at, rounding_type, index_element_type, axis)


@rule(
    "AdaptiveAvgPool",
    since="opset8",
    restrictions=_RANK,
    departs=[
        Departure(
            name="large sums",
            where="one window of i8 or u8 whose sum is beyond the range of the type",
            cpu="divides the largest or the lowest number",
            specification="gives the mean",
            follows="specification",
        ),
    ],
)
def adaptive_avg_pool(op: Builder, data: Value, output_shape: Value):
    """AdaptiveAvgPool-8: window i of n over ``size`` elements is ``[i * size // n, ceil((i + 1) * size / n))``.

    Means of integers are rounded to the nearest, as in AvgPool, but the mean of all elements is truncated, as in ReduceMean.
    """
    rank = _adaptive_rank(data, output_shape)
    sizes, counts = spatial_shape(op, data, rank), op.Cast(output_shape, to=_INT64)
    if counts.constant is not None and (counts.constant == 1).all():
        return reduce_mean(op, data, op.const([*range(2, 2 + rank)]), keep_dims=True)
    is_integer = data.dtype is not None and data.dtype.is_integer()
    numbers = op.Cast(data, to=ir.DataType.FLOAT) if is_integer else data
    kernel = _even_windows(op, sizes, counts)
    if kernel is not None:
        means = op.AveragePool(numbers, kernel_shape=kernel, strides=kernel)
    else:
        means = _adaptive_means(op, numbers, sizes, counts, rank, whole=is_integer)
    return op.Cast(op.Round(means), to=data.dtype) if is_integer else means


def _adaptive_means(op: Builder, data: Value, sizes: Value, counts: Value, rank: int, *, whole: bool) -> Value:
    """Return the means of windows, axis by axis.

    ``whole`` divides the sums by the number of elements only at the end, so that a mean of integers halfway between two of
    them has no rounding error.
    """
    area = None
    for k in range(rank):
        if (windows := _known_windows(data, sizes, counts, k)) is not None:
            reduce = op.ReduceSum if whole else op.ReduceMean
            parts = [reduce(op.Slice(data, [start], [end], [2 + k]), [2 + k], keepdims=1) for start, end in windows]
            data = op.Concat(*parts, axis=2 + k)
            length = op.const([float(end - start) for start, end in windows], data.dtype)
        else:
            each, taps, start, end = _adaptive_windows(op, data, sizes, counts, k)
            inside = op.Less(taps, end)
            mask = op.Reshape(inside, op.Concat(op.Shape(inside), [1] * (rank - 1 - k), axis=0))
            data = op.ReduceSum(op.Where(mask, each, op.const(0, data.dtype)), [3 + k], keepdims=0)
            length = op.Cast(op.Sub(end, start), to=data.dtype)
            if not whole:
                data = op.Div(data, op.Reshape(length, [-1] + [1] * (rank - 1 - k)))
        if whole:
            length = op.Reshape(length, [-1] + [1] * (rank - 1 - k))
            area = length if area is None else op.Mul(area, length)
    return data if area is None else op.Div(data, area)


@rule(
    "AdaptiveMaxPool",
    since="opset8",
    restrictions=_RANK,
    departs=[
        Departure(where="data or indices of i64", cpu="rejects them", specification="allows them", follows="specification"),
    ],
)
def adaptive_max_pool(op: Builder, data: Value, output_shape: Value, *, index_element_type: ElementType = ElementType.I64):
    """AdaptiveMaxPool-8: the same windows as AdaptiveAvgPool. The indices count within the spatial dimensions."""
    rank = _adaptive_rank(data, output_shape)
    sizes, counts = spatial_shape(op, data, rank), op.Cast(output_shape, to=_INT64)
    to = index_type(index_element_type)
    kernel = _even_windows(op, sizes, counts)
    if kernel is not None:
        at = window(kernel, auto_pad="valid")
        numbers = op.Reshape(op.Range(0, op.ReduceProd(sizes, keepdims=0), 1), op.Concat([1, 1], sizes, axis=0))
        first = op.Slice(numbers, [0] * rank, [INT64_MAX] * rank, [*range(2, 2 + rank)], kernel)
        return _maximum_with_indices(op, data, tuple(kernel), at, "floor", index_element_type, 2, first)
    # The maxima of rows, then of columns. This also finds the first of equal elements in row-major order.
    indices = None
    stride = op.const([1])
    for k in reversed(range(rank)):
        each, taps, _, _ = _adaptive_windows(op, data, sizes, counts, k, clamp=True)
        best = op.ArgMax(each, axis=3 + k, keepdims=1)
        data = op.Squeeze(op.GatherElements(each, best, axis=3 + k), [3 + k])
        column = [1] * (rank - 1 - k)
        taps = op.Reshape(taps, op.Concat(op.Shape(taps), column, axis=0))
        taps = op.Expand(taps, op.Shape(each))
        place = op.Mul(op.Squeeze(op.GatherElements(taps, best, axis=3 + k), [3 + k]), stride)
        if indices is None:
            indices = place
        else:
            inner, *_ = _adaptive_windows(op, indices, sizes, counts, k, clamp=True)
            indices = op.Add(place, op.Squeeze(op.GatherElements(inner, best, axis=3 + k), [3 + k]))
        stride = op.Mul(stride, op.Slice(sizes, [k], [k + 1]))
    return [data, op.Cast(indices, to=to)]


def _adaptive_rank(data: Value, output_shape: Value) -> int:
    """Return the number of spatial dimensions."""
    rank = None if data.rank is None else data.rank - 2
    if rank is None and output_shape.dims:
        rank = output_shape.dims[0]
    if rank is None or rank < 1:
        raise Unsupported(
            "the number of its spatial dimensions is unknown", "set the shape of the model's input with --input-shape"
        )
    count = output_shape.dims[0] if output_shape.dims else rank
    if output_shape.rank not in (None, 1) or count not in (None, rank):
        raise Malformed(f"its output_shape has the dimensions {output_shape.dims} for {rank} spatial dimensions")
    if output_shape.constant is not None and (output_shape.constant < 1).any():
        raise Malformed(f"its output_shape is {output_shape.constant.tolist()}; each number must be 1 or more")
    return rank


def _even_windows(op: Builder, sizes: Value, counts: Value) -> list[int] | None:
    """Return the size of the windows if all are known to be equal and not to overlap."""
    if sizes.constant is None or counts.constant is None or (sizes.constant % counts.constant).any():
        return None
    kernel = (sizes.constant // counts.constant).tolist()
    return kernel if min(kernel) > 0 else None


def _known_windows(data: Value, sizes: Value, counts: Value, k: int) -> list[tuple[int, int]] | None:
    """Return starts and ends of the windows along spatial dimension k, if they are known and few enough for a node each."""
    if sizes.constant is None or counts.constant is None or data.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    size, count = int(sizes.constant[k]), int(counts.constant[k])
    if size < 1 or count > _MAX_WINDOWS:
        return None
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive_windows(
    op: Builder, data: Value, sizes: Value, counts: Value, k: int, clamp: bool = False
) -> tuple[Value, Value, Value, Value]:
    """Return the windows along spatial dimension k: their elements (in a new dimension), the elements' positions, starts and
    ends.

    All have the length of the longest one. Beyond its end, a window repeats its last element if ``clamp``, and contains the
    following elements otherwise.
    """
    size, count = op.Gather(sizes, k, axis=0), op.Gather(counts, k, axis=0)
    number = op.Range(0, count, 1)
    start = op.Div(op.Mul(number, size), count)
    end = op.Div(op.Add(op.Mul(op.Add(number, 1), size), op.Sub(count, 1)), count)
    start, end = op.Unsqueeze(start, [1]), op.Unsqueeze(end, [1])
    longest = op.ReduceMax(op.Sub(end, start), keepdims=0)
    taps = op.Add(start, op.Range(0, longest, 1))
    if clamp:
        taps = op.Min(taps, op.Sub(end, 1))
    each = op.Gather(data, op.Min(taps, op.Sub(size, 1)), axis=2 + k)
    return each, taps, start, end


def _end_padding(op: Builder, data: Value, kernel: tuple[int, ...], at: Window, rounding: str) -> tuple[Value, Value]:
    """Return the padding before and after the data with which rounding down gives the layer's number of windows."""
    if len(kernel) != at.rank or min(kernel) < 1:
        raise Malformed(f"its kernel size {list(kernel)} does not fit {at.rank} spatial dimensions")
    sizes = op.const(list(kernel))
    begin, end = at.padding(op, data, sizes)
    check_fits(data, sizes, at, begin, end)
    if rounding == "floor":
        return begin, end
    before, extent = op.Add(spatial_shape(op, data, at.rank), begin), at.extent(op, sizes)
    steps = ceil_divide(op, op.Sub(op.Add(before, end), extent), at.strides)
    if rounding == "ceil_torch":
        # A last window that starts after the data and the padding before it is omitted.
        steps = op.Sub(steps, op.Cast(op.GreaterOrEqual(op.Mul(steps, at.strides), before), to=_INT64))
    return begin, op.Max(op.Sub(op.Add(op.Mul(steps, at.strides), extent), before), op.const([0]))


def _attributes(kernel: tuple[int, ...], at: Window, begin: Value, end: Value, rounding: str) -> dict[str, Any] | None:
    """Return the attributes of an ONNX pooling; ``None`` if they cannot represent its padding."""
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": at.strides}
    if set(at.dilations) != {1}:
        attributes["dilations"] = at.dilations
    if begin.constant is not None and end.constant is not None:
        pads = [*begin.constant.tolist(), *end.constant.tolist()]
    elif at.same:
        found = computes_padding(at.dilations, at.strides, kernel)
        return attributes | {"auto_pad": at.auto_pad.upper()} if found else None
    else:
        # ONNX rounds up as ceil_torch does, which is correct if no window can start after the data.
        pads = [*at.pads_begin, *at.pads_end]
        attributes["ceil_mode"] = 1
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, at.dilations, strict=True)]
        if rounding == "ceil" and any(e + s > x for e, s, x in zip(at.pads_end, at.strides, extents, strict=True)):
            return None
    if not accepts_pads(pads, kernel):
        return None
    if any(pads):
        attributes["pads"] = pads
    return attributes


def _types(data: Value, attributes: dict[str, Any], outputs: int = 1) -> list[tuple[ir.DataType | None, Any]] | None:
    """Return the types of a pooling that rounds up. ONNX's inference counts windows that start in the padding."""
    if "ceil_mode" not in attributes:
        return None
    dims = [*(data.dims or [None, None])[:2], *[None] * len(attributes["strides"])]
    return [(data.dtype, dims), (_INT64, dims)][:outputs]


def _average(
    op: Builder,
    data: Value,
    kernel: tuple[int, ...],
    at: Window,
    exclude_pad: bool,
    rounding: str,
    whole: bool = False,
) -> Value:
    """Emit AvgPool, for integers in float32 (``whole``), whose means are rounded to the nearest.

    Without ``exclude_pad``, a sum is divided by the size of the window, also if rounding up extends it beyond the padding.
    If the data has no padding, only its own elements count.
    """
    if data.dtype is not None and data.dtype.is_integer():
        mean = _average(op, op.Cast(data, to=ir.DataType.FLOAT), kernel, at, exclude_pad, rounding, whole=True)
        return op.Cast(op.Round(mean), to=data.dtype)
    begin, end = _end_padding(op, data, kernel, at, rounding)
    attributes = _attributes(kernel, at, begin, end, rounding)
    padded = op.ReduceMax(op.Abs(op.Concat(*at.padding(op, data, op.const(list(kernel))), axis=0)), keepdims=1)
    # None if it depends on the size of the data
    include = False if exclude_pad else None if padded.constant is None else bool(padded.constant[0])
    if attributes is not None and not (include and "ceil_mode" in attributes):
        types = _types(data, attributes)
        return op.AveragePool(data, count_include_pad=None if include is False else 1, types=types, **attributes)
    plain = {"kernel_shape": kernel, "strides": at.strides, "dilations": at.dilations}
    mean = op.AveragePool(pad_spatial(op, data, begin, end), **plain)
    if include:
        return mean
    ones = op.Expand(op.const(1, data.dtype), op.Concat([1, 1], spatial_shape(op, data, at.rank), axis=0))
    area = float(math.prod(kernel))
    total = op.Mul(mean, area)
    counts = op.Round(op.Mul(op.AveragePool(pad_spatial(op, ones, begin, end), **plain), area))
    beyond = _outside(op, data, mean, kernel, at, begin)
    if beyond.constant is None or beyond.constant.any():
        counts = op.Where(beyond, op.const(1, data.dtype), counts)
    excluding = op.Div(op.Round(total) if whole else total, counts)
    return excluding if include is False else op.Where(op.Greater(padded, 0), mean, excluding)


def _outside(op: Builder, data: Value, mean: Value, kernel: tuple[int, ...], at: Window, begin: Value) -> Value:
    """Return which windows are entirely after the data. OpenVINO gives 0 there, and NaN for windows of padding."""
    found = None
    for k, extent in enumerate((size - 1) * dilation + 1 for size, dilation in zip(kernel, at.dilations, strict=True)):
        count, size = (op.Squeeze(dim(op, x, 2 + k), [0]) for x in (mean, data))
        start = op.Sub(op.Mul(op.Range(0, count, 1), at.strides[k]), op.Slice(begin, [k], [k + 1]))
        beyond = op.Or(op.Greater(start, size), op.Less(start, -extent))
        beyond = op.Reshape(beyond, [-1] + [1] * (at.rank - 1 - k))
        found = beyond if found is None else op.Or(found, beyond)
    assert found is not None
    return found


def _maximum(
    op: Builder, data: Value, kernel: tuple[int, ...], at: Window, rounding: str, outputs: int = 1
) -> tuple[Value, Value | None]:
    """Return the maxima and, if ``outputs`` is 2, their positions in ``data``."""
    x, dtype = data, data.dtype
    if dtype in _WIDE and not all(abs(bound) <= _EXACT for bound in bounds(data)):
        return _maximum_by_axis(op, data, kernel, at, _end_padding(op, data, kernel, at, rounding), outputs)
    integer = dtype is not None and dtype.is_integer() and dtype not in (ir.DataType.INT8, ir.DataType.UINT8)
    if integer and dtype is not None:  # ONNX does not support these types
        x = op.Cast(data, to=ir.DataType.DOUBLE if dtype.bitwidth > 16 else ir.DataType.FLOAT)
    begin, end = _end_padding(op, data, kernel, at, rounding)
    attributes = _attributes(kernel, at, begin, end, rounding)
    if attributes is not None:
        results = op.MaxPool(x, outputs=outputs, types=_types(x, attributes, outputs), **attributes)
    else:
        padded = pad_spatial(op, x, begin, end, _lowest(x))
        results = op.MaxPool(padded, outputs=outputs, kernel_shape=kernel, strides=at.strides, dilations=at.dilations)
    maxima, places = results if outputs == 2 else (results, None)
    if attributes is None and places is not None:
        numbers = op.Reshape(op.Range(0, op.Size(data), 1), op.Shape(data))
        numbers = op.Reshape(pad_spatial(op, numbers, begin, end), [-1])
        places = op.Gather(numbers, op.Max(places, op.const(0)), axis=0)
    return op.Cast(maxima, to=dtype) if integer else maxima, places


def _maximum_by_axis(
    op: Builder, data: Value, kernel: tuple[int, ...], at: Window, padding: tuple[Value, Value], outputs: int
) -> tuple[Value, Value | None]:
    """Return `_maximum` of 64-bit integers that no float represents.

    The maxima of rows, then of columns. This also finds the first of equal elements in row-major order.
    """
    maxima, places = pad_spatial(op, data, *padding, _lowest(data)), None
    if outputs == 2:
        places = pad_spatial(op, op.Reshape(op.Range(0, op.Size(data), 1), op.Shape(data)), *padding)
    for k in reversed(range(at.rank)):
        extent = (kernel[k] - 1) * at.dilations[k] + 1
        count = op.Add(op.Div(op.Sub(dim(op, maxima, 2 + k), extent), at.strides[k]), 1)
        starts = op.Mul(op.Range(0, op.Squeeze(count, [0]), 1), at.strides[k])
        taps = op.Add(op.Unsqueeze(starts, [1]), op.Mul(op.Range(0, kernel[k], 1), at.dilations[k]))
        each = op.Gather(maxima, taps, axis=2 + k)
        if places is None:
            maxima = op.ReduceMax(each, [3 + k], keepdims=0)
            continue
        best, first = op.TopK(each, [1], axis=3 + k, outputs=2)
        maxima = op.Squeeze(best, [3 + k])
        places = op.Squeeze(op.GatherElements(op.Gather(places, taps, axis=2 + k), first, axis=3 + k), [3 + k])
    return maxima, places


def _maximum_with_indices(
    op: Builder,
    data: Value,
    kernel: tuple[int, ...],
    at: Window,
    rounding: str,
    index_element_type: ElementType,
    axis: int,
    first: Value | None = None,
) -> list[Value]:
    """Return MaxPool's two outputs.

    A window without elements above the lowest number has the index ``first``, by default that of its channel's first
    element.
    """
    to = index_type(index_element_type)
    rank = at.rank + 2
    if not -rank <= axis < rank:
        raise Malformed(f"its axis {axis} is out of range [{-rank}, {rank - 1}]")
    maxima, places = _maximum(op, data, kernel, at, rounding, outputs=2)
    if first is None:
        outer = op.Shape(data, start=0, end=2)
        channels = op.Range(0, op.ReduceProd(outer, keepdims=0), 1)
        first = op.Mul(channels, op.ReduceProd(spatial_shape(op, data, at.rank), keepdims=1))
        first = op.Reshape(first, op.Concat(outer, [1] * at.rank, axis=0))
    # 16-bit floats are computed in float32. A window without elements may have its lowest number, or infinity in 16 bits.
    found = op.Cast(maxima, to=ir.DataType.FLOAT) if data.dtype in HALVES else maxima
    places = op.Where(op.Greater(found, op.const(_lowest(found), found.dtype)), places, first)
    if axis % rank:
        places = op.Mod(places, op.ReduceProd(op.Shape(data, start=axis % rank), keepdims=1))
    return [maxima, op.Cast(places, to=to)]


def _lowest(data: Value) -> float | int:
    """Return the lowest number of the value's type; for floats that of float32, in which OpenVINO's CPU plugin computes:
    -inf in 16 bits.
    """
    dtype = data.dtype or ir.DataType.FLOAT
    if dtype.is_floating_point():
        lowest = float(np.finfo(np.float32).min)
        return lowest if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else -math.inf
    return dtype.min.item() if hasattr(dtype.min, "item") else dtype.min
