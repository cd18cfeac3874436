"""The axes of reductions, stated and omitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings.reduced_axes import reduced_axes, stated_axes
from tests.converters.passes.graphs import floats, graph


@pytest.mark.parametrize(
    ("emit", "stated", "reduced"),
    [
        (lambda op, x: op.ReduceSum(x, [-1, 0]), [-1, 0], [-1, 0]),
        (lambda op, x: op.at(11).ReduceSum(x, axes=[1]), [1], [1]),
        (lambda op, x: op.ReduceSum(x), None, [0, 1, 2]),
        (lambda op, x: op.at(11).ReduceSum(x), None, [0, 1, 2]),
        (lambda op, x: op.ReduceSum(x, op.const(np.zeros(0, np.int64))), [], [0, 1, 2]),
        (lambda op, x: op.ReduceSum(x, noop_with_empty_axes=1), None, None),
        (lambda op, x: op.ReduceSum(x, [2], noop_with_empty_axes=1), [2], [2]),
        (lambda op, x: op.ReduceSum(x, op.Cast(op.ReduceMax(x, keepdims=1), to=7)), None, None),  # at run time
    ],
)
def test_axes(emit: Any, stated: list[int] | None, reduced: list[int] | None) -> None:
    node = graph(emit, floats("x", 2, 3, 4)).graph[-1]
    assert (stated_axes(node), reduced_axes(node)) == (stated, reduced)
