"""Additions of floats in the convolutions before them, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.quantized import AddFloatResiduals
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import Emit, floats, rewritten

CHANNELS = 8


def _conv(op: Builder, x: Value, columns: int = CHANNELS, *more: Any, integers: bool = False) -> Value:
    """A convolution of the quantized tensor to floats, or to integers."""
    rng = np.random.default_rng(columns)
    found: Value = op.specops.QuantizedConv(
        op.QuantizeLinear(x, np.float32(0.05), np.uint8(128)),
        rng.integers(-99, 99, (columns, CHANNELS, 1, 1)).astype(np.int8),
        rng.uniform(1e-4, 1e-3, columns).astype(np.float32),
        rng.standard_normal(columns).astype(np.float32),
        np.uint8(128),
        np.uint8(3) if integers else np.float32(0),
        *more,
        channels=CHANNELS,
        kernel="1,1",
    )
    return found


def _sum(
    op: Builder, a: Value, b: Value, program: str = "add 0 1", *more: Value, zero: Any = None, scale: Any = None
) -> Value:
    zero = np.float32(0) if zero is None else zero
    found: Value = op.specops.Elementwise(a, zero, scale, b, *more, program=program)
    return found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Add(_conv(op, x), op.Abs(x)), True),
        (lambda op, x: op.Add(op.Abs(x), _conv(op, x)), True),
        (lambda op, x: op.Add(_conv(op, x), x), True),
        (lambda op, x: op.Relu(op.Add(_conv(op, x), x)), True),
        (lambda op, x: _sum(op, _conv(op, x), x), True),
        (lambda op, x: _sum(op, x, _conv(op, x), "add 0 1;relu 10"), True),
        (lambda op, x: op.Add(_conv(op, x), _conv(op, op.Abs(x))), True),  # one of them adds the other
        (lambda op, x: op.Add(_conv(op, x), np.float32(2)), False),
        (lambda op, x: op.Add(_conv(op, x), np.ones((1, 1, 1, CHANNELS), np.float32)), False),
        (lambda op, x: op.Add(_conv(op, x, 1), x), False),  # the result is broadcast
        (lambda op, x: op.Sub(_conv(op, x), x), False),
        (lambda op, x: _sum(op, _conv(op, x), x, "mul 0 1"), False),
        (lambda op, x: _sum(op, _conv(op, x), x, "add 0 1;add 10 2", op.Abs(x)), False),
        (lambda op, x: _sum(op, _conv(op, x), x, zero=np.uint8(128), scale=np.float32(0.1)), False),  # integers
        (lambda op, x: op.Add(op.Cast(_conv(op, x, integers=True), to=1), x), False),
        (lambda op, x: op.Add(op.Reshape(_conv(op, x), [1, 5, 3, CHANNELS]), op.Reshape(x, [1, 5, 3, CHANNELS])), False),
        (lambda op, x: (lambda y: op.Add(y, y))(_conv(op, x)), False),
    ],
)
def test_sums(emit: Emit, found: bool) -> None:
    got = rewritten(emit, floats("x", 1, 3, 5, CHANNELS), by=[AddFloatResiduals()])
    assert bool({"Add", "Elementwise", "Relu", "Sub"} & set(got)) != found


def test_consumers() -> None:
    def of_the_result(op: Builder, x: Value) -> list[Value]:
        y = _conv(op, x)
        return [op.Add(y, x), op.Neg(y)]

    def of_the_sum(op: Builder, x: Value) -> list[Value]:
        total = op.Add(_conv(op, x), x)
        return [op.Relu(total), op.Neg(total)]

    assert "Add" in rewritten(of_the_result, floats("x", 1, 3, 5, CHANNELS), by=[AddFloatResiduals()])
    found = rewritten(of_the_sum, floats("x", 1, 3, 5, CHANNELS), by=[AddFloatResiduals()])
    assert "Add" not in found
    assert "Relu" in found
    unknown = rewritten(lambda op, x: op.Add(_conv(op, x), x), floats("x", None, 3, 5, CHANNELS), by=[AddFloatResiduals()])
    assert "Add" in unknown


def test_a_second_sum() -> None:
    """One tensor is added to a result."""
    found = rewritten(
        lambda op, x: op.Add(op.Add(_conv(op, x), x), op.Abs(x)), floats("x", 1, 3, 5, CHANNELS), by=[AddFloatResiduals()]
    )
    assert found.count("Add") == 1
