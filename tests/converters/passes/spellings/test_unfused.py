"""Patterns that OpenCV would fuse to another operator with another result, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, rewritten


def _logarithm(other: Any, swapped: bool = False) -> Any:
    def emit(op, x):
        terms = [op.Exp(x), other(op, x)]
        return op.Log(op.Add(*(reversed(terms) if swapped else terms)))

    return emit


def _elu(before: str, after: str) -> Any:
    return lambda op, x: op.node(after, op.Elu(op.node(before, x, np.float32(2))), np.float32(3))


def _gate(value: Any) -> Any:
    def emit(op, x):
        gate = op.Add(op.Erf(op.Div(x, np.float32(2**0.5))), np.float32(1))
        return op.Mul(value(op, x), gate)

    return emit


def _softmax(*axes: int, function: str = "Exp") -> Any:
    def emit(op, x):
        e = op.node(function, x)
        return op.Div(e, op.ReduceSum(e, list(axes)))

    return emit


def _normalized(weight: tuple[int, ...], bias: tuple[int, ...], axes: tuple[int, ...] = (-1,)) -> Any:
    def emit(op, x):
        difference = op.Sub(x, op.ReduceMean(x, list(axes)))
        variance = op.ReduceMean(op.Mul(difference, difference), list(axes))
        quotient = op.Div(difference, op.Sqrt(op.Add(variance, np.float32(1e-3))))
        factors = [np.linspace(1, 2, int(np.prod(dims)), dtype=np.float32).reshape(dims) for dims in (weight, bias)]
        return op.Add(op.Mul(quotient, op.const(factors[0])), op.const(factors[1]))

    return emit


@pytest.mark.parametrize(
    ("emit", "separate"),
    [
        (_logarithm(lambda op, x: op.const(np.float32(2))), True),
        (_logarithm(lambda op, x: op.const(np.float32(2)), swapped=True), True),
        (_logarithm(lambda op, x: op.Abs(x)), True),
        (_logarithm(lambda op, x: op.Abs(x), swapped=True), True),
        (_logarithm(lambda op, x: op.const(np.float32(1))), False),
        (_logarithm(lambda op, x: op.const(np.ones(4, np.float32))), False),
        (lambda op, x: op.Log(op.Add(op.Abs(x), np.float32(2))), False),
        (_elu("Div", "Mul"), True),
        (_elu("Sub", "Mul"), False),
        (_elu("Div", "Add"), False),
        (_gate(lambda op, x: op.Sin(x)), True),
        (_gate(lambda op, x: op.const(np.full(4, 2, np.float32))), True),
        (_gate(lambda op, x: x), False),
        (_softmax(1, 2), True),
        (_softmax(0, 1, 2), True),
        (_softmax(2), False),
        (_softmax(1, 2, function="Softplus"), False),
        (_normalized((1,), (4,)), True),
        (_normalized((), (4,)), True),
        (_normalized((4,), (1,)), True),
        (_normalized((3, 1), (4,)), True),
        (_normalized((4,), (4,)), False),
        (_normalized((4,), (4,), axes=(1, 2)), True),
        (_normalized((3, 4), (3, 4), axes=(1, 2)), False),
    ],
)
def test_patterns(emit: Any, separate: bool) -> None:
    numbers = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
    names = rewritten(emit, floats("x", 2, 3, 4), by=[SPELLINGS["separate patterns"]()], numbers=[numbers])
    assert names.count("Identity") == separate
