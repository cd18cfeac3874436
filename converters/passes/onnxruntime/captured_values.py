"""Values that are dequantized, moved and used in nested graphs, for which ONNX Runtime ends the process."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.captured_values import copy_captured_values


class CopyCapturedValues(InPlacePass):
    """Copy such a value for its users in nested graphs (`copy_captured_values`).

    Conditions: one or more nodes that move numbers, casts or identities compute the value from the result of a
    DequantizeLinear, or of an operator with a function body, which may contain one; and a nested graph uses the value.
    `attach_bodies` does the same within function bodies.
    """

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=copy_captured_values(model.graph))
