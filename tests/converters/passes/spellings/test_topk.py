"""Sorted TopK instead of any order, and near misses."""

from __future__ import annotations

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph


def test_sorted_top() -> None:
    def emit(op, x):
        return op.TopK(x, [2], sorted=0, outputs=2)

    model = graph(emit, floats("x", 2, 3))
    SPELLINGS["sorted TopK"]()(model)
    (node,) = model.graph
    assert node.attributes.get_int("sorted", 1) == 1
