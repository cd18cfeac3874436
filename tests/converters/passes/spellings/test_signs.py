"""Sign, and Abs and Neg of integers, as comparisons and subtractions, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.signs import ComparedSigns, Signs, SignsOfIntegers
from onnx_specops.building import new_value
from tests.converters.passes.graphs import rewritten

FLOAT, INT32, INT64 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64
OPERATORS = ["Abs", "Neg", "Relu", "Sign"]
NUMBERS = np.random.default_rng(0).integers(-9, 9, (2, 3, 4))


def _found(emit: Any, dtype: ir.DataType, by: Any) -> list[str]:
    x = new_value(dtype, NUMBERS.shape, "x")
    return rewritten(emit, x, by=[by()], numbers=[NUMBERS.astype(dtype.numpy())])


@pytest.mark.parametrize(
    ("emit", "dtype", "found"),
    [
        (lambda op, x: op.Sign(x), FLOAT, ["Greater", "Less", "Where", "Where"]),
        (lambda op, x: op.Sign(x), INT64, ["Cast", "Cast", "Greater", "Less", "Sub"]),
        (lambda op, x: op.Abs(x), INT64, ["Max", "Sub"]),
        (lambda op, x: op.Neg(x), INT32, ["Sub"]),
        (lambda op, x: op.Abs(x), FLOAT, ["Abs"]),
        (lambda op, x: op.Neg(x), FLOAT, ["Neg"]),
    ],
)
def test_signs(emit: Any, dtype: ir.DataType, found: list[str]) -> None:
    assert _found(emit, dtype, Signs) == found


@pytest.mark.parametrize(
    ("dtype", "sign"), [(FLOAT, ["Greater", "Less", "Where", "Where"]), (INT64, ["Cast", "Cast", "Greater", "Less", "Sub"])]
)
def test_only_signs(dtype: ir.DataType, sign: list[str]) -> None:
    found = _found(lambda op, x: (op.Sign(x), op.Abs(x)), dtype, ComparedSigns)
    assert found == ["Abs", *sign]


@pytest.mark.parametrize(
    ("dtype", "found"), [(INT32, ["Cast", "Cast", "Greater", "Less", "Max", "Max", "Sub", "Sub", "Sub"]), (FLOAT, OPERATORS)]
)
def test_signs_of_integers(dtype: ir.DataType, found: list[str]) -> None:
    def emit(op, x):
        return tuple(op.node(operator, x) for operator in OPERATORS)

    assert _found(emit, dtype, SignsOfIntegers) == found


@pytest.mark.parametrize("dims", [(8,), ()])
def test_signs_of_special_numbers(dims: tuple[int, ...]) -> None:
    """The sign of a NaN is NaN."""
    for number in ([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-6, -1e-6, 2],) if dims else (np.nan, -np.inf, 0.0):
        numbers = [np.array(number, np.float32)]
        x = new_value(FLOAT, dims, "x")
        assert "Sign" not in rewritten(lambda op, x: op.Sign(x), x, by=[Signs()], numbers=numbers)
