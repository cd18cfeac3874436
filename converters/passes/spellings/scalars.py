"""Tensors of one element instead of scalar constants in arithmetic."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import constant_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names

BROADCASTING = frozenset((
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Or",
    "PRelu", "Pow", "Sub", "Where", "Xor",
))  # fmt: skip
"""Operators that broadcast their inputs."""


class ScalarsToVectors(InPlacePass):
    """Convert a scalar constant that is combined with a tensor of one or more dimensions to a tensor of one element."""

    def call(self, model: ir.Model) -> PassResult:
        made: dict[ir.Value, ir.Value] = {}
        names: Names | None = None
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in BROADCASTING or not node.outputs[0].shape:
                continue
            for index, value in enumerate(node.inputs):
                tensor = None if value is None or value.is_graph_input() else value.const_value
                if value is None or tensor is None or len(tensor.shape):
                    continue
                if value not in made:
                    names = names or Names.of(model.graph)
                    made[value] = constant_value(tensor.numpy().reshape(1), tensor.dtype, name=f"{value.name}_element")
                    names.register(model.graph, made[value])
                node.replace_input_with(index, made[value])
        return PassResult(model, modified=bool(made))
