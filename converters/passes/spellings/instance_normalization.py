"""InstanceNormalization of four dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class InstanceNormalization4D(Workaround):
    """Convert three-dimensional InstanceNormalization to four dimensions, with a last dimension of 1.

    GroupNormalization uses it between two Reshapes. After a convolution, OpenCV (5.0.0) requires four dimensions.
    """

    operators = frozenset(("InstanceNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.rank != 3:
            return None
        normal = op.InstanceNormalization(op.Unsqueeze(x, [3]), *node.inputs[1:], **attributes_of(node))
        return [op.Squeeze(normal, [3])]
