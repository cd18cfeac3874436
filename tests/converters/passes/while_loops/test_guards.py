"""Guards of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.while_loops import CountIterations, DropGuards
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, rewritten
from tests.converters.passes.while_loops.loops import BATCH, STEPS, recurrence


def step(
    comparison: Any = None, *, zero: Any = 0.0, axes: Any = (-1, -2), both: bool = True, negated: bool = False
) -> dict[str, Any]:
    """Return a step with a guard, whose parts are replaced."""

    def emit(op: Builder, x: Value, counter: Value) -> Value:
        inside = op.Less(counter, op.Cast(op.Shape(x, end=1), to=6)) if comparison is None else comparison(op, x, counter)
        if both:
            inside = op.And(op.GreaterOrEqual(counter, op.Neg(op.Cast(op.Shape(x, end=1), to=6))), inside)
        if negated:
            inside = op.Not(inside)
        inside = op.Reshape(inside, np.array([], np.int64))
        taken = op.Gather(x, op.Where(inside, counter, np.int32(0)), axis=0)
        result: Value = op.Where(op.Unsqueeze(inside, list(axes)), taken, zero)
        return result

    return {"step": emit}


def less(limit: Any) -> dict[str, Any]:
    return step(lambda op, x, counter: op.Less(counter, np.int32(limit)))


def above(limit: Any, kind: str = "Greater") -> dict[str, Any]:
    return step(lambda op, x, counter: op.node(kind, counter, np.int32(limit)))


def all_steps(op: Builder, x: Value) -> Any:
    return op.Cast(op.Gather(op.Shape(x), op.const(np.int64(0))), to=6)


def not_empty(op: Builder, limit: Value) -> Any:
    return op.Less(np.int32(0), limit)


DYNAMIC: dict[str, Any] = {"limit": all_steps, "condition": not_empty}


@pytest.mark.parametrize(
    ("changed", "dims", "is_dropped"),
    [
        (step(), (), True),
        (less(STEPS), (), True),
        (less(STEPS - 1), (), False),
        ({**less(STEPS - 1), "limit": STEPS - 1}, (), True),
        (step(lambda op, x, counter: op.LessOrEqual(counter, np.int32(STEPS - 1))), (), True),
        (step(lambda op, x, counter: op.LessOrEqual(counter, np.int32(STEPS - 2))), (), False),
        (above(-1), (), True),
        (above(0), (), False),
        (above(0, "GreaterOrEqual"), (), True),
        (above(1, "GreaterOrEqual"), (), False),
        ({**less(STEPS), "start": 1}, (), True),
        ({**above(0), "start": 1}, (), True),
        (step(lambda op, x, counter: op.Less(op.Add(counter, np.int32(1)), np.int32(STEPS))), (), False),
        (step(lambda op, x, counter: op.Equal(counter, counter)), (), False),
        (step(negated=True), (), False),
        (step(zero=np.zeros((1, 1), np.float32)), (), True),
        (step(zero=np.zeros((1, 4), np.float32)), (), False),  # a step of [1, 1] would be repeated
        (step(lambda op, x, counter: op.Greater(op.Reshape(op.ReduceMax(x, keepdims=0), [1]), 0.5)), (), False),
        ({**step(), **DYNAMIC}, (None, BATCH, 4), True),
        ({**step(both=False), **DYNAMIC}, (None, BATCH, 4), True),
        ({**step(lambda op, x, counter: op.Less(counter, op.Cast(op.Shape(x, start=1, end=2), to=6))), **DYNAMIC},
         (None, BATCH, 4), False),  # the size of another dimension
        ({**step(lambda op, x, counter: op.Less(op.Add(counter, np.int32(1)), all_steps(op, x))), **DYNAMIC},
         (None, BATCH, 4), False),
        ({**step(lambda op, x, counter: op.Greater(op.Add(counter, np.int32(-9)), op.Neg(all_steps(op, x)))), **DYNAMIC},
         (None, BATCH, 4), False),
        ({**step(), "limit": all_steps}, (None, BATCH, 4), False),  # one iteration of no steps
        ({**less(9), **DYNAMIC}, (None, BATCH, 4), False),
    ],
)  # fmt: skip
def test_conditions(changed: dict[str, Any], dims: tuple[int | None, ...], is_dropped: bool) -> None:
    emit = recurrence(**changed)
    found = rewritten(
        emit, floats("x", *(dims or (STEPS, BATCH, 4))), floats("h", BATCH, 4), by=[CountIterations(), DropGuards()]
    )
    assert ("Where" not in found) == is_dropped


def test_a_loop_with_a_condition_stays() -> None:
    emit = recurrence(goes_on=lambda op, after, limit: op.LessOrEqual(after, np.int32(3)))
    found = rewritten(emit, floats("x", STEPS, BATCH, 4), floats("h", BATCH, 4), by=[CountIterations(), DropGuards()])
    assert "Where" in found
