"""Linear Resize of images with a height or width of 1."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value


class ExpandBeforeResize(InPlacePass):
    """Expand a height or width of 1 to the result's size before a linear Resize, which does not change the result.

    OpenCV (5.0.0) reads out of bounds when it resizes the result of a convolution with a height or width of 1.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "Resize" and node.attributes.get_string("mode", "nearest") == "linear"
        ]
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        return PassResult(model, modified=sum(_expanded(node, root) for node in found) > 0)


def _expanded(node: ir.Node, root: Builder) -> bool:
    x, whole = node.inputs[0], node.outputs[0]
    if not isinstance(x, Value) or not isinstance(whole, Value) or not isinstance(node.graph, ir.Graph):
        return False
    before, after = x.dims, whole.dims
    if before is None or after is None or not x.is_static or not whole.is_static or len(before) != 4:
        return False
    outside = node.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if outside or "axes" in node.attributes or 1 not in before[2:] or before[:2] != after[:2]:
        return False
    sides = [axis for axis in (2, 3) if before[axis] == 1]
    # A side that stays one is resized from two.
    wide = [max(2, after[axis] or 0) if axis in sides else before[axis] for axis in range(4)]
    op = Builder.before_node(node, root)
    if len(sides) == 2:
        if not replace_value(whole, op.Expand(x, after)):
            return False
        node.graph.remove(node, safe=True)
        return True
    scales = node.inputs[2] if len(node.inputs) > 2 else None
    given = None if scales is None else scales.const_value
    if scales is not None and (given is None or scales.is_graph_input()):
        return False
    if given is not None and given.size:  # otherwise the sizes determine the result
        numbers = given.numpy().astype(np.float32)
        numbers[sides] = [(after[axis] or 0) / (wide[axis] or 1) for axis in sides]
        constant = constant_value(numbers, name=f"{whole.name}_scales")
        Names.of(root.graph).register(root.graph, constant)
        node.replace_input_with(2, constant)
    node.replace_input_with(0, op.Expand(x, wide))
    return True
