"""RoiAlign of maps without rows or columns: ONNX Runtime (1.31) reads out of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.onnxruntime.workaround import Workaround, attributes_of
from onnx_specops.building import Builder, Value


class RoiAlignOfNothing(Workaround):
    """RoiAlign of maps whose rows or columns are unknown: a Gather before it fails if there are none."""

    operators = frozenset(("RoiAlign",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, rois, batch = (cast(Value, value) for value in node.inputs)
        if x.dims is not None and None not in x.dims[2:]:
            return None
        # A single 0, or nothing.
        zeros = op.Reshape(op.ConstantOfShape(op.Min(op.Shape(x, start=2), 1), value=np.zeros(1, np.int64)), [-1])
        return [op.RoiAlign(x, rois, op.Add(batch, op.Gather(zeros, 0)), **attributes_of(node))]
