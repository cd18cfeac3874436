"""Zero points of weights: with ``session.x64quantprecision``, ONNX Runtime (1.31) fails if two weights share one.

Without VNNI, the option converts weights of int8, and their zero points, to uint8. A zero point must not be omitted either:
it then becomes a scalar, also for scales along an axis.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import constant_value
from onnx_specops.domain import CONTRIB_DOMAIN
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.naming import Names

_WEIGHTS = {("", "DequantizeLinear"): (0, 2), (CONTRIB_DOMAIN, "MatMulIntegerToFloat"): (1, 5)}
"""The inputs that are the weights and their zero points."""


class OwnZeroPoints(InPlacePass):
    """Copy the zero point of constant weights of int8 if other weights have the same one."""

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        used: set[ir.Value] = set()
        count = 0
        for node in all_nodes(model.graph):
            weights, zeros = (_input(node, index) for index in _WEIGHTS.get((node.domain, node.op_type), ()) or (-1, -1))
            if weights is None or zeros is None or constant_array(weights) is None or zeros.dtype != ir.DataType.INT8:
                continue
            if zeros not in used:
                used.add(zeros)
                continue
            if (numbers := constant_array(zeros)) is None:
                continue
            names = names or Names.of(model.graph)
            copy = constant_value(numbers, name=f"{weights.name}_zero_point")
            names.register(model.graph, copy)
            node.replace_input_with(_WEIGHTS[node.domain, node.op_type][1], copy)
            count += 1
        return PassResult(model, modified=count > 0)


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if 0 <= index < len(node.inputs) else None
