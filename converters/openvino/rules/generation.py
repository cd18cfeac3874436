"""Tensors out of numbers: ranges, unit matrices, one-hot codes."""

from __future__ import annotations

from typing import Literal

import onnx_ir as ir

from converters.openvino.element_types import ElementType
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import rule
from converters.openvino.rules._indices import (
    flat_range,
    int64,
    normal_axis,
    one_element,
    rank_of,
    scalar,
    vector,
)
from converters.openvino.value_ranges import bounds
from onnx_specops.building import Builder, Value

# What ONNX Runtime's OneHot computes without rounding.
_ONE_HOT = {ir.DataType.FLOAT, ir.DataType.INT64}


@rule("OneHot")
def one_hot_1(op: Builder, indices: Value, depth: Value, on_value: Value, off_value: Value, *, axis: int):
    """OneHot-1: an index out of range, a negative one too, gives nothing but ``off_value``."""
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
    """OneHot-16: ``normalize`` lets negative indices count from the end, as ONNX's OneHot does."""
    indices, depth = int64(op, indices), scalar(op, depth)
    on_value, off_value = one_element(op, on_value), one_element(op, off_value)
    if indices.rank is not None:
        axis = normal_axis(axis, indices.rank + 1)
    negative = bounds(indices)[0] < 0
    if negative and negative_indices_mode == "normalize":
        indices = op.Where(op.Less(indices, 0), op.Add(indices, depth), indices)
    if on_value.dtype in _ONE_HOT and indices.rank:
        if negative:
            indices = op.Where(op.Less(indices, 0), depth, indices)
        values = op.Concat(op.Unsqueeze(off_value, [0]), op.Unsqueeze(on_value, [0]), axis=0)
        return op.OneHot(indices, depth, values, axis=axis)
    classes = flat_range(op, depth)
    after = op.const([-1 - axis]) if axis < 0 else op.Sub(rank_of(op, indices), axis)
    shape = op.Concat([-1], op.Expand(op.const([1]), after), axis=0)
    return op.Where(op.Equal(op.Unsqueeze(indices, [axis]), op.Reshape(classes, shape)), on_value, off_value)


@rule("Range")
def range_1(op: Builder, start: Value, stop: Value, step: Value):
    """Range-1: in the inputs' own type."""
    return _range(op, start, stop, step, start.dtype or ir.DataType.FLOAT)


@rule("Range", since="opset4")
def range_4(op: Builder, start: Value, stop: Value, step: Value, *, output_type: ElementType):
    """Range-4: start, stop and step are truncated to an integer ``output_type`` first, as the specification and the
    reference have it (the CPU plugin rounds afterwards)."""
    return _range(op, start, stop, step, data_type(output_type))


def _range(op: Builder, start: Value, stop: Value, step: Value, to: ir.DataType) -> Value:
    """A step away from ``stop`` gives nothing, as the specification has it (the CPU plugin counts as if it led there).

    How many floats there are is reckoned in double precision like in the reference (the CPU plugin: in single).
    """
    wide = ir.DataType.INT64 if to.is_integer() else to if to == ir.DataType.DOUBLE else ir.DataType.FLOAT
    bounds = [one_element(op, x if x.dtype == wide else op.Cast(x, to=wide)) for x in (start, stop, step)]
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
