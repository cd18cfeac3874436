"""TopK in the order of the values, where any order is asked for."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes


class SortedTopK(InPlacePass):
    """``sorted=0`` leaves the order open, so that ``sorted=1`` is one of the orders that it allows."""

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "TopK" and not node.attributes.get_int("sorted", 1)
        ]
        for node in found:
            node.attributes.add(ir.AttrInt64("sorted", 1))
        return PassResult(model, modified=bool(found))
