"""FakeQuantize: numbers rounded to levels between two limits."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from onnx_specops.domain import Limits, operator


@operator(
    inputs={"data": "T", "input_low": "T", "input_high": "T", "output_low": "T", "output_high": "T"},
    outputs={"output": "T"},
    types={"T": ("float", "double")},
)
def FakeQuantize(
    data,
    input_low,
    input_high,
    output_low,
    output_high,
    *,
    levels: Annotated[int, Limits(2)],
    ordered: Annotated[int, Limits(0, 1)] = 0,
):
    """Rounds each element to the nearest of ``levels`` equidistant values between ``input_low`` and ``input_high``, and
    maps it to the corresponding value between ``output_low`` and ``output_high``.

    ``round((x - input_low) / (input_high - input_low) * (levels - 1)) / (levels - 1) * (output_high - output_low) +
    output_low``, evaluated in this order, with ties rounded to even. The result is ``output_low`` where ``x <=
    min(input_low, input_high)`` and ``output_high`` where ``x > max(input_low, input_high)``. NaN stays NaN.

    Inputs:
        data: any shape.
        input_low, input_high, output_low, output_high: shapes that broadcast to the shape of ``data``.

    Attributes:
        levels: the number of levels.
        ordered: 1 declares that each ``input_low`` is less than its ``input_high``, and that all limits and their
            differences are finite, which shortens the body.

    Output: the shape of ``data``.

    Source: OpenVINO specification, FakeQuantize-1.
    """
    for limit in (input_low, input_high, output_low, output_high):
        fits = zip(reversed(np.shape(limit)), reversed(data.shape), strict=False)
        if np.ndim(limit) > data.ndim or any(size not in (1, of_data) for size, of_data in fits):
            raise ValueError("FakeQuantize: a limit does not broadcast to the data")
    steps = data.dtype.type(levels - 1)
    low, high = np.minimum(input_low, input_high), np.maximum(input_low, input_high)
    with np.errstate(all="ignore"):
        level = np.rint((np.clip(data, low, high) - input_low) / (input_high - input_low) * steps)
        result = level / steps * (output_high - output_low) + output_low
    result = np.where(data > high, output_high, result)
    return np.where(data <= low, output_low, result)


@FakeQuantize.infer_shapes
def _(node):
    return [node.shape(0)]


@FakeQuantize.body
def _(op, data, input_low, input_high, output_low, output_high, *, levels, ordered):
    steps = float(levels - 1)
    inside = op.Max(op.Min(data, input_high), input_low) if ordered else data
    level = op.Round(op.Mul(op.Div(op.Sub(inside, input_low), op.Sub(input_high, input_low)), steps))
    result = op.Add(op.Mul(op.Div(level, steps), op.Sub(output_high, output_low)), output_low)
    if ordered:
        return result
    # The limits may be equal or reversed. Numbers outside them get the limit that the specification names.
    result = op.Where(op.Greater(data, op.Max(input_low, input_high)), output_high, result)
    return op.Where(op.LessOrEqual(data, op.Min(input_low, input_high)), output_low, result)
