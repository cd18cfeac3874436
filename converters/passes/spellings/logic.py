"""Logical operators as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import replace_value

D = ir.DataType

_ARITHMETIC = {"And": "Mul", "Or": "Max"}


class ArithmeticLogic(InPlacePass):
    """Convert And to the product of 0 and 1, and Or to the maximum. OpenCV 4.14 has neither And nor Or."""

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type not in _ARITHMETIC or not isinstance(node.graph, ir.Graph):
                continue
            (a, b), result = node.inputs, node.outputs[0]
            if not isinstance(a, Value) or not isinstance(b, Value) or not isinstance(result, Value):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            numbers = op.node(_ARITHMETIC[node.op_type], op.Cast(a, to=D.FLOAT), op.Cast(b, to=D.FLOAT))
            count += replace_value(result, op.Cast(numbers, to=D.BOOL))
        return PassResult(model, modified=count > 0)


class EqualBooleans(Workaround):
    """Convert Equal of booleans to Xor and Not. TVM (0.27) compares numbers only."""

    operators = frozenset(("Equal",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or D.BOOL not in (a.dtype, b.dtype):
            return None
        return [op.Not(op.Xor(a, b))]
