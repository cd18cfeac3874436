"""HardSwish and Mish of doubles: ONNX Runtime (1.31) expands them into operators that it supports for floats only."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("HardSwish", lambda op, x: op.HardSwish(x))
def by_hard_sigmoid(op: Builder, *, x: Value) -> Value | None:
    """Replace HardSwish by x * HardSigmoid(x), which casts can adapt to the kernels."""
    return op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5)) if x.dtype == ir.DataType.DOUBLE else None


@rewrite("Mish", lambda op, x: op.Mish(x))
def by_softplus(op: Builder, *, x: Value) -> Value | None:
    """Replace Mish by x * tanh(softplus(x))."""
    return op.Mul(x, op.Tanh(op.Softplus(x))) if x.dtype == ir.DataType.DOUBLE else None


class ActivationsOfDoubles(PatternPass):
    """Decompose HardSwish and Mish of float64."""

    rewrites = (by_hard_sigmoid, by_softplus)
