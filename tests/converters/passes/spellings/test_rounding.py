"""Rounding that a program computes differently, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled

HALVES = np.array([[-3.5, -2.5, -1.5, -0.5, 0.49999997, 0.5], [1.5, 2.5, 3.7, -7.2, 4e6 + 0.5, 0]], np.float32)

LARGE = np.array([[2**23 + 1, 2**23 + 3, -(2**23) - 1, 2**24 + 2, 2**22 + 1.5, -1e-10, -0.49999997, 3e38]], np.float32)


@pytest.mark.parametrize(
    ("emit", "changed"),
    [(lambda op, x: op.Round(x), True), (lambda op, x: op.Floor(x), False)],
)
def test_rounding_to_even(emit: Any, changed: bool) -> None:
    model = spelled("Floor for Round", emit, HALVES)
    assert ("Round" not in operators(model)) and (len(model.graph) > 1) is changed
    spelled("Floor for Round", emit, LARGE)  # adding a number below 1 does not change these
    spelled("Floor for Round", emit, np.array([np.inf, -np.inf, np.nan, 1.5], np.float32))


@pytest.mark.parametrize(
    ("emit", "changed"),
    [
        (lambda op, x: op.Cast(x, to=ir.DataType.INT32), True),
        (lambda op, x: op.Cast(op.Cast(op.Floor(x), to=ir.DataType.INT64), to=ir.DataType.FLOAT), True),
        (lambda op, x: op.Cast(x, to=ir.DataType.BOOL), False),
        (lambda op, x: op.Cast(x, to=ir.DataType.DOUBLE), False),
        (lambda op, x: op.Div(x, op.const(3.0)), False),
    ],
)
def test_truncation(emit: Any, changed: bool) -> None:
    assert ("Floor" in operators(spelled("truncated integers", emit, HALVES))) is changed
