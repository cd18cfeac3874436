"""Variadic Sum, Max, Min and Mean as binary operators."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.replacing import replace_value

_PAIRS = {"Sum": "Add", "Max": "Max", "Min": "Min"}


class BinaryOperators(InPlacePass):
    """Convert Sum to Add, and Max and Min of more than two tensors to binary operators, in the order of the inputs.

    OpenCV, MNN and WebGPU have only binary kernels, or no kernel of Sum.
    """

    def call(self, model: ir.Model) -> PassResult:
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        count = 0
        for node in [node for node in all_nodes(model.graph) if not node.domain and node.op_type in _PAIRS]:
            if node.op_type != "Sum" and len(node.inputs) == 2:
                continue
            if not isinstance(node.graph, ir.Graph) or any(value is None for value in node.inputs):
                continue
            op = Builder.before_node(node, root)
            result, *others = node.inputs
            for other in others:
                result = op.node(_PAIRS[node.op_type], result, other)
            # The builder folds constants.
            assert isinstance(result, Value)
            if replace_value(node.outputs[0], op.place(result)):
                node.graph.remove(node, safe=True)
                count += 1
        return PassResult(model, modified=count > 0)
