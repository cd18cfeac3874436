"""Arithmetic of floats with a constant of more dimensions, which adds them to the result.

ONNX Runtime (1.32) loses these dimensions where it converts 1 / x * y to y / x, or fuses a normalization. If they are added
to one dimension, it then rejects some models.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.graphs import constant_array


class ConstantsOfMoreDimensions(Workaround):
    """Unsqueeze the other operand, so that the constant adds no dimensions.

    Args:
        opset: the opset of the model.
    """

    operators = frozenset(("Add", "Div", "Mul", "Pow", "Sub"))

    def __init__(self, opset: int = OPSET) -> None:
        super().__init__()
        self.opset = opset

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        for index, x in enumerate(node.inputs):
            constant = constant_array(node.inputs[1 - index])
            if constant is None or not isinstance(x, Value) or x.rank is None or constant.ndim <= x.rank:
                continue
            if x.dtype is None or not x.dtype.is_floating_point():
                return None
            added = list(range(constant.ndim - x.rank))
            inputs = list(node.inputs)
            # Unsqueeze got its axes as an input in opset 13.
            inputs[index] = op.at(self.opset).Unsqueeze(x, axes=added) if self.opset < 13 else op.Unsqueeze(x, added)
            return [op.node(node.op_type, *inputs)]
        return None
