"""RandomUniform: uniformly distributed numbers, equal to OpenVINO's."""

from __future__ import annotations

import time
from typing import Literal

import ml_dtypes
import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, INDICES, operator
from onnx_specops.ops._random_bits import emit_mersenne_twister, emit_philox, mersenne_twister, philox

# The number of bits that become the fraction: the mantissa for TensorFlow, one more for PyTorch.
_BITS = {Type.FLOAT16: 10, Type.BFLOAT16: 7, Type.FLOAT: 23, Type.DOUBLE: 52}
_TYPES = {np.dtype(np.float16): Type.FLOAT16, np.dtype(np.float32): Type.FLOAT, np.dtype(np.float64): Type.DOUBLE}
_TYPES |= {np.dtype(ml_dtypes.bfloat16): Type.BFLOAT16, np.dtype(np.int32): Type.INT32, np.dtype(np.int64): Type.INT64}
_LOW = 2**32 - 1


@operator(
    inputs={"shape": "tensor(int64)", "minval": "T", "maxval": "T"},
    outputs={"output": "T"},
    types={"T": (*FLOATS, *INDICES)},
)
def RandomUniform(
    shape,
    minval,
    maxval,
    *,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Literal["TENSORFLOW", "PYTORCH"] = "TENSORFLOW",
):
    """Samples uniformly distributed numbers from ``[minval, maxval)``.

    Inputs:
        shape: ``[rank]``, not negative.
        minval, maxval: scalar or ``[1]``. For integers, ``maxval`` must be greater than ``minval``.

    Attributes:
        global_seed, op_seed: unsigned 64-bit seeds in two's complement. If either is nonzero, every run generates the same
            numbers. If both are 0, every run generates different numbers.
        alignment: ``TENSORFLOW``: the generator is Philox 4x32-10 with the key ``global_seed`` and the counter
            ``op_seed``. ``PYTORCH``: the generator is MT19937, seeded by ``global_seed``.

    Output: the shape ``shape``. An integer is ``x % (maxval - minval) + minval`` of one 32-bit number ``x``. With
    ``PYTORCH``, ``x`` combines two numbers into one of 64 bits if ``minval`` or ``maxval`` needs more than 32 bits. A
    float is ``x * (maxval - minval) + minval`` of a fraction ``x``: the low bits of one number (float64: of two) are the
    mantissa of a number in [1, 2), from which 1 is subtracted. With ``PYTORCH``, one more bit is used, and the integer
    is divided by a power of 2. With ``TENSORFLOW``, float32 and bfloat16 results are rounded once, as in OpenVINO's CPU
    plugin.

    Source: OpenVINO specification, RandomUniform-8.
    """
    name = "RandomUniform"
    if shape.ndim != 1 or (shape < 0).any():
        raise ValueError(f"{name}: shape = {shape.tolist()} is not a shape")
    for input_name, value in (("minval", minval), ("maxval", maxval)):
        if np.size(value) != 1:
            raise ValueError(f"{name}: {input_name} has {np.size(value)} elements instead of one")
    low, high = np.reshape(minval, -1)[0], np.reshape(maxval, -1)[0]
    kind = _TYPES[low.dtype]
    if kind not in _BITS and low >= high:
        raise ValueError(f"{name}: minval = {low} is not less than maxval = {high}")
    dims = [int(d) for d in shape]
    count = int(np.prod(dims, dtype=object))
    words = _words(kind, alignment, low, high)
    seed, counter = global_seed % 2**64, op_seed % 2**64
    if seed == counter == 0:
        seed = time.time_ns() % 2**64
    numbers = philox(seed, counter, count * words) if alignment == "TENSORFLOW" else mersenne_twister(seed, count * words)
    convert = _floats if kind in _BITS else _integers
    return convert(numbers, low, high, kind, alignment, words).reshape(dims)


def _words(kind, alignment, low, high):
    """Return how many 32-bit numbers make one result."""
    return 2 if kind == Type.DOUBLE or (kind == Type.INT64 and alignment == "PYTORCH" and max(low, high) > _LOW) else 1


def _integers(numbers, low, high, kind, alignment, words):
    wide = numbers.astype(np.uint64)
    if words == 2:
        wide = (wide[0::2] << np.uint64(32)) | wide[1::2]
    drawn = wide % np.uint64(int(high) - int(low))
    return (drawn + np.array(low).astype(np.int64).view(np.uint64)).view(np.int64).astype(low.dtype)


def _floats(numbers, low, high, kind, alignment, words):
    bits = _BITS[kind] + (alignment == "PYTORCH")
    wide = numbers.astype(np.uint64)
    if words == 2:
        wide = (wide[0::2] << np.uint64(32)) | wide[1::2]
    fraction = (wide & np.uint64(2**bits - 1)).astype(np.float64) * 2.0**-bits
    span = high - low
    if kind == Type.DOUBLE:
        return fraction * span + low
    if alignment == "PYTORCH":
        return (fraction.astype(np.float32) * np.float32(span) + np.float32(low)).astype(low.dtype)
    if kind == Type.FLOAT16:
        return fraction.astype(np.float16) * span + low
    return (fraction * np.float64(span) + np.float64(low)).astype(np.float32).astype(low.dtype)


@RandomUniform.infer_shapes
def _(node):
    shape, rank = node.constant(0), node.shape(0)
    if shape is not None:
        return [[int(d) for d in shape]]
    return [[None] * rank[0] if rank and isinstance(rank[0], int) else None]


@RandomUniform.body
def _(op, shape, minval, maxval, *, global_seed, op_seed, alignment):
    kind = minval.dtype
    low, high = (op.Reshape(x, op.const([])) for x in (minval, maxval))
    count = required(op, "RandomUniform: shape must not be negative", op.Less(shape, 0), op.ReduceProd(shape))
    numbers = _emit_numbers(op, count, kind, low, high, global_seed % 2**64, op_seed % 2**64, alignment)
    emit = _emit_floats if kind in _BITS else _emit_integers
    return op.Reshape(emit(op, numbers, low, high, kind, alignment), shape, allowzero=1)


def _emit_numbers(op, count, kind, low, high, seed, counter, alignment):
    """Emit the random 32-bit or 64-bit numbers as uint64."""

    def draw(op, count):
        if seed == counter == 0:
            keys = op.RandomUniform(dtype=Type.DOUBLE, high=float(2**32), shape=[2])
            keys = op.Cast(op.Cast(keys, to=Type.INT64), to=Type.UINT64)
            return emit_philox(op, [op.Gather(keys, op.const(i)) for i in (0, 1)], 0, count)
        if alignment == "TENSORFLOW":
            return emit_philox(op, [seed & _LOW, seed >> 32], counter, count)
        return emit_mersenne_twister(op, seed, count)

    def pairs(op):
        numbers = draw(op, op.Mul(count, 2))
        highs, lows = (op.Slice(numbers, [i], [np.iinfo(np.int64).max], [0], [2]) for i in (0, 1))
        return op.BitwiseOr(op.BitShift(highs, op.const(np.uint64(32)), direction="LEFT"), lows)

    if kind == Type.DOUBLE:
        return pairs(op)
    if kind == Type.INT64 and alignment == "PYTORCH":
        return op.if_(op.Greater(op.Max(low, high), _LOW), pairs, lambda op: draw(op, count))
    return draw(op, count)


def _emit_integers(op, numbers, low, high, kind, alignment):
    low, high = (op.Cast(x, to=Type.INT64) for x in (low, high))
    span = required(op, "RandomUniform: minval must be less than maxval", op.GreaterOrEqual(low, high), op.Sub(high, low))
    drawn = op.Cast(numbers, to=Type.INT64)
    if kind == Type.INT64 and alignment == "PYTORCH":
        # A 64-bit number with its highest bit set is negative as int64, so it is processed in two halves.
        half = op.Mod(op.Cast(op.BitShift(numbers, op.const(np.uint64(1)), direction="RIGHT"), to=Type.INT64), span)
        odd = op.Cast(op.BitwiseAnd(numbers, op.const(np.uint64(1))), to=Type.INT64)
        twice = op.Sub(half, op.Sub(span, half))
        twice = op.Where(op.Less(twice, 0), op.Add(twice, span), twice)
        remainder = op.Where(op.Equal(op.Add(twice, odd), span), op.const(0), op.Add(twice, odd))
    else:
        remainder = op.Mod(drawn, span)
    return op.Cast(op.Add(remainder, low), to=kind)


def _emit_floats(op, numbers, low, high, kind, alignment):
    bits = _BITS[kind] + (alignment == "PYTORCH")
    fraction = op.Cast(op.BitwiseAnd(numbers, op.const(np.uint64(2**bits - 1))), to=Type.INT64)
    fraction = op.Mul(op.Cast(fraction, to=Type.DOUBLE), 2.0**-bits)
    span = op.Cast(op.Sub(high, low), to=kind)
    if kind == Type.DOUBLE:
        return op.Add(op.Mul(fraction, span), low)
    if alignment == "PYTORCH":
        fraction, span, low = (op.Cast(x, to=Type.FLOAT) for x in (fraction, span, low))
        return op.Cast(op.Add(op.Mul(fraction, span), low), to=kind)
    if kind == Type.FLOAT16:
        span, low = (op.Cast(x, to=Type.DOUBLE) for x in (span, low))
        product = op.Cast(op.Cast(op.Mul(fraction, span), to=kind), to=Type.DOUBLE)
        return op.Cast(op.Cast(op.Add(product, low), to=Type.FLOAT), to=kind)
    span, low = (op.Cast(x, to=Type.DOUBLE) for x in (span, low))
    return op.Cast(op.Cast(op.Add(op.Mul(fraction, span), low), to=Type.FLOAT), to=kind)
