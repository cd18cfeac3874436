"""Variables: ReadValue and Assign.

A variable becomes an input and an output of the model (`converters.variables`). If its initial value is computed, a second,
boolean input states whether the variable has been set.

A variable of a body is passed into the body, between iterations, and out of it again, always with that boolean, because a
body may not run at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Graph, Layer
from converters.openvino.reader.shapes import PartialShape, same_dims
from converters.openvino.rule import AttributeGroup, Context, Departure, find_rule, rule
from converters.variables import Variable
from onnx_specops.building import Builder, DimsLike, Value, new_value


@dataclass(frozen=True, kw_only=True)
class VariableAttributes(AttributeGroup):
    """The attributes of a ReadValue. By default, element type and shape are those of its output."""

    variable_id: str
    variable_type: ElementType | None = None
    variable_shape: PartialShape | None = None


@rule("ReadValue", since="opset3")
def read_value_3(op: Builder, initial: Value, *, variable_id: str, ctx: Context):
    """ReadValue-3: the initial value determines element type and shape of the variable."""
    return _read(op, initial, VariableAttributes(variable_id=variable_id), ctx)


@rule(
    "ReadValue",
    since="opset6",
    departs=[
        Departure(where="a variable of i64", cpu="rejects it", specification="allows it", follows="specification"),
        Departure(
            where="a cache whose rows a Gather selects, before a causal ScaledDotProductAttention",
            cpu="aligns the mask with the last key: the last token attends to all",
            specification="aligns the mask with the first key: the first token attends to the first, as without a cache",
            follows="specification",
        ),
    ],
)
def read_value_6(
    op: Builder,
    initial: Value | None = None,
    *,
    attributes: VariableAttributes,
    ctx: Context,
):
    """ReadValue-6: without an initial value, the variable starts with zeros (unknown dimensions are 0)."""
    return _read(op, initial, attributes, ctx)


@rule("Assign", since="opset3")
def assign(op: Builder, value: Value, *, variable_id: str, ctx: Context):
    """Assign-3 and Assign-6: set the variable's value after the run. The layer returns its input."""
    variable = ctx.variables.get(variable_id)
    if variable is None:
        raise Malformed(f'no ReadValue before it reads the variable "{variable_id}"')
    if variable.graph is not op.graph:
        raise Malformed(f'the variable "{variable_id}" is read outside the body that assigns it')
    if variable.assigned is not None:
        raise Malformed(f'the variable "{variable_id}" is assigned twice')
    variable.assigned = value
    return value if ctx.layer.outputs else []


def declare(op: Builder, bodies: Sequence[Graph], ctx: Context) -> list[Variable]:
    """Return the variables that the bodies of a layer and their nested bodies read, as the graph of the layer sees them."""
    layers = {attributes.variable_id: (attributes, layer) for body in bodies for attributes, layer in _reading(body)}
    declared = []
    for name, (attributes, layer) in layers.items():
        if name not in ctx.variables:
            _declare(op, attributes, layer, None, ctx)
        variable = ctx.variables[name]
        if variable.is_read or variable.graph is not op.graph:
            raise Malformed(f'the variable "{name}" is read twice')
        variable.is_read = True
        declared.append(variable)
    return declared


def current_values(op: Builder, variables: Sequence[Variable]) -> list[Value]:
    """Return the value of each variable and whether it is set."""
    pairs = ((v.value, op.const(np.bool_(True)) if v.is_set is None else v.is_set) for v in variables)
    return [value for pair in pairs for value in pair]


def current_dims(variables: Sequence[Variable]) -> list[DimsLike]:
    """Return the dimensions of `current_values`, as far as they do not change between iterations."""
    return [dims for variable in variables for dims in (variable.value.dims, [])]


def enter_body(op: Builder, variables: Sequence[Variable], values: Sequence[Value], ctx: Context) -> list[Variable]:
    """Return the variables inside a body with the given values, until `leave_body`."""
    inner = [
        replace(variable, value=value, is_set=is_set, graph=op.graph, is_read=False)
        for variable, value, is_set in zip(variables, values[::2], values[1::2], strict=True)
    ]
    ctx.variables.update({variable.name: variable for variable in inner})
    return inner


def leave_body(op: Builder, inner: Sequence[Variable], outer: Sequence[Variable], ctx: Context) -> list[Value]:
    """Return the values of the variables at a body's end, and restore those of the outer graph."""
    ctx.variables.update({variable.name: variable for variable in outer})
    results = []
    for variable in inner:
        if variable.assigned is None:
            results += current_values(op, [variable])
        else:
            is_set = variable.assigned_is_set
            results += [variable.assigned, op.const(np.bool_(True)) if is_set is None else is_set]
    return results


def assign_all(variables: Sequence[Variable], values: Sequence[Value]) -> None:
    """Assign the variables of a layer with bodies from the ``values`` of `leave_body`."""
    for variable, value, is_set in zip(variables, values[::2], values[1::2], strict=True):
        variable.assigned, variable.assigned_is_set = value, is_set


def _reading(graph: Graph) -> Iterator[tuple[VariableAttributes, Layer]]:
    for layer in graph.layers:
        if layer.type == "ReadValue":
            keywords = find_rule(layer.type, layer.version).keywords(layer.attributes)
            yield keywords.get("attributes") or VariableAttributes(**keywords), layer
        for body in layer.bodies.values():
            yield from _reading(body)


def _read(op: Builder, initial: Value | None, attributes: VariableAttributes, ctx: Context) -> Value:
    variable_id = attributes.variable_id
    if variable_id not in ctx.variables:
        _declare(op, attributes, ctx.layer, initial, ctx)
    variable = ctx.variables[variable_id]
    if variable.is_read or variable.graph is not op.graph:
        raise Malformed(f'the variable "{variable_id}" is read twice')
    if initial is not None and initial.dtype != variable.value.dtype:
        raise Malformed(f'its initial value is {initial.dtype}, but the variable "{variable_id}" is {variable.value.dtype}')
    dims = variable.value.dims
    if initial is not None and initial.dims is not None and dims is not None and not same_dims(initial.dims, dims):
        raise Malformed(f'its initial value is {initial.dims}, but the variable "{variable_id}" is {dims}')
    variable.is_read = True
    if variable.is_set is None or initial is None:
        return op.Identity(variable.value)
    return op.if_(variable.is_set, lambda op: variable.value, lambda op: initial)


def _declare(op: Builder, attributes: VariableAttributes, layer: Layer, initial: Value | None, ctx: Context) -> None:
    """Declare a variable of the model's main graph from the ReadValue that reads it."""
    name, shape, port = attributes.variable_id, attributes.variable_shape, layer.outputs[0]
    if not op.is_outermost:
        raise Malformed(f'the variable "{name}" is undefined outside its body')
    stated = attributes.variable_type
    # Models of openvino_tokenizers state "dynamic". The port has the type of the initial value.
    dtype = data_type(port.element_type if stated is None or stated == ElementType.DYNAMIC else stated)
    dims = port.dims if shape is None or shape.dims is None else shape.dims
    value = new_value(dtype, dims, name)
    zeros = ir.Tensor(_zeros(dims, dtype), dtype=dtype)
    # The values become constants when the graph is finished. They must not be folded before.
    variable = Variable(name, value, zeros, op.graph)
    if initial is not None and initial.const_value is not None:
        variable.initial = initial.const_value
    elif layer.inputs:
        variable.is_set = new_value(ir.DataType.BOOL, [], f"{name}.is_set")
    ctx.variables[name] = variable


def _zeros(dims: Sequence[int | None] | None, dtype: ir.DataType) -> np.ndarray:
    return np.zeros([dim or 0 for dim in dims or ()], dtype.numpy())
