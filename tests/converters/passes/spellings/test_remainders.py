"""Remainders for tract and MNN, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.remainders import AbsoluteRemainders, WholeDividends
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, operators, rewritten
from tests.converters.passes.spellings.spelled import spelled

D = ir.DataType
WHOLE = ["And", "Greater", "Less", "Mod", "Where"]


@pytest.mark.parametrize("kind", [D.FLOAT, D.INT32, D.INT64])
@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ((3,), (2, 3), WHOLE),
        ((2, 1), (2, 3), WHOLE),
        ((None,), (3,), WHOLE),
        ((2, 3), (2, 3), ["Mod"]),
        ((2, 3), (3,), ["Mod"]),
        ((2, 3), (), ["Mod"]),
    ],
)
def test_dividends_that_broadcast(first: tuple[int | None, ...], second: tuple[int, ...], found: list[str], kind: D) -> None:
    inputs = new_value(kind, first, "x"), new_value(kind, second, "y")
    dividends, divisors = np.array([7, -7, 5, -5, 0, 6]), np.array([3, -3, 2, 4, -4, 5])
    shapes = [tuple(3 if size is None else size for size in dims) for dims in (first, second)]
    numbers = [
        np.resize(given, shape).astype(kind.numpy()) for given, shape in zip((dividends, divisors), shapes, strict=True)
    ]

    def emit(op, x, y):
        return op.Mod(x, y, fmod=int(kind == D.FLOAT))

    assert rewritten(emit, *inputs, by=[WholeDividends()], numbers=numbers) == found


@pytest.mark.parametrize(("first", "found"), [(True, WHOLE), (False, ["Mod"])])
def test_constants(first: bool, found: list[str]) -> None:
    numbers = [np.array([3, -3, 2, 7])]

    def emit(op, x):
        return op.Mod([5, 5, -5, -5], x) if first else op.Mod(x, [5, 5, -5, -5])

    assert rewritten(emit, new_value(D.INT64, (4,), "x"), by=[WholeDividends()], numbers=numbers) == found


def test_signs_of_remainders() -> None:
    numbers = [np.array([6, -6, 5.5, -5.5, 0, 7, -7, 1e-8], np.float32), np.array([2, 2, 0.5, 1, 3, -2, -2, 3], np.float32)]
    inputs = floats("x", 8), floats("y", 8)
    found = rewritten(lambda op, x, y: op.Mod(x, y, fmod=1), *inputs, by=[AbsoluteRemainders()], numbers=numbers)
    assert found == ["Abs", "Abs", "Add", "Less", "Mod", "Mul", "Sign", "Where"]


def test_remainders_of_integers_stay() -> None:
    x, numbers = new_value(D.INT64, (4,), "x"), [np.array([3, -3, 2, 7])]
    assert rewritten(lambda op, x: op.Mod(x, [5]), x, by=[AbsoluteRemainders()], numbers=numbers) == ["Mod"]


@pytest.mark.parametrize(
    ("dtype", "fmod", "found"),
    [
        (ir.DataType.INT32, 1, True),
        (ir.DataType.INT64, 1, True),
        (ir.DataType.INT32, 0, False),
        (ir.DataType.FLOAT, 1, False),
    ],
)
def test_remainders(dtype: ir.DataType, fmod: int, found: bool) -> None:
    x = np.array([-7, -1, 0, 3, 8], np.float32)
    left = operators(spelled("Div for Mod", lambda op, x: op.Mod(op.Cast(x, to=dtype), op.const(3, dtype), fmod=fmod), x))
    assert ("Div" in left) is found and ("Mod" in left) is not found
