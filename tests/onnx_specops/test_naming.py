"""Unique names for the values of a model."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnx_specops.building import constant_value, new_value
from onnx_specops.naming import Names


@pytest.fixture
def graph() -> ir.Graph:
    """Return a graph with the input ``x``, the initializer ``w`` and an If, whose branch has the value ``inner``."""
    inner = ir.Node("", "Identity", [], outputs=[new_value(None, name="inner")])
    branch = ir.Graph([], inner.outputs, nodes=[inner], name="branch")
    condition = new_value(ir.DataType.BOOL, [], "x")
    chosen = ir.Node("", "If", [condition], [ir.AttrGraph("then_branch", branch)], outputs=[new_value(None, name="y")])
    return ir.Graph([condition], chosen.outputs, nodes=[chosen], initializers=[constant_value(1.0, name="w")])


@pytest.mark.parametrize("taken", ["x", "w", "inner", "y"])
def test_names_of_all_values_are_reserved(taken: str, graph: ir.Graph) -> None:
    names = Names.of(graph)
    assert (names.unique(taken), names.unique(taken), names.unique("z")) == (f"{taken}_1", f"{taken}_2", "z")


def test_an_initializer_gets_a_unique_name(graph: ir.Graph) -> None:
    names = Names.of(graph)
    for _ in range(2):
        names.register(graph, constant_value(2.0, name="x"))
    assert list(graph.initializers) == ["w", "x_1", "x_2"]
