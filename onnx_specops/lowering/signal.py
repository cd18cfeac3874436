"""DFT, as a matrix multiplication for opsets that lack it."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list
from onnx_specops.lowering.adapters import LoweringBuilder, NotRepresentableError, along, below, in_float32, need_rank


@below(20, "DFT")
def dft_axis(op: LoweringBuilder, x, length=None, axis=None, *, inverse=0, onesided=0, node):
    """The axis is an attribute. A run-time axis selects among the possible axes."""
    rank = need_rank(x, "DFT")
    places = [-2] if axis is None else constant_list(axis)
    if places is not None:
        (place,) = along(places, rank)
        return _spectrum(op, x, length, place, inverse, onesided, op.opset)
    types = [(x.dtype, node.outputs[0].dims)]
    last = op.Where(op.Less(axis, 0), op.Add(axis, rank), axis)

    def chosen(op_: Builder, place: int = 0) -> Value:
        if place == rank - 2:
            return op_.node("Identity", _spectrum(op_, x, length, place, inverse, onesided, op.opset), types=types)
        return op_.if_(
            op_.Equal(last, place),
            lambda o: o.node("Identity", _spectrum(o, x, length, place, inverse, onesided, op.opset), types=types),
            lambda o: chosen(o, place + 1),
        )

    return chosen(op)


def _spectrum(op: Builder, x: Value, length: Value | None, place: int, inverse: int, onesided: int, opset: int) -> Value:
    if opset >= 17:
        return op.at(opset).DFT(x, length, axis=place, inverse=inverse, onesided=onesided)
    return _products(op, x, length, place=place, inverse=inverse, onesided=onesided)


def _parts(op: Builder, x: Value) -> list[Value]:
    """Return the real parts and the imaginary parts, if there are any. Imaginary parts that may be missing are computed as
    sums of at most one number.
    """
    if x.dims is not None and x.dims[-1] is not None:
        return [op.Gather(x, k, axis=-1) for k in range(x.dims[-1])]
    return [op.Gather(x, 0, axis=-1), op.ReduceSum(op.Slice(x, [1], [2], [-1]), [-1], keepdims=0)]


@in_float32
def _products(op: Builder, x: Value, length: Value | None, *, place: int, inverse: int, onesided: int) -> Value:
    """Multiply by a matrix of cosines and one of sines."""
    if inverse and onesided:
        raise NotRepresentableError("DFT that is inverse and one-sided")
    rank = need_rank(x, "DFT")
    # The axis is last; real and imaginary parts are separate.
    order = [i for i in range(rank - 1) if i != place]
    parts = [op.Transpose(part, perm=[*order, place]) for part in _parts(op, x)]
    size = op.Shape(x, start=place, end=place + 1)
    if length is not None:
        wanted = op.Reshape(op.Cast(length, to=ir.DataType.INT64), [1])
        parts = [op.Slice(part, [0], wanted, [-1]) for part in parts]
        present, size = op.Min(size, wanted), wanted
    else:
        present = size
    bins = op.Add(op.Div(size, 2), 1) if onesided else size
    numbers = [op.Range(0, op.Squeeze(count, [0]), 1) for count in (present, bins)]
    turns = op.Mod(op.Mul(op.Unsqueeze(numbers[0], [1]), numbers[1]), size)
    angle = op.Mul(op.Div(op.Cast(turns, to=x.dtype), op.Cast(size, to=x.dtype)), 2 * math.pi)
    cosine, sine = op.Cos(angle), op.Sin(angle)
    if inverse:
        cosine, sine = (op.Div(wave, op.Cast(size, to=x.dtype)) for wave in (cosine, op.Neg(sine)))
    real, imaginary = op.MatMul(parts[0], cosine), op.Neg(op.MatMul(parts[0], sine))
    if len(parts) > 1:
        real = op.Add(real, op.MatMul(parts[1], sine))
        imaginary = op.Add(imaginary, op.MatMul(parts[1], cosine))
    whole = op.Concat(*(op.Unsqueeze(part, [-1]) for part in (real, imaginary)), axis=-1)
    back = [0] * rank
    for i, axis in enumerate([*order, place, rank - 1]):
        back[axis] = i
    return op.Transpose(whole, perm=back)
