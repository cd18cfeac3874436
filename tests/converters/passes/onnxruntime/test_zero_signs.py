"""The sign of a zero that Where selects."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import SignsOfSelectedZeros
from converters.passes.verification import Verifier
from onnx_specops.building import Value, new_value
from onnx_specops.replacing import checked_by
from tests.converters.passes.graphs import Emit, graph, operators, run

ONE, FOUR = np.float32(1), np.float32(4)


def inputs(dtype: ir.DataType = ir.DataType.FLOAT) -> list[Value]:
    return [new_value(ir.DataType.BOOL, [6], "condition"), new_value(dtype, [6], "x")]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs_of_zeros(dtype: type[np.floating]) -> None:
    """Of both signs, next to a NaN; the graph has as many nodes as before."""
    model = graph(
        lambda op, condition, x: op.Div(dtype(1), op.Where(condition, x, dtype(4))),
        *inputs(ir.DataType.from_numpy(np.dtype(dtype))),
    )
    assert SignsOfSelectedZeros()(model).modified
    assert operators(model) == ["Div", "Where"]
    condition = np.array([True, True, False, True, False, True])
    x = np.array([-0.0, 0.0, -0.0, 2, 0, np.nan], dtype)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(run(model, condition, x)[0], 1 / np.where(condition, x, dtype(4)), strict=True)


@pytest.mark.parametrize(
    ("emit", "is_changed"),
    [
        (lambda op, condition, x: op.Div(ONE, op.Where(condition, x, FOUR)), True),
        (lambda op, condition, x: (w := op.Where(condition, x, FOUR), op.Div(ONE, w)), True),
        (lambda op, condition, x: op.Div(ONE, op.Where(condition, FOUR, x)), False),  # its kernel keeps these signs
        (lambda op, condition, x: op.Div(ONE, op.Where(condition, x, op.Neg(x))), False),  # one more division
        (lambda op, condition, x: op.Div(x, op.Where(condition, x, FOUR)), False),
        (lambda op, condition, x: op.Div(op.Where(condition, x, FOUR), FOUR), False),  # the dividend
    ],
)
def test_conditions(emit: Emit, is_changed: bool) -> None:
    assert SignsOfSelectedZeros()(graph(emit, *inputs())).modified is is_changed


def test_the_check_of_a_conversion_accepts_the_change() -> None:
    """ONNX Runtime computes other signs from the original nodes, which ``--verify`` would report."""
    x, y = new_value(ir.DataType.FLOAT, [22], "x"), new_value(ir.DataType.FLOAT, [22], "y")
    model = graph(lambda op, x, y: op.Div(ONE, op.Where(op.GreaterOrEqual(y, x), x, FOUR)), x, y)
    verifier = Verifier()
    with checked_by(verifier):
        assert SignsOfSelectedZeros()(model).modified
    assert not verifier.differences


def test_integers_stay() -> None:
    """They have one zero, and a division by another zero could stop the process."""
    integers = new_value(ir.DataType.INT64, [6], "x")
    model = graph(lambda op, condition, x: op.Div(1, op.Where(condition, x, 4)), inputs()[0], integers)
    assert not SignsOfSelectedZeros()(model).modified


@pytest.mark.filterwarnings("error")
def test_a_constant_zero() -> None:
    """Its quotient is infinity or NaN."""
    for dividend in (ONE, np.float32(0)):
        model = graph(lambda op, condition, x, a=dividend: op.Div(a, op.Where(condition, x, np.float32(0))), *inputs())
        assert SignsOfSelectedZeros()(model).modified
        condition, x = np.arange(6) > 2, np.float32([-0.0, 0, 1, -0.0, 0, 2])
        with np.errstate(divide="ignore", invalid="ignore"):
            np.testing.assert_array_equal(run(model, condition, x)[0], dividend / np.where(condition, x, np.float32(0)))
