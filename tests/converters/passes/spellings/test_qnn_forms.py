"""Forms for Qualcomm's HTP, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings.qnn_forms import SeparateSigmoid
from tests.converters.passes.graphs import floats, rewritten

WEIGHTS = np.linspace(-1e5, 9, 6, dtype=np.float32).reshape(2, 3, 1, 1)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Sigmoid(op.Conv(x, WEIGHTS)), ["Conv", "Max", "Sigmoid"]),
        (lambda op, x: op.Sigmoid(op.Neg(op.Conv(x, WEIGHTS))), ["Conv", "Neg", "Sigmoid"]),
        (lambda op, x: op.Relu(op.Conv(x, WEIGHTS)), ["Conv", "Relu"]),
        (lambda op, x: op.Sigmoid(x), ["Sigmoid"]),
    ],
)
def test_sigmoid_after_convolutions(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 1, 3, 4, 4), by=[SeparateSigmoid()]) == found
