"""Check whether every node of a graph is valid in its opset: operators, attributes, element types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from onnx_specops.building import OPSET
from onnx_specops.graphs import all_nodes, origin
from onnx_specops.kernel_types import type_name
from onnx_specops.lowering.unsupported import UnsupportedNode


def settle_attributes(node: ir.Node, opset: int) -> None:
    """Remove attributes that the opset's operator lacks if their value is its fixed behavior."""
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


def illegal(graph: ir.Graph, opset: int) -> Iterator[UnsupportedNode]:
    """Iterate over the nodes that are invalid in the opset."""
    for node in all_nodes(graph):
        if node.domain == "" and (problem := form_problem(node, opset) or type_problem(node, opset)):
            yield UnsupportedNode(node.name or "", problem, least_opset(node, opset), origin(node))


def least_opset(node: ir.Node, opset: int) -> int:
    """Return the lowest opset above ``opset`` in which the node is valid."""
    later = range(opset + 1, onnx.defs.onnx_opset_version() + 1)
    return next((v for v in later if not form_problem(node, v) and not type_problem(node, v)), OPSET)


def form_problem(node: ir.Node, opset: int) -> str:
    """Return the part of a node, except its element types, that the opset lacks; ``""`` if it lacks nothing."""
    schema = _schema(node.op_type, opset)
    if schema is None:
        return f"the operator {node.op_type}"
    for name in node.attributes:
        if name not in schema.attributes:
            return f"the attribute {name} of {node.op_type}"
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        used = [value for value in values if value is not None]
        if len(used) and len(values) > len(formals) and not _is_variadic(formals):
            return f"{len(values)} inputs or outputs of {node.op_type}"
    return ""


def type_problem(node: ir.Node, opset: int) -> str:
    """Return the element type of a node that the opset's operator does not accept; ``""`` if all are accepted."""
    schema = _schema(node.op_type, opset)
    if schema is None:
        return ""
    legal = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for index, value in enumerate(values):
            if value is None or value.dtype is None or not isinstance(value.type, ir.TensorType) or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)].type_str
            if type_name(value.dtype) not in legal.get(formal, frozenset([formal])):
                return f"{node.op_type} of the type {value.dtype.name}"
    return ""


def _is_variadic(formals: Sequence[onnx.defs.OpSchema.FormalParameter]) -> bool:
    return bool(formals) and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic


def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        schema = onnx.defs.get_schema(op_type, opset)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema
