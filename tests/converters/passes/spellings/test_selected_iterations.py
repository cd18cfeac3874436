"""Loops that may end early as all their iterations and selections, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.selected_iterations import SelectedIterations
from tests.converters.passes.graphs import floats, graph, rewritten

FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


def _largest(op, x):
    return op.ReduceMax(op.Abs(x), keepdims=0)


def _changes(op, x, counter):
    return op.And(op.Less(_largest(op, x), 8.0), op.Less(counter, op.const(5)))


def _branches(op, x, counter):
    below = op.Less(_largest(op, x), 8.0)
    return op.if_(below, lambda op: op.Less(counter, op.const(5)), lambda op: op.const(False))


def _large(op, x, counter):
    return op.Less(_largest(op, x), 8.0)


def _loop(
    goes_on: Any = _changes,
    trips: Any = None,
    condition: Any = None,
    step: Any = None,
    start: Any = None,
    before: Any = None,
    dims: Any = (2, 3),
):
    """Return a Loop that doubles a value and counts, from ``before`` on."""

    def emit(op, x):
        def body(op, iteration, before, x, counter):
            y = op.Mul(x, op.const(2.0)) if step is None else step(op, x, counter)
            counter = op.Add(counter, op.const(1))
            return op.Reshape(goes_on(op, y, counter), []), y, counter

        first = op.const(0) if start is None else start(op, x)
        given = condition(op, x) if callable(condition) else condition
        return op.loop(trips, given, body, x if before is None else before(op, x), first, carried_dims=[dims, []])

    return emit


NUMBERS = [np.full((2, 3), number, np.float32) for number in (0, 0.1, 0.3, 1, 5, 50, np.nan)]


@pytest.mark.parametrize(
    "emit",
    [
        _loop(),
        _loop(_branches),
        _loop(_large, trips=4),
        _loop(_large, trips=1),
        _loop(trips=3),
        _loop(trips=9),
        _loop(condition=lambda op, x: op.Less(_largest(op, x), 4.0)),
        _loop(_large, trips=4, condition=lambda op, x: op.Less(_largest(op, x), 4.0)),
        _loop(lambda op, x, counter: op.Not(op.Or(op.Greater(_largest(op, x), 4.0), op.Greater(counter, op.const(3))))),
        _loop(step=lambda op, x, counter: op.Cast(op.Div(op.Cast(x, to=INT64), op.const(2)), to=FLOAT)),
        _loop(step=lambda op, x, counter: op.Div(x, op.Cast(op.Sub(counter, op.const(2)), to=FLOAT))),
    ],
)
def test_loops_that_end_early(emit: Any) -> None:
    found = [rewritten(emit, floats("x", 2, 3), by=[SelectedIterations()], numbers=[numbers]) for numbers in NUMBERS]
    assert not {"Loop", "If"} & set(found[0])
    assert all(names == found[0] for names in found)


def test_states_of_another_shape_before_the_loop() -> None:
    """The first iteration is not selected, so the initial state may differ."""
    emit = _loop(before=lambda op, x: _largest(op, x), step=lambda op, x, counter: op.Add(x, np.ones((2, 3), np.float32)))
    assert "Loop" not in rewritten(emit, floats("x", 2, 3), by=[SelectedIterations()], numbers=[NUMBERS[2]])


@pytest.mark.parametrize(
    "emit",
    [
        _loop(_large),  # no limit
        _loop(lambda op, x, counter: op.Or(op.Less(_largest(op, x), 8.0), op.Less(counter, op.const(5)))),
        _loop(lambda op, x, counter: op.Less(counter, op.const(5))),  # it does not end early
        _loop(trips=4, goes_on=lambda op, x, counter: op.const(True)),
        _loop(start=lambda op, x: op.Cast(_largest(op, x), to=INT64)),
        _loop(condition=False),
        _loop(trips=0),
        _loop(_large, trips=3000),
        _loop(dims=(None, 3)),
        _loop(step=lambda op, x, counter: op.Mul(x, op.Cast(op.Div(op.const(9), op.Sub(counter, 7)), to=FLOAT))),
        _loop(step=lambda op, x, counter: op.Add(x, op.Mul(0.0, op.RandomNormalLike(x, seed=1.0)))),
        _loop(
            before=lambda op, x: _largest(op, x),
            step=lambda op, x, counter: op.Add(x, np.ones((2, 3), np.float32)),
            condition=lambda op, x: op.Less(_largest(op, x), 4.0),
        ),
    ],
)
def test_loops_that_stay(emit: Any) -> None:
    model = graph(emit, floats("x", 2, 3))
    SelectedIterations()(model)
    assert "Loop" in {node.op_type for node in model.graph}


def test_stacked_results_stay() -> None:
    def emit(op, x):
        body = lambda op, i, c, y: (op.Less(_largest(op, y), 8.0), op.Add(y, y), y)  # noqa: E731
        return op.loop(4, None, body, x)

    assert not SelectedIterations()(graph(emit, floats("x", 2, 3))).modified


def test_branches_outside_loops_stay() -> None:
    def emit(op, x):
        return op.if_(op.Less(_largest(op, x), 1.0), lambda op: op.Exp(x), lambda op: op.Neg(x))

    assert not SelectedIterations()(graph(emit, floats("x", 2, 3))).modified
