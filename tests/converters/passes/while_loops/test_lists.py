"""Lists of the results of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.while_loops import CountIterations, DropGuards, JoinSteps
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, rewritten
from tests.converters.passes.while_loops.loops import BATCH, STEPS, plain_step, recurrence, written

PASSES = CountIterations, DropGuards, JoinSteps


def write(
    index: Any = lambda op, counter: counter,
    update: Any = lambda op, tensor: op.Unsqueeze(tensor, [0]),
    before: Any = lambda op, lists, tensor: op.Expand(lists, op.Concat(op.Shape(lists, end=1), op.Shape(tensor), axis=0)),
    **attributes: Any,
) -> dict[str, Any]:
    def emit(op: Builder, lists: Value, counter: Value, tensor: Value) -> Any:
        place = op.Reshape(op.Cast(index(op, counter), to=7), [1, 1])
        return op.ScatterND(before(op, lists, tensor), place, update(op, tensor), **attributes)

    return {"write": emit}


def at(place: int) -> dict[str, Any]:
    return write(lambda op, counter: op.const(np.int32(place)))


def all_steps(op: Builder, x: Value) -> Any:
    return op.Cast(op.Gather(op.Shape(x), op.const(np.int64(0))), to=6)


def reads(op: Builder, before: Value, counter: Value, tensor: Value) -> Any:
    """Write a tensor that depends on the list."""
    return written(op, before, counter, op.Add(tensor, op.ReduceMax(before, keepdims=0)))


def narrower(op: Builder, x: Value, state: Value) -> list[Any]:
    """Return a state whose number of rows is unknown."""
    kept = op.Compress(x, op.Greater(op.Reshape(op.Slice(x, [0], [1], [1]), [-1]), 0.0), axis=0)
    return [op.Add(op.ReduceSum(kept, [0], keepdims=1), op.Compress(state, np.array([True, True]), axis=0))]


FULL = lambda op, length: np.zeros((length, BATCH, 4), np.float32)  # noqa: E731


@pytest.mark.parametrize(
    ("changed", "is_joined"),
    [
        ({}, True),
        ({"initial": FULL}, True),
        ({"initial": lambda op, length: np.ones((length, 1, 4), np.float32)}, True),
        ({**write(before=lambda op, lists, tensor: lists), "initial": FULL}, True),
        ({**write(before=lambda op, lists, tensor: op.Mul(lists, 0.5)), "initial": FULL}, False),
        ({**write(before=lambda op, lists, tensor: op.Expand(lists, [1, BATCH, 4])), "initial": FULL}, True),
        ({**write(before=lambda op, lists, tensor: op.Expand(lists, [STEPS, BATCH, 4]))}, True),
        ({"length": STEPS + 1}, False),
        ({"limit": STEPS - 1}, False),
        ({"limit": STEPS - 1, "length": STEPS - 1}, True),
        ({"start": 1}, False),
        (write(lambda op, counter: op.Sub(np.int32(STEPS - 1), counter)), False),
        (write(lambda op, counter: op.Div(counter, np.int32(2))), False),
        (write(lambda op, counter: op.Add(counter, np.int32(1))) | {"length": STEPS + 1}, False),
        (write(reduction="add"), False),
        (write(update=lambda op, tensor: op.Reshape(tensor, [1, BATCH, 4])), False),
        ({"write": reads}, False),
        ({"write": lambda op, lists, counter, tensor: op.Expand(lists, [STEPS, BATCH, 4])}, False),
        (at(0), False),
        (at(0) | {"length": 1}, True),
        (at(-1) | {"length": 1}, False),
        ({"length": 1, "write": lambda op, before, counter, tensor: reads(op, before, np.int32(0), tensor)}, False),
    ],
)  # fmt: skip
def test_conditions(changed: dict[str, Any], is_joined: bool) -> None:
    found = rewritten(
        recurrence(**{"step": plain_step, **changed}),
        floats("x", STEPS, BATCH, 4),
        floats("h", BATCH, 4),
        by=[step() for step in PASSES],
    )
    assert ("ScatterND" not in found and "Expand" not in found) == is_joined


def test_a_shape_that_may_change_in_the_loop() -> None:
    emit = recurrence(step=plain_step, cell=narrower)
    found = rewritten(emit, floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4), by=[step() for step in PASSES])
    assert "ScatterND" in found


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("length", ["all", "one"])
def test_no_steps(steps: int, length: str) -> None:
    """The list of no steps has its initial shape."""

    def initial(op: Builder, x: Value) -> Any:
        count = op.Shape(x, end=1) if length == "all" else [1]
        return op.Expand(np.float32(0), op.Concat(count, [1, 1], axis=0))

    def emit(op: Builder, x: Value, h: Value) -> Any:
        changed: dict[str, Any] = at(0) if length == "one" else {}
        return recurrence(
            step=plain_step,
            limit=all_steps,
            length=None if length == "all" else 1,  # type: ignore[arg-type]
            condition=lambda op, limit: op.Less(np.int32(0), limit),
            initial=lambda op, _: initial(op, x),
            **changed,
        )(op, x, h)

    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal(shape).astype(np.float32) for shape in ((steps, BATCH, 4), (BATCH, 4))]
    found = rewritten(
        emit, floats("x", None, BATCH, 4), floats("h", BATCH, 4), by=[step() for step in PASSES], numbers=numbers
    )
    assert "ScatterND" not in found and "If" in found
