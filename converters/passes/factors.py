"""Factors that become one attribute of a node, a float32 in the file."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_LEAST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def is_normal(number: float) -> bool:
    """Whether a number is one of float32's that have all their digits: neither 0, nor subnormal, infinite or NaN."""
    return _LEAST <= abs(float(np.float64(number))) <= _LARGEST


def product(factors: Iterable[float]) -> float | None:
    """The one factor that several are together.

    ``None`` where the product is no normal float32, or the product of some of them in their order: what is computed with one
    after the other is 0 or infinite there.
    """
    whole = 1.0
    for factor in factors:
        whole *= factor
        if not is_normal(factor) or not is_normal(whole):
            return None
    return whole
