"""Sorted TopK instead of any order."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes


class SortedTopK(InPlacePass):
    """Replace ``sorted=0`` by ``sorted=1``. With 0, the order of the results is undefined."""

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "TopK" and not node.attributes.get_int("sorted", 1)
        ]
        for node in found:
            node.attributes.add(ir.AttrInt64("sorted", 1))
        return PassResult(model, modified=bool(found))
