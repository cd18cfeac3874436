"""Dispatchers: one body for all bodies of an operator, for runtimes that ignore ``overload``.

ONNX Runtime supports ``overload`` from 1.27 on. Earlier releases, and ONNX's reference evaluator, use one function for all
nodes of an operator: the last one in the model. If a model has several bodies of an operator, that last function is a
*dispatcher*. It contains all bodies and selects one by an attribute of the nodes. Other runtimes never use it.

Such a runtime infers types in every branch of the dispatcher with the inputs of the current node. Each branch therefore
casts to the element types of its body, and hides the inputs' shapes until run time. Every node gets all branches, so a model
with very many nodes gets a dispatcher that only names the requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.building import OPSET_IMPORTS, Builder, Value, new_value
from onnx_specops.domain import DOMAIN, INTERNAL, Declaration
from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.naming import Names

OVERLOAD = "any"
"""The overload of the dispatcher."""

BODY = f"{INTERNAL}body"
"""The attribute of the nodes that selects a body."""

_TYPE = f"{INTERNAL}type_{{}}"
_MANY = 1 << 20
"""A number larger than any rank."""
_MOST_NODES = 15_000
"""The limit for the number of nodes that an operator's dispatchers may add: about 10 seconds of loading in ONNX Runtime
1.24.
"""
_NEEDS = f"{DOMAIN}.needs"
_UNKNOWN_OPERATOR = "OnnxRuntime_1_27_or_the_plugin_or_opset_20"


@dataclass
class Variant:
    """A body of an operator, and the nodes that use it."""

    function: ir.Function
    nodes: list[ir.Node] = field(default_factory=list)

    def input_type(self, index: int) -> ir.DataType | None:
        """Return the element type of an input, or ``None`` if the nodes omit it."""
        given = self.nodes[0].inputs
        value = given[index] if index < len(given) else None
        return None if value is None else value.dtype

    @property
    def output_types(self) -> list[ir.DataType | None]:
        """The element types of the outputs."""
        return [value.dtype for value in self.function.outputs]


def dispatcher(
    operator: Declaration, variants: Sequence[Variant], attributes: Sequence[ir.Attr], names: Names, main: ir.Graph
) -> ir.Function:
    """Return the function that selects a body by an attribute of the nodes; add the attribute to the nodes.

    Args:
        operator: the operator.
        variants: its bodies, at least two.
        attributes: the attribute declarations of the operator's functions.
        names: the names of the model that has the nodes.
        main: the model's graph.
    """
    graph = ir.Graph([new_value(None, None, name) for name in operator.inputs], [], nodes=[], name=operator.name)
    graph.opset_imports.update(OPSET_IMPORTS)
    nodes = sum(1 for variant in variants for _ in all_nodes(variant.function))
    if nodes * sum(len(variant.nodes) for variant in variants) > _MOST_NODES:
        graph.append(ir.Node(_NEEDS, _UNKNOWN_OPERATOR, graph.inputs, num_outputs=len(operator.outputs)))
        graph.opset_imports[_NEEDS] = 1
        graph.outputs.extend(graph[0].outputs)
        return ir.Function(operator.domain, operator.name, OVERLOAD, graph=graph, attributes=attributes)
    _fill_absent(operator, variants, names, main)
    types = zip(*(variant.output_types for variant in variants), strict=True)
    varying = [len(set(of_output)) > 1 for of_output in types]
    _set_selectors(variants, varying)
    op = Builder(graph, function=True)
    op.reserve(value.name for value in graph.inputs)
    # The number zero, which no release folds. Early releases need the branches that are not taken.
    zero = op.Cast(op.RandomUniform(shape=[1], low=0.0, high=0.0), to=ir.DataType.INT64)
    wanted = Value(name=op.unique("body"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
    graph.append(ir.Node("", "Constant", [], [ir.RefAttr("value_int", BODY, ir.AttributeType.INT)], outputs=[wanted]))
    used = [any(variant.input_type(index) is not None for variant in variants) for index in range(len(graph.inputs))]
    arguments = [_hide_shape(op, x, zero) if is_used else None for x, is_used in zip(graph.inputs, used, strict=True)]
    chosen = _choose(op, op.Add(wanted, zero), arguments, variants, 0, len(variants), varying)
    for name, value in zip(operator.outputs, chosen if isinstance(chosen, tuple) else (chosen,), strict=True):
        value.name = op.unique(name)
        graph.outputs.append(value)
    asked = [BODY, *(_TYPE.format(index) for index, is_named in enumerate(varying) if is_named)]
    declared = [ir.Attr(name, ir.AttributeType.INT, None) for name in asked]
    return ir.Function(operator.domain, operator.name, OVERLOAD, graph=graph, attributes=[*attributes, *declared])


def _set_selectors(variants: Sequence[Variant], varying: Sequence[bool]) -> None:
    """Give each node the attributes that select its body and, where `varying` is true, the types of its outputs."""
    for number, variant in enumerate(variants):
        for node in variant.nodes:
            node.attributes.add(ir.AttrInt64(BODY, number))
            for index, dtype in enumerate(variant.output_types):
                if varying[index]:
                    assert dtype is not None
                    node.attributes.add(ir.AttrInt64(_TYPE.format(index), int(dtype)))


def _fill_absent(operator: Declaration, variants: Sequence[Variant], names: Names, main: ir.Graph) -> None:
    """Give nodes that omit an input the empty tensor that represents an omitted input, if other nodes have the input."""
    variables = list(operator.inputs.values())
    of_main = set(all_nodes(main))
    for index, variable in enumerate(variables):
        types = [variant.input_type(index) for variant in variants]
        given = next((dtype for dtype in types if dtype is not None), None)
        if given is None:
            continue
        for variant in (variant for variant, dtype in zip(variants, types, strict=True) if dtype is None):
            alike = (variant.input_type(other) for other, name in enumerate(variables) if name == variable)
            dtype = next((dtype for dtype in alike if dtype is not None), given)
            for node in variant.nodes:
                _fill(node, index, dtype, names, main if node in of_main else None)


def _fill(node: ir.Node, index: int, dtype: ir.DataType, names: Names, main: ir.Graph | None) -> None:
    """Give a node an empty tensor: an initializer of ``main``, which its nodes share, or a Constant of a function."""
    nothing = ir.Tensor(np.empty(0, dtype.numpy()), dtype=dtype)
    if main is not None:
        value = _initializer(main, f"nothing_{dtype.name.lower()}", nothing, names)
    else:
        name = names.unique(f"{node.outputs[0].name}_without_{index}")
        value = Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([0]))
        assert node.graph is not None
        attribute = ir.AttrTensor("value", nothing)
        node.graph.insert_before(node, ir.Node("", "Constant", [], [attribute], outputs=[value]))
    if index >= len(node.inputs):
        node.resize_inputs(index + 1)
    node.replace_input_with(index, value)


def _initializer(main: ir.Graph, name: str, tensor: ir.Tensor, names: Names) -> ir.Value:
    """Return the initializer of a name with an equal tensor; a new one if there is none."""
    found = main.initializers.get(name)
    known = None if found is None or found.is_graph_input() else found.const_value
    if found is not None and known is not None and known.dtype == tensor.dtype and known.size == 0:
        return found
    value = Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape([0]), const_value=tensor)
    names.register(main, value)
    return value


def _hide_shape(op: Builder, x: ir.Value, zero: Value) -> Value:
    """Return ``x`` as a value whose shape and rank are unknown until the model runs."""
    shape = op.node("Shape", x, types=[(ir.DataType.INT64, [None])])
    return op.node("Reshape", x, op.Slice(shape, [0], op.Add(zero, _MANY)), types=[(None, None)], allowzero=1)


def _choose(
    op: Builder,
    wanted: Value,
    arguments: Sequence[Value | None],
    variants: Sequence[Variant],
    first: int,
    end: int,
    varying: Sequence[bool],
) -> Any:
    """Return the results of the selected variant, from ``first`` to ``end``."""
    if end - first == 1:
        return _emit_body(op, variants[first], arguments, varying)
    middle = (first + end) // 2
    halves = [
        op.subgraph(lambda inner, a=a, b=b: _choose(inner, wanted, arguments, variants, a, b, varying), name="branch")
        for a, b in ((first, middle), (middle, end))
    ]
    return op.node(
        "If", op.Less(wanted, middle), types=[(None, None)] * len(varying), then_branch=halves[0], else_branch=halves[1]
    )


def _emit_body(op: Builder, variant: Variant, arguments: Sequence[Value | None], varying: Sequence[bool]) -> Any:
    """Emit the nodes of a variant's body."""
    body = variant.function.graph.clone()
    for index, (formal, argument) in enumerate(zip(body.inputs, arguments, strict=True)):
        if formal.uses():
            assert argument is not None
            dtype = variant.input_type(index)
            assert dtype is not None
            formal.replace_all_uses_with(op.node("Cast", argument, types=[(dtype, None)], to=dtype))
    prefix = f"body_{variant.function.overload or 0}"
    for value in list(all_values(body))[len(body.inputs) :]:
        value.const_value = None  # the body owns the tensor, and assigning it would rename it
        value.name = op.unique(f"{prefix}/{value.name}")
    for node in all_nodes(body):
        node.name = f"{prefix}/{node.name}"
    outputs, nodes = list(body.outputs), list(body)
    body.outputs.clear()
    body.remove(nodes)
    op.graph.extend(nodes)
    found = [_of_type(op, output, index) if varying[index] else output for index, output in enumerate(outputs)]
    return tuple(found) if len(found) > 1 else found[0]


def _of_type(op: Builder, output: ir.Value, index: int) -> ir.Value:
    """Cast ``output`` to the type that the current node specifies for that output."""
    cast = Value(name=op.unique("output"))
    to = ir.RefAttr("to", _TYPE.format(index), ir.AttributeType.INT)
    op.graph.append(ir.Node("", "Cast", [output], [to], outputs=[cast]))
    return cast
