"""Copies of nodes, constants and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value, new_value
from onnx_specops.graphs import attributes_of
from onnx_specops.naming import Names

Copy = Callable[[ir.Value], ir.Value]


def copied(
    nodes: Sequence[ir.Node], made_copies: dict[ir.Value, ir.Value], constant: Callable[[ir.Value], ir.Value]
) -> list[ir.Node]:
    """Copy nodes.

    Args:
        nodes: nodes without nested graphs, in topological order.
        made_copies: the copies of values. It contains those of outer values, and receives those of computed values.
        constant: copies a constant.
    """
    copies = []
    for node in nodes:
        for value in node.inputs:
            if value is not None and value not in made_copies:
                made_copies[value] = constant(value)
        copy = copied_node(node, made_copies.__getitem__, _computed_copy)
        copy.name = node.name
        copies.append(copy)
        made_copies |= dict(zip(node.outputs, copy.outputs, strict=True))
    return copies


def emitted(op: Builder, graph: ir.Graph, inputs: Sequence[Any] = ()) -> list[Any]:
    """Emit the nodes of a nested graph, whose nodes have no nested graphs, with other inputs; return its results."""
    values: dict[ir.Value | None, Any] = {value: op.const(value.const_value) for value in graph.initializers.values()}
    values |= dict(zip(graph.inputs, inputs, strict=True))
    for node in graph:
        given = [values.get(value, value) for value in node.inputs]
        found = op.node(node.op_type, *given, domain=node.domain, outputs=len(node.outputs), **attributes_of(node))
        values |= zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True)
    return [values.get(value, value) for value in graph.outputs]


def copied_node(node: ir.Node, copy: Copy, computed: Copy | None = None) -> ir.Node:
    """Copy a node and its nested graphs; name it after its first output.

    Args:
        node: the node.
        copy: returns the copy of a value, the same one for each call.
        computed: returns the copies of the node's outputs, if they are others.
    """
    inputs = [None if value is None else copy(value) for value in node.inputs]
    outputs = [(computed or copy)(value) for value in node.outputs]
    attributes = [
        ir.AttrGraph(attribute.name, _copied_graph(attribute.as_graph(), copy))
        if attribute.type == ir.AttributeType.GRAPH
        else attribute
        for attribute in node.attributes.values()
    ]
    return ir.Node(
        node.domain, node.op_type, inputs, attributes, outputs=outputs, name=outputs[0].name, version=node.version
    )


def _copied_graph(graph: ir.Graph, copy: Copy) -> ir.Graph:
    inputs = [copy(value) for value in graph.inputs]
    nodes = [copied_node(node, copy) for node in graph]
    return ir.Graph(inputs, [copy(value) for value in graph.outputs], nodes=nodes, name=graph.name)


def _computed_copy(value: ir.Value) -> ir.Value:
    copy = new_value(value.dtype, None, value.name)
    copy.shape = value.shape
    return copy


def constant_copy(value: ir.Value) -> ir.Value:
    """Copy a constant with the same tensor."""
    tensor = value.const_value
    assert tensor is not None
    copy = new_value(tensor.dtype, tensor.shape.numpy(), value.name)
    copy.const_value = tensor
    return copy


def loaded_copy(value: ir.Value) -> ir.Value:
    """Copy a constant and its data, because the file may be closed before the copy is used."""
    copy = constant_copy(value)
    tensor = copy.const_value
    assert tensor is not None
    copy.const_value = ir.Tensor(np.array(tensor.numpy()), dtype=tensor.dtype, name=value.name)
    return copy


def copy_outputs(
    graph: ir.Graph, is_copied: Callable[[ir.Value], bool], suffix: str, operator: str = "Identity", count: int = 1
) -> bool:
    """Copy the outputs of a model's graph for which a function returns true; return whether there are any."""
    found = [index for index, value in enumerate(graph.outputs) if is_copied(value)]
    names = Names.of(graph) if found else Names()
    for index in found:
        copy_output(graph, index, names, suffix, operator, count)
    return bool(found)


def copy_output(graph: ir.Graph, index: int, names: Names, suffix: str, operator: str = "Identity", count: int = 1) -> None:
    """Return a copy of an output of a graph. The copy has the output's name, and the output a new one.

    Args:
        graph: the graph.
        index: the index of the output.
        names: the names of the graph.
        suffix: the suffix of the output's new name.
        operator: the operator that copies.
        count: the number of its inputs, all of which are the output.
    """
    value = graph.outputs[index]
    producer = value.producer()
    assert producer is not None
    name, value.name = value.name, names.unique(f"{value.name}_{suffix}")
    copy = Value(name=name, type=value.type, shape=value.shape)
    node = ir.Node("", operator, [value] * count, outputs=[copy], name=names.unique(f"{name}_copied"))
    graph.insert_after(producer, node)
    graph.outputs[index] = copy
