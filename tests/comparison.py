"""Assertions that arrays are equal, floats within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.validation.compare import Tolerance, compare


def assert_close(
    got: np.ndarray,
    expected: np.ndarray,
    rtol: float,
    atol: float,
    place: str = "",
    *,
    values: bool = True,
    units: float = 2.0,
) -> None:
    """Check that shapes and element types are equal, floats are close, and other elements are equal.

    Args:
        got: an array.
        expected: the expected array.
        rtol: the largest relative error of floats.
        atol: the largest absolute error of floats.
        place: the beginning of the message.
        values: whether to compare elements, too.
        units: the minimum tolerance of 16-bit floats in units in the last place; narrower floats have none.
    """
    tolerance = Tolerance(rtol, atol, units if got.dtype.itemsize > 1 else 0.0)
    found = compare(got, expected, tolerance, random=not values)
    assert found.agrees, f"{place}: {found.note or _difference(got, expected)}; {found}"


def assert_all_close(
    got: Sequence[Sequence[np.ndarray]],
    expected: Sequence[Sequence[np.ndarray]],
    rtol: float,
    atol: float,
    place: str = "",
    *,
    values: bool = True,
) -> None:
    """Call `assert_close` for every output of every run."""
    assert len(got) == len(expected)
    for run, (some, others) in enumerate(zip(got, expected, strict=True)):
        assert len(some) == len(others), f"{place}: {len(some)} and {len(others)} outputs"
        for index, (a, b) in enumerate(zip(some, others, strict=True)):
            assert_close(a, b, rtol, atol, f"{place}, run {run}, output {index}", values=values)


def _difference(got: np.ndarray, expected: np.ndarray) -> str:
    """Return the first elements that differ."""
    pairs = zip(np.ndindex(got.shape), got.reshape(-1).tolist(), expected.reshape(-1).tolist(), strict=True)
    found = [f"{list(at)}: {a} instead of {b}" for at, a, b in pairs if a != b and (a == a or b == b)]
    return f"{len(found)} of {got.size} elements differ, {', '.join(found[:5])}"
