"""Loops as TensorFlow writes them for recurrent layers: counters, a guarded step, a list of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnx_specops.building import Builder, Value

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 3, 4

NO_LIMIT = np.int64(2**63 - 1)


def less(op: Builder, after: Value, limit: Any) -> Value:
    """Return the condition after an iteration, for the counter after it."""
    result: Value = op.Less(after, limit)
    return result


def next_number(op: Builder, counter: Value) -> Value:
    result: Value = op.Add(counter, np.int32(1))
    return result


def guarded(op: Builder, x: Value, counter: Value, limit: Any = STEPS) -> Value:
    """Return the step of a tensor, or zeros if there is none."""
    lower = op.GreaterOrEqual(counter, np.int32(-STEPS))
    inside = op.And(lower, op.Less(counter, np.int32(limit)))
    step = op.Gather(x, op.Where(inside, counter, np.int32(0)), axis=0)
    result: Value = op.Where(op.Unsqueeze(inside, [-1, -2]), step, np.float32(0))
    return result


def plain_step(op: Builder, x: Value, counter: Value) -> Value:
    result: Value = op.Gather(x, counter, axis=0)
    return result


def written(op: Builder, before: Value, counter: Any, tensor: Value) -> Value:
    """Return a list with a tensor at a place."""
    target = op.Concat(op.Shape(before, end=1), op.Shape(tensor), axis=0)
    counter = counter if isinstance(counter, Value) else op.const(counter)
    index = op.Unsqueeze(op.Cast(op.Reshape(counter, [-1]), to=7), [-1])
    result: Value = op.ScatterND(op.Expand(before, target), index, op.Unsqueeze(tensor, [0]))
    return result


def halved(op: Builder, x: Value, state: Value) -> Sequence[Value]:
    """Return a state after a step that is not a recurrent cell."""
    return [op.Mul(op.Add(x, state), 0.5)]


def recurrence(
    *,
    start: Any = 0,
    limit: Any = STEPS,
    length: int = STEPS,
    goes_on: Callable[..., Value] = less,
    following: Callable[..., Value] = next_number,
    step: Callable[..., Value] = guarded,
    cell: Callable[..., Sequence[Value]] = halved,
    write: Callable[..., Value] = written,
    condition: Callable[..., Any] = lambda op, limit: np.bool_(True),
    results: Callable[..., Sequence[Any]] = lambda op, counter, lists, *states: [lists, *states],
    most: Any = NO_LIMIT,
    initial: Callable[..., Any] = lambda op, length: np.zeros((length, 1, 1), np.float32),
) -> Callable[..., Any]:
    """Return a function that emits a Loop over the steps of ``[steps, batch, size]``; the arguments replace its parts."""

    def emit(op: Builder, x: Value, *states: Value) -> Any:
        most_steps = limit(op, x) if callable(limit) else op.const(np.int32(limit))

        def body(op: Builder, iteration: Value, running: Value, counter: Value, lists: Value, *now: Value) -> list[Any]:
            after = following(op, counter)
            new = cell(op, step(op, x, counter), *now)
            return [goes_on(op, after, most_steps), after, write(op, lists, counter, new[0]), *new]

        first = start(op, x) if callable(start) else op.const(np.int32(start))
        running = condition(op, most_steps)
        running = running if isinstance(running, Value) else op.const(running)
        lists = initial(op, length)
        lists = lists if isinstance(lists, Value) else op.const(lists)
        trips = None if most is None else most(op, x) if callable(most) else op.const(most)
        dims: list[Any] = [state.dims for state in states]
        counter, stack, *last = op.loop(
            trips, running, body, first, lists, *states, carried_dims=[[], [length, None, None], *dims]
        )
        return results(op, counter, stack, *last)

    return emit
