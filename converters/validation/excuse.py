"""What is forgiven where OpenVINO, computing in low precision as it does by default, parts from itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converters.validation.compare import Comparison, Tolerance, compare, relative_l2

NOTE = "as near as OpenVINO is to itself in low precision"


def excused(found: Comparison, value: np.ndarray, exact: np.ndarray, low: np.ndarray, tolerance: Tolerance) -> Comparison:
    """The comparison of an output with OpenVINO's, forgiven where OpenVINO in low precision parts as far or computes it.

    Args:
        found: the comparison of ``value`` with ``exact``.
        value: the output.
        exact: what OpenVINO computes in float32.
        low: what it computes in low precision.
        tolerance: how far floats may part.
    """
    if found.agrees or compare(low, exact, tolerance).agrees:
        return found  # where OpenVINO agrees with itself, no one else is excused
    if relative_l2(value, exact) <= relative_l2(low, exact) or compare(value, low, tolerance).agrees:
        return replace(found, agrees=True, note=NOTE)
    return found
