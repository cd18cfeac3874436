"""How two arrays that should be equal differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """How far floats may part: ``|a - b| <= absolute + relative * |b|``; everything else must be equal."""

    relative: float = 1e-3
    absolute: float = 1e-4


@dataclass(frozen=True)
class Comparison:
    """One output of one runtime against the same output of the runtime that is compared with.

    Attributes:
        shape: the output's shape.
        element_type: its NumPy type's name.
        max_absolute: the largest absolute error; ``None`` where there is none to compute (strings, other shapes).
        max_relative: the largest relative error.
        exact: the share of elements that are equal, from 0 to 1.
        agrees: whether the difference is within the tolerance.
        note: what else is to be said: another shape, other random numbers, ...
    """

    shape: tuple[int, ...]
    element_type: str
    max_absolute: float | None
    max_relative: float | None
    exact: float
    agrees: bool
    note: str = ""


def compare(got: np.ndarray, expected: np.ndarray, tolerance: Tolerance, *, random: bool = False) -> Comparison:
    """Compare an output with the expected one; of ``random`` outputs only shape and element type."""
    shape, element_type = tuple(got.shape), _type_name(got)
    if shape != tuple(expected.shape):
        return Comparison(shape, element_type, None, None, 0.0, False, f"the shape should be {list(expected.shape)}")
    if element_type != _type_name(expected):
        return Comparison(shape, element_type, None, None, 0.0, False, f"the type should be {_type_name(expected)}")
    if random:
        return Comparison(shape, element_type, None, None, 0.0, True, "other random numbers, of the same distribution")
    if got.size == 0:
        return Comparison(shape, element_type, 0.0, 0.0, 1.0, True)
    if element_type == "string":
        same = got.astype(str) == expected.astype(str)
        return Comparison(shape, element_type, None, None, float(same.mean()), bool(same.all()))
    if got.dtype.kind == "c":
        got, expected = got.view(got.real.dtype), expected.view(expected.real.dtype)
    if got.dtype.kind in "biu":
        same = got == expected
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        relative = difference / np.maximum(np.abs(expected.astype(np.float64)), 1)
        return Comparison(
            shape, element_type, float(difference.max()), float(relative.max()), float(same.mean()), bool(same.all())
        )
    a, b = got.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b))
        relative = np.where(same, 0.0, difference / np.maximum(np.abs(b), np.finfo(np.float32).tiny))
        # Half precision cannot agree to more digits than it has.
        limit = max(tolerance.relative, {2: 2e-2 if "bfloat16" in element_type else 2e-3}.get(got.dtype.itemsize, 0.0))
        agrees = same | (difference <= tolerance.absolute + limit * np.abs(b))
    note = "" if np.isnan(a).sum() == np.isnan(b).sum() else "NaN in other places"
    return Comparison(
        shape, element_type, float(np.nanmax(difference, initial=0.0)), float(np.nanmax(relative, initial=0.0)),
        float(same.mean()), bool(agrees.all()), note,
    )  # fmt: skip


def _type_name(array: np.ndarray) -> str:
    return "string" if array.dtype.kind in "OUS" else str(array.dtype)
