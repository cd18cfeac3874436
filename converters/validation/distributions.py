"""Histograms of the values of a tensor and their errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from converters.validation.compare import Comparison

MOST = 6
"""The maximum number of tensors to show."""

_BINS = 40
# Differences of larger numbers overflow.
_HUGE = 1e300


class Compared(Protocol):
    """An object with a comparison."""

    @property
    def comparison(self) -> Comparison: ...


Row = TypeVar("Row", bound="Compared")


@dataclass(frozen=True)
class Distribution(Generic[Row]):
    """Histograms of one tensor.

    Attributes:
        of: the row of the comparison that contains it.
        edges: the edges of the bins of values, one more than there are bins.
        expected, got: the number of elements in each bin, of the expected and the actual values.
        error_edges: the edges of the bins of absolute errors, at equal ratios.
        errors: the number of differing elements in each of these bins.
        left_out: the number of elements in no bin, because a value is not finite or too large.
    """

    of: Row
    edges: list[float]
    expected: list[int]
    got: list[int]
    error_edges: list[float]
    errors: list[int]
    left_out: int


def worst(rows: Sequence[Row], tensor: Callable[[Row], Hashable], most: int = MOST) -> list[Row]:
    """Return the rows with the largest differences. Rows that do not agree come first.

    Args:
        rows: the rows.
        tensor: returns the tensor of a row. Only the worst row of each tensor is returned.
        most: the maximum number of rows.
    """
    apart = [row for row in rows if row.comparison.exact < 1 and row.comparison.relative_l2 is not None]
    found: dict[Hashable, Row] = {}
    for row in sorted(apart, key=_badness, reverse=True):
        found.setdefault(tensor(row), row)
    return list(found.values())[:most]


def _badness(row: Compared) -> tuple[bool, float]:
    return not row.comparison.agrees, row.comparison.relative_l2 or 0.0


def distribution(row: Row, got: np.ndarray, expected: np.ndarray) -> Distribution[Row]:
    """Return the histograms of a numeric tensor.

    Args:
        row: the row to which it belongs.
        got: the actual values.
        expected: the expected values, of the same shape.
    """
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64).reshape(-1), expected.astype(np.float64).reshape(-1)
        finite = (np.abs(a) < _HUGE) & (np.abs(b) < _HUGE)
        a, b = a[finite], b[finite]
        difference = np.abs(a - b)
    both = np.concatenate([a, b])
    edges = np.histogram_bin_edges(both, _BINS) if both.size else np.array([0.0, 1.0])
    apart = difference[difference > 0]
    error_edges = np.array([0.0, 1.0])
    if apart.size:
        low, high = np.log10(max(apart.min(), 1 / _HUGE)), np.log10(apart.max())
        error_edges = np.logspace(low - 0.01, high + 0.01, _BINS + 1)
    return Distribution(
        of=row,
        edges=edges.tolist(),
        expected=np.histogram(b, edges)[0].tolist(),
        got=np.histogram(a, edges)[0].tolist(),
        error_edges=error_edges.tolist(),
        errors=np.histogram(np.maximum(apart, error_edges[0]), error_edges)[0].tolist(),
        left_out=int(finite.size - finite.sum()),
    )
