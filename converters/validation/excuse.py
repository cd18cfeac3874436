"""Tolerance for networks in which other rounding changes OpenVINO's own results.

In a quantized network, a different order of summation, or a tiny change of an input, can cause rounding to another level of
a FakeQuantize, and later layers amplify this difference. Then no two runtimes agree within the tolerance, and OpenVINO's
results change by more than the tolerance when its inputs change slightly.

In any network, sums of large terms that cancel are only as accurate as their terms. Such elements change as much when the
inputs change in their last digits.
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
LAST_DIGITS = "differs no more than OpenVINO does if its inputs change in their last digits"

_TRIES = 4
# For 13 networks quantized by NNCF, no distance was more than 1.03 times the largest one of OpenVINO from itself.
_TIMES = 1.25

_LAST_DIGITS = 2.0**-21
"""A relative change of float32: four units in the last place."""
_TIMES_OF_ELEMENTS = 8.0
_LARGEST_DISTANCE = 1e-5
_LARGEST_SHARE = 1e-3
"""The maximum fraction of elements with larger differences. Random changes of the inputs affect some elements less than
others.
"""


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


def excused_elements(
    found: Comparison,
    value: np.ndarray,
    expected: np.ndarray,
    tolerance: Tolerance,
    changed: Callable[[], np.ndarray | None],
) -> Comparison:
    """Return the comparison of an output, and accept the output if its elements differ by rounding only.

    Conditions: the output is of floats, its distance is at most `_LARGEST_DISTANCE`, and all but `_LARGEST_SHARE` of the
    elements differ by at most the tolerance plus `_TIMES_OF_ELEMENTS` times the change that the last digits of the inputs
    cause.

    Args:
        found: the comparison of ``value`` with ``expected``.
        value: the output.
        expected: OpenVINO's.
        tolerance: the allowed difference of floats.
        changed: returns the changes of OpenVINO's elements, see `element_changes`; ``None`` if they are not known.
    """
    if found.agrees or not found.distance <= _LARGEST_DISTANCE or (largest := changed()) is None:
        return found
    with np.errstate(all="ignore"):
        exact = expected.astype(np.float64)
        limit = tolerance.absolute + tolerance.relative * np.abs(exact) + _TIMES_OF_ELEMENTS * largest
        beyond = ~((np.abs(value.astype(np.float64) - exact) <= limit) | (value == expected) | np.isnan(exact))
    share = float(beyond.mean())
    return replace(found, agrees=True, note=LAST_DIGITS) if share <= max(tolerance.share, _LARGEST_SHARE) else found


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
    outputs = _outputs_of_changed(baseline, inputs, tolerance.relative / 10)
    moved = [[compare(*pair, tolerance).distance for pair in zip(found, expected, strict=True)] for found in outputs]
    return [max(column) for column in zip(*moved, strict=True)]


def element_changes(
    baseline: Baseline, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """Return for each output the largest change of each element that the last digits of float inputs cause.

    An output has no changes (``None``) if its elements are not floats, or its shape depends on the last digits.

    Args:
        baseline: the source's runtime.
        inputs: the inputs.
        expected: their outputs.
    """
    outputs = _outputs_of_changed(baseline, inputs, _LAST_DIGITS)
    return [
        _largest_changes(list(column), array) for column, array in zip(zip(*outputs, strict=True), expected, strict=True)
    ]


def _largest_changes(found: Sequence[np.ndarray], expected: np.ndarray) -> np.ndarray | None:
    if expected.dtype.kind not in "fV" or any(array.shape != expected.shape for array in found):
        return None
    with np.errstate(all="ignore"):
        changes = [np.abs(array.astype(np.float64) - expected.astype(np.float64)) for array in found]
        return np.nan_to_num(np.max(changes, axis=0), nan=0.0, posinf=0.0)


def _outputs_of_changed(baseline: Baseline, inputs: Sequence[np.ndarray], relative: float) -> list[Sequence[np.ndarray]]:
    """Return the outputs for several random changes of float inputs."""
    rng = np.random.default_rng(0)
    return list(baseline.run_all([[_changed(array, relative, rng) for array in inputs] for _ in range(_TRIES)]))


def _changed(array: np.ndarray, relative: float, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind not in "fV":
        return array
    return (array.astype(np.float64) * (1 + relative * rng.standard_normal(array.shape))).astype(array.dtype)
