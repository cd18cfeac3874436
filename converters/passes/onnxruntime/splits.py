"""Split of an empty axis: ONNX Runtime (1.31) rejects ``num_outputs`` for an axis of size 0, but accepts lengths of 0."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import constant_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names


class EmptySplit(OperatorPass):
    """Set the lengths of a Split along an empty axis."""

    operators = frozenset(("Split",))

    def call(self, model: ir.Model) -> PassResult:
        found = [node for node in all_nodes(model.graph) if _is_empty(node)]
        names = Names.of(model.graph) if found else Names()
        for node in found:
            lengths = constant_value(np.zeros(len(node.outputs), np.int64), name=f"{node.outputs[0].name}_lengths")
            names.register(model.graph, lengths)
            node.resize_inputs(2)
            node.replace_input_with(1, lengths)
            del node.attributes["num_outputs"]
        return PassResult(model, modified=bool(found))


def _is_empty(node: ir.Node) -> bool:
    if (node.domain, node.op_type) != ("", "Split") or "num_outputs" not in node.attributes:
        return False
    x = node.inputs[0]
    return x is not None and x.shape is not None and x.shape[node.attributes.get_int("axis", 0)] == 0
