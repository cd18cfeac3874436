"""Rounding that a program computes differently."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Round", lambda op, x: op.Round(x))
def to_even(op: Builder, *, x: Value) -> Value | None:
    """Round the distance from the even number below, which is exact: a half to 0, and one and a half to 2.

    An even number is itself; the distance of an infinity from itself is NaN.
    """
    if x.dtype is None or x.rank is None:
        return None
    half, one, two = (op.const([number] if x.rank else number, x.dtype) for number in (0.5, 1.0, 2.0))
    even = op.Mul(op.Floor(op.Mul(x, half)), two)
    rest = op.Sub(x, even)
    first = op.Ceil(op.Sub(op.Min(rest, one), half))
    second = op.Floor(op.Sub(op.Max(rest, one), half))
    result: Value = op.Where(op.Equal(even, x), x, op.Add(even, op.Add(first, second)))
    return result


@rewrite("Cast", lambda op, x: op.Cast(x, _outputs=["whole"]))
def cast(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Truncate floats before they become integers."""
    if x.dtype is None or whole.dtype is None or not x.dtype.is_floating_point() or not whole.dtype.is_integer():
        return None
    result: Value = op.Cast(op.Mul(op.Sign(x), op.Floor(op.Abs(x))), to=whole.dtype)
    return result


class RoundToEven(PatternPass):
    """Convert Round to Floor and Ceil. MNN (3.6) rounds ties away from zero. WebGPU (0.4) does not support Round."""

    rewrites = (to_even,)


class TruncatedIntegers(PatternPass):
    """Truncate floats that become integers. OpenCV (4.14.0) computes integers as floats, and keeps the fraction."""

    rewrites = (cast,)
