"""OpenVINO's sensitivity to rounding, which limits the agreement of any other runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from converters.validation.compare import relative_l2
from tests.conformance.oracle import Oracle, OracleError, Outputs

CHANGE = 1e-6
_TRIES = 4


def distance_from_itself(path: Path, runs: Sequence[Sequence[np.ndarray]], expected: Outputs, oracle: Oracle) -> float:
    """Return the largest relative L2 distance of OpenVINO's outputs after changing its float inputs by `CHANGE`."""
    generator = np.random.default_rng(1)
    changed = [[_changed(array, generator) for array in arrays] for arrays in runs for _ in range(_TRIES)]
    outputs = oracle.run(path, changed, names=("cpu",))["cpu"]
    if isinstance(outputs, OracleError):
        raise outputs
    return max(
        relative_l2(a, b) for run, others in enumerate(outputs) for a, b in zip(others, expected[run // _TRIES], strict=True)
    )


def _changed(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    return (array * (1 + CHANGE * generator.standard_normal(array.shape))).astype(array.dtype)
