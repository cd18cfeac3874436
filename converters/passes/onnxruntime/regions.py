"""RoiAlign in ONNX Runtime: 1.31 reads out of bounds for maps without rows or columns; 1.32 lacks the kernel of opset 22."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class RoiAlignOfNewerOpsets(KernelWorkaround):
    """Replace RoiAlign with the mode ``avg`` by the domain's ROIAlign from opset 22 on, where ONNX Runtime has no kernel.

    Args:
        opset: the opset of the result.
    """

    operators = frozenset(("RoiAlign",))

    def __init__(self, opset: int) -> None:
        super().__init__()
        self.opset = opset

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        attributes = attributes_of(node)
        if self.opset < 22 or attributes.get("mode", "avg") != "avg":  # the domain's maximum differs
            return None
        shifted = attributes.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
        aligned = op.specops.ROIAlign(
            *node.inputs,
            pooled_h=attributes.get("output_height", 1),
            pooled_w=attributes.get("output_width", 1),
            sampling_ratio=attributes.get("sampling_ratio", 0),
            spatial_scale=attributes.get("spatial_scale", 1.0),
            aligned_mode="half_pixel_for_nn" if shifted else "asymmetric",
        )
        return [aligned]


class RoiAlignOfNothing(KernelWorkaround):
    """Insert a Gather before RoiAlign of maps with unknown rows or columns. It fails if there are none."""

    operators = frozenset(("RoiAlign",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, rois, batch = (cast(Value, value) for value in node.inputs)
        if x.dims is not None and None not in x.dims[2:]:
            return None
        # A single 0, or nothing.
        zeros = op.Reshape(op.ConstantOfShape(op.Min(op.Shape(x, start=2), 1), value=np.zeros(1, np.int64)), [-1])
        return [op.RoiAlign(x, rois, op.Add(batch, op.Gather(zeros, 0)), **attributes_of(node))]
