"""Scattered updates, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.scattering import ScatterWithinData
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten, run
from tests.converters.passes.spellings.spelled import spelled

INDICES = np.array([0, 3, 1, -1, 2, -4, 0], np.int64)
MORE = ["Concat", "ScatterElements", "Slice"]


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
@pytest.mark.parametrize(("axis", "dims"), [(0, (4, 3)), (1, (3, 4)), (-1, (3, 4))])
def test_more_updates_than_data(reduction: str, axis: int, dims: tuple[int, ...]) -> None:
    indices = np.stack([INDICES] * 3, 1 if axis == 0 else 0)

    def emit(op, x, y):
        return op.ScatterElements(x, indices, y, axis=axis, reduction=reduction)

    assert rewritten(emit, floats("x", *dims), floats("y", *indices.shape), by=[ScatterWithinData()]) == MORE


@pytest.mark.parametrize(("known", "count"), [((None, 3), None), ((4, 3), None), ((None, 3), 7), ((4, None), 7)])
def test_unknown_numbers_of_updates(known: tuple[int | None, ...], count: int | None) -> None:
    def emit(op, x, i, y):
        return op.ScatterElements(x, i, y, axis=0, reduction="add")

    inputs = floats("x", *known), new_value(ir.DataType.INT32, (count, 3), "i"), floats("y", count, 3)
    indices = np.stack([INDICES] * 3, 1).astype(np.int32)
    numbers = [np.ones((4, 3), np.float32), indices, np.arange(21, dtype=np.float32).reshape(7, 3)]
    assert {"Concat", "Slice"} <= set(rewritten(emit, *inputs, by=[ScatterWithinData()], numbers=numbers))


def test_a_known_size_of_the_result_stays_known() -> None:
    def emit(op, x, i, y):
        return op.ScatterElements(x, i, y, axis=0)

    model = graph(emit, floats("x", 4), new_value(ir.DataType.INT64, (None,), "i"), floats("y", None))
    ScatterWithinData()(model)
    assert model.graph.outputs[0].shape == ir.Shape([4])


@pytest.mark.parametrize("dims", [(7,), (8,)])
def test_as_many_updates_as_data(dims: tuple[int, ...]) -> None:
    def emit(op, x, y):
        return op.ScatterElements(x, INDICES, y, reduction="add")

    numbers = [np.zeros(dims[0], np.float32), np.ones(7, np.float32)]
    inputs = floats("x", *dims), floats("y", 7)
    assert rewritten(emit, *inputs, by=[ScatterWithinData()], numbers=numbers) == ["ScatterElements"]


_TABLE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


@pytest.mark.parametrize(
    ("operator", "shapes", "axis"),
    [
        ("ScatterElements", ((9, 3, 2), (9, 3, 2)), 0),
        ("ScatterElements", ((2, 7, 1), (2, 7, 1)), 1),
        ("ScatterElements", ((4, 3, 5), (4, 3, 5)), -1),
        ("ScatterElements", ((0, 3, 2), (0, 3, 2)), 0),
        ("ScatterElements", ((4, 0, 2), (4, 0, 2)), 1),
        ("ScatterND", ((9, 1), (9, 3, 2)), 4),
        ("ScatterND", ((3, 5, 2), (3, 5, 2)), 3),
        ("ScatterND", ((30, 3), (30,)), 2),
        ("ScatterND", ((0, 1), (0, 3, 2)), 4),
    ],
)
@pytest.mark.parametrize("constant", [True, False])
def test_the_last_of_equal_indices(operator: str, shapes: Any, axis: int, constant: bool) -> None:
    rng = np.random.default_rng(1)
    size = _TABLE.shape[axis] if operator == "ScatterElements" else axis
    indices = rng.integers(-size, size, shapes[0])
    if operator == "ScatterND":
        indices = rng.integers(-2, 2, shapes[0])
    updates = rng.standard_normal(shapes[1]).astype(np.float32)

    def emit(op, x, *more):
        how = {"axis": axis} if operator == "ScatterElements" else {}
        return (
            op.node(operator, op.const(_TABLE) if more else x, op.const(indices) if constant else more[0], updates, **how),
        )

    inputs = [floats("x", 4, 3, 2)] if constant else [floats("x", 1), new_value(ir.DataType.INT64, indices.shape, "i")]
    arrays = [_TABLE] if constant else [np.zeros(1, np.float32), indices]
    model = graph(emit, *inputs)
    (expected,) = run(model, *arrays)
    SPELLINGS["last of equal indices"]()(model)
    np.testing.assert_array_equal(run(model, *arrays)[0], expected, strict=True)
    found = [node.attributes.get_string("reduction", "none") for node in model.graph if node.op_type.startswith("Scatter")]
    assert found == (["none"] if constant and not indices.size else ["max"])


@pytest.mark.parametrize(
    ("operator", "indices", "stays"),
    [
        ("ScatterElements", [[0, 2, 1]], True),
        ("ScatterElements", [[0, 2, 2]], False),
        ("ScatterElements", [[0, 2, -2]], True),
        ("ScatterElements", [[0, 2, -1]], False),  # -1 is 2
        ("ScatterND", [[0], [1]], True),
        ("ScatterND", [[0], [-2]], False),
        ("ScatterND", [[0, 1], [0, 2], [1, 1]], True),
        ("ScatterND", [[0, 1], [0, 2], [0, 1]], False),
    ],
)
def test_constant_indices_that_differ_stay(operator: str, indices: list[list[int]], stays: bool) -> None:
    updates = np.arange(np.size(indices), dtype=np.float32).reshape(np.shape(indices)) + 10
    if operator == "ScatterND":
        updates = updates[:, 0] if len(indices[0]) == 2 else np.repeat(updates, 3, 1)

    def emit(op, x):
        how = {"axis": 1} if operator == "ScatterElements" else {}
        return (op.node(operator, x, op.const(np.int64(indices)), updates, **how),)

    model = spelled("last of equal indices", emit)
    assert all(
        (node.attributes.get_string("reduction", "none") == "none") is stays
        for node in model.graph
        if "Scatter" in node.op_type
    )
