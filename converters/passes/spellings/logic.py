"""Logical operators as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

D = ir.DataType

_ARITHMETIC = {"And": "Mul", "Or": "Max"}


class ArithmeticLogic(Workaround):
    """Convert And to a multiplication of zeros and ones, and Or to their maximum. OpenCV 4.14 does not support And and
    Or.
    """

    operators = frozenset(_ARITHMETIC)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        numbers = op.node(_ARITHMETIC[node.op_type], *(op.Cast(value, to=D.FLOAT) for value in node.inputs))
        return [op.Cast(numbers, to=D.BOOL)]


class EqualBooleans(Workaround):
    """Convert Equal of booleans to Xor and Not. TVM (0.27) does not support booleans in Equal."""

    operators = frozenset(("Equal",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or D.BOOL not in (a.dtype, b.dtype):
            return None
        return [op.Not(op.Xor(a, b))]
