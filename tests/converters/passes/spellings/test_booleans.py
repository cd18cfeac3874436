"""Booleans and bytes as casts of integers, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.booleans import SelectedNumbers
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run
from tests.converters.passes.spellings.spelled import X, spelled


def test_booleans() -> None:
    def emit(op, x):
        return op.Where(op.const(np.array([True, False, True])), x, op.Neg(x))

    model = spelled("no boolean constants", emit)
    assert operators(model) == ["Cast", "Neg", "Where"]
    assert all(value.dtype != ir.DataType.BOOL for value in model.graph.initializers.values())


@pytest.mark.parametrize(("kind", "stored"), [(ir.DataType.UINT8, False), (ir.DataType.INT8, True)])
def test_bytes(kind: ir.DataType, stored: bool) -> None:
    def emit(op, x):
        return op.Max(op.Cast(x, to=kind), op.const([1, 2, 3], kind))

    found = operators(spelled("no byte constants", emit, np.abs(X)))
    assert found == (["Cast", "Max"] if stored else ["Cast", "Cast", "Max"])


def test_zero_points_stay() -> None:
    def emit(op, x):
        return op.DequantizeLinear(
            op.QuantizeLinear(x, 0.5, op.const(3, ir.DataType.UINT8)), 0.5, op.const(3, ir.DataType.UINT8)
        )

    assert operators(spelled("no byte constants", emit)) == ["DequantizeLinear", "QuantizeLinear"]


def test_a_boolean_input_is_not_a_constant() -> None:
    given = new_value(ir.DataType.BOOL, (3,), "given")
    model = graph(lambda op, x, given: op.Where(given, x, op.Neg(x)), floats("x", 2, 3), given)
    assert not SPELLINGS["no boolean constants"]()(model).modified


@pytest.mark.parametrize(("kind", "casts"), [(ir.DataType.BOOL, 3), (ir.DataType.FLOAT, 0)])
def test_selected_booleans(kind: ir.DataType, casts: int) -> None:
    names, numbers = "cxy", [np.array([True, False, True]), np.array([0, 0, 1]), np.array([0, 1, 0])]
    inputs = [new_value(given, (3,), name) for given, name in zip((ir.DataType.BOOL, kind, kind), names, strict=True)]
    arrays = [number.astype(value.dtype.numpy()) for number, value in zip(numbers, inputs, strict=True) if value.dtype]
    model = graph(lambda op, c, x, y: op.Where(c, x, y), *inputs)
    SelectedNumbers()(model)
    assert operators(model) == ["Cast"] * casts + ["Where"]
    np.testing.assert_array_equal(run(model, *arrays)[0], np.where(*arrays), strict=True)
