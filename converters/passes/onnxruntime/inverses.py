"""The inverse of a tensor: ONNX Runtime (1.32) converts 1 / x * y to y / x, and loses the dimensions that the 1 adds."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.graphs import constant_array


class InversesOfMoreDimensions(Workaround):
    """Unsqueeze ``x`` in 1 / x if the 1 has more dimensions.

    Args:
        opset: the opset of the model.
    """

    operators = frozenset(("Div",))

    def __init__(self, opset: int = OPSET) -> None:
        self.opset = opset

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        one, x = node.inputs
        number = constant_array(one)
        if number is None or number.size != 1 or number.item() != 1 or not isinstance(x, Value) or x.rank is None:
            return None
        added = list(range(number.ndim - x.rank))
        if not added:
            return None
        # Unsqueeze got its axes as an input in opset 13.
        return [op.Div(one, op.at(self.opset).Unsqueeze(x, axes=added) if self.opset < 13 else op.Unsqueeze(x, added))]
