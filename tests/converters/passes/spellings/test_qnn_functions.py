"""Functions that Qualcomm's HTP computes within a range, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.qnn_functions import ArcTangents, BoundedAtan, BoundedExp, ExpandedSoftmax
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

NUMBERS = [np.array([-np.inf, -1e30, -100, -60, -1, 0, 3, 60, 1e30, np.inf, np.nan], np.float32)]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Exp(x), ["Clip", "Exp"]),
        (lambda op, x: op.Exp(op.Clip(x, -60.0)), ["Clip", "Exp"]),
        (lambda op, x: op.Exp(op.Max(x, -1.0)), ["Exp", "Max"]),
        (lambda op, x: op.Exp(op.Max(0.0, x)), ["Exp", "Max"]),
        (lambda op, x: op.Exp(op.Max(x, -100.0)), ["Clip", "Exp", "Max"]),
        (lambda op, x: op.Exp(op.Clip(x, -61.0)), ["Clip", "Clip", "Exp"]),
        (lambda op, x: op.Exp(op.Clip(x, None, 5.0)), ["Clip", "Clip", "Exp"]),
        (lambda op, x: op.Exp(op.Min(x, -1.0)), ["Clip", "Exp", "Min"]),
    ],
)
def test_exponentials(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 11), by=[BoundedExp()], numbers=NUMBERS) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Atan(x), ["Atan", "Clip"]),
        (lambda op, x: op.Atan(op.Clip(x, -1.0, 1.0)), ["Atan", "Clip"]),
        (lambda op, x: op.Atan(op.Max(x, 0.0)), ["Atan", "Clip", "Max"]),
        (lambda op, x: op.Atan(op.Clip(x, -1.0)), ["Atan", "Clip", "Clip"]),
        (lambda op, x: op.Atan(op.Clip(x, -1.0, 1e5)), ["Atan", "Clip", "Clip"]),
    ],
)
def test_arc_tangents(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 11), by=[BoundedAtan()], numbers=NUMBERS, atol=1e-4) == found


def test_other_types() -> None:
    x = new_value(ir.DataType.DOUBLE, (3,), "x")
    assert rewritten(lambda op, x: op.Exp(x), x, by=[BoundedExp()]) == ["Exp"]


@pytest.mark.parametrize("name", ["Acos", "Asin"])
def test_arc_functions(name: str) -> None:
    numbers = [np.array([-1, -0.99999, -0.5, 0, 1e-6, 0.3, 0.999, 0.99999994, 1, 1.5, np.nan], np.float32)]
    found = rewritten(lambda op, x: op.node(name, x), floats("x", 11), by=[ArcTangents()], numbers=numbers, atol=2e-4)
    assert "Atan" in found and name not in found


SCALE = (np.float32(0.1), np.int8(0))
HIDDEN = np.finfo(np.float32).min
SCORES = np.array([[0, 1, -3, 80], [-np.inf, 2, 2, HIDDEN], [HIDDEN] * 4, [1, np.nan, 0, 0], [np.inf, 0, 1, 2]], np.float32)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Softmax(x), (5, 4), True),
        (lambda op, x: op.Softmax(x, axis=0), (5, 4), True),
        (lambda op, x: op.Softmax(x, axis=-1), (None, 4), True),
        (lambda op, x: op.Softmax(x, axis=0), (None, 4), False),
        (lambda op, x: op.DequantizeLinear(op.QuantizeLinear(op.Softmax(x), *SCALE), *SCALE), (5, 4), False),
        (lambda op, x: op.Softmax(op.DequantizeLinear(op.QuantizeLinear(x, *SCALE), *SCALE)), (5, 4), False),
    ],
)
def test_softmax(emit: Any, dims: tuple[int | None, ...], found: bool) -> None:
    kept = rewritten(emit, floats("x", *dims), by=[ExpandedSoftmax()], numbers=[SCORES])
    assert ("Exp" in kept) == found != ("Softmax" in kept)


def test_softmax_of_other_types() -> None:
    x = new_value(ir.DataType.DOUBLE, (2, 3), "x")
    assert rewritten(lambda op, x: op.Softmax(x), x, by=[ExpandedSoftmax()]) == ["Softmax"]


def test_softmax_of_many_dimensions() -> None:
    assert rewritten(lambda op, x: op.Softmax(x), floats("x", 1, 1, 1, 1, 3), by=[ExpandedSoftmax()]) == ["Softmax"]
