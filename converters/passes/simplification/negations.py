"""Negations before and after Mul and Div with constants, which become part of the constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, number, rewrite
from converters.passes.simplification.constants import MAX_GROWTH
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

D = ir.DataType

_FLOATS = (D.FLOAT, D.DOUBLE, D.FLOAT16, D.BFLOAT16)
"""The types whose rounding does not depend on the sign.

Integers are left: the smallest one is its own negative, so that its quotient would have another sign.
"""

_Expression = Callable[..., Any]

_NEGATIVES: tuple[_Expression, ...] = (
    lambda op, x: op.Neg(x, _outputs=["negative"]),
    lambda op, x: op.Mul(x, number(-1.0), _outputs=["negative"]),
)
"""The forms of ``-x``. OpenVINO's converters write the second one for Subtract and Negative."""

_WITH_CONSTANTS: dict[str, _Expression] = {
    "Mul": lambda op, x, c: op.Mul(x, c),
    "Div": lambda op, x, c: op.Div(x, c),
    "inverse": lambda op, x, c: op.Div(c, x),
}


def _with_negated(op: Builder, with_constant: _Expression, x: Value, c: Value, negative: Value) -> Value | None:
    """Return the product or quotient of the negated constant, or ``None`` if it must stay.

    Conditions: floats; the constant has at most `MAX_GROWTH` elements, because the original may have other consumers, or be
    part of the source's file; the -1 of a product adds no dimension that neither x nor the constant has.
    """
    array, node = constant_array(c), negative.producer()
    if array is None or node is None or array.size > MAX_GROWTH or c.dtype not in _FLOATS or c.dtype != x.dtype:
        return None
    ranks = [given.rank for given in node.inputs if isinstance(given, Value) and constant_array(given) is not None]
    if any(rank is None or rank > max(x.rank or 0, c.rank or 0) for rank in ranks):
        return None
    result: Value = with_constant(op, x, op.const(-array, c.dtype))
    return result


def _before(name: str, negative: _Expression) -> Rewrite:
    with_constant = _WITH_CONSTANTS[name]

    @rewrite("Div" if name == "inverse" else name, lambda op, x, c: with_constant(op, negative(op, x), c), commute=True)
    def negation_before(op: Builder, *, x: Value, c: Value, negative: Value) -> Value | None:
        """Negate the constant that a negation is multiplied with, divided by, or divides."""
        return _with_negated(op, with_constant, x, c, negative)

    return negation_before


def _after(name: str, negative: _Expression) -> Rewrite:
    with_constant = _WITH_CONSTANTS[name]
    root = "Neg" if negative is _NEGATIVES[0] else "Mul"

    @rewrite(root, lambda op, x, c: negative(op, with_constant(op, x, c)), commute=True)
    def negation_after(op: Builder, *, x: Value, c: Value, negative: Value) -> Value | None:
        """Negate the constant of a product or quotient that is negated."""
        return _with_negated(op, with_constant, x, c, negative)

    return negation_after


class MergeNegations(PatternPass):
    """Merge a negation with the product or quotient with a constant before or after it. The result has the same bits."""

    rewrites = tuple(
        merge(name, negative) for name in _WITH_CONSTANTS for negative in _NEGATIVES for merge in (_before, _after)
    )
