"""The scale and zero point of a quantized tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value, constant_value

NEAR = 1e-3
"""The allowed distance of zero from the nearest level, in levels. Files store limits with few digits."""
_NEAR_IN_HALVES = 0.13
"""The allowed difference for 16-bit limits, whose resolution is 0.06 of a level at 128 levels from zero."""

_MOST_OFFSET = 2.0**12
"""The largest offset, in levels: float32 represents the sum with a level to 12 more bits."""

_TYPES: dict[int, type[np.unsignedinteger]] = {2**8 - 1: np.uint8, 2**8: np.uint8, 2**16 - 1: np.uint16, 2**16: np.uint16}


@dataclass(frozen=True)
class Affine:
    """``scale * (q - zero_point + offset)``, for a whole tensor or for each index of one axis.

    Attributes:
        scale: float32, ``[]`` or ``[size of the axis]``.
        zero_point: of the same shape, in the integers' type.
        axis: the axis, if there are several scales.
        shift: an addend before quantization, in the shape of the limits, because zero is not exactly representable. With it,
            numbers round as with the limits. ``None`` if it is zero.
        offset: float32, in the shape of ``scale``, or one number for each index of an axis: the addend of the integers, in
            levels, if no level is zero. ``None`` if it is zero.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int = 0
    shift: np.ndarray | None = None
    offset: np.ndarray | None = None

    @property
    def is_per_tensor(self) -> bool:
        """Whether there is one scale and zero point for the whole tensor."""
        return self.scale.ndim == 0

    @property
    def bits(self) -> int:
        """The number of bits of the integers."""
        return 8 * self.zero_point.dtype.itemsize

    @property
    def has_one_zero(self) -> bool:
        """Whether all zero points are equal."""
        return bool((self.zero_point == self.zero_point.reshape(-1)[0]).all())

    @property
    def starts_at_zero(self) -> bool:
        """Whether the lowest integer represents zero."""
        return bool((self.zero_point == np.iinfo(self.zero_point.dtype).min).all())

    def __post_init__(self) -> None:
        if self.scale.ndim > 1 or self.zero_point.shape != self.scale.shape:
            raise ValueError(f"scales {self.scale.shape} and zero points {self.zero_point.shape} have different axes")

    def scale_along(self, axis: int) -> np.ndarray | None:
        """Return the scale of the whole tensor, or the scales along ``axis``; ``None`` if they differ along another axis.

        Code that combines scales must use this method, so that scales of different axes are never combined.
        """
        return self.scale if self.is_per_tensor or self.axis == axis else None

    def shares_axis(self, other: Affine) -> bool:
        """Return whether the scales of both differ along at most one common axis."""
        return self.is_per_tensor or other.scale_along(self.axis) is not None

    def is_equal(self, other: Affine) -> bool:
        """Return whether both have the same scale, zero point and offset for the whole tensor."""
        if not self.is_per_tensor or not other.is_per_tensor or self.zero_point.dtype != other.zero_point.dtype:
            return False
        first, second = (np.zeros([]) if one.offset is None else one.offset for one in (self, other))
        return bool(self.scale == other.scale and self.zero_point == other.zero_point and np.array_equal(first, second))

    def scaled(self, factor: np.ndarray | float) -> Self:
        """Multiply the scale by a factor."""
        return replace(self, scale=np.asarray(self.scale * factor, np.float32))

    def without_offset(self) -> Affine:
        """Return the same scale and zero point without the offset."""
        return replace(self, offset=None)

    def with_unit_scale(self) -> Affine:
        """Return the same integers with a scale of 1 and no offset."""
        return Affine(np.ones([], np.float32), self.zero_point.reshape(-1)[0])

    def column(self, rank: int) -> Value:
        """Return the scales as a constant that broadcasts to a tensor of ``rank`` dimensions."""
        return constant_value(self.scale.reshape([-1 if axis == self.axis else 1 for axis in range(rank)]))

    def of_steps(self, op: Builder, steps: Value) -> Value:
        """Emit ``scale * (steps + offset)`` of integers without their zero points, a tensor of known rank."""
        rank = 0 if steps.shape is None else len(steps.shape)
        result = op.Mul(steps, self.column(rank))
        if self.offset is not None:
            result.shape = steps.shape
            result = op.Add(result, replace(self, scale=np.asarray(self.scale * self.offset)).column(rank))
        result.shape = steps.shape
        return result

    def quantize(self, op: Builder, x: ir.Value) -> Value:
        """Emit QuantizeLinear of ``x``."""
        return op.QuantizeLinear(x, *self._constants(), axis=self._axis())

    def shift_along(self, axis: int) -> np.ndarray | None:
        """Return the addend before quantization, in levels, in the shape of `scale_along`; ``None`` under the same
        conditions.
        """
        if (scale := self.scale_along(axis)) is None:
            return None
        return np.zeros([]) if self.shift is None else self.shift.astype(np.float64).reshape(scale.shape) / scale

    def dequantize(self, op: Builder, q: ir.Value) -> Value:
        """Emit DequantizeLinear of ``q``, without the offset."""
        return op.DequantizeLinear(q, *self._constants(), axis=self._axis())

    def _constants(self) -> tuple[Value, Value]:
        return constant_value(self.scale), constant_value(self.zero_point)

    def _axis(self) -> int | None:
        return None if self.is_per_tensor else self.axis


def is_scale(scale: np.ndarray) -> np.ndarray:
    """Return which numbers are valid scales: positive, finite and not subnormal in float32."""
    with np.errstate(over="ignore"):
        single = scale.astype(np.float32)
    return (single >= np.finfo(np.float32).tiny) & np.isfinite(single)


def affine(
    low: np.ndarray, high: np.ndarray, levels: int, rank: int | None, *, rounded: bool, offsets: bool = False
) -> Affine | None:
    """Return the scale and zero point with which the last ``levels`` integers of a type cover ``low`` to ``high``.

    Returns ``None`` if ONNX cannot represent them: zero is not on a level, no type has as many levels, or the limits differ
    along several axes of a tensor of ``rank`` dimensions. ``rounded`` allows for limits of 16 bits. With ``offsets`` and 8
    bits, zero may be between levels or outside them: the zero point is then the nearest level, and a shift and an offset
    represent the difference.
    """
    if levels not in _TYPES or not (low < high).all() or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    scale = ((high.astype(np.float64) - low) / (levels - 1)).astype(np.float32)
    if not is_scale(scale).all():
        return None
    exact = -low.astype(np.float64) / scale
    # Zero may be halfway between two levels, and is frequent after Relu: it gets the level that OpenVINO computes.
    with np.errstate(over="ignore"):
        of_zero = np.rint(-low.astype(np.float32) * (np.float32(levels - 1) / (high - low).astype(np.float32)))
    zero = np.clip(np.where(np.abs(of_zero - exact) < 0.5 + NEAR, of_zero, np.rint(exact)), 0, levels - 1)
    rest = exact - zero
    rest = np.where((np.abs(rest) > 0.5) & (np.abs(rest) < 0.5 + NEAR), np.copysign(0.5, rest), rest)
    with np.errstate(over="ignore"):  # limits beyond float16
        is_half = rounded and all((limit.astype(np.float16) == limit).all() for limit in (low, high))
    # A range without zero must not get one, because later nodes may divide by the numbers.
    is_near = (np.abs(rest) <= (_NEAR_IN_HALVES if is_half else NEAR)) & (low <= 0) & (high >= 0)
    if not is_near.all() and (not offsets or _TYPES[levels] is not np.uint8 or (np.abs(rest) > _MOST_OFFSET).any()):
        return None
    shift = (rest * scale).astype(np.float32) if (np.abs(rest) > NEAR).any() else None
    zero += np.iinfo(_TYPES[levels]).max + 1 - levels
    axis, shape = 0, np.broadcast_shapes(scale.shape, zero.shape)
    scale, zero = np.broadcast_to(scale, shape), np.broadcast_to(zero, shape)
    if scale.size > 1:
        axes = [i for i, size in enumerate(shape) if size > 1]
        if len(axes) > 1 or rank is None or len(shape) > rank:
            return None
        axis = axes[0] + rank - len(shape)
    whole = scale.size == 1
    lacking = np.broadcast_to(np.where(is_near, 0, -rest), shape).astype(np.float32)
    flat = [np.ascontiguousarray(a).reshape([] if whole else [-1]) for a in (scale, zero.astype(_TYPES[levels]), lacking)]
    return Affine(flat[0], flat[1], axis, shift, flat[2] if lacking.any() else None)


def quantize_given(op: Builder, x: ir.Value, low: np.ndarray, high: np.ndarray, levels: int) -> Value:
    """Emit the quantization of an input of the model in OpenVINO's order of operations.

    QuantizeLinear divides by the scale, rounds, and adds the zero point. OpenVINO multiplies by the number of levels in a
    unit, adds the level of zero, and rounds. Near halves, about 10 of a million numbers get another level. Both read the
    same numbers from an input, so OpenVINO's order gives exactly its levels.
    """
    steps = np.asarray(np.float32(levels - 1) / (high.reshape(()) - low.reshape(())), np.float32)
    level = op.Mul(x, constant_value(steps))
    if low.any():
        level = op.Add(level, constant_value(np.asarray(-low.reshape(()) * steps, np.float32)))
    first = np.iinfo(_TYPES[levels]).max + 1 - levels
    if first:  # there is an integer below the levels
        level = op.Max(level, np.float32(0))
    return Affine(np.ones([], np.float32), np.asarray(first, _TYPES[levels])).quantize(op, level)
