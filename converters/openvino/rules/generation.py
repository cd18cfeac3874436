"""Generated tensors: ranges, identity matrices, one-hot codes."""

from __future__ import annotations

import math
from typing import Literal

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import (
    flat_range,
    int64,
    normal_axis,
    one_element,
    scalar,
    vector,
)
from converters.openvino.rules._shapes import match_shapes
from converters.openvino.rules._value_ranges import bounds
from onnx_specops.building import Builder, Value


@rule("OneHot")
def one_hot_1(op: Builder, indices: Value, depth: Value, on_value: Value, off_value: Value, *, axis: int):
    """OneHot-1: an index out of range, including negative ones, gives only ``off_value``."""
    return one_hot(op, indices, depth, on_value, off_value, axis=axis)


@rule("OneHot", since="opset16")
def one_hot(
    op: Builder,
    indices: Value,
    depth: Value,
    on_value: Value,
    off_value: Value,
    *,
    axis: int,
    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
):
    """OneHot-16: with ``normalize``, negative indices count from the end.

    ONNX's OneHot always does that.
    """
    ranks = {"depth": (depth, ""), "on_value": (on_value, ""), "off_value": (off_value, "")}
    indices, depth = int64(op, indices), scalar(op, depth)
    on_value, off_value = one_element(op, on_value), one_element(op, off_value)
    if indices.rank is not None:
        axis = normal_axis(axis, indices.rank + 1)
    match_shapes(**ranks)
    low, high = bounds(indices)
    if low < 0 and negative_indices_mode == "normalize":
        indices = op.Where(op.Less(indices, 0), op.Add(indices, depth), indices)
    written = op.Expand(on_value, op.Shape(indices))
    if low < 0 or depth.constant is None or high >= int(depth.constant):
        # For an index out of range, write the existing value to the first position.
        valid = op.And(op.GreaterOrEqual(indices, 0), op.Less(indices, depth))
        indices, written = op.Where(valid, indices, 0), op.Where(valid, on_value, off_value)
    places = op.Unsqueeze(indices, [axis])
    shape = [op.Shape(places, end=axis), op.Reshape(depth, [1])]
    if axis != -1:
        shape.append(op.Shape(places, start=axis + 1))
    empty = _filled(op, op.Concat(*shape, axis=0), off_value)
    return op.ScatterElements(empty, places, op.Unsqueeze(written, [axis]), axis=axis)


def _filled(op: Builder, shape: Value, value: Value) -> Value:
    """Return a tensor filled with a scalar."""
    if value.constant is None or value.dtype in (ir.DataType.STRING, ir.DataType.BFLOAT16):
        return op.Expand(value, shape)
    return op.ConstantOfShape(shape, value=value.constant.reshape(1))


_WRONG_WAY = Departure(
    where="a step away from `stop`",
    cpu="gives as many elements as with the opposite sign",
    specification="gives no elements",
    follows="specification",
)
_HOW_MANY = Departure(
    where="floats with `(stop - start) / step` slightly above an integer",
    cpu="counts the elements in single precision, and may give one less",
    reference="counts in double precision",
    follows="reference",
)


@rule("Range", departs=[_WRONG_WAY, _HOW_MANY])
def range_1(op: Builder, start: Value, stop: Value, step: Value):
    """Range-1: in the type of the inputs."""
    return _range(op, start, stop, step, start.dtype or ir.DataType.FLOAT)


@rule(
    "Range",
    since="opset4",
    departs=[
        _WRONG_WAY,
        _HOW_MANY,
        Departure(
            where="floats as an integer `output_type`",
            cpu="accumulates the floats, then rounds",
            specification="truncates start, stop and step first",
            follows="specification",
        ),
    ],
)
def range_4(op: Builder, start: Value, stop: Value, step: Value, *, output_type: ElementType):
    """Range-4: for an integer ``output_type``, start, stop and step are truncated first."""
    if output_type in (ElementType.BOOLEAN, ElementType.STRING):
        raise Malformed(f"its output_type {output_type} is not a numeric type")
    return _range(op, start, stop, step, data_type(output_type))


def _range(op: Builder, start: Value, stop: Value, step: Value, to: ir.DataType) -> Value:
    """Emit a range. A step away from ``stop`` gives an empty one. The number of floats is computed in double precision.

    OpenVINO multiplies the step if start, stop and step are constants. Otherwise, it adds the step repeatedly, as ONNX
    Runtime does.
    """
    wide = ir.DataType.INT64 if to.is_integer() else to if to == ir.DataType.DOUBLE else ir.DataType.FLOAT
    bounds = [one_element(op, x if x.dtype == wide else op.Cast(x, to=wide)) for x in (start, stop, step)]
    if to.is_integer() and step.dtype is not None and step.dtype.is_floating_point():
        # A step that is truncated to 0 gives an empty range.
        none = op.Equal(bounds[2], 0)
        bounds = [bounds[0], op.Where(none, bounds[0], bounds[1]), op.Where(none, 1, bounds[2])]
    first, last, by = (bound.constant for bound in bounds)
    if not wide.is_integer() and first is not None and last is not None and by is not None and by:
        count = (last.item() - first.item()) / by.item()
        if abs(count) < 2**31:
            numbers = op.Cast(op.Range(0, max(0, math.ceil(count)), 1), to=wide)
            result = op.Add(op.Mul(numbers, bounds[2]), bounds[0])
            return result if wide == to else op.Cast(result, to=to)
    result = op.Range(*bounds)
    return result if wide == to else op.Cast(result, to=to)


@rule("Eye", since="opset9")
def eye(
    op: Builder,
    num_rows: Value,
    num_columns: Value,
    diagonal_index: Value,
    batch_shape: Value | None = None,
    *,
    output_type: ElementType,
):
    """Eye-9."""
    rows, columns = op.Unsqueeze(flat_range(op, num_rows), [1]), flat_range(op, num_columns)
    matrix = op.Cast(op.Equal(op.Sub(columns, rows), scalar(op, diagonal_index)), to=data_type(output_type))
    if batch_shape is None:
        return matrix
    return op.Expand(matrix, op.Concat(vector(op, batch_shape), op.const([1, 1]), axis=0))
