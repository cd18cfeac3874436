"""Swish of opset 24."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from converters.passes.newer_forms.matching import number
from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value

_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _swish(op: Builder, x: Value, alpha: float) -> Value | None:
    if x.dtype not in _TYPES:
        return None
    given: Any = {} if alpha == 1 else {"alpha": alpha}
    types: Any = [(x.dtype, None if x.shape is None else list(x.shape))]
    result: Value = op.node("Swish", x, types=types, version=24, **given)
    return result


@rewrite("Mul", lambda op, x: op.Mul(x, op.Sigmoid(x)), commute=True)
def swish(op: Builder, *, x: Value) -> Value | None:
    """Fuse x * Sigmoid(x)."""
    return _swish(op, x, 1)


@rewrite("Mul", lambda op, x, alpha: op.Mul(x, op.Sigmoid(op.Mul(x, alpha))), commute=True)
def swish_of_factor(op: Builder, *, x: Value, alpha: Value) -> Value | None:
    """Fuse x * Sigmoid(alpha * x) with a constant number as the factor."""
    factor = number(alpha)
    if factor is None or (alpha.rank or 0) > (x.rank or 0):
        return None
    return _swish(op, x, factor)


class FuseSwish(PatternPass):
    """Fuse x * Sigmoid(alpha * x)."""

    rewrites = (swish, swish_of_factor)
