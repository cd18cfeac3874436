"""Forms for tract, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.tract_forms import CountedOutputs, CountedSlices, UnnamedDimensions, WideSizes
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

D = ir.DataType


@pytest.mark.parametrize(("dims", "left"), [(("n", 3), [None, 3]), ((2, 3), [2, 3])])
def test_names_of_dimensions(dims: Any, left: list[int | None]) -> None:
    model = graph(lambda op, x: op.Relu(x), new_value(D.FLOAT, dims, "x"))
    model.graph.outputs[0].shape = ir.Shape(dims)
    assert UnnamedDimensions()(model).modified == (left[0] is None)
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert [dim if isinstance(dim, int) else dim.value for dim in shape] == left
    assert model.graph.inputs[0].shape == ir.Shape(dims)


def _size(op: Any, x: Any) -> Any:
    return op.Cast(op.Shape(x, start=0, end=1), to=D.INT32)


@pytest.mark.parametrize(
    ("emit", "casts"),
    [
        (lambda op, x, i: op.Cast(_size(op, x), to=D.INT64), 0),
        (lambda op, x, i: op.Cast(op.Add(_size(op, x), op.const([6], D.INT32)), to=D.INT64), 0),
        (lambda op, x, i: op.Cast(op.Sub(op.const([6], D.INT32), _size(op, x)), to=D.INT64), 0),
        (lambda op, x, i: op.Cast(op.Concat(_size(op, x), op.const([6], D.INT32), axis=0), to=D.INT64), 0),
        (lambda op, x, i: op.Cast(op.Gather(op.Cast(op.Shape(x), to=D.INT32), [1], axis=0), to=D.INT64), 0),
        (lambda op, x, i: op.Cast(op.Mul(_size(op, x), op.const([6], D.INT32)), to=D.INT64), 2),  # may overflow
        (lambda op, x, i: op.Cast(op.Add(_size(op, x), op.Cast(i, to=D.INT32)), to=D.INT64), 3),  # not a size
        (lambda op, x, i: op.Cast(op.Cast(i, to=D.INT32), to=D.INT64), 2),
        (lambda op, x, i: op.Cast(_size(op, x), to=D.FLOAT), 2),
    ],
)
def test_sizes(emit: Any, casts: int) -> None:
    inputs = floats("x", None, None), new_value(D.INT64, (1,), "i")
    numbers = [np.zeros((4, 3), np.float32), np.array([2**33 + 5])]
    assert rewritten(emit, *inputs, by=[WideSizes()], numbers=numbers).count("Cast") == casts


@pytest.mark.parametrize(("count", "casts"), [(30, 0), (100, 2)])
def test_sizes_of_many_nodes(count: int, casts: int) -> None:
    def emit(op, x):
        size = _size(op, x)
        for _ in range(count):
            size = op.Add(size, size)
        return op.Cast(size, to=D.INT64)

    numbers = [np.zeros((1 if count < 32 else 0, 3), np.float32)]  # whose sums fit 32 bits
    assert rewritten(emit, floats("x", None, None), by=[WideSizes()], numbers=numbers).count("Cast") == casts


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Cast(x, to=D.INT64), True),
        (lambda op, x: op.Neg(op.Cast(x, to=D.INT64)), True),
        (lambda op, x: op.Add(op.ArgMax(x), op.Cast(op.ReduceMin(x), to=D.INT64)), True),
        (lambda op, x: op.ArgMax(x), False),
        (lambda op, x: op.Cast(x, to=D.INT32), False),
        (lambda op, x: op.Gather(op.const([1, 2, 3]), op.ArgMax(x)), False),
    ],
)
def test_outputs_of_integers(emit: Any, found: bool) -> None:
    numbers = [np.array([[1.5, -2.5, 3], [-4, 0, 2**40]], np.float32)]
    if found:
        assert "Abs" in rewritten(emit, floats("x", 2, 3), by=[CountedOutputs()], numbers=numbers)
    else:
        assert "Abs" not in rewritten(emit, floats("x", 2, 3), by=[CountedOutputs()], numbers=[numbers[0].clip(-9, 9)])


def test_the_name_of_an_output_stays() -> None:
    model = graph(lambda op, x: op.Cast(x, to=D.INT64), floats("x", 2, 3))
    model.graph.outputs[0].name = "count"
    CountedOutputs()(model)
    assert [value.name for value in model.graph.outputs] == ["count"]
    assert operators(model) == ["Abs", "Cast", "Less", "Neg", "Where"]


@pytest.mark.parametrize("size", [0, 1, 3, 6])
@pytest.mark.parametrize(
    ("start", "end", "shapes"),
    [
        (0, 4, 1),
        (2, 4, 1),
        (4, 2, 1),
        (4, 2**63 - 1, 1),
        (-4, 2**31 - 1, 1),
        (0, -4, 1),
        (1, -1, 1),
        (-4, 3, 1),
        (-2, -4, 1),
        (2, 2**31, 1),
        (0, 2**63 - 1, 0),
        (0, 2**31, 0),
    ],
)
def test_slices_of_unknown_dimensions(start: int, end: int, shapes: int, size: int) -> None:
    numbers = [np.arange(size * 3, dtype=np.float32).reshape(size, 3)]
    found = rewritten(
        lambda op, x: op.Slice(x, [start], [end], [0]), floats("x", None, 3), by=[CountedSlices()], numbers=numbers
    )
    assert found.count("Shape") == shapes


@pytest.mark.parametrize(
    ("emit", "shapes"),
    [
        (lambda op, x: op.Slice(x, [0, 1], [4, 2], [-2, 1]), 1),
        (lambda op, x: op.Slice(x, [1], [9], [1]), 0),  # a known dimension
        (lambda op, x: op.Slice(x, [0], [4], [0], [2]), 0),  # with gaps
        (lambda op, x: op.Slice(x, [0], op.Gather(op.Shape(x), [1]), [0]), 1),  # a computed place
    ],
)
def test_slices_of_other_axes(emit: Any, shapes: int) -> None:
    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    assert rewritten(emit, floats("x", None, 3), by=[CountedSlices()], numbers=numbers).count("Shape") == shapes
