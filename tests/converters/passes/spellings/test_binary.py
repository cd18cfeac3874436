"""Variadic Sum, Max, Min and Mean as binary operators, and near misses."""

from __future__ import annotations

import numpy as np

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


def test_pairs() -> None:
    def emit(op, x):
        return op.Sum(x, op.Neg(x), op.Abs(x)), op.Max(x, op.Neg(x), op.Abs(x)), op.Min(x, op.Neg(x)), op.Mean(x, x, x)

    found = operators(spelled("binary operators", emit))
    assert found == sorted(["Add", "Add", "Max", "Max", "Min", "Mean", *["Neg"] * 3, *["Abs"] * 2])


def test_sums_of_constants() -> None:
    """The builder folds them, so the result is a constant."""

    def emit(op, x):
        ones = op.const(np.ones(2, np.float32))
        return op.Sum(ones, ones, ones), op.Neg(x)

    assert operators(spelled("binary operators", emit)) == ["Identity", "Neg"]
