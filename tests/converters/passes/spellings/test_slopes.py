"""PRelu with slopes along axes other than the channels, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(
    ("dims", "found"), [((3, 1, 1), ["PRelu"]), ((1,), ["PRelu"]), ((2,), ["Add", "Max", "Min", "Mul"]), ((4, 1), 4)]
)
def test_slopes(dims: tuple[int, ...], found: list[str] | int) -> None:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 3, 4, 2)
    slope = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    left = operators(spelled("channel slopes", lambda op, x: op.PRelu(x, op.const(slope)), x))
    assert left == found if isinstance(found, list) else len(left) == found
