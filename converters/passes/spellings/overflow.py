"""Activations whose exponentials do not overflow."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value

_SATURATED = 20.0
"""A number whose hyperbolic tangent is 1 in float32 and float64."""


def _is_float(x: Value) -> bool:
    return x.dtype is not None and x.dtype.is_floating_point()


@rewrite("Softplus", lambda op, x: op.Softplus(x))
def softplus(op: Builder, *, x: Value) -> Value | None:
    """Return max(x, 0) + Softplus(-|x|)."""
    if not _is_float(x) or x.rank is None:
        return None
    result: Value = op.Add(op.Max(x, op.const([0.0] if x.rank else 0.0, x.dtype)), op.Softplus(op.Neg(op.Abs(x))))
    return result


@rewrite("Tanh", lambda op, x: op.Tanh(x))
def tanh(op: Builder, *, x: Value) -> Value | None:
    """Return the hyperbolic tangent of numbers between -20 and 20."""
    if not _is_float(x):
        return None
    result: Value = op.Tanh(op.Clip(x, op.const(-_SATURATED, x.dtype), op.const(_SATURATED, x.dtype)))
    return result


@rewrite("LogSoftmax", lambda op, x: op.LogSoftmax(x, _outputs=["whole"]))
def log_softmax(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Return x - max(x) - log(sum(exp(x - max(x))))."""
    node = whole.producer()
    assert node is not None
    if not _is_float(x):
        return None
    axis = node.attributes.get_int("axis", -1)
    lower = op.Sub(x, op.ReduceMax(x, [axis]))
    result: Value = op.Sub(lower, op.Log(op.ReduceSum(op.Exp(lower), [axis])))
    return result


@rewrite("Asinh", lambda op, x: op.Asinh(x))
def asinh(op: Builder, *, x: Value) -> Value | None:
    """Return the function of the absolute value with the sign of the number."""
    if not _is_float(x):
        return None
    result: Value = op.Mul(op.Sign(x), op.Asinh(op.Abs(x)))
    return result


class StableSoftplus(PatternPass):
    """Compute Softplus of negative numbers only. For numbers above 88, OpenCV (5.0.0, 4.14.0), tract (0.23) and ncnn return
    infinity, and MNN (3.6) returns 87.
    """

    rewrites = (softplus,)


class ClippedTanh(PatternPass):
    """Clip the input of Tanh. OpenCV (5.0.0) returns NaN for numbers above 44."""

    rewrites = (tanh,)


class ExpandedLogSoftmax(PatternPass):
    """Convert LogSoftmax to Sub, Exp, ReduceSum and Log. OpenCV (5.0.0, 4.14.0), tract (0.23) and ncnn compute the logarithm
    of Softmax, which is infinite where Softmax is 0. WebGPU (0.4) does not support LogSoftmax. QNN's HTP (2.7) computes
    other numbers if the elements of a row differ by more than 88.
    """

    rewrites = (log_softmax,)


class OddAsinh(PatternPass):
    """Compute Asinh of positive numbers only. IREE (3.13) loses precision for negative numbers, and returns infinity
    below -4,096.
    """

    rewrites = (asinh,)
