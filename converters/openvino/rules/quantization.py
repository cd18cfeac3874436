"""Quantization emulated in floats: FakeQuantize, FakeConvert."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._elementwise import AutoBroadcast, align, checked_onto, within_rank
from converters.openvino.rules._precision import D, halves_in_float32, require_floats
from onnx_specops.building import Builder, Value


@rule(
    "FakeQuantize",
    departs=[
        Departure(
            where="constant limits, and a number halfway between two levels",
            cpu="scales by one factor, whose rounding may move it to the other level",
            specification="computes in the order of its formula, ties to even",
            follows="specification",
        ),
        Departure(
            where="constant input limits that are equal, of data of two dimensions or more",
            cpu="gives NaN",
            specification="gives one of the limits",
            follows="specification",
        ),
        Departure(
            where="constant input limits in the wrong order, of data of two dimensions or more",
            cpu="gives the lower limit",
            specification="gives levels by its formula",
            follows="specification",
        ),
        Departure(
            where="constant limits of different shapes",
            cpu="confuses them",
            specification="broadcasts each",
            follows="specification",
        ),
        Departure(
            where="limits of more dimensions than the data",
            cpu="gives the result the rank of the limits",
            specification="gives it the rank of the data",
            follows="specification",
        ),
        Departure(
            where="constant limits that are larger than the data",
            cpu="broadcasts the data to them",
            reference="gives the result the shape of the data, and reads only the first elements of such a limit",
            follows="reference",
        ),
        Departure(
            where="65,536 levels with constant limits in f32 that are the same for the output",
            cpu="ignores the layer, also the limits",
            reference="quantizes",
            follows="reference",
        ),
        Departure(
            where="65,536 levels with constant limits that are the same for the output, in f16, or between an input and an "
            "output of the model",
            cpu="rejects it",
            reference="quantizes",
            follows="reference",
        ),
        Departure(
            where="a Clamp to a range that has no number between the limits, after a matrix multiplication or a convolution",
            cpu="applies it in part",
            specification="gives one of the limits",
            follows="specification",
        ),
        Departure(
            where="a reduction without `keep_dims` over the first or second dimension, a product or a sum with a constant "
            "for each channel, then FakeQuantize",
            cpu="reads the constant along another dimension",
            specification="multiplies or adds by channel before it quantizes",
            follows="specification",
        ),
        Departure(
            where="a product or a sum of data of unknown dimensions and a constant for each channel, then FakeQuantize",
            cpu="reads the constant along another dimension",
            specification="multiplies or adds by channel before it quantizes",
            follows="specification",
        ),
        Departure(where="a NaN", cpu="gives the lower limit", reference="keeps it", follows="reference"),
        Departure(
            where="`auto_broadcast=pdpd`",
            cpu="repeats the limits over the elements, as the reference kernel does",
            specification="aligns them with the data's dimensions from an axis on",
            follows="specification",
        ),
    ],
)
def fake_quantize(
    op: Builder,
    x: Value,
    input_low: Value,
    input_high: Value,
    output_low: Value,
    output_high: Value,
    *,
    levels: int,
    auto_broadcast: AutoBroadcast = "numpy",
    auto_broadcast_axis: int = 0,
):
    """FakeQuantize-1, in the specification's order of operations; halves round to even."""
    require_floats(x, "quantizes")
    if levels < 2:
        raise Malformed(f"its levels is {levels}; expected 2 or more")
    given = (input_low, input_high, output_low, output_high)
    aligned = [align(op, x, limit, auto_broadcast, auto_broadcast_axis) for limit in given]
    if any(_has_more_dimensions(x, limit) for limit in aligned):
        raise Malformed(f"its limits have more dimensions than its data {x.dims}; the first of them must be 1")
    limits = [within_rank(op, x, limit) for limit in aligned]
    if any(_has_larger_row(x, low) and _has_larger_row(x, high) for low, high in (limits[:2], limits[2:])):
        raise Malformed(f"its limits are larger than its data {x.dims}; OpenVINO would access memory out of bounds")
    limits = [_read_in_order(op, x, limit) for limit in limits]
    low, high, start, end = (checked_onto(x, limit) for limit in limits)
    ordered = _is_ordered(low, high, start, end)

    def quantized(x: Value, *limits: Value) -> Value:
        return op.specops.FakeQuantize(x, *limits, levels=levels, ordered=int(ordered))

    # 16-bit floats cannot represent many levels.
    return halves_in_float32(op, quantized, x, low, high, start, end)


def _is_ordered(*limits: Value) -> bool:
    """Return whether the limits and their differences are known and finite, and the input's are in order."""
    known = [limit.constant for limit in limits if limit.constant is not None]
    if len(known) < len(limits):
        return False
    low, high, start, end = known
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((low < high).all() and np.isfinite(high - low).all() and np.isfinite(end - start).all())


def _read_in_order(op: Builder, x: Value, limit: Value) -> Value:
    """Return the elements of a limit that OpenVINO reads if some of its dimensions are larger than the data's, which are 1.

    It advances in the limit only along dimensions of equal size, as if the limit had no others.
    """
    pairs = _paired(x, limit)
    if not any(of_data == 1 < size for size, of_data in pairs) or any(size != d != 1 != size for size, d in pairs):
        return limit
    read = [size if size == of_data else 1 for size, of_data in pairs]
    return op.Reshape(op.Slice(op.Reshape(limit, [-1]), [0], [math.prod(read)]), read)


def _has_more_dimensions(x: Value, limit: Value) -> bool:
    """Return whether a limit has dimensions other than 1 before those of the data."""
    if x.dims is None or limit.dims is None or len(limit.dims) <= len(x.dims):
        return False
    return any(size not in (1, None) for size in limit.dims[: len(limit.dims) - len(x.dims)])


def _has_larger_row(x: Value, limit: Value) -> bool:
    """Return whether a last dimension of a limit is larger than the data's.

    If both limits of a pair have such dimensions, OpenVINO accesses memory out of bounds.
    """
    row = itertools.takewhile(lambda pair: pair[0] > 1, reversed(_paired(x, limit)))
    return any(size > of_data for size, of_data in row)


def _paired(x: Value, limit: Value) -> list[tuple[int, int]]:
    """Return the dimensions of a limit and the data in pairs; empty if one is unknown."""
    if not x.dims or not limit.dims or len(limit.dims) > len(x.dims):
        return []
    pairs = zip(limit.dims, x.dims[-len(limit.dims) :], strict=True)
    known = [(size, of_data) for size, of_data in pairs if size is not None and of_data is not None]
    return known if len(known) == len(limit.dims) else []


_FLOAT8 = {"f8e4m3": (D.FLOAT8E4M3FN, 448.0), "f8e5m2": (D.FLOAT8E5M2, 57344.0)}


@rule(
    "FakeConvert",
    since="opset13",
    departs=[
        Departure(where="subnormal numbers of f8e4m3", cpu="rounds to the nearest", reference="truncates", follows="cpu"),
        Departure(where="f8e5m2 of a NaN", cpu="gives the lowest number", reference="keeps it", follows="reference"),
        Departure(where="f8e4m3 of a NaN", cpu="gives the lowest number", reference="gives the highest", follows="runtime"),
    ],
)
def fake_convert(
    op: Builder, x: Value, scale: Value, shift: Value | None = None, *, destination_type: Literal["f8e4m3", "f8e5m2"]
):
    """FakeConvert-13: through f16, as in OpenVINO. Numbers beyond the 8-bit type's range become its largest.

    16-bit floats are scaled and shifted in their own type.
    """
    to, max_value = _FLOAT8[destination_type]

    def rounded(result: Value) -> Value:
        return result if x.dtype == D.FLOAT else op.Cast(op.Cast(result, to=x.dtype), to=D.FLOAT)

    def wide(value: Value) -> Value:
        return value if value.dtype == D.FLOAT else op.Cast(value, to=D.FLOAT)

    scale, shift = wide(scale), None if shift is None else wide(shift)
    data = rounded(op.Mul(wide(x), scale))
    if shift is not None:
        data = rounded(op.Sub(data, shift))
    half = op.Clip(op.Cast(data, to=D.FLOAT16), np.float16(-max_value), np.float16(max_value))
    data = op.Cast(op.Cast(half, to=to), to=D.FLOAT)
    if shift is not None:
        data = rounded(op.Add(data, shift))
    data = op.Div(data, scale)
    return data if x.dtype == D.FLOAT else op.Cast(data, to=x.dtype)
