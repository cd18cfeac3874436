"""How two arrays that should be equal differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """How far floats may part: ``|a - b| <= absolute + relative * |b|``; everything else must be equal.

    Attributes:
        relative: of all floats.
        absolute: of all floats.
        units: how many units in the last place floats of less than 32 bits may differ at least.
        share: which share of an output's elements may be beyond, from 0 to 1.
        rounding: the distance of 1 to the next number of the type that a model computes in, where that has less than 32
            bits; else 0. Then floats may differ by `ROUNDINGS` times as much, of their own size and of their root mean
            square: sums of large terms that cancel are as exact as the terms.
    """

    relative: float = 1e-3
    absolute: float = 1e-4
    units: float = 2.0
    share: float = 0.0
    rounding: float = 0.0


ROUNDINGS = 16.0
"""How many roundings of 16 bits the values of deep networks are apart from those of float32 (measured: 1 to 14)."""

DEFAULT = Tolerance()


@dataclass(frozen=True)
class Comparison:
    """One output of one runtime against the same output of the runtime that is compared with.

    Attributes:
        shape: the output's shape.
        element_type: its NumPy type's name; ``"string"`` for strings.
        max_absolute: the largest absolute error: infinite where one is NaN or infinite and the other is not; ``None`` where
            there is none to compute (strings, other shapes or types).
        max_relative: the largest relative error, likewise; that of a zero's neighbour may be large.
        exact: the share of elements that are equal (NaN equals NaN), from 0 to 1.
        agrees: whether the difference is within the tolerance.
        note: what else is to be said: another shape, other random numbers, ...
        beyond: the share of elements beyond the tolerance.
        relative_l2: the root of the summed squares of the errors, over that of what should be: infinite where an error is,
            or where all should be zero and is not; ``None`` where there is none to compute.
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
        """The relative L2 error, infinite where there is none to compute."""
        return math.inf if self.relative_l2 is None else self.relative_l2


RANDOM = "other random numbers, of the same distribution"


def compare(
    got: np.ndarray, expected: np.ndarray, tolerance: Tolerance, *, random: bool = False, widths: bool = False
) -> Comparison:
    """Compare an output with the expected one.

    Args:
        got: the output.
        expected: what it should be.
        tolerance: how far floats may part.
        random: whether the output may hold other random numbers: where it does, only shape and element type count.
        widths: whether floats of different widths are compared, with the roundings of the narrower type allowed for and
            numbers beyond its range taken as its largest; else another type is a difference.
    """
    shape, element_type = tuple(got.shape), _type_name(got)
    if shape != tuple(expected.shape):
        return Comparison(shape, element_type, None, None, 0.0, False, f"the shape should be {list(expected.shape)}", 1.0)
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
        return Comparison(shape, element_type, None, None, 0.0, False, f"the type should be {_type_name(expected)}", 1.0)
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
        # Integers of 64 bits may be equal as floats and yet differ.
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
    note = "NaN in other places" if is_float and (np.isnan(a) != np.isnan(b)).any() else ""
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


def relative_l2(got: np.ndarray, expected: np.ndarray) -> float:
    """The distance of two arrays over the length of the second; infinite where they cannot be compared."""
    return compare(got, expected, DEFAULT).distance


def _relative_l2(difference: np.ndarray, scale: np.ndarray) -> float:
    """The length of the difference over that of what should be, whose places without a finite number do not count."""
    largest = scale.max(initial=0.0, where=np.isfinite(scale))
    if not difference.any():
        return 0.0
    if largest == 0 or not np.isfinite(difference).all():
        return math.inf
    # In units of the largest, whose square no float may hold.
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(difference / largest) / np.linalg.norm(scale[np.isfinite(scale)] / largest))


def _within(array: np.ndarray, largest: float, dtype: np.dtype) -> np.ndarray:
    """Numbers of another type; those beyond the largest of a narrower type as that."""
    wide = array.astype(dtype)
    return np.where(np.isfinite(wide), np.clip(wide, -largest, largest), wide)


def _epsilon(dtype: np.dtype) -> float:
    return float(ml_dtypes.finfo(dtype).eps) if dtype.itemsize < 4 else 0.0


def _texts(array: np.ndarray) -> list[str]:
    # As Python's own strings: NumPy's drop zeros at the end.
    return [e.decode(errors="surrogateescape") if isinstance(e, bytes) else str(e) for e in array.reshape(-1).tolist()]


def _type_name(array: np.ndarray) -> str:
    return "string" if array.dtype.kind in "OUS" else str(array.dtype)
