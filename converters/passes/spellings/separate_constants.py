"""A copy of a constant for each kind of use."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.copied_nodes import copied_node
from converters.passes.spellings.scalars import BROADCASTING
from onnx_specops.building import constant_value, new_value
from onnx_specops.graphs import all_nodes, constant_array, producer_of
from onnx_specops.naming import Names

_OWN = frozenset(("Concat", "GatherElements"))
"""Operators whose constants become layers, even if they are layers already."""

_SHARED = frozenset(("Gather", "Gemm", "InstanceNormalization", "MatMul", "ScatterElements", "ScatterND"))
"""Other operators with constants that are tensors of the graph, like the results of nodes."""


class SeparateConstants(InPlacePass):
    """Copy a constant, or a Cast of one, that different kinds of operators use.

    OpenCV (4.14.0) converts a constant operand to a layer of the same name. Every other node that uses the constant then has
    an additional input, which most nodes reject. Some operators add the layer a second time.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        copies: dict[tuple[ir.Value, str], ir.Value] = {}
        first: dict[ir.Value, str] = {}
        uses = 0
        for node in list(all_nodes(model.graph)):
            if node.domain:
                continue
            for index, value in enumerate(node.inputs):
                cast = _cast_of(value)
                if value is None or value.is_graph_input() or (value.const_value is None and cast is None):
                    continue
                kind = _kind(node, index)
                if kind == "own":
                    uses += 1
                    kind = f"own {uses}"
                if first.setdefault(value, kind) == kind:
                    continue
                if (value, kind) not in copies:
                    names = names or Names.of(model.graph)
                    copies[value, kind] = _copied(value, cast, model.graph, names)
                node.replace_input_with(index, copies[value, kind])
        return PassResult(model, modified=bool(copies))


def _cast_of(value: ir.Value | None) -> ir.Node | None:
    """Return the Cast of a constant that computes a value. OpenCV computes it, too, when it loads the file."""
    cast = producer_of(value, "Cast")
    return None if cast is None or constant_array(cast.inputs[0]) is None else cast


def _copied(value: ir.Value, cast: ir.Node | None, graph: ir.Graph, names: Names) -> ir.Value:
    if cast is not None:
        again = copied_node(cast, lambda given: given, lambda result: _named(result, names))
        cast.append(again)
        return again.outputs[0]
    tensor = value.const_value
    assert tensor is not None
    constant = constant_value(tensor.numpy(), tensor.dtype, name=f"{value.name}_separate")
    names.register(graph, constant)
    return constant


def _named(value: ir.Value, names: Names) -> ir.Value:
    return new_value(value.dtype, value.shape, names.unique(f"{value.name}_separate"))


def _kind(node: ir.Node, index: int) -> str:
    """Return the kind of a use: an operand, a tensor that no other use shares, or a parameter."""
    if node.op_type in BROADCASTING:
        return "operand"
    if node.op_type in _OWN or (node.op_type == "MatMul" and index == 0):
        return "own"
    return f"{node.op_type} {index}" if node.op_type in _SHARED else "parameter"
