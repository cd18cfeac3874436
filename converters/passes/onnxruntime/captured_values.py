"""Values that are dequantized, moved and used in nested graphs.

ONNX Runtime (1.31) moves a DequantizeLinear after the nodes that only move numbers, up to all users of the result. If one of
them uses the result in a nested graph (Loop, If, Scan), it accesses an input that does not exist, and the process ends.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.onnxruntime.moved_outputs import MOVERS
from onnx_specops.building import new_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names

_SKIPPED = MOVERS | {"Cast", "Identity"}


class CopyCapturedValues(InPlacePass):
    """Copy such a value by a Max of one input, which ONNX Runtime keeps, for its users in nested graphs.

    Conditions: one or more nodes that move numbers, casts or identities compute the value from the result of a
    DequantizeLinear, or of an operator with a function body, which may contain one; and a nested graph uses the value.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [node for node in all_nodes(model.graph) if _nested_uses(node.outputs[0]) and _is_moved(node)]
        names = Names.of(model.graph) if found else Names()
        for node in found:
            value = node.outputs[0]
            uses = _nested_uses(value)
            copy = new_value(value.dtype, value.shape, names.unique(f"{value.name}_captured"))
            assert node.graph is not None
            node.graph.insert_after(node, ir.Node("", "Max", [value], outputs=[copy], name=copy.name))
            for user, index in uses:
                user.replace_input_with(index, copy)
        return PassResult(model, modified=bool(found))


def _nested_uses(value: ir.Value) -> list[tuple[ir.Node, int]]:
    node = value.producer()
    return [(use.node, use.idx) for use in value.uses() if node is not None and use.node.graph is not node.graph]


def _is_moved(node: ir.Node) -> bool:
    if node.domain or node.op_type not in _SKIPPED:
        return False
    above: ir.Node | None = node
    while above is not None and not above.domain and above.op_type in _SKIPPED:
        above = None if above.inputs[0] is None else above.inputs[0].producer()
    return above is not None and (bool(above.domain) or above.op_type == "DequantizeLinear")
