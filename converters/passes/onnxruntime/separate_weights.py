"""Weights of int8: with ``session.x64quantprecision``, ONNX Runtime (1.32) fails if two nodes share weights or zero points.

Without VNNI, the option converts the weights of each node, and their zero points, to uint8. The names of the new constants
depend only on the names of the old ones. Weights from -64 to 64 are unchanged. An omitted zero point becomes a scalar, even
for scales along an axis, so it must not be omitted either.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.copied_nodes import copied_node
from converters.passes.running import Operators, SelectivePass
from onnx_specops.building import constant_value, new_value
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.naming import Names

_WEIGHTS = {
    ("", "DequantizeLinear"): (0, 2),
    (CONTRIB_DOMAIN, "MatMulIntegerToFloat"): (1, 5),
    (DOMAIN, "QuantizedConv"): (1,),  # its body has a DequantizeLinear without a zero point
}
"""The inputs that are the weights and their zero points."""

_LARGEST = 64
"""ONNX Runtime converts weights if the absolute value of one exceeds this number."""


class SeparateWeights(SelectivePass):
    """Copy constant weights of int8, and their zero points, if other nodes have the same ones.

    ONNX Runtime gives each node that uses dequantized weights a separate DequantizeLinear, and so does this pass.
    """

    def may_change(self, operators: Operators) -> bool:
        return not operators.isdisjoint(_WEIGHTS)

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        used: set[ir.Value] = set()
        count = 0
        for node in all_nodes(model.graph):  # also those that this loop adds
            indices = _WEIGHTS.get((node.domain, node.op_type), ())
            constants = [(index, value) for index, value in enumerate(node.inputs) if index in indices and value is not None]
            if any(value.dtype != ir.DataType.INT8 or constant_array(value) is None for _, value in constants):
                continue
            for index, value in constants:
                if value not in used:
                    used.add(value)
                    continue
                numbers = constant_array(value)
                if numbers is None or (index == indices[0] and not _is_converted(numbers)):
                    continue
                names = names or Names.of(model.graph)
                copy = constant_value(numbers, name=f"{value.name}_copy")
                names.register(model.graph, copy)
                node.replace_input_with(index, copy)
                used.add(copy)
                count += 1
            if node.op_type == "DequantizeLinear" and constants:
                weights = constant_array(constants[0][1])
                further = list(node.outputs[0].uses())[1:]
                if further and weights is not None and _is_converted(weights):
                    names = names or Names.of(model.graph)
                    for user, index in further:
                        separate = copied_node(node, _same, partial(_renamed, names))
                        node.append(separate)
                        user.replace_input_with(index, separate.outputs[0])
                        count += 1
        return PassResult(model, modified=count > 0)


def _same(value: ir.Value) -> ir.Value:
    return value


def _renamed(names: Names, value: ir.Value) -> ir.Value:
    return new_value(value.dtype, value.shape, names.unique(f"{value.name}_copy"))


def _is_converted(weights: np.ndarray) -> bool:
    return bool(weights.size) and (int(weights.max()) > _LARGEST or int(weights.min()) < -_LARGEST)
