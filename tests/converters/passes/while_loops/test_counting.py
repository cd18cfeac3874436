"""Trip counts and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from converters.passes.while_loops import CountIterations
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten
from tests.converters.passes.while_loops.loops import BATCH, STEPS, recurrence


def all_steps(op: Builder, x: Value) -> Any:
    """Return the number of steps as an integer of 32 bits."""
    return op.Cast(op.Gather(op.Shape(x), op.const(np.int64(0))), to=6)


def computed(added: int) -> Any:
    """Return a function that emits a limit that depends on the data."""
    return lambda op, x: op.Cast(op.Add(op.Min(op.ReduceSum(op.Relu(x), keepdims=0), np.float32(STEPS)), added), to=6)


def with_counter(op: Builder, counter: Value, *others: Value) -> list[Value]:
    return [*others, counter]


def not_less(op: Builder, after: Value, limit: Any) -> Any:
    return op.Not(op.GreaterOrEqual(after, limit))


def of_both(op: Builder, after: Value, limit: Any) -> Any:
    return op.And(op.Less(after, limit), op.Greater(np.int32(3), after))


def initial_condition(op: Builder, limit: Value) -> Any:
    return op.Less(np.int32(0), limit)


@pytest.mark.parametrize(
    ("changed", "is_counted"),
    [
        ({}, True),
        ({"limit": 3}, True),
        ({"limit": 0}, True),  # one iteration
        ({"start": 2}, True),
        ({"start": 2, "limit": 1}, True),
        ({"start": -1}, False),
        ({"start": lambda op, x: op.Cast(op.ReduceMin(op.Floor(x), keepdims=0), to=6)}, False),
        ({"most": None}, True),
        ({"most": np.int64(3)}, True),
        ({"most": np.int64(0)}, True),
        ({"most": lambda op, x: op.Gather(op.Shape(x), op.const(np.int64(1)))}, True),
        ({"limit": all_steps}, True),
        ({"limit": computed(0)}, True),
        ({"limit": computed(-9)}, True),
        ({"goes_on": lambda op, after, limit: op.Greater(limit, after)}, True),
        ({"goes_on": lambda op, after, limit: op.Reshape(op.Less(op.Reshape(after, [1]), limit), [])}, True),
        ({"goes_on": of_both}, True),
        ({"goes_on": lambda op, after, limit: op.Or(op.Less(after, limit), op.Less(after, np.int32(3)))}, False),
        ({"goes_on": not_less}, False),
        ({"goes_on": lambda op, after, limit: op.LessOrEqual(after, np.int32(4))}, False),
        ({"goes_on": lambda op, after, limit: op.Less(limit, op.Sub(np.int32(9), after))}, False),
        ({"goes_on": lambda op, after, limit: op.Less(op.Sub(after, np.int32(1)), np.int32(4))}, False),  # before it
        ({"goes_on": lambda op, after, limit: op.Less(after, op.Sub(np.int32(7), after))}, False),  # no fixed limit
        ({"following": lambda op, counter: op.Add(np.int32(1), counter)}, True),
        ({"following": lambda op, counter: op.Add(counter, np.int32(2))}, False),
        ({"following": lambda op, counter: op.Sub(counter, np.int32(-1))}, False),
        ({"following": lambda op, counter: op.Add(op.Add(counter, np.int32(1)), np.int32(1))}, False),
        ({"condition": lambda op, limit: np.bool_(False)}, False),
        ({"condition": initial_condition}, True),
        ({"condition": initial_condition, "limit": all_steps}, True),
        ({"condition": initial_condition, "limit": computed(-9)}, True),
        ({"condition": lambda op, limit: op.Less(np.int32(9), limit), "limit": computed(0)}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dims", [(STEPS, BATCH, 4), (None, BATCH, 4)], ids=["", "dynamic"])
def test_conditions(changed: dict[str, Any], is_counted: bool, dims: tuple[int | None, ...]) -> None:
    emit = recurrence(**{"results": with_counter, **changed})
    found = rewritten(emit, floats("x", *dims), floats("h", BATCH, 4), by=[CountIterations()])
    model = graph(emit, floats("x", *dims), floats("h", BATCH, 4))
    CountIterations()(model)
    (loop,) = [node for node in model.graph if node.op_type == "Loop"]
    assert (len(loop.inputs) == 4) == is_counted
    assert "Loop" in found


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 5),
        ({"limit": 3}, 3),
        ({"limit": -3}, 1),
        ({"start": 2}, 3),
        ({"most": np.int64(2)}, 2),
        ({"goes_on": of_both}, 3),
        ({"condition": initial_condition, "limit": 0}, None),
    ],
)
def test_constant_counts(changed: dict[str, Any], count: int | None) -> None:
    model = graph(recurrence(**changed), floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4))
    CountIterations()(model)
    (loop,) = [node for node in model.graph if node.op_type == "Loop"]
    trips = loop.inputs[0]
    assert trips is not None
    if count is not None:
        assert trips.const_value is not None and trips.const_value.numpy() == count


@pytest.mark.parametrize("steps", [0, 1, 7])
@pytest.mark.parametrize("changed", [{}, {"condition": initial_condition}], ids=["at least one", "none"])
def test_counts_at_run_time(changed: dict[str, Any], steps: int) -> None:
    """The numbers of steps are those of another tensor, so that all of them exist."""

    def emit(op: Builder, x: Value, h: Value, other: Value) -> Any:
        return recurrence(limit=lambda op, x: all_steps(op, other), length=8, **changed)(op, x, h)

    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal(shape).astype(np.float32) for shape in ((8, BATCH, 4), (BATCH, 4), (steps, 1))]
    inputs = floats("x", 8, BATCH, 4), floats("h", BATCH, 4), floats("other", None, 1)
    assert "Less" in rewritten(emit, *inputs, by=[CountIterations()], numbers=numbers)


def test_a_limit_that_is_carried() -> None:
    def emit(op: Builder, x: Value, changes: bool = False) -> Any:
        def body(op: Builder, iteration: Value, running: Value, counter: Value, limit: Value, total: Value) -> list[Any]:
            after = op.Add(counter, 1)
            following = op.Sub(limit, 1) if changes else limit
            return [op.Less(after, limit), after, following, op.Add(total, x)]

        return op.loop(None, op.const(np.bool_(True)), body, op.const(0), op.const(6), x)[2]

    for changes in (False, True):
        model = graph(lambda op, x, changes=changes: emit(op, x, changes), floats("x", 2))
        assert CountIterations()(model).modified != changes
        rewritten(lambda op, x, changes=changes: emit(op, x, changes), floats("x", 2), by=[CountIterations()])


@pytest.mark.parametrize("start", [np.nan, np.inf, 0.5])
def test_carried_floats_with_a_constant_start(start: float) -> None:
    """No float is a counter, and not every float is near an integer."""

    def emit(op: Builder, x: Value) -> Any:
        def body(op: Builder, iteration: Value, running: Value, counter: Value, total: Value) -> list[Any]:
            after = op.Add(counter, 1)
            return [op.Less(after, 6), after, op.Add(total, 1.0)]

        return op.Mul(op.loop(None, op.const(np.bool_(True)), body, op.const(0), op.const(np.float32(start)))[1], x)

    rewritten(emit, floats("x", 2), by=[CountIterations()])
    model = graph(emit, floats("x", 2))
    CountIterations()(model)
    assert [len(node.inputs) for node in model.graph if node.op_type == "Loop"] == [3]


def test_counters_of_a_loop_with_a_trip_count() -> None:
    emit = recurrence(goes_on=lambda op, after, limit: op.const(np.bool_(True)), most=np.int64(STEPS), results=with_counter)
    found = rewritten(emit, floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4), by=[CountIterations()])
    model = graph(emit, floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4))
    CountIterations()(model)
    assert "Loop" in found and [len(node.inputs) for node in model.graph if node.op_type == "Loop"] == [4]


def test_a_body_with_a_branch_stays() -> None:
    def cell(op: Builder, x: Value, state: Value) -> list[Any]:
        is_large = op.Greater(op.ReduceMax(x, keepdims=0), 0.5)
        return [op.if_(is_large, lambda op: op.Relu(x), lambda op: op.Identity(state))]

    model = graph(recurrence(cell=cell), floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4))
    assert not CountIterations()(model).modified


@pytest.mark.parametrize(
    "contradiction",
    [
        lambda op, state: op.MatMul(state, np.ones((4, 4), np.float32)),
        lambda op, state: op.Concat(*op.Split(state, [2, 2], axis=1, outputs=2), axis=1),
    ],
)
def test_a_body_that_contradicts_the_initial_shapes_stays(contradiction: Callable[..., Value]) -> None:
    """It never runs."""

    def emit(op: Builder, x: Value, h: Value) -> Any:
        def body(op: Builder, iteration: Value, running: Value, counter: Value, state: Value) -> list[Any]:
            after = op.Add(counter, 1)
            return [op.Less(after, 5), after, contradiction(op, op.Relu(state))]

        never = op.Less(op.ReduceMax(op.Abs(x), keepdims=0), -1.0)
        return op.loop(None, never, body, op.const(0), h, carried_dims=[[], [None, None]])[1]

    for size in (4, 3):
        model = graph(emit, floats("x", 2), floats("h", 2, size))
        assert CountIterations()(model).modified == (size == 4)
        assert "Loop" in rewritten(emit, floats("x", 2), floats("h", 2, size), by=[CountIterations()])
