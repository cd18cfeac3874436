"""Logical operators as arithmetic, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.logic import EqualBooleans
from tests.converters.passes.graphs import floats, rewritten
from tests.converters.passes.spellings.spelled import X


@pytest.mark.parametrize(("operator", "found"), [("And", ["Mul"]), ("Or", ["Max"]), ("Xor", ["Xor"])])
@pytest.mark.parametrize("limits", [X[::-1], np.array([[1], [-1]]), np.array(1)])
def test_logic_as_arithmetic(operator: str, found: list[str], limits: np.ndarray) -> None:
    def emit(op, x):
        return op.node(operator, op.Greater(x, 0.0), op.Less(x, op.const(limits.astype(np.float32))))

    names = rewritten(emit, floats("x", 2, 3), by=[SPELLINGS["Mul for And"]()])
    assert names == sorted([*found, *([] if operator == "Xor" else ["Cast"] * 3), "Greater", "Less"])


def test_equal_booleans() -> None:
    """Equal of numbers stays."""

    def booleans(op, x):
        return op.Equal(op.Greater(x, np.float32(0)), op.Less(x, np.float32(1)))

    assert rewritten(booleans, floats("x", 2, 3), by=[EqualBooleans()]) == ["Greater", "Less", "Not", "Xor"]
    assert rewritten(lambda op, x: op.Equal(x, np.float32(0)), floats("x", 2, 3), by=[EqualBooleans()]) == ["Equal"]
