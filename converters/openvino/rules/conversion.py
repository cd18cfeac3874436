"""Conversions between element types."""

from __future__ import annotations

from converters.openvino.element_types import ElementType
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import rule
from converters.openvino.rules._elementwise import FLOATS, INTEGERS, D, to_integer
from onnx_specops.building import Builder, Value

_FLOAT8 = {D.FLOAT8E4M3FN, D.FLOAT8E5M2}


@rule("Convert")
def convert(op: Builder, x: Value, *, destination_type: ElementType):
    """Convert-1: floats become integers by truncation, integers wrap, whatever is not 0 is true.

    Floats that a small integer type cannot hold wrap as well, by way of a wider one.
    """
    to = data_type(destination_type)
    if x.dtype == to:
        return x
    if x.dtype in FLOATS and to in INTEGERS:
        return to_integer(op, x, to)
    if to in _FLOAT8:
        return op.Cast(x, to=to, saturate=0)
    return op.Cast(x, to=to)
