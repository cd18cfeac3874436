"""Discrete Fourier transforms of signals, whole and in short frames."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._onnxruntime import DFT_BY_PRODUCT, is_dft_better
from converters.openvino.rules._precision import halves_in_float32
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

_INT64 = ir.DataType.INT64

# Far above the rounding error of an angle in double precision, and far below any other value of a wave with so many columns.
_NOTHING = 1e-12


def _halves_in_float32(function: Callable[..., Value]) -> Callable[..., Value]:
    """Extend the rule to 16-bit floats."""

    @functools.wraps(function)
    def wide(op: Builder, data: Value, *inputs: Any, **attributes: Any) -> Value:
        places = [i for i, x in enumerate(inputs) if isinstance(x, Value) and x.dtype == data.dtype]

        def compute(data: Value, *floats: Value) -> Value:
            given = dict(enumerate(inputs)) | dict(zip(places, floats, strict=True))
            return function(op, data, *given.values(), **attributes)

        return halves_in_float32(op, compute, data, *(inputs[i] for i in places))

    return wide


_LONGER_REJECTED = Departure(
    where="a `signal_size` above the dimension", cpu="fails", specification="pads with zeros", follows="specification"
)
_LONGER = Departure(
    where="several `signal_size`s above their dimensions",
    cpu="reads out of bounds",
    specification="pads with zeros",
    follows="specification",
)
_SIZE_KEPT = Departure(
    where="a `signal_size` of -1 among others", cpu="fails", specification="keeps the dimension", follows="specification"
)
_AXES_AT_RUN_TIME = Departure(
    where="axes that are not constant", cpu="rejects them", specification="allows them", follows="specification"
)


@rule("DFT", since="opset7")
@_halves_in_float32
def dft(op: Builder, data: Value, axes: Value, signal_size: Value | None = None):
    """DFT-7: complex numbers along the last dimension, which the axes do not count."""
    places, sizes = _axes_and_sizes(op, data, axes, signal_size, complex_input=True)
    return _transformed(op, data, places, sizes)


@rule("IDFT", since="opset7")
@_halves_in_float32
def idft(op: Builder, data: Value, axes: Value, signal_size: Value | None = None):
    """IDFT-7."""
    places, sizes = _axes_and_sizes(op, data, axes, signal_size, complex_input=True)
    return _transformed(op, data, places, sizes, inverse=True)


@rule("RDFT", since="opset9", departs=[_LONGER_REJECTED, _AXES_AT_RUN_TIME, _SIZE_KEPT])
@_halves_in_float32
def rdft(op: Builder, data: Value, axes: Value, signal_size: Value | None = None):
    """RDFT-9: real numbers. The result has the first half of the spectrum along the last axis, and all of it along the
    others.
    """
    places, sizes = _axes_and_sizes(op, data, axes, signal_size, complex_input=False)
    place = op.Slice(places, [-1], [2**31])
    half = _real_spectrum(op, data, place, _size(op, data, place, sizes, -1))
    return _transformed(op, half, op.Slice(places, [0], [-1]), None if sizes is None else op.Slice(sizes, [0], [-1]))


@rule("IRDFT", since="opset9", departs=[_LONGER, _AXES_AT_RUN_TIME, _SIZE_KEPT])
@_halves_in_float32
def irdft(op: Builder, data: Value, axes: Value, signal_size: Value | None = None):
    """IRDFT-9: the inverse of RDFT."""
    places, sizes = _axes_and_sizes(op, data, axes, signal_size, complex_input=True)
    others = None if sizes is None else op.Slice(sizes, [0], [-1])
    data = _transformed(op, data, op.Slice(places, [0], [-1]), others, inverse=True)
    place = op.Slice(places, [-1], [2**31])
    size = op.Mul(op.Sub(op.Gather(op.Shape(data), place, axis=0), 1), 2)
    if sizes is not None:
        given = op.Slice(sizes, [-1], [2**31])
        size = op.Where(op.Equal(given, -1), size, given)
    return _real_signal(op, data, place, size)


@rule("STFT", since="opset15")
@_halves_in_float32
def stft(op: Builder, signal: Value, window: Value, frame_size: Value, frame_step: Value, *, transpose_frames: bool):
    """STFT-15: a window shorter than the frames is centered."""
    size, step = _framing(op, frame_size, frame_step)

    def transformed(signal: Value) -> Value:
        count = op.Add(op.Div(op.Sub(op.Shape(signal, start=1), size), step), 1)
        frames = op.Gather(signal, _positions(op, count, size, step), axis=1)
        frames = op.Mul(frames, _in_the_middle(op, window, size))
        spectra = _real_spectrum(op, frames, op.const([2]), size)
        return op.Transpose(spectra, perm=[0, 2, 1, 3]) if transpose_frames else spectra

    return _batched(op, transformed, signal, 1)


@rule("ISTFT", since="opset16")
@_halves_in_float32
def istft(
    op: Builder,
    data: Value,
    window: Value,
    frame_size: Value,
    frame_step: Value,
    signal_length: Value | None = None,
    *,
    center: bool,
    normalized: bool,
):
    """ISTFT-16, as in torch: the frames times the window, added and divided by the sums of the squared windows."""
    size, step = _framing(op, frame_size, frame_step)
    window = _in_the_middle(op, window, size)

    def restored(data: Value) -> Value:
        return _restored(op, data, window, size, step, signal_length, center, normalized)

    return _batched(op, restored, data, 3)


def _restored(
    op: Builder,
    data: Value,
    window: Value,
    size: Value,
    step: Value,
    signal_length: Value | None,
    center: bool,
    normalized: bool,
) -> Value:
    """Return the signals ``[batch, length]`` of the spectra ``[batch, bins, frames, 2]``."""
    spectra = op.Transpose(data, perm=[0, 2, 1, 3])
    frames = op.Mul(_real_signal(op, spectra, op.const([2]), size), window)
    count = op.Shape(frames, start=1, end=2)
    whole = op.Add(op.Mul(op.Sub(count, 1), step), size)
    positions = op.Reshape(_positions(op, count, size, step), [-1])

    def added(parts: Value) -> Value:
        """Add the overlapping frames of ``[batch, frames, size]``."""
        rows = op.Shape(parts, start=0, end=1)
        flat = op.Reshape(parts, op.Concat(rows, op.Mul(count, size), axis=0), allowzero=1)
        nothing = op.Expand(op.const(0, parts.dtype), op.Concat(rows, whole, axis=0))
        return op.ScatterElements(nothing, op.Expand(positions, op.Shape(flat)), flat, axis=1, reduction="add")

    weights = added(op.Expand(op.Mul(window, window), op.Concat([1], count, size, axis=0)))
    empty = op.Equal(weights, 0)
    signal = op.Div(added(frames), op.Where(empty, op.const(1, weights.dtype), weights))
    if normalized:
        signal = op.Mul(signal, op.Sqrt(op.Cast(size, to=data.dtype)))
    signal = op.Where(empty, op.const(0, data.dtype), signal)
    margin = op.Div(size, 2) if center else op.const([0])
    length = op.Sub(whole, op.Mul(margin, 2))
    if signal_length is not None:
        given = op.Reshape(op.Cast(signal_length, to=_INT64), [1])
        length = op.Where(op.Greater(given, 0), given, length)
    end = op.Sub(op.Add(length, margin), whole)
    return op.Pad(signal, op.Concat([0], op.Neg(margin), [0], end, axis=0))


def _batched(op: Builder, function: Callable[[Value], Value], x: Value, rank: int) -> Value:
    """Apply ``function``, which needs a batch, to tensors of ``rank`` dimensions, or to one without a batch."""
    if x.rank == rank + 1:
        return function(x)
    if x.rank == rank:
        return op.Squeeze(function(op.Unsqueeze(x, [0])), [0])
    if x.rank is not None:
        raise Malformed(f"its input has the rank {x.rank} instead of {rank} or {rank + 1}")
    lead = op.Shape(x, end=-rank)
    batch = op.Reshape(x, op.Concat(op.ReduceProd(lead, keepdims=1), op.Shape(x, start=-rank), axis=0), allowzero=1)
    result = function(batch)
    return op.Reshape(result, op.Concat(lead, op.Shape(result, start=1), axis=0), allowzero=1)


def _framing(op: Builder, frame_size: Value, frame_step: Value) -> tuple[Value, Value]:
    """Return the size of a frame and the step between frames, as vectors of one element."""
    size, step = (op.Reshape(op.Cast(number, to=_INT64), [1]) for number in (frame_size, frame_step))
    for name, value in (("frame_size", size), ("frame_step", step)):
        if value.constant is not None and value.constant[0] < 1:
            raise Malformed(f"its {name} is {int(value.constant[0])}; it must be 1 or more")
    return size, step


def _positions(op: Builder, count: Value, size: Value, step: Value) -> Value:
    """Return the positions in the signal of all elements of all frames, ``[count, size]``."""
    starts = op.Mul(op.Range(0, op.Squeeze(count, [0]), 1), step)
    return op.Add(op.Unsqueeze(starts, [1]), op.Range(0, op.Squeeze(size, [0]), 1))


def _in_the_middle(op: Builder, window: Value, size: Value) -> Value:
    """Pad the window with zeros on both sides to the size of a frame."""
    missing = op.Sub(size, op.Shape(window))
    before = op.Div(missing, 2)
    if missing.constant is not None and not missing.constant.any():
        return window
    return op.Pad(window, op.Concat(before, op.Sub(missing, before), axis=0))


def _axes_and_sizes(
    op: Builder, data: Value, axes: Value, signal_size: Value | None, complex_input: bool
) -> tuple[Value, Value | None]:
    """Return the normalized axes, and the sizes along them, with -1 for that of the data."""
    if complex_input and data.dims and data.dims[-1] not in (None, 2):
        raise Malformed(f"its input has {data.dims[-1]} numbers in the last dimension instead of two")
    match_shapes(axes=(axes, "N"))
    axes = op.Cast(axes, to=_INT64)
    if axes.constant is not None and data.rank is not None:
        rank = data.rank - complex_input
        known = [int(a) + rank * (a < 0) for a in axes.constant]
        if any(not 0 <= a < rank for a in known) or len(set(known)) != len(known) or not known:
            raise Malformed(f"its axes are {axes.constant.tolist()} for {rank} dimensions")
    if signal_size is not None:
        match_shapes(axes=(axes, "N"), signal_size=(signal_size, "N"))
        if signal_size.constant is not None and any(n < 1 and n != -1 for n in signal_size.constant):
            raise Malformed(
                f"its signal_size is {signal_size.constant.tolist()}; each number must be -1 (the dimension) or 1 or more"
            )
    count = op.Sub(op.Size(op.Shape(data)), int(complex_input))
    places = op.Where(op.Less(axes, 0), op.Add(axes, count), axes)
    return places, None if signal_size is None else op.Cast(signal_size, to=_INT64)


def _size(op: Builder, x: Value, place: Value, sizes: Value | None, index: int) -> Value:
    """Return the size of the transform along an axis: ``sizes[index]``, or the data's if that is -1 or missing."""
    own = op.Gather(op.Shape(x), place, axis=0)
    if sizes is None:
        return own
    given = op.Slice(sizes, [index], [index + 1 if index != -1 else 2**31])
    return op.Where(op.Equal(given, -1), own, given)


def _transformed(op: Builder, x: Value, places: Value, sizes: Value | None, inverse: bool = False) -> Value:
    """Transform complex numbers along several axes, one after the other."""
    count = places.dims[0] if places.dims else None
    if count is not None:
        for k in range(count):
            place = op.Slice(places, [k], [k + 1])
            x = _spectrum(op, x, place, _size(op, x, place, sizes, k), inverse)
        return x

    def one(op: Builder, k: Value, condition: Value, x: Value) -> tuple[Value, Value]:
        at = op.Reshape(k, [1])
        place = op.Gather(places, at, axis=0)
        size = _size(op, x, place, None if sizes is None else op.Gather(sizes, at, axis=0), 0)
        return condition, _spectrum(op, x, place, size, inverse)

    dims = None if x.rank is None else [None] * (x.rank - 1) + [2]
    return op.loop(op.Squeeze(op.Shape(places), [0]), True, one, x, carried_dims=[dims])


def _spectrum(op: Builder, x: Value, place: Value, size: Value, inverse: bool) -> Value:
    """Transform complex numbers ``[..., 2]`` along an axis. ``place`` and ``size`` are vectors of one element."""

    def product(op: Builder) -> Value:
        part = op.Slice(x, [0], size, place)
        length = op.Gather(op.Shape(part), place, axis=0)
        cosine, sine = _waves(op, size, length, size, x.dtype)
        if inverse:
            scale = op.Cast(size, to=x.dtype)
            cosine, sine = op.Div(cosine, scale), op.Div(op.Neg(sine), scale)
        turned = op.Mul(op.Gather(part, [1, 0], axis=-1), op.const([1, -1], x.dtype))
        return op.Add(_contracted(op, cosine, part, place), _contracted(op, sine, turned, place))

    def transform(op: Builder) -> Value:
        return op.DFT(x, op.Squeeze(size, [0]), op.Squeeze(place, [0]), inverse=1 if inverse else None)

    last = place.constant is not None and x.rank is not None and int(place.constant[0]) == x.rank - 2
    return _matmul_or_dft(op, size, product, transform, contiguous=last)


def _real_spectrum(op: Builder, x: Value, place: Value, size: Value) -> Value:
    """Return the first half of the spectrum of real numbers along an axis, complex ``[..., 2]``."""

    def product(op: Builder) -> Value:
        part = op.Slice(x, [0], size, place)
        bins = op.Min(op.Add(op.Div(size, 2), 1), size)  # 0 for an empty axis
        cosine, sine = _waves(op, bins, op.Gather(op.Shape(part), place, axis=0), size, x.dtype)
        parts = (_contracted(op, matrix, part, place) for matrix in (cosine, op.Neg(sine)))
        return op.Concat(*(op.Unsqueeze(part, [-1]) for part in parts), axis=-1)

    def transform(op: Builder) -> Value:
        return op.DFT(op.Unsqueeze(x, [-1]), op.Squeeze(size, [0]), op.Squeeze(place, [0]), onesided=1)

    return _matmul_or_dft(op, size, product, transform)


def _real_signal(op: Builder, x: Value, place: Value, size: Value) -> Value:
    """Return the ``size`` real numbers along an axis whose spectrum has ``x``, complex ``[..., 2]``, as its first half."""
    x = op.Slice(x, [0], op.Add(op.Div(size, 2), 1), place)
    bins = op.Gather(op.Shape(x), place, axis=0)

    def weights(op: Builder) -> Value:
        # Each bin also represents its mirror image, except the first and, for even sizes, the middle one.
        twice = op.Mul(op.Range(0, op.Squeeze(bins, [0]), 1), 2)
        return op.Where(op.Equal(op.Mod(twice, op.Max(size, 1)), 0), op.const(1, x.dtype), op.const(2, x.dtype))

    def product(op: Builder) -> Value:
        weight = op.Div(weights(op), op.Cast(size, to=x.dtype))
        cosine, sine = (op.Mul(wave, weight) for wave in _waves(op, size, bins, size, x.dtype))
        real, imaginary = (op.Gather(x, k, axis=-1) for k in (0, 1))
        return op.Sub(_contracted(op, cosine, real, place), _contracted(op, sine, imaginary, place))

    def transform(op: Builder) -> Value:
        after = op.Expand(op.const([1]), op.Sub(op.Sub(op.Size(op.Shape(x)), 1), place))
        weighted = op.Mul(x, op.Reshape(weights(op), op.Concat(bins, after, axis=0)))
        return op.Gather(op.DFT(weighted, op.Squeeze(size, [0]), op.Squeeze(place, [0]), inverse=1), 0, axis=-1)

    return _matmul_or_dft(op, size, product, transform)


def _matmul_or_dft(
    op: Builder,
    size: Value,
    product: Callable[[Builder], Value],
    transform: Callable[[Builder], Value],
    contiguous: bool = False,
) -> Value:
    """Select between a MatMul with a matrix of waves, for sizes up to a limit, and ONNX's DFT.

    If the size is unknown, the matrix is computed in each run, except for powers of two.
    """
    if size.constant is not None:
        number = int(size.constant.reshape(-1)[0])
        return (transform if is_dft_better(number, contiguous) else product)(op)
    # The lowest bit of a power of two is above all bits of its predecessor. Size 0 is a product, too.
    below = op.Sub(size, 1)
    no_power = op.LessOrEqual(op.BitwiseXor(size, below), below)
    chosen = op.And(no_power, op.LessOrEqual(size, DFT_BY_PRODUCT))
    return op.if_(op.Squeeze(chosen, [0]), product, transform)


def _waves(op: Builder, rows: Value, columns: Value, period: Value, dtype: ir.DataType | None) -> tuple[Value, Value]:
    """Return cosine and sine of ``2 * pi * row * column / period``, ``[rows, columns]``."""
    row, column = (op.Range(0, op.Squeeze(count, [0]), 1) for count in (rows, columns))
    period = op.Max(period, 1)  # it may be 0 without rows or columns
    steps = op.Mod(op.Mul(op.Unsqueeze(row, [1]), column), period)  # whole turns are removed while the numbers are exact
    turn = op.Div(op.const(2 * math.pi, ir.DataType.DOUBLE), op.Cast(period, to=ir.DataType.DOUBLE))
    angles = op.Mul(op.Cast(steps, to=ir.DataType.DOUBLE), turn)
    # The cosine is a shifted sine: fewer runtimes have a kernel for the cosine of doubles.
    waves = (op.Sin(shifted) for shifted in (op.Add(angles, math.pi / 2), angles))
    # The sine of a rounded angle is not exactly 0. Real signals have bins without an imaginary part.
    cosine, sine = (op.Where(op.Less(op.Abs(wave), _NOTHING), 0.0, wave) for wave in waves)
    return op.Cast(cosine, to=dtype), op.Cast(sine, to=dtype)


def _contracted(op: Builder, matrix: Value, x: Value, place: Value) -> Value:
    """Multiply ``matrix`` by the columns of ``x`` along an axis."""
    rank, axis = x.rank, None if place.constant is None else int(place.constant[0])
    if rank is not None and axis is not None and axis >= rank - 2:
        # Rows make one large MatMul, where columns of one or two numbers would make many small ones.
        swapped = [*range(rank - 2), rank - 1, rank - 2]
        rows = x if axis == rank - 1 else op.Transpose(x, perm=swapped)
        result = op.MatMul(rows, op.Transpose(matrix, perm=[1, 0]))
        return result if axis == rank - 1 else op.Transpose(result, perm=swapped)
    shape = op.Shape(x)
    before, after = op.Slice(shape, [0], place), op.Slice(shape, op.Add(place, 1), [2**31])
    columns = [op.ReduceProd(before, keepdims=1), op.Gather(shape, place, axis=0), op.ReduceProd(after, keepdims=1)]
    result = op.MatMul(matrix, op.Reshape(x, op.Concat(*columns, axis=0), allowzero=1))
    return op.Reshape(result, op.Concat(before, op.Shape(matrix, end=1), after, axis=0), allowzero=1)
