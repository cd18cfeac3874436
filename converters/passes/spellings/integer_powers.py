"""Powers of integers."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Pow", lambda op, x, y: op.Pow(x, y))
def rounded(op: Builder, *, x: Value, y: Value) -> Value | None:
    """Return the power of integers through float64, rounded."""
    if x.dtype is None or not x.dtype.is_integer():
        return None
    wide = ir.DataType.DOUBLE
    return op.Cast(op.Round(op.Pow(op.Cast(x, to=wide), op.Cast(y, to=wide))), to=x.dtype)


class RoundIntegerPowers(PatternPass):
    """Compute powers of integers in float64, and round them.

    ONNX Runtime's CUDA provider (1.31.1) truncates the result of a floating-point power, so that 3 to the power of 1 is 2.
    TVM (0.27) supports powers of floats only.
    """

    rewrites = (rounded,)
