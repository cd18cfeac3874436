"""Mul instead of Pow for squares, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(
    ("exponent", "found"), [(2.0, "Mul"), ([2.0], "Mul"), ([[[2.0]]], "Pow"), (3.0, "Pow"), ([2.0, 3, 2], "Pow")]
)
def test_products(exponent: Any, found: str) -> None:
    power = np.array(exponent, np.float32)
    assert operators(spelled("Mul for squares", lambda op, x: op.Pow(x, op.const(power)))) == [found]
