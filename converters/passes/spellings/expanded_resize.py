"""Linear Resize of images with a height or width of 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value, constant_value


class ExpandBeforeResize(Workaround):
    """Expand a height or width of 1 to the output size before a linear Resize, which does not change the result.

    OpenCV (5.0.0) reads out of bounds when it resizes the result of a convolution with a height or width of 1.
    """

    operators = frozenset(("Resize",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, whole = node.inputs[0], node.outputs[0]
        if node.attributes.get_string("mode", "nearest") != "linear":
            return None
        if not isinstance(x, Value) or not isinstance(whole, Value) or not x.is_static or not whole.is_static:
            return None
        before, after = [dim or 0 for dim in x.dims or ()], [dim or 0 for dim in whole.dims or ()]
        outside = node.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
        if len(before) != 4 or outside or "axes" in node.attributes or 1 not in before[2:] or before[:2] != after[:2]:
            return None
        sides = [axis for axis in (2, 3) if before[axis] == 1]
        if len(sides) == 2:
            return [op.Expand(x, after)]
        inputs = list(node.inputs)
        scales = inputs[2] if len(inputs) > 2 else None
        given = None if scales is None else scales.const_value
        if scales is not None and (given is None or scales.is_graph_input()):
            return None
        # A side that stays one is resized from two.
        wide = [max(2, after[axis]) if axis in sides else before[axis] for axis in range(4)]
        if given is not None and given.size:  # otherwise the sizes determine the result
            numbers = given.numpy().astype(np.float32)
            numbers[sides] = [after[axis] / wide[axis] for axis in sides]
            inputs[2] = constant_value(numbers, name=f"{whole.name}_scales")
        inputs[0] = op.Expand(x, wide)
        return [again(op, node, *inputs)]
