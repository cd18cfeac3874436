"""InstanceNormalization of four dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class InstanceNormalization4D(Workaround):
    """Convert InstanceNormalization of three or five dimensions to four: add a last dimension of 1, or merge the last two.

    A decomposed GroupNormalization contains a three-dimensional InstanceNormalization between two Reshapes. After a
    convolution, OpenCV (5.0.0) requires four dimensions.
    """

    operators = frozenset(("InstanceNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value):
            return None
        if x.rank == 5 and x.is_static and x.dims is not None and 0 not in x.dims:
            whole = [dim or 0 for dim in x.dims]
            image = op.Reshape(x, [*whole[:3], whole[3] * whole[4]])
            return [op.Reshape(op.InstanceNormalization(image, *node.inputs[1:], **attributes_of(node)), whole)]
        if x.rank != 3:
            return None
        normal = op.InstanceNormalization(op.Unsqueeze(x, [3]), *node.inputs[1:], **attributes_of(node))
        return [op.Squeeze(normal, [3])]
