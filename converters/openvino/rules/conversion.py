"""Conversions between element types."""

from __future__ import annotations

from converters.openvino.element_types import ElementType
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import rule
from onnx_specops.building import Builder, Value


@rule("Convert")
def convert(op: Builder, x: Value, *, destination_type: ElementType):
    """Convert-1."""
    to = data_type(destination_type)
    return x if x.dtype == to else op.Cast(x, to=to)
