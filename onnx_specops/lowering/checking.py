"""Whether every node of a graph is one of its opset: operators, attributes, element types."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from onnx_specops.building import OPSET
from onnx_specops.graphs import all_nodes
from onnx_specops.kernel_types import type_name
from onnx_specops.lowering.refusing import Refusal


def settle_attributes(node: ir.Node, opset: int) -> None:
    """Leave out the attributes that the opset's operator lacks and that say what it does without them."""
    schema = _schema(node.op_type, opset)
    if schema is None:
        return
    for name in [name for name in node.attributes if name not in schema.attributes]:
        newer = _schema(node.op_type, OPSET)
        default = None if newer is None or name not in newer.attributes else newer.attributes[name].default_value
        if default is not None and default.name and _is(node.attributes[name], default):
            del node.attributes[name]


def _is(attribute: ir.Attr, default: onnx.AttributeProto) -> bool:
    value = onnx.helper.get_attribute_value(default)
    return attribute.value == (value.decode() if isinstance(value, bytes) else value)


def illegal(graph: ir.Graph, opset: int) -> Iterator[Refusal]:
    """The nodes that are none of the opset's."""
    for node in all_nodes(graph):
        if node.domain == "" and (problem := _problem(node, opset)):
            later = (version for version in range(opset + 1, onnx.defs.onnx_opset_version() + 1) if not _problem(node, version))
            yield Refusal(node.name or "", problem, next(later, OPSET))


def _problem(node: ir.Node, opset: int) -> str:
    schema = _schema(node.op_type, opset)
    if schema is None:
        return f"the operator {node.op_type}"
    for name in node.attributes:
        if name not in schema.attributes:
            return f"the attribute {name} of {node.op_type}"
    legal = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        variadic = bool(formals) and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
        for index, value in enumerate(values):
            if value is None or (index >= len(formals) and not value.name):
                continue
            if index >= len(formals) and not variadic:
                return f"{len(values)} inputs or outputs of {node.op_type}"
            formal = formals[min(index, len(formals) - 1)].type_str
            if value.dtype is None or not isinstance(value.type, ir.TensorType):
                continue
            if type_name(value.dtype) not in legal.get(formal, frozenset([formal])):
                return f"{node.op_type} of the type {value.dtype.name}"
    return ""


def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        schema = onnx.defs.get_schema(op_type, opset)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema
