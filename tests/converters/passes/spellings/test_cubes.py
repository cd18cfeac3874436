"""Cubes as powers, and near misses."""

from __future__ import annotations

from typing import Any

import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, rewritten
from tests.converters.passes.spellings.spelled import X


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Mul(op.Mul(x, x), x), ["Pow"]),
        (lambda op, x: op.Mul(x, op.Mul(x, x)), ["Pow"]),
        (lambda op, x: op.Mul(op.Mul(x, x), op.Neg(x)), ["Mul", "Mul", "Neg"]),
        (lambda op, x: op.Cast(op.Mul(op.Mul(*[op.Cast(x, to=7)] * 2), op.Cast(x, to=7)), to=1), None),  # integers
    ],
)
def test_cubes(emit: Any, found: list[str] | None) -> None:
    names = rewritten(emit, floats("x", 2, 3), by=[SPELLINGS["Pow for cubes"]()], numbers=[X])
    assert names == found if found else "Pow" not in names
