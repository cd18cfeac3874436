"""A fixed sample of random networks agrees with the Inference Engine."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.inference_engine.check import KERNELS, compare, converted
from tests.conformance.inference_engine.random import SAMPLE, network


@functools.cache
def _answers() -> dict[int, dict[str, np.ndarray]]:
    found: dict[int, dict[str, np.ndarray]] = {}
    with np.load(SAMPLE) as stored:
        for key in stored.files:
            number, name = key.split("/", 1)
            found.setdefault(int(number), {})[name] = stored[key]
    return found


@pytest.mark.parametrize("number", sorted(_answers()))
def test_results_equal_the_inference_engine(number: int, tmp_path: Path) -> None:
    case = network(0, number)
    xml, _ = case.net().save(tmp_path)
    (got,) = converted(case, xml, KERNELS[:1]).values()
    assert not compare(_answers()[number], got, case.tolerance)
