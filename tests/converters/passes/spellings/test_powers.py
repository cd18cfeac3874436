"""Pow with a constant exponent by products, square roots and reciprocals, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.powers import ExpandedPowers
from onnx_specops.building import new_value
from onnx_specops.graphs import constant_array
from tests.converters.passes.graphs import floats, graph, rewritten

NUMBERS = np.array([[0, 1, 2.5, 0.3, 3e4], [-1, -2.5, np.nan, 1e-40, 7]], np.float32)
POSITIVE = ["Add", "Max", "Min", "Mul", "Pow", "Relu", "Sign", "Sqrt", "Sub"]


def _found(exponent: Any, x: ir.Value | None = None, numbers: np.ndarray = NUMBERS) -> list[str]:
    x = x or floats("x", *numbers.shape)
    kind = x.dtype.numpy() if x.dtype else np.float32
    return rewritten(
        lambda op, x: op.Pow(x, op.const(np.array(exponent, kind))), x, by=[ExpandedPowers()], numbers=[numbers.astype(kind)]
    )


@pytest.mark.parametrize(
    ("exponent", "found"),
    [
        (1, []),
        (3, ["Mul", "Mul"]),
        (4, ["Mul", "Mul"]),
        (7, ["Mul"] * 4),
        (0.5, ["Sqrt"]),
        (1.5, ["Mul", "Sqrt"]),
        (-0.5, ["Reciprocal", "Sqrt"]),
        (-1, ["Reciprocal"]),
        (-2, ["Mul", "Reciprocal"]),
        ([3], ["Mul", "Mul"]),
        (1 / 3, POSITIVE),
        (2.2, POSITIVE),
        (-0.3, sorted([*POSITIVE, "Reciprocal"])),
    ],
)
def test_powers(exponent: Any, found: list[str]) -> None:
    assert [name for name in _found(exponent) if name != "Identity"] == found


@pytest.mark.parametrize("exponent", [2, 0, np.inf, [2, 3, 4, 5, 6], [[[3]]]])
def test_other_powers_stay(exponent: Any) -> None:
    assert _found(exponent) == ["Pow"]


def test_powers_of_positive_numbers_stay() -> None:
    def emit(op, x):
        return op.Pow(op.Max(x, np.float32(1e-3)), np.float32(3)), op.Pow(np.float32(2), x), op.Pow(x, x)

    assert rewritten(emit, floats("x", 2, 3), by=[ExpandedPowers()]) == ["Max", "Pow", "Pow", "Pow"]


def test_powers_of_integers_stay() -> None:
    assert _found(3, new_value(ir.DataType.INT32, (2, 3), "x"), np.arange(6).reshape(2, 3)) == ["Pow"]


def test_no_constant_is_subnormal() -> None:
    model = graph(lambda op, x: op.Pow(x, op.const(np.float32(0.3))), floats("x", 2, 3))
    ExpandedPowers()(model)
    for value in model.graph.initializers.values():
        array = np.abs(constant_array(value))
        assert array[array > 0].min(initial=1) >= np.finfo(np.float32).tiny
