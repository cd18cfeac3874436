"""Rounding that a program computes differently."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Round", lambda op, x: op.Round(x), finite=True)
def to_even(op: Builder, *, x: Value) -> Value | None:
    """Round up, and subtract 1 from odd results of numbers that are halfway between two integers."""
    if x.dtype is None or x.rank is None:
        return None
    half = op.const([0.5] if x.rank else 0.5, x.dtype)
    up, down = op.Floor(op.Add(x, half)), op.Ceil(op.Sub(x, half))
    odd = op.Sub(up, op.Mul(op.Floor(op.Mul(up, half)), op.const([2.0] if x.rank else 2.0, x.dtype)))
    result: Value = op.Sub(up, op.Mul(op.Sub(up, down), odd))
    return result


@rewrite("Cast", lambda op, x: op.Cast(x, _outputs=["whole"]))
def cast(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Truncate floats before they become integers."""
    if x.dtype is None or whole.dtype is None or not x.dtype.is_floating_point() or not whole.dtype.is_integer():
        return None
    result: Value = op.Cast(op.Mul(op.Sign(x), op.Floor(op.Abs(x))), to=whole.dtype)
    return result


class RoundToEven(PatternPass):
    """Convert Round to Floor and Ceil. MNN (3.6) rounds numbers that are halfway between two integers away from zero."""

    rewrites = (to_even,)


class TruncatedIntegers(PatternPass):
    """Truncate floats that become integers. OpenCV (4.14.0) computes integers as floats, and keeps the fraction."""

    rewrites = (cast,)
