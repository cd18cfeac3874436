"""What is forgiven where OpenVINO, computing in low precision as it does by default, parts from itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converters.validation.compare import Comparison, Tolerance, compare

NOTE = "as near as OpenVINO is to itself in low precision"


def excused(found: Comparison, itself: Comparison, value: np.ndarray, low: np.ndarray, tolerance: Tolerance) -> Comparison:
    """The comparison of an output with OpenVINO's, forgiven where OpenVINO in low precision parts as far or computes it.

    Args:
        found: the comparison of ``value`` with what OpenVINO computes in float32.
        itself: the comparison of ``low`` with the same.
        value: the output.
        low: what OpenVINO computes in low precision.
        tolerance: how far floats may part.
    """
    if found.agrees or itself.agrees:
        return found  # where OpenVINO agrees with itself, no one else is excused
    if found.distance <= itself.distance or compare(value, low, tolerance).agrees:
        return replace(found, agrees=True, note=NOTE)
    return found
