"""Rounding to OpenVINO's types of less than 8 bits, and to f8e8m0, which has only powers of two."""

from __future__ import annotations

import math

import numpy as np

from converters.openvino.onnx_types import data_type
from converters.openvino.reader.constants import NF4
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rules._precision import D
from onnx_specops.building import Builder, Value

_T = ElementType


def to_low_precision(op: Builder, x: Value, target: ElementType) -> Value:
    """Convert ``x``, of any type that can be computed with, to ``target``'s values in the ONNX type that represents them."""
    if target.is_integer:
        whole = op.Cast(x, to=D.INT32)
        return op.Cast(_wrapped(op, whole, target), to=data_type(target))
    x = x if x.dtype == D.FLOAT else op.Cast(x, to=D.FLOAT)
    return _ROUNDING[target](op, x)


def _wrapped(op: Builder, x: Value, target: ElementType) -> Value:
    """Return the low bits, sign-extended for signed types."""
    kept = op.BitwiseAnd(x, 2**target.bits - 1)
    if not target.is_signed:
        return kept
    sign = 2 ** (target.bits - 1)
    return op.Sub(op.BitwiseXor(kept, sign), sign)


def _nf4(op: Builder, x: Value) -> Value:
    """Round to the nearest of the sixteen quantiles, halfway to the lower one. NaN becomes the lowest one."""
    halfway = (NF4[:-1].astype(np.float64) + NF4[1:]) / 2
    above = op.Greater(op.Unsqueeze(x, [-1]), halfway.astype(np.float32))
    code = op.ReduceSum(op.Cast(above, to=D.INT32), [-1], keepdims=0)
    return op.Gather(op.const(NF4), code)


def _f4e2m1(op: Builder, x: Value) -> Value:
    """Round to the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, halfway to the even code. Larger numbers and NaN become 6."""
    size = op.Min(op.Where(op.IsNaN(x), np.float32(6), op.Abs(x)), np.float32(6))
    step = op.Where(op.Less(size, 2.0), np.float32(0.5), op.Where(op.Less(size, 4.0), np.float32(1), np.float32(2)))
    size = op.Mul(op.Round(op.Div(size, step)), step)
    return op.Where(op.Less(x, 0.0), op.Neg(size), size)


def _f8e8m0(op: Builder, x: Value) -> Value:
    """Round to the nearest power of two, halfway to the even code, within 2^-127 and 2^127."""
    low, high = 2.0**-127, 2.0**127
    wide = op.Clip(op.Cast(x, to=D.DOUBLE), low, high)
    # The logarithm may have a rounding error, so the power is corrected below.
    exponent = op.Floor(op.Div(op.Log(wide), math.log(2)))
    power = op.Pow(op.const(2.0, D.DOUBLE), exponent)
    for step, outside in ((-1.0, op.Greater(power, wide)), (1.0, op.LessOrEqual(op.Mul(power, 2.0), wide))):
        exponent = op.Where(outside, op.Add(exponent, step), exponent)
        power = op.Where(outside, op.Mul(power, 2.0**step), power)
    part = op.Div(wide, power)
    # The code of an even exponent is odd.
    odd = op.Equal(op.Mod(op.Cast(exponent, to=D.INT64), 2), 0)
    up = op.Or(op.Greater(part, 1.5), op.And(op.Equal(part, 1.5), odd))
    power = op.Cast(op.Where(up, op.Mul(power, 2.0), power), to=D.FLOAT)
    return op.Where(op.IsNaN(x), x, power)


_ROUNDING = {_T.NF4: _nf4, _T.F4E2M1: _f4e2m1, _T.F8E8M0: _f8e8m0}

LOW_PRECISION = {t for t in _T if t.is_packed} | {_T.F8E8M0}
