"""Memory: state between runs."""

from __future__ import annotations

from converters.errors import Malformed
from converters.inference_engine.rule import layer
from converters.openvino.reader.shapes import PartialShape, same_dims
from converters.openvino.rule import Context
from converters.openvino.rules import state as opset
from onnx_specops.building import Builder, Value


@layer("ReadValue", integers=True)
def read_value(op: Builder, *, variable_id: str, variable_shape: PartialShape, ctx: Context):
    """Convert a Memory layer that reads: the value that the previous run wrote, or zeros in the first run."""
    attributes = opset.VariableAttributes(variable_id=variable_id, variable_shape=variable_shape)
    return opset.read_value_6(op, None, attributes=attributes, ctx=ctx)


@layer("Assign", integers=True)
def assign(op: Builder, value: Value, *, variable_id: str, ctx: Context):
    """Convert a Memory layer that writes."""
    variable = ctx.variables.get(variable_id)
    dims = None if variable is None else variable.value.dims
    if dims is not None and value.dims is not None and not same_dims(dims, value.dims):
        raise Malformed(f"it writes {list(value.dims)} to a memory of {list(dims)}", "check that the file is intact")
    return opset.assign(op, value, variable_id=variable_id, ctx=ctx)
