"""Sums of squares of rows, as sums of products."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import NormsBySums, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

REDUCTIONS = {
    "ReduceL2": lambda op, x, axes, keepdims: op.ReduceL2(x, axes, keepdims=keepdims),
    "ReduceSumSquare": lambda op, x, axes, keepdims: op.ReduceSumSquare(x, axes, keepdims=keepdims),
}


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("dims", "axes", "found"),
    [
        ((2, 16, 8, 16), [3], True),
        ((2, 16, 8, 16), [-1, 2], True),
        ((2, 16, 8, 16), [0, 1, 2, 3], True),
        ((4096,), [0], True),
        ((2, 16, 8, 16), [2], False),
        ((2, 16, 8, 16), [1, 3], False),
        ((1, 15, 16, 17), [3], False),  # few elements
        ((0, 8, 512), [2], False),
        ((None, 64, 64), [2], False),
    ],
    ids=str,
)
def test_conditions(operator: str, keepdims: int, dims: tuple[int | None, ...], axes: list[int], found: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return REDUCTIONS[operator](op, x, axes, keepdims)

    got = rewritten(emit, floats("x", *dims), by=[NormsBySums()], atol=1e-3)
    assert ("ReduceSum" in got) is found and (operator in got) is not found


def test_numbers_that_are_not_finite_and_large_ones() -> None:
    numbers = np.ones((7, 1024), np.float32)
    numbers[np.arange(6), np.arange(6)] = np.inf, -np.inf, np.nan, 1e19, 1e20, 1e-30
    emit = lambda op, x: op.ReduceL2(x, [1])  # noqa: E731
    assert "ReduceSum" in rewritten(emit, floats("x", 7, 1024), by=[NormsBySums()], numbers=[numbers])


def test_other_types_unknown_axes_and_all_axes_stay() -> None:
    halves = graph(lambda op, x: op.ReduceL2(x, [1]), new_value(ir.DataType.FLOAT16, [64, 64], "x"))
    unknown = graph(lambda op, x, axes: op.ReduceL2(x, axes), floats("x", 64, 64), new_value(ir.DataType.INT64, [1], "axes"))
    everything = graph(lambda op, x: op.ReduceL2(x), floats("x", 64, 64))
    assert not any(NormsBySums()(model).modified for model in (halves, unknown, everything))


@pytest.mark.parametrize(("opset", "found"), [(17, False), (18, True)])
def test_opsets(opset: int, found: bool) -> None:
    """Older ones have the axes as an attribute."""
    assert any(isinstance(step, NormsBySums) for step in fusion_guards(opset)) is found
