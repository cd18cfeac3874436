"""Pow with a constant exponent by products, square roots and reciprocals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from converters.targets.limits import is_positive
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

_LARGEST = 8
"""The largest exponent that becomes products."""


class ExpandedPowers(Workaround):
    """Convert Pow with a constant exponent to Mul, Sqrt and Reciprocal, and with a fractional exponent to the Pow of
    positive numbers.

    ncnn (2026) computes powers other than squares with logarithms, which gives wrong results for 0 and for negative numbers.
    pnnx crashes on subnormal constants.
    """

    operators = frozenset(("Pow",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, exponent = node.inputs[0], constant_array(node.inputs[1])
        if not isinstance(x, Value) or x.dtype is None or not x.dtype.is_floating_point() or exponent is None:
            return None
        if exponent.size != 1 or not x.rank or exponent.ndim > x.rank or is_positive(x):
            return None
        size = abs(float(exponent.item()))
        if not math.isfinite(size) or size == 0 or exponent.item() == 2:
            return None
        result = _power(op, x, size) if size <= _LARGEST and (2 * size).is_integer() else _fraction(op, x, size)
        return [op.Reciprocal(result) if exponent.item() < 0 else result]


def _power(op: Builder, x: Value, size: float) -> Value:
    """Return a power whose exponent is a positive multiple of one half."""
    factors = [] if float(size).is_integer() else [op.Sqrt(x)]
    square, count = x, int(size)
    while count:
        if count % 2:
            factors.append(square)
        count //= 2
        square = op.Mul(square, square) if count else square
    result = factors[0]
    for factor in factors[1:]:
        result = op.Mul(result, factor)
    return result


def _fraction(op: Builder, x: Value, size: float) -> Value:
    """Return another power with a positive exponent: 0 for 0, and NaN for negative numbers."""
    sign = op.Sign(op.Relu(x))
    base = op.Max(x, op.Sub(op.const([1], x.dtype), sign))
    negative = op.Sqrt(op.Min(x, op.const([0], x.dtype)))
    result: Value = op.Add(op.Mul(op.Pow(base, op.const([size], x.dtype)), sign), negative)
    return result
