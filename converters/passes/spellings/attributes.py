"""Attributes without effect that a program requires or misinterprets."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes

_BETA = 0.5
"""The default of HardSigmoid."""


class RemoveDefaults(InPlacePass):
    """Remove the ``beta`` of HardSigmoid if it is the default, and ``count_include_pad`` of an AveragePool without padding.

    If HardSigmoid has both attributes, OpenCV (5.0.0) fuses any multiplication by its result into a HardSwish. With
    ``count_include_pad``, OpenCV also counts elements beyond the padded tensor.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "HardSigmoid" and node.attributes.get_float("beta", 0.0) == _BETA
        ]
        for node in found:
            del node.attributes["beta"]
        counted = [
            node
            for node in all_nodes(model.graph)
            if not node.domain
            and node.op_type == "AveragePool"
            and not any(node.attributes.get_ints("pads", ()) or ())
            and not node.attributes.get_string("auto_pad", "NOTSET").startswith("SAME")
            and "count_include_pad" in node.attributes
        ]
        for node in counted:
            del node.attributes["count_include_pad"]
        return PassResult(model, modified=bool(found or counted))


class StatePadModes(InPlacePass):
    """Add the default ``mode`` to each Pad. pnnx (2026) does not convert a Pad without it."""

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "Pad" and "mode" not in node.attributes
        ]
        for node in found:
            node.attributes.add(ir.AttrString("mode", "constant"))
        return PassResult(model, modified=bool(found))
