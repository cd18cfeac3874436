"""Dequantization of stored integers and biases of products: spellings and near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.added_bias import added_bias
from converters.passes.dequantization import dequantization
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph

D = ir.DataType
F = D.FLOAT


def _arithmetic(emit: Callable[..., Value]) -> tuple[bool, bool, int] | None:
    """Return whether a dequantization has a zero point, whether it has a scale, and its number of leading casts."""
    stored = new_value(D.INT8, [4, 6], "stored")
    inputs = [floats("zero", 4, 1), floats("scale", 4, 1), floats("whole", 4, 6)]
    model = graph(lambda op, *values: emit(op, *values), stored, *inputs)
    found = dequantization(model.graph.outputs[0], lambda value: value is stored)
    if found is None:
        return None
    assert found.stored is stored
    assert found.zero in (None, inputs[0]) and found.scale in (None, *inputs[1:])
    return found.zero is not None, found.scale is not None, len(found.before)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, q, z, s, w: op.Mul(op.Sub(op.Cast(q, to=F), z), s), (True, True, 1)),
        (lambda op, q, z, s, w: op.Mul(s, op.Sub(op.Cast(q, to=F), z)), (True, True, 1)),
        (lambda op, q, z, s, w: op.Mul(op.Cast(op.Cast(q, to=D.FLOAT16), to=F), s), (False, True, 2)),
        (lambda op, q, z, s, w: op.Cast(op.Mul(op.Cast(q, to=F), s), to=D.FLOAT16), (False, True, 1)),
        (lambda op, q, z, s, w: op.Sub(op.Cast(q, to=F), z), (True, False, 1)),
        (lambda op, q, z, s, w: op.Cast(q, to=F), (False, False, 1)),
        (lambda op, q, z, s, w: op.Sub(op.Mul(op.Cast(q, to=F), s), z), None),  # the zero point is subtracted after scaling
        (lambda op, q, z, s, w: op.Sub(z, op.Cast(q, to=F)), None),
        (lambda op, q, z, s, w: op.Mul(op.Mul(op.Cast(q, to=F), s), s), None),
        (lambda op, q, z, s, w: op.Mul(op.Cast(op.Cast(q, to=D.INT32), to=F), s), None),
        (lambda op, q, z, s, w: op.Mul(op.Neg(op.Cast(q, to=F)), s), None),
        (lambda op, q, z, s, w: op.Div(op.Cast(q, to=F), s), None),
    ],
)
def test_dequantization(emit: Callable[..., Value], found: tuple[bool, bool, int] | None) -> None:
    assert _arithmetic(emit) == found


@pytest.mark.parametrize(
    ("bias", "axis", "broadcast", "found"),
    [
        ((6,), -1, False, True),
        ((1, 6), -1, False, True),
        ((1, 1, 6), -1, False, True),
        ((1, 1, 1, 6), -1, False, False),  # it adds a dimension
        ((4, 1), -2, False, True),
        ((4, 1), 1, False, True),
        ((4, 6), -1, False, False),
        ((1,), -1, False, False),
        ((1,), -1, True, True),
        ((), -1, False, False),
        ((), -1, True, True),
    ],
)
def test_added_bias(bias: tuple[int, ...], axis: int, broadcast: bool, found: bool) -> None:
    values: dict[str, Value] = {}

    def emit(op: Any, x: Value) -> Value:
        values["x"] = op.Relu(x)
        return op.Add(op.const(np.ones(bias, np.float32)), values["x"])

    graph(emit, floats("x", 2, 4, 6))
    sizes = {-1: 6, -2: 4, 1: 4}
    assert (added_bias(values["x"], axis, sizes[axis], broadcast=broadcast) is not None) is found


def test_a_bias_of_a_product_with_another_consumer() -> None:
    values: dict[str, Value] = {}

    def emit(op: Any, x: Value) -> list[Value]:
        values["x"] = op.Relu(x)
        return [op.Add(values["x"], op.const(np.ones(6, np.float32))), op.Neg(values["x"])]

    graph(emit, floats("x", 4, 6))
    assert added_bias(values["x"], -1, 6) is None
