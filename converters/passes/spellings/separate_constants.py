"""A copy of a constant for each kind of use."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.scalars import BROADCASTING
from onnx_specops.building import constant_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names

_OWN = frozenset(("Concat", "GatherElements"))
"""Operators whose constants become layers, even if they are layers already."""

_SHARED = frozenset(("Gather", "Gemm", "InstanceNormalization", "MatMul", "ScatterElements", "ScatterND"))
"""Other operators with constants that are tensors of the graph, like the results of nodes."""


class SeparateConstants(InPlacePass):
    """Copy a constant that different kinds of operators use.

    OpenCV (4.14.0) turns a constant that is an operand into a layer, under its name. Each other node with the constant then
    has one more input, and most reject it. Some operators add the layer a second time.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        copies: dict[tuple[ir.Value, str], ir.Value] = {}
        first: dict[ir.Value, str] = {}
        uses = 0
        for node in all_nodes(model.graph):
            if node.domain:
                continue
            for index, value in enumerate(node.inputs):
                if value is None or value.const_value is None or value.is_graph_input():
                    continue
                kind = _kind(node, index)
                if kind == "own":
                    uses += 1
                    kind = f"own {uses}"
                if first.setdefault(value, kind) == kind:
                    continue
                if (value, kind) not in copies:
                    names = names or Names.of(model.graph)
                    tensor = value.const_value
                    copies[value, kind] = constant_value(tensor.numpy(), tensor.dtype, name=f"{value.name}_separate")
                    names.register(model.graph, copies[value, kind])
                node.replace_input_with(index, copies[value, kind])
        return PassResult(model, modified=bool(copies))


def _kind(node: ir.Node, index: int) -> str:
    """Return the kind of a use: an operand, a tensor that no other use shares, or a parameter."""
    if node.op_type in BROADCASTING:
        return "operand"
    if node.op_type in _OWN or (node.op_type == "MatMul" and index == 0):
        return "own"
    return f"{node.op_type} {index}" if node.op_type in _SHARED else "parameter"
