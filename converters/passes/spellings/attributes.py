"""Removal of attributes with default values."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes

_BETA = 0.5
"""The default of HardSigmoid."""


class RemoveDefaults(InPlacePass):
    """Remove the ``beta`` of HardSigmoid if it is the default.

    With both attributes, OpenCV (5.0.0) mistakes any product with a HardSigmoid for a HardSwish.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "HardSigmoid" and node.attributes.get_float("beta", 0.0) == _BETA
        ]
        for node in found:
            del node.attributes["beta"]
        return PassResult(model, modified=bool(found))
