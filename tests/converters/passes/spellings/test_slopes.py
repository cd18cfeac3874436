"""PRelu with slopes along axes other than the channels, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, operators, run
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(
    ("dims", "found"), [((3, 1, 1), ["PRelu"]), ((1,), ["PRelu"]), ((2,), ["Add", "Max", "Min", "Mul"]), ((4, 1), 4)]
)
def test_slopes(dims: tuple[int, ...], found: list[str] | int) -> None:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 3, 4, 2)
    slope = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    left = operators(spelled("channel slopes", lambda op, x: op.PRelu(x, op.const(slope)), x))
    assert left == found if isinstance(found, list) else len(left) == found


@pytest.mark.parametrize(("slope", "found"), [(3.0, ["Add", "Max", "Min", "Mul"]), (np.inf, ["Less", "Mul", "Where"])])
def test_infinite_slopes(slope: float, found: list[str]) -> None:
    """Positive numbers and zeros do not depend on their slopes."""
    x = np.array([[[-2, 0, 3]]], np.float32)
    slopes = np.full(3, slope, np.float32)
    assert operators(spelled("channel slopes", lambda op, x: op.PRelu(x, op.const(slopes)), x)) == found


def test_slopes_at_run_time() -> None:
    model = graph(lambda op, x, slope: op.PRelu(x, slope), floats("x", 1, 1, 3), floats("slope", 3))
    SPELLINGS["channel slopes"]()(model)
    assert operators(model) == ["Less", "Mul", "Where"]
    x, slopes = np.array([[[-2, 0, 3]]], np.float32), np.array([np.inf, -np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(run(model, x, slopes)[0], np.array([[[-np.inf, 0, 3]]], np.float32))
