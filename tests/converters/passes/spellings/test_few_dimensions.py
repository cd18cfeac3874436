"""Operators with merged dimensions, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.few_dimensions import MergedElements, MergedLines
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

SIX = (2, 1, 3, 2, 4, 3)
RESHAPES = ["Reshape"] * 2


def _constant(*dims: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Tanh(x), SIX[1:], ["Reshape", "Reshape", "Tanh"]),
        (lambda op, x: op.Tanh(x), SIX[2:], ["Tanh"]),
        (lambda op, x: op.Exp(x), SIX, ["Exp", *RESHAPES]),
        (lambda op, x: op.Exp(x), SIX[1:], ["Exp"]),
        (lambda op, x: op.Exp(x), (None, *SIX[1:]), ["Exp"]),
        (lambda op, x: op.Clip(x, 0.0, 1.0), SIX, ["Clip", *RESHAPES]),
        (lambda op, x: op.Max(x, np.float32(-0.5)), (1, 2, 3, 4, 2), ["Max", *RESHAPES]),
        (lambda op, x: op.Max(x, np.float32(-0.5)), (1, 2, 3, 4), ["Max"]),
        (lambda op, x: op.Add(x, x), SIX, ["Add", "Reshape", *RESHAPES]),
        (lambda op, x: op.Add(x, _constant(3)), SIX, ["Add", *RESHAPES]),
        (lambda op, x: op.Add(x, _constant(2, 4, 1)), SIX, ["Add", *RESHAPES]),
        (lambda op, x: op.Add(x, _constant(2, 1, 3, 1, 4, 1)), SIX, ["Add", *RESHAPES]),
        (lambda op, x: op.Add(x, _constant(3, 1, 4, 1)), SIX, ["Add", *RESHAPES]),
        (lambda op, x: op.Mul(x, _constant(2, 1, 2, 1, 4, 1)), (2, 3, 2, 3, 4, 3), ["Mul"]),  # no two are alike
        (lambda op, x: op.PRelu(x, _constant(3, 1, 1)), (2, 2, 3, 4, 2), ["PRelu", *RESHAPES]),
    ],
)
def test_elements(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    got = rewritten(emit, floats("x", *dims), by=[MergedElements()])
    assert [name for name in got if name != "Constant"] == found


@pytest.mark.parametrize(("first", "second"), [((2, 3, 4, 1, 5), (2, 3, 1, 2, 5)), ((4, 1, 5), (2, 3, 1, 2, 5))])
def test_comparisons(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    found = rewritten(lambda op, x, y: op.Less(x, y), floats("x", *first), floats("y", *second), by=[MergedElements()])
    assert found == ["Less", *["Reshape"] * 3]


@pytest.mark.parametrize(("dtype", "merged"), [(ir.DataType.BOOL, True), (ir.DataType.INT32, False)])
def test_casts(dtype: ir.DataType, merged: bool) -> None:
    numbers = [np.random.default_rng(0).integers(0, 2, (2, 1, 3, 2, 4)).astype(dtype.numpy())]
    x = new_value(dtype, (2, 1, 3, 2, 4), "x")
    found = rewritten(lambda op, x: op.Cast(x, to=ir.DataType.FLOAT), x, by=[MergedElements()], numbers=numbers)
    assert ("Reshape" in found) is merged


@pytest.mark.parametrize(
    ("emit", "dims", "merged"),
    [
        (lambda op, x: op.MatMul(x, _constant(4, 7)), (2, 1, 3, 2, 4), True),
        (lambda op, x: op.MatMul(x, _constant(4, 7)), (2, 3, 2, 4), False),
        (lambda op, x: op.MatMul(x, _constant(4, 7)), (None, 1, 3, 2, 4), False),
        (lambda op, x: op.MatMul(x, _constant(3, 4, 7)), (2, 1, 3, 2, 4), False),
        (lambda op, x: op.LayerNormalization(x, _constant(4), axis=-1), (2, 1, 3, 2, 4), True),
        (lambda op, x: op.LayerNormalization(x, _constant(4), axis=4), (2, 1, 3, 2, 4), True),
        (lambda op, x: op.LayerNormalization(x, _constant(2, 4), axis=-2), (2, 1, 3, 2, 4), False),
        (lambda op, x: op.LayerNormalization(x, _constant(4), axis=-1), (2, 3, 2, 4), False),
    ],
)
def test_lines(emit: Any, dims: tuple[int | None, ...], merged: bool) -> None:
    assert ("Reshape" in rewritten(emit, floats("x", *dims), by=[MergedLines()])) is merged
