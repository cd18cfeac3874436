"""Factors that are merged into one float32 attribute of a node."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_MIN_NORMAL, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def is_normal(number: float) -> bool:
    """Return whether a number has full precision in float32: not 0, subnormal, infinite or NaN."""
    return _MIN_NORMAL <= abs(float(np.float64(number))) <= _LARGEST


def product(factors: Iterable[float]) -> float | None:
    """Return the product of factors.

    Returns ``None`` if the product, or a partial product in order, is not a normal float32. The separate computations would
    give 0 or infinity there.
    """
    whole = 1.0
    for factor in factors:
        whole *= factor
        if not is_normal(factor) or not is_normal(whole):
            return None
    return whole
