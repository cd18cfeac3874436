"""InstanceNormalization of four dimensions."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.replacing import replace_value


class InstanceNormalization4D(InPlacePass):
    """Convert three-dimensional InstanceNormalization to four dimensions, with a last dimension of 1.

    GroupNormalization uses it between two Reshapes. After a convolution, OpenCV (5.0.0) requires four dimensions.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "InstanceNormalization" and isinstance(node.graph, ir.Graph)
        ]
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        count = 0
        for node in found:
            x = node.inputs[0]
            if not isinstance(x, Value) or x.rank != 3 or node.graph is None:
                continue
            op = Builder.before_node(node, root)
            attributes = {name: attribute.value for name, attribute in node.attributes.items()}
            normal = op.InstanceNormalization(op.Unsqueeze(x, [3]), *node.inputs[1:], **attributes)
            replace_value(node.outputs[0], op.Squeeze(normal, [3]), equal=False)
            node.graph.remove(node, safe=True)
            count += 1
        return PassResult(model, modified=count > 0)
