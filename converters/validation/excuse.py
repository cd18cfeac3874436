"""Tolerance for quantized networks in which rounding to other levels changes OpenVINO's own results.

A different order of summation, or a tiny change of an input, can cause rounding to another level of a FakeQuantize, and
later layers amplify this difference. Then no two runtimes agree within the tolerance, and OpenVINO's results change by more
than the tolerance when its inputs change slightly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from converters.source import Baseline
from converters.validation.compare import Comparison, Tolerance, compare

LOW_PRECISION = "differs no more than OpenVINO in low precision"
CHANGED_INPUTS = "differs no more than OpenVINO does if its inputs change by a tenth of the tolerance"

_TRIES = 4
# For 13 networks quantized by NNCF, no distance was more than 1.03 times the largest one of OpenVINO from itself.
_TIMES = 1.25


def excused(
    found: Comparison,
    itself: Comparison,
    value: np.ndarray,
    low: np.ndarray,
    tolerance: Tolerance,
    changed: Callable[[], float] = lambda: 0.0,
) -> Comparison:
    """Return the comparison of an output with OpenVINO's, and accept the output if OpenVINO's own results differ by as much.

    Args:
        found: the comparison of ``value`` with OpenVINO's result in float32.
        itself: the comparison of ``low`` with the same. If they are equal, nothing is quantized and nothing is accepted.
        value: the output.
        low: OpenVINO's result in low precision.
        tolerance: the allowed difference of floats.
        changed: returns the relative L2 distance of OpenVINO's outputs for slightly changed inputs; see `distances`.
    """
    if found.agrees or itself.exact == 1.0:
        return found
    if _is_near(found, itself.distance) or compare(value, low, tolerance).agrees:
        return replace(found, agrees=True, note=LOW_PRECISION)
    if _is_near(found, changed()):
        return replace(found, agrees=True, note=CHANGED_INPUTS)
    return found


def _is_near(found: Comparison, distance: float) -> bool:
    return math.isfinite(distance) and found.distance <= _TIMES * distance


def distances(
    baseline: Baseline, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: Tolerance
) -> list[float]:
    """Return for each output the largest relative L2 distance that small changes of float inputs cause.

    The changes are a tenth of the relative tolerance. A network that amplifies them beyond the tolerance also amplifies
    rounding.

    Args:
        baseline: the source's runtime.
        inputs: the inputs.
        expected: their outputs.
        tolerance: the allowed difference of floats.
    """
    rng = np.random.default_rng(0)
    tries = [[_changed(array, tolerance.relative / 10, rng) for array in inputs] for _ in range(_TRIES)]
    outputs = baseline.run_all(tries)
    moved = [[compare(*pair, tolerance).distance for pair in zip(found, expected, strict=True)] for found in outputs]
    return [max(column) for column in zip(*moved, strict=True)]


def _changed(array: np.ndarray, relative: float, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind not in "fV":
        return array
    return (array.astype(np.float64) * (1 + relative * rng.standard_normal(array.shape))).astype(array.dtype)
