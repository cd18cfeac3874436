"""Change the element type of all values of a type, for opsets that lack it or to compute in another precision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.graphs import all_nodes, nested
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value

Types = Mapping[ir.DataType, ir.DataType]
Convert = Callable[[ir.TensorProtocol, ir.DataType], ir.TensorProtocol]

# The attributes whose value is an element type.
_TYPE_ATTRIBUTES = {"Cast": "to", "RandomNormalLike": "dtype", "RandomUniformLike": "dtype", "RandomNormal": "dtype",
                    "RandomUniform": "dtype", "Bernoulli": "dtype", "EyeLike": "dtype", "Multinomial": "dtype"}  # fmt: skip


def converted(tensor: ir.TensorProtocol, dtype: ir.DataType) -> ir.TensorProtocol:
    """Return the tensor in another type, converted lazily."""

    def compute() -> ir.TensorProtocol:
        return ir.Tensor(tensor.numpy().astype(dtype.numpy(), order="C"), dtype=dtype)  # 0-d arrays stay 0-d

    return ir.LazyTensor(compute, dtype=dtype, shape=ir.Shape(tensor.shape.numpy()), name=tensor.name)


def retype(model: ir.Model, types: Types, *, kept: Collection[ir.Value] = (), convert: Convert = converted) -> list[ir.Node]:
    """Give every value of a type in ``types`` its new type; return the Casts to new types that were removed.

    The graph's inputs and outputs, and the values in ``kept``, keep their types. Casts are inserted at the boundary.

    Args:
        model: changed in place.
        types: maps each replaced type to its new type.
        kept: values that keep their type.
        convert: converts a constant to another type.
    """
    graph, names = model.graph, Names.of(model.graph)
    stay = set(kept)
    for value in graph.inputs:
        if value.dtype is not None and value.dtype in types:
            stay.add(value)
            _convert_input(graph, value, types[value.dtype], names)
    for index, value in enumerate(list(graph.outputs)):
        if value.dtype in types and value not in stay:
            stay.add(_before_output(graph, index, value, names))
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if value not in stay and tensor is not None and tensor.dtype in types:
            value.const_value = convert(tensor, types[tensor.dtype])
            value.type = ir.TensorType(value.const_value.dtype)
    gone = []
    for node in list(all_nodes(graph)):
        _retype_attributes(node, types, stay, convert)
        for inner in nested(node):
            for value in inner.inputs:
                _set(value, types, stay)
        for value in node.outputs:
            _set(value, types, stay)
        if (node.domain, node.op_type) == ("", "Cast"):
            source, result = node.inputs[0], node.outputs[0]
            assert source is not None and result.dtype is not None and node.graph is not None
            if source.dtype == result.dtype:
                gone.append(node)
                replace_value(result, source, equal=False)
                if not result.uses() and not result.is_graph_output():
                    node.graph.remove(node, safe=True)
    return gone


def _set(value: ir.Value, types: Types, stay: Collection[ir.Value]) -> None:
    if value.dtype is not None and value.dtype in types and value not in stay and isinstance(value.type, ir.TensorType):
        value.type = ir.TensorType(types[value.dtype])
        if value.const_value is not None:
            value.const_value = converted(value.const_value, value.type.dtype)


def _retype_attributes(node: ir.Node, types: Types, stay: Collection[ir.Value], convert: Convert) -> None:
    if node.outputs and node.outputs[0] in stay:
        return
    name = _TYPE_ATTRIBUTES.get(node.op_type)
    if name is not None and name in node.attributes and (dtype := ir.DataType(node.attributes.get_int(name))) in types:
        node.attributes[name] = ir.AttrInt64(name, int(types[dtype]))
    for attribute in list(node.attributes.values()):
        if attribute.type == ir.AttributeType.TENSOR and (tensor := attribute.as_tensor()).dtype in types:
            node.attributes[attribute.name] = ir.AttrTensor(attribute.name, convert(tensor, types[tensor.dtype]))


def _convert_input(graph: ir.Graph, value: ir.Value, dtype: ir.DataType, names: Names) -> None:
    uses = list(value.uses())
    if not uses:
        return
    name = names.unique(f"{value.name}_as_{dtype.name.lower()}")
    inner = Value(name=name, type=ir.TensorType(dtype), shape=value.shape)
    cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], outputs=[inner], name=inner.name)
    for use in uses:
        use.node.replace_input_with(use.idx, inner)
    first = next(iter(graph), None)
    assert first is not None
    graph.insert_before(first, cast)


def _before_output(graph: ir.Graph, index: int, value: ir.Value, names: Names) -> ir.Value:
    assert value.dtype is not None
    name, value.name = value.name, names.unique(f"{value.name}_inner")
    outer = Value(name=name, type=value.type, shape=value.shape)
    producer = value.producer()
    cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(value.dtype))], outputs=[outer], name=name)
    if producer is not None and producer.graph is graph:
        graph.insert_after(producer, cast)
    else:
        graph.append(cast)
    graph.outputs[index] = outer
    return outer
