"""Forms of TopK, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.topk import ReversedTopK
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten, run


def test_sorted_top() -> None:
    def emit(op, x):
        return op.TopK(x, [2], sorted=0, outputs=2)

    model = graph(emit, floats("x", 2, 3))
    SPELLINGS["sorted TopK"]()(model)
    (node,) = model.graph
    assert node.attributes.get_int("sorted", 1) == 1


@pytest.mark.parametrize(
    ("attributes", "dims"),
    [({}, (2, 7)), ({"largest": 0}, (7,)), ({"axis": 1}, (2, 7, 3)), ({"axis": -3}, (1, 7, 2, 2))],
)
def test_reversed_top(attributes: dict[str, Any], dims: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).permutation(int(np.prod(dims))).reshape(dims).astype(np.float32)
    found = rewritten(
        lambda op, x: op.TopK(x, [3], outputs=2, **attributes), floats("x", *dims), by=[ReversedTopK()], numbers=[numbers]
    )
    assert found == ["Gather", "Sub", "TopK"]


def test_order_of_equal_elements() -> None:
    model = graph(lambda op, x: op.TopK(x, [2], outputs=2)[1], floats("x", 4))
    ReversedTopK()(model)
    (indices,) = run(model, np.array([1, 5, 5, 5], np.float32))
    assert indices.tolist() == [3, 2]  # in ONNX Runtime, which selects the first ones of the reversed elements


@pytest.mark.parametrize("dtype", [ir.DataType.INT32, ir.DataType.INT64])
def test_reversed_integers(dtype: ir.DataType) -> None:
    numbers = [np.array([4, -1, 9, 7], dtype.numpy())]
    x = new_value(dtype, (4,), "x")
    found = rewritten(lambda op, x: op.TopK(x, [2], outputs=2), x, by=[ReversedTopK()], numbers=numbers)
    assert found == ["Gather", "Sub", "TopK"]


@pytest.mark.parametrize(
    ("emit", "x"),
    [
        (lambda op, x: op.TopK(x, [2], outputs=2)[0], floats("x", 4)),
        (lambda op, x: op.TopK(x, [2], outputs=2), floats("x", None)),
        (lambda op, x: op.TopK(x, [2], outputs=2), floats("x", 1, 1, 1, 1, 4)),
        (lambda op, x: op.TopK(x, [2], outputs=2), new_value(ir.DataType.DOUBLE, (4,), "x")),
    ],
)
def test_other_tops(emit: Any, x: Value) -> None:
    assert rewritten(emit, x, by=[ReversedTopK()]) == ["TopK"]
