"""Variables: ReadValue and Assign.

A variable becomes an input and an output of the model, behind its own. The input has the variable's initial value as its
default (an initializer that may be overridden), so that a run which does not feed it begins anew. Where the initial value is
computed, a second, boolean input says whether the variable has been set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.openvino.element_types import ElementType
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import Context, Unsupported, rule
from converters.openvino.shapes import known, parse_partial_shape
from onnx_specops.building import Builder, Value, constant_value, new_value


@dataclass
class Variable:
    """A variable of the model.

    Attributes:
        name: its id.
        value: the input that holds it.
        initial: the input's default.
        is_set: the input that says whether it holds anything, where the initial value is computed.
        assigned: its value after the run; ``None`` before an Assign is met.
    """

    name: str
    value: Value
    initial: ir.TensorProtocol
    is_set: Value | None = None
    assigned: Value | None = None


@rule("ReadValue", since="opset3")
def read_value_3(op: Builder, initial: Value, *, variable_id: str, ctx: Context):
    """ReadValue-3: the variable takes element type and shape from its initial value."""
    return _read(op, initial, variable_id, initial.dtype, ctx.layer.outputs[0].dims, ctx)


@rule("ReadValue", since="opset6")
def read_value_6(
    op: Builder,
    initial: Value | None = None,
    *,
    variable_id: str,
    variable_type: ElementType,
    variable_shape: str,
    ctx: Context,
):
    """ReadValue-6: without an initial value the variable begins with zeros (unknown dimensions with size 0)."""
    dtype = data_type(variable_type)
    try:
        intervals = parse_partial_shape(variable_shape)
    except ValueError as error:
        raise Unsupported(f"its attribute variable_shape={variable_shape!r} is no shape: {error}") from None
    dims = None if intervals is None else [known(interval) for interval in intervals]
    if initial is None:
        initial = constant_value(_zeros(dims, dtype), dtype)
    return _read(op, initial, variable_id, dtype, dims, ctx)


@rule("Assign", since="opset3")
def assign(op: Builder, value: Value, *, variable_id: str, ctx: Context):
    """Assign-3 and Assign-6: the variable's value after the run; the layer hands its input on."""
    variable = ctx.variables.get(variable_id)
    if variable is None:
        raise Unsupported(f'no ReadValue before it reads the variable "{variable_id}"')
    if variable.assigned is not None:
        raise Unsupported(f'the variable "{variable_id}" is assigned twice')
    variable.assigned = value
    return value if ctx.layer.outputs else []


def _read(
    op: Builder,
    initial: Value,
    variable_id: str,
    dtype: ir.DataType | None,
    dims: Sequence[int | None] | None,
    ctx: Context,
) -> Value:
    if not op.is_outermost:
        raise Unsupported("variables inside a loop's or a branch's body have no counterpart in ONNX")
    if variable_id in ctx.variables:
        raise Unsupported(f'the variable "{variable_id}" is read twice')
    if dtype is None:
        raise Unsupported("the element type of its initial value is unknown")
    value = new_value(dtype, dims, variable_id)
    # The values are constants only once the graph is finished: nothing may fold them away before.
    if initial.const_value is not None:
        ctx.variables[variable_id] = Variable(variable_id, value, initial.const_value)
        return op.Identity(value)
    is_set = new_value(ir.DataType.BOOL, [], f"{variable_id}.is_set")
    ctx.variables[variable_id] = Variable(variable_id, value, ir.Tensor(_zeros(dims, dtype), dtype=dtype), is_set)
    return op.if_(is_set, lambda op: value, lambda op: initial)


def _zeros(dims: Sequence[int | None] | None, dtype: ir.DataType) -> np.ndarray:
    return np.zeros([dim or 0 for dim in dims or ()], dtype.numpy())
