"""Sums of 64-bit integers as one node."""

from __future__ import annotations

from typing import Any

from converters.passes.patterns import PatternPass, Rewrite, number, rewrite
from onnx_specops.building import Builder, Value

_HALF = 2**32


def _whole(lower: Any) -> Rewrite:
    def pattern(op: Any, x: Any, axes: Any) -> Any:
        low = lower(op, x)
        upper = op.ReduceSum(op.Div(op.Sub(x, low), number(_HALF)), axes, _outputs=["upper"])
        return op.Add(op.Mul(upper, number(_HALF)), op.ReduceSum(low, axes, _outputs=["lower"]))

    @rewrite("Add", pattern, commute=True)
    def sum_of_halves(op: Builder, *, x: Value, axes: Value, upper: Value, lower: Value) -> Value | None:
        given = [
            {name: attribute.value for name, attribute in node.attributes.items()}
            for node in (upper.producer(), lower.producer())
            if node is not None
        ]
        if len(given) != 2 or given[0] != given[1]:
            return None
        result: Value = op.ReduceSum(x, axes, **given[0])
        return result

    return sum_of_halves


class OneSum(PatternPass):
    """The sum of both halves of integers, which is exact in ONNX Runtime, is the sum of the integers.

    OpenVINO's frontend (2026.4.1) has no constants beyond 31 bits.
    """

    rewrites = (_whole(lambda op, x: op.BitwiseAnd(x, number(_HALF - 1))), _whole(lambda op, x: op.Mod(x, number(_HALF))))
