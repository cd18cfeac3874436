"""The selection of a variable's rows with one copy, and near misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.branches import MoveIntoBranches
from converters.passes.selected_rows import SelectRowsOnce
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

ROWS = 3
BY = [SelectRowsOnce(), MoveIntoBranches()]
Emit = Callable[..., Value]


def selection(
    *,
    axis: int = 0,
    zero: float = 0.0,
    safe: int = 0,
    added: Sequence[int] = (-1, -2),
    counted: bool = True,
    least: int | None = None,
    limit: int | None = None,
    of_stored: bool = False,
    other_mask: bool = False,
    changed: Callable[[Builder, Value], Value] | None = None,
) -> Emit:
    """Return a function that emits the selection of rows as the rules for ReadValue and Gather do, with changes."""

    def emit(op: Builder, is_set: Value, stored: Value, initial: Value, indices: Value) -> Value:
        state = op.if_(is_set, lambda op: stored if changed is None else changed(op, stored), lambda op: initial)
        size: Value = op.Cast(op.Squeeze(op.Shape(stored if of_stored else state, start=0, end=1), [0]), to=indices.dtype)
        if limit is not None:
            size = op.const(np.array(limit, np.int32))
        lowest = op.const(np.array(0 if least is None else least, np.int32))
        low = op.GreaterOrEqual(indices, op.Neg(size) if counted and least is None else lowest)
        valid = op.And(low, op.Less(indices, size))
        where = op.Where(valid, indices, op.const(np.array(safe, np.int32)))
        mask = op.Not(op.Not(valid)) if other_mask else valid
        rows = op.Gather(state, where, axis=axis)
        result = op.Where(op.Unsqueeze(mask, list(added)), rows, op.const(np.array(zero, np.float32)))
        return op.Neg(result)

    return emit


def inputs(rank: int = 1) -> list[Value]:
    return [
        new_value(ir.DataType.BOOL, [], "is_set"),
        floats("stored", None, ROWS, ROWS),
        floats("initial", None, ROWS, ROWS),
        new_value(ir.DataType.INT32, [None] * rank, "indices"),
    ]


def numbers(is_set: bool, indices: Any) -> list[np.ndarray]:
    draw = np.random.default_rng(4)
    stored, initial = (draw.standard_normal((ROWS, ROWS, ROWS)).astype(np.float32) for _ in range(2))
    return [np.array(is_set), stored, initial, np.array(indices, np.int32)]


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize("indices", [[0, 1, 2], [2, 2], [-1, -3, 1], [3, 0], [1, -4], []])
def test_the_rows_are_equal(indices: list[int], is_set: bool, counted: bool) -> None:
    found = rewritten(selection(counted=counted), *inputs(), by=BY, numbers=numbers(is_set, indices))
    assert found.count("If") == 2 and found.count("Gather") == 2


def test_only_the_gather_runs_after_the_first_run() -> None:
    model = graph(selection(), *inputs())
    for step in BY:
        step(model)
    assert [node.op_type for node in model.graph if node.op_type in ("If", "Gather", "Where")] == ["If"]
    (choice,) = (node for node in model.graph if node.op_type == "If")
    assert [node.op_type for node in choice.attributes["then_branch"].as_graph()] == ["Gather"]


@pytest.mark.parametrize(
    "emit",
    [
        selection(axis=1),
        selection(zero=1.0),
        selection(safe=1),
        selection(added=(0, 1)),
        selection(least=-1),
        selection(least=1),
        selection(limit=2),
        selection(of_stored=True),
        selection(other_mask=True),
        selection(changed=lambda op, value: op.Abs(value)),
    ],
)
def test_near_misses_stay(emit: Emit) -> None:
    assert rewritten(emit, *inputs(), by=BY, numbers=numbers(True, [0, 2, 1])).count("If") == 1


def test_indices_of_two_dimensions_stay() -> None:
    emit = selection(added=(-1, -2))
    assert rewritten(emit, *inputs(2), by=BY, numbers=numbers(True, [[0, 2], [1, 1]])).count("If") == 1


def test_a_shared_filling_runs_in_the_first_run_only() -> None:
    def emit(op: Builder, is_set: Value, stored: Value, other: Value, indices: Value) -> list[Value]:
        filling = op.Expand(op.const(np.array(0, np.float32)), op.Shape(stored))
        return [selection()(op, is_set, value, filling, indices) for value in (stored, other)]

    model = graph(emit, *inputs())
    for step in BY:
        step(model)
    RemoveUnusedNodesPass()(model)
    assert not [node for node in model.graph if node.op_type == "Expand"]
    rewritten(emit, *inputs(), by=BY, numbers=numbers(False, [0, 1, 2]))
