"""Activation functions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import Departure, omitted, rule
from converters.openvino.rules._elementwise import check_types, checked_onto, typed, within_rank
from converters.openvino.rules._precision import (
    INTEGERS,
    INTEGERS_IN_FLOAT32,
    UNSIGNED,
    halves_in_float32,
    integers_rounded,
    mixed_in_float32,
)
from onnx_specops.building import Builder, Value

_NAN_TO_0 = Departure(where="a NaN", cpu="gives 0", reference="keeps it", follows="reference")
_SOFTMAX_OF_NAN = Departure(
    where="a NaN among the elements",
    cpu="gives NaN for one element, and treats the others as negligible",
    specification="makes all elements NaN",
    follows="specification",
)
_NOT_CONSTANT = Departure(
    where="parameters that are not constant", cpu="rejects them", specification="allows them", follows="specification"
)


@rule("Relu", departs=[_NAN_TO_0, INTEGERS_IN_FLOAT32])
def relu(op: Builder, x: Value):
    """Relu-1."""
    if x.dtype in INTEGERS:
        return x if x.dtype in UNSIGNED else op.Max(x, 0)
    return op.Relu(x)


@rule(
    "PRelu",
    departs=[
        Departure(
            where="a slope for the last dimension, or with more dimensions than the data, if dimensions are unknown",
            cpu="fails",
            reference="broadcasts it",
            follows="reference",
        ),
        Departure(
            where="negative infinity and a slope of 0, directly after a Convolution",
            cpu="gives 0",
            specification="gives NaN, as 0 times infinity does",
            follows="specification",
        ),
        Departure(
            where="a slope for each channel, directly after a MatMul of four dimensions",
            cpu="treats it as one for each column, or fails",
            reference="applies it to the channels",
            follows="reference",
        ),
        Departure(
            where="a slope for each channel, between a MatMul of three dimensions and a FakeQuantize with limits for each "
            "column",
            cpu="applies other slopes or limits",
            reference="applies each to its dimension",
            follows="reference",
        ),
    ],
)
def prelu(op: Builder, x: Value, slope: Value):
    """PRelu-1: a slope of rank 1 is per channel if the sizes are equal. Otherwise NumPy's broadcasting applies.

    A slope of higher rank than ``x`` does not add dimensions, because its first ones are 1.
    """
    if x.dims is not None and 0 in x.dims:  # the slope and its size are not used
        return op.Identity(x)
    slope = checked_onto(x, _channels(op, x, within_rank(op, x, slope)))
    return mixed_in_float32(op, op.PRelu, x, slope)


def _channels(op: Builder, x: Value, slope: Value) -> Value:
    """Return a slope of rank 1 with its dimension at axis 1 of ``x`` if it has one element per channel."""
    if x.rank is not None and (x.rank <= 2 or slope.rank not in (1, None)):
        return slope
    if slope.rank is not None and slope.rank != 1:
        return slope
    count, channels = op.Shape(slope), op.Slice(op.Shape(x), [1], [2])
    others = op.Sub(op.Shape(op.Shape(x)), 2)
    behind = op.Expand(op.const(1), op.Max(others, 0))

    def per_channel(op: Builder) -> Value:
        return op.Reshape(slope, op.Concat(count, behind, axis=0))

    # One element broadcasts in both forms. An empty slice (x of rank 1) compares to nothing.
    same = op.ReduceMax(op.Cast(op.Concat([0], op.Cast(op.Equal(channels, count), to=7), axis=0), to=7), keepdims=0)
    if slope.rank is None:
        same = op.Mul(same, op.Cast(op.Equal(op.Size(op.Shape(slope)), 1), to=7))
    if same.constant is not None:
        return per_channel(op) if int(same.constant) else slope
    shape = op.if_(op.Cast(same, to=9), lambda op: op.Concat(count, behind, axis=0), lambda op: op.Shape(slope))
    return op.Reshape(slope, shape)


@rule("Sigmoid")
def sigmoid(op: Builder, x: Value):
    """Sigmoid-1."""
    return integers_rounded(op, op.Sigmoid, x)


@rule(
    "HardSigmoid",
    departs=[
        _NOT_CONSTANT,
        Departure(
            where="an `alpha` or a `beta` of 0",
            cpu="uses 0.2 or 0.5 instead",
            specification="multiplies by 0, or adds 0",
            follows="specification",
        ),
    ],
)
def hard_sigmoid(op: Builder, x: Value, alpha: Value, beta: Value):
    """HardSigmoid-1."""
    check_types(x, alpha, beta)
    a, b = _scalar(alpha), _scalar(beta)

    def function(x: Value) -> Value:
        if a is not None and b is not None:
            return op.HardSigmoid(x, alpha=a, beta=b)
        slope, shift = (_flat(op, op.CastLike(parameter, x)) for parameter in (alpha, beta))
        return op.Clip(op.Add(op.Mul(x, slope), shift), typed(0, x.dtype), typed(1, x.dtype))

    return integers_rounded(op, function, x)


@rule("HSigmoid", since="opset5", departs=[_NAN_TO_0])
def hsigmoid(op: Builder, x: Value):
    """HSigmoid-5."""
    return integers_rounded(op, lambda x: op.HardSigmoid(x, alpha=1 / 6, beta=0.5), x)


@rule("HSwish", since="opset4")
def hswish(op: Builder, x: Value):
    """HSwish-4."""
    return integers_rounded(op, op.HardSwish, x)


@rule("Swish", since="opset4")
def swish(op: Builder, x: Value, beta: Value | None = None):
    """Swish-4; ``beta`` is 1 by default."""
    check_types(x, *([] if beta is None else [beta]))
    scaled = x if beta is None or _scalar(beta) == 1 else op.Mul(x, _flat(op, beta))
    return op.Mul(x, op.Sigmoid(scaled))


@rule("Elu")
def elu(op: Builder, x: Value, *, alpha: float):
    """Elu-1."""
    if x.dtype in UNSIGNED:
        return x
    result = integers_rounded(op, lambda x: op.Elu(x, alpha=alpha), x)
    # Positive integers stay exact.
    return op.Where(op.Greater(x, 0), x, result) if x.dtype in INTEGERS else result


@rule(
    "Selu",
    departs=[
        _NOT_CONSTANT,
        Departure(
            where="an `alpha` or a `lambda` of 0",
            cpu="uses the default value instead",
            specification="multiplies by 0",
            follows="specification",
        ),
    ],
)
def selu(op: Builder, x: Value, alpha: Value, lambda_: Value):
    """Selu-1."""
    check_types(x, alpha, lambda_)
    a, gamma = _scalar(alpha), _scalar(lambda_)
    if a is not None and gamma is not None:
        return op.Selu(x, alpha=a, gamma=gamma)
    negative = op.Mul(_flat(op, alpha), op.Sub(op.Exp(x), 1))
    return op.Mul(_flat(op, lambda_), op.Where(op.Greater(x, 0), x, negative))


_GELU_OF_INFINITY = Departure(
    where="infinity, by `erf`", cpu="gives NaN", reference="gives infinity", follows="reference", avx512=True
)


@rule("Gelu", since="opset2", departs=[_GELU_OF_INFINITY])
def gelu_2(op: Builder, x: Value):
    """Gelu-2."""
    return op.Gelu(x)


@rule("Gelu", since="opset7", departs=[_GELU_OF_INFINITY])
def gelu(op: Builder, x: Value, *, approximation_mode: Literal["erf", "tanh"] = "erf"):
    """Gelu-7."""
    return op.Gelu(x, approximate="tanh" if approximation_mode == "tanh" else None)


@rule("Mish", since="opset4")
def mish(op: Builder, x: Value):
    """Mish-4."""
    return op.Mish(x)


@rule("SoftPlus", since="opset4")
def soft_plus(op: Builder, x: Value):
    """SoftPlus-4."""
    return op.Softplus(x)


@rule("SoftSign", since="opset9")
def soft_sign(op: Builder, x: Value):
    """SoftSign-9."""
    return op.Softsign(x)


@rule(
    "Clamp",
    departs=[
        Departure(where="a NaN", cpu="gives `min`", reference="keeps it", follows="reference"),
        Departure(
            where="i8 and u8, with bounds that are not integers",
            cpu="clamps them as floats, then truncates",
            specification="rounds the bounds inwards",
            follows="specification",
        ),
    ],
)
def clamp(op: Builder, x: Value, *, min: float, max: float):
    """Clamp-1: for integers, the bounds are rounded inwards."""
    if not min <= max:
        raise Malformed(f"its bounds min={min} and max={max} exclude every value")
    if x.dtype not in INTEGERS:
        exact = all(float(typed(bound, x.dtype)) == bound for bound in (min, max))

        def clipped(x: Value) -> Value:
            return op.Clip(x, typed(min, x.dtype), typed(max, x.dtype))

        return clipped(x) if exact else halves_in_float32(op, clipped, x)
    info = np.iinfo(x.dtype.numpy())
    low = info.min if min <= info.min else info.max if min > info.max else math.ceil(min)
    high = info.max if max >= info.max else info.min if max < info.min else math.floor(max)
    if low > high and info.bits == 8:  # as in the reference kernel, if no integer is between the bounds
        return op.Where(op.Less(x, low), op.const(low, x.dtype), op.const(high, x.dtype))
    return op.Min(op.Max(x, low), high)


@rule("Softmax", departs=[_SOFTMAX_OF_NAN, omitted("axis", "0", "1")])
def softmax_1(op: Builder, x: Value, *, axis: int = 0):
    """Softmax-1: along one axis, which is not negative."""
    if axis < 0:
        raise Malformed(f"its axis {axis} is negative", "Softmax supports negative axes since opset8")
    return integers_rounded(op, lambda x: op.Softmax(x, axis=axis), x)


@rule("Softmax", since="opset8", departs=[_SOFTMAX_OF_NAN])
def softmax(op: Builder, x: Value, *, axis: int = 1):
    """Softmax-8."""
    return integers_rounded(op, lambda x: op.Softmax(x, axis=axis), x)


@rule("LogSoftmax", since="opset5", departs=[_SOFTMAX_OF_NAN])
def log_softmax(op: Builder, x: Value, *, axis: int = 1):
    """LogSoftmax-5."""
    return integers_rounded(op, lambda x: op.LogSoftmax(x, axis=axis), x)


@rule(
    "GRN",
    departs=[
        Departure(
            where="the output of a recurrent sequence with lengths below the number of steps",
            cpu="normalizes along another axis",
            specification="normalizes each vector of channels",
            follows="specification",
        )
    ],
)
def grn(op: Builder, x: Value, *, bias: float):
    """GRN-1: each vector of channels divided by its length."""

    def function(x: Value) -> Value:
        squares = op.ReduceSum(op.Mul(x, x), [1], keepdims=1)
        return op.Div(x, op.Sqrt(op.Add(squares, bias)))

    return integers_rounded(op, lambda x: halves_in_float32(op, function, x), x)


def _scalar(x: Value) -> float | None:
    """Return the number in a constant of one element."""
    return float(x.constant.reshape(-1)[0]) if x.constant is not None and x.constant.size == 1 else None


def _flat(op: Builder, x: Value) -> Value:
    """Convert a parameter of one element to a scalar, which broadcasts without adding dimensions."""
    if x.dims and any(d not in (1, None) for d in x.dims):
        raise Malformed(f"its parameter has the shape {x.dims}; it must be one number")
    return x if x.rank == 0 else op.Reshape(x, op.const(np.empty(0, np.int64)))
