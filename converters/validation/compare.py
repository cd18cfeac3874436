"""The difference of two arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference of floats: ``|a - b| <= absolute + relative * |b|``. Everything else must be equal.

    Attributes:
        relative: the relative tolerance of all floats.
        absolute: the absolute tolerance of all floats.
        units: the minimum tolerance, in units in the last place, of floats of less than 32 bits.
        share: the fraction of an output's elements that may exceed the tolerance, from 0 to 1.
        rounding: the distance from 1 to the next number of the type that a model computes in, if it has less than 32 bits;
            else 0. Floats may then differ by `ROUNDINGS` times as much, relative to their size and their root mean square.
            After cancellation, sums are only as accurate as their terms.
    """

    relative: float = 1e-3
    absolute: float = 1e-4
    units: float = 2.0
    share: float = 0.0
    rounding: float = 0.0


ROUNDINGS = 16.0
"""The difference between deep networks in 16 bits and float32, in roundings of 16 bits (measured: 1 to 14)."""

DEFAULT = Tolerance()


@dataclass(frozen=True)
class Comparison:
    """The comparison of one output of a runtime with the same output of the baseline.

    Attributes:
        shape: the output's shape.
        element_type: its NumPy type's name; ``"string"`` for strings.
        max_absolute: the largest absolute error: infinite if only one of the two is NaN or infinite; ``None`` if it cannot
            be computed (strings, other shapes or types).
        max_relative: the largest relative error, likewise. It may be large next to zero.
        exact: the fraction of equal elements (NaN equals NaN), from 0 to 1.
        agrees: whether the difference is within the tolerance.
        note: an additional note, for example about another shape or other random numbers.
        beyond: the fraction of elements beyond the tolerance.
        relative_l2: the L2 norm of the errors divided by that of the expected values: infinite if an error is, or if all
            expected values are zero and the output is not; ``None`` if it cannot be computed.
    """

    shape: tuple[int, ...]
    element_type: str
    max_absolute: float | None
    max_relative: float | None
    exact: float
    agrees: bool
    note: str = ""
    beyond: float = 0.0
    relative_l2: float | None = None

    @property
    def distance(self) -> float:
        """The relative L2 error; infinite if it cannot be computed."""
        return math.inf if self.relative_l2 is None else self.relative_l2


RANDOM = "different random numbers of the same distribution"


def compare(
    got: np.ndarray, expected: np.ndarray, tolerance: Tolerance, *, random: bool = False, widths: bool = False
) -> Comparison:
    """Compare an output with the expected one.

    Args:
        got: the output.
        expected: the expected output.
        tolerance: the allowed difference of floats.
        random: whether the output may contain other random numbers. If so, only the shape and the element type are compared.
        widths: whether floats of different widths are compared. The tolerance then includes the rounding of the narrower
            type, and numbers beyond its range are treated as its largest number. Otherwise, another type is a difference.
    """
    shape, element_type = tuple(got.shape), _type_name(got)
    if shape != tuple(expected.shape):
        return Comparison(shape, element_type, None, None, 0.0, False, f"the expected shape is {list(expected.shape)}", 1.0)
    if widths and element_type != _type_name(expected) and "float" in element_type and "float" in _type_name(expected):
        narrow = min(got.dtype, expected.dtype, key=lambda dtype: dtype.itemsize)
        wide = np.promote_types(np.float32, max(got.dtype, expected.dtype, key=lambda dtype: dtype.itemsize))
        allowed = replace(tolerance, rounding=max(tolerance.rounding, _epsilon(narrow)))
        with np.errstate(all="ignore"):
            largest = float(ml_dtypes.finfo(narrow).max)
            found = compare(_within(got, largest, wide), _within(expected, largest, wide), allowed, random=random)
        note = f"{element_type}, not {_type_name(expected)}"
        return replace(found, element_type=element_type, note=f"{note}; {found.note}" if found.note else note)
    if element_type != _type_name(expected):
        return Comparison(shape, element_type, None, None, 0.0, False, f"the expected type is {_type_name(expected)}", 1.0)
    found = _compare_values(got, expected, element_type, tolerance)
    if random and not found.agrees:
        return Comparison(shape, element_type, None, None, found.exact, True, RANDOM)
    return found


def _compare_values(got: np.ndarray, expected: np.ndarray, element_type: str, tolerance: Tolerance) -> Comparison:
    shape = tuple(got.shape)
    if got.size == 0:
        none = None if element_type == "string" else 0.0
        return Comparison(shape, element_type, none, None, 1.0, True, relative_l2=none)
    if element_type == "string":
        same = np.array([a == b for a, b in zip(_texts(got), _texts(expected), strict=True)])
        beyond = float((~same).mean())
        return Comparison(shape, element_type, None, None, float(same.mean()), beyond <= tolerance.share, beyond=beyond)
    is_float = "float" in element_type
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), expected.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) if is_float else got == expected
        difference = np.abs(a - b)
        # 64-bit integers may differ although they are equal as floats.
        difference = np.where(same, 0.0, difference if is_float else np.maximum(difference, 1.0))
        difference = np.where(np.isnan(difference), np.inf, difference)
        scale = np.abs(b)
        relative = np.where(same, 0.0, difference / np.maximum(scale, np.finfo(np.float32).tiny if is_float else 1.0))
        relative = np.where(np.isnan(relative), np.inf, relative)
        agrees = same
        if is_float:
            limit = max(tolerance.relative, tolerance.units * _epsilon(got.dtype), ROUNDINGS * tolerance.rounding)
            absolute = tolerance.absolute
            if tolerance.rounding:
                finite = scale[np.isfinite(scale)]
                absolute = max(absolute, ROUNDINGS * tolerance.rounding * float(np.sqrt(np.square(finite).mean())))
            agrees = same | np.isfinite(a) & np.isfinite(b) & (difference <= absolute + limit * scale)
    beyond = float((~agrees).mean())
    note = "NaN at different positions" if is_float and (np.isnan(a) != np.isnan(b)).any() else ""
    return Comparison(
        shape,
        element_type,
        float(difference.max()),
        float(relative.max()),
        float(same.mean()),
        beyond <= tolerance.share,
        note,
        beyond,
        _relative_l2(difference, scale),
    )


def in_one_width(got: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a layer's values in the narrower of two float types, because intermediate 16-bit floats may be float32."""
    if got.dtype != expected.dtype and {got.dtype.itemsize, expected.dtype.itemsize} == {2, 4}:
        narrow = min(got.dtype, expected.dtype, key=lambda dtype: dtype.itemsize)
        if narrow.kind not in "iu":
            with np.errstate(over="ignore"):
                return got.astype(narrow), expected.astype(narrow)
    return got, expected


def relative_l2(got: np.ndarray, expected: np.ndarray) -> float:
    """Return the distance of two arrays divided by the norm of the second; infinite if they cannot be compared."""
    return compare(got, expected, DEFAULT).distance


def _relative_l2(difference: np.ndarray, scale: np.ndarray) -> float:
    """Return the norm of the difference divided by that of the expected values, without elements that are not finite."""
    largest = scale.max(initial=0.0, where=np.isfinite(scale))
    if not difference.any():
        return 0.0
    if largest == 0 or not np.isfinite(difference).all():
        return math.inf
    # Scale by the largest element, because its square may overflow.
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(difference / largest) / np.linalg.norm(scale[np.isfinite(scale)] / largest))


def _within(array: np.ndarray, largest: float, dtype: np.dtype) -> np.ndarray:
    """Clamp numbers to the largest of a narrower type."""
    wide = array.astype(dtype)
    return np.where(np.isfinite(wide), np.clip(wide, -largest, largest), wide)


def _epsilon(dtype: np.dtype) -> float:
    return float(ml_dtypes.finfo(dtype).eps) if dtype.itemsize < 4 else 0.0


def _texts(array: np.ndarray) -> list[str]:
    # Use Python's strings, because NumPy's drop zeros at the end.
    return [e.decode(errors="surrogateescape") if isinstance(e, bytes) else str(e) for e in array.reshape(-1).tolist()]


def _type_name(array: np.ndarray) -> str:
    return "string" if array.dtype.kind in "OUS" else str(array.dtype)
