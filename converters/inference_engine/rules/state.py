"""Memory: state between runs."""

from __future__ import annotations

from converters.inference_engine.rule import layer
from converters.openvino.rule import Context
from converters.openvino.rules import state as opset
from onnx_specops.building import Builder, Value


@layer("ReadValue", integers=True)
def read_value(op: Builder, *, variable_id: str, ctx: Context):
    """Convert a Memory layer that reads: the value that the previous run wrote, or zeros in the first run."""
    return opset.read_value_6(op, None, attributes=opset.VariableAttributes(variable_id=variable_id), ctx=ctx)


@layer("Assign", integers=True)
def assign(op: Builder, value: Value, *, variable_id: str, ctx: Context):
    """Convert a Memory layer that writes."""
    return opset.assign(op, value, variable_id=variable_id, ctx=ctx)
