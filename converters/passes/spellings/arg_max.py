"""ArgMax instead of TopK for the index of the largest element."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.replacing import replace_value, rewriting


class TopKToArgMax(InPlacePass):
    """Convert TopK with k = 1 to ArgMax or ArgMin if only its indices are used.

    ONNX selects the first of several equal elements. QNN (2.7) and onnx2torch (1.5.15) select another one. WebGPU (0.4) does
    not support TopK of integers.
    """

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type != "TopK" or not isinstance(node.graph, ir.Graph):
                continue
            values, indices = node.outputs
            x, k = node.inputs[:2]
            number = constant_array(k)
            if number is None or number.item() != 1 or values.uses() or values.is_graph_output():
                continue
            if not isinstance(x, Value) or not isinstance(indices, Value):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            name = "ArgMax" if node.attributes.get_int("largest", 1) else "ArgMin"
            place = op.node(name, x, axis=node.attributes.get_int("axis", -1), keepdims=1)
            with rewriting("TopKToArgMax", finite=True):  # the place of a NaN differs
                count += replace_value(indices, place)
        return PassResult(model, modified=count > 0)
