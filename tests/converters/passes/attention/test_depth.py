"""Graphs that are deep, or whose values have many paths to them."""

from __future__ import annotations

import math

import onnx_ir as ir
import pytest

from converters.passes.attention.encoder import same_dimension
from converters.passes.attention.prepared_masks import largest
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph


def _sums(op: Builder, x: Value, count: int) -> Value:
    for _ in range(count):
        x = op.Add(x, x)
    return x


@pytest.mark.parametrize(("count", "bound"), [(20, 3 * 2.0**20), (40, math.inf)])  # a few nodes are read
def test_the_largest_number_of_many_paths(count: int, bound: float) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return _sums(op, op.Mul(op.Cast(op.Cast(x, to=ir.DataType.BOOL), to=ir.DataType.FLOAT), 3.0), count)

    assert largest(graph(emit, floats("x", 2)).graph.outputs[0]) == bound


@pytest.mark.parametrize("count", [3, 60, 3000])
def test_the_same_dimension_of_many_paths(count: int) -> None:
    def emit(op: Builder, x: Value, y: Value) -> list[Value]:
        start = op.Mul(x, y)
        start.shape = x.shape
        values = [start]
        for _ in range(count):
            values.append(op.Add(values[-1], values[-1]))
        return [op.Neg(values[-1]), op.Relu(values[-1]), op.Neg(y)]

    negative, positive, other = graph(emit, floats("x", None, 4), floats("y", None, 4)).graph.outputs
    assert isinstance(negative, Value) and isinstance(positive, Value) and isinstance(other, Value)
    assert same_dimension((negative, 0), (positive, 0))
    assert not same_dimension((negative, 0), (other, 0))
