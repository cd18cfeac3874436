"""Sums after convolutions and normalizations, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings.residuals import ExpandedResiduals, SubtractedBiases, SubtractedResiduals
from tests.converters.passes.graphs import floats, rewritten

WEIGHTS = np.arange(36, dtype=np.float32).reshape(4, 1, 3, 3) / 36
PADS = [1, 1, 1, 1]


def _conv(op, x):
    return op.Conv(x, WEIGHTS, group=4, pads=PADS)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x, y: op.Add(_conv(op, x), op.Neg(y)), ["Add", "Conv", "Expand", "Neg"]),
        (lambda op, x, y: op.Add(op.Neg(y), _conv(op, x)), ["Add", "Conv", "Expand", "Neg"]),
        (lambda op, x, y: op.Add(_conv(op, y), op.Neg(x)), ["Add", "Conv", "Expand", "Neg"]),
        (lambda op, x, y: op.Add(_conv(op, x), op.Neg(x)), ["Add", "Conv", "Neg"]),
        (lambda op, x, y: op.Add(op.Abs(x), op.Neg(y)), ["Abs", "Add", "Neg"]),
        (lambda op, x, y: op.Mul(_conv(op, x), op.Neg(y)), ["Conv", "Mul", "Neg"]),
        (lambda op, x, y: op.Add(_conv(op, x), np.ones((4, 1, 1), np.float32)), ["Add", "Conv"]),
    ],
)
def test_shapes_of_residuals(emit: Any, found: list[str]) -> None:
    inputs = floats("x", 1, 4, 5, 5), floats("y", 1, 4, 1, 1)
    assert rewritten(emit, *inputs, by=[ExpandedResiduals()]) == found


def test_residuals_of_unknown_sizes_stay() -> None:
    def emit(op, x, y):
        return op.Add(_conv(op, x), op.Neg(y))

    inputs = floats("x", 1, 4, None, 5), floats("y", 1, 4, 1, 1)
    assert rewritten(emit, *inputs, by=[ExpandedResiduals()]) == ["Add", "Conv", "Neg"]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Add(op.Conv(x, WEIGHTS[:, :, None], group=4), x), (1, 4, 1, 3, 3), ["Conv", "Neg", "Sub"]),
        (lambda op, x: op.Add(x, op.Conv(x, WEIGHTS[:, :, None], group=4)), (1, 4, 1, 3, 3), ["Conv", "Neg", "Sub"]),
        (lambda op, x: op.Add(_conv(op, x), x), (1, 4, 3, 3), ["Add", "Conv"]),
        (lambda op, x: op.Add(op.Abs(x), x), (1, 4, 1, 3, 3), ["Abs", "Add"]),
        (
            lambda op, x: op.Add(op.Conv(x, WEIGHTS[:, :, None], group=4), np.ones((1, 4, 1, 1, 1), np.float32)),
            (1, 4, 1, 3, 3),
            ["Add", "Conv"],
        ),
    ],
)
def test_residuals_of_volumes(emit: Any, dims: tuple[int, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[SubtractedResiduals()]) == found


def _normalized(
    groups: list[int], whole: list[int], scale: tuple[int, ...], bias: tuple[int, ...], *, swapped: bool = False
):
    generator = np.random.default_rng(0)
    factors, addends = (generator.standard_normal(dims).astype(np.float32) for dims in (scale, bias))
    ones = np.ones(groups[1], np.float32)

    def emit(op, x):
        normal = op.InstanceNormalization(op.Reshape(x, groups), ones, 0 * ones)
        shaped = op.Reshape(normal, whole)
        product = op.Mul(factors, shaped) if swapped else op.Mul(shaped, factors)
        return op.Add(addends, product) if swapped else op.Add(product, addends)

    return emit


@pytest.mark.parametrize(
    ("emit", "changed"),
    [
        (_normalized([1, 2, -1], [1, 4, 5, 3], (4, 1, 1), (4, 1, 1)), False),
        (_normalized([1, 2, -1], [1, 4, 5, 3], (4, 1, 1), (4, 1, 1), swapped=True), False),
        (_normalized([1, 2, -1], [1, 4, 15], (4, 1), (4, 1)), True),
        (_normalized([1, 2, -1], [1, 4, 15], (4, 1), (4, 1), swapped=True), True),
        (_normalized([1, 2, -1, 1], [1, 4, 15], (4, 1), (4, 1)), True),
        (_normalized([1, 2, -1], [1, 4, 5, 3], (1, 1, 3), (4, 1, 1)), True),
        (_normalized([1, 2, -1], [1, 4, 5, 3], (4, 1, 1), (1, 5, 1)), True),
        (_normalized([1, 2, -1], [1, 4, 5, 3], (1,), (4, 1, 1)), True),
    ],
)
def test_group_normalizations(emit: Any, changed: bool) -> None:
    usual = ["Add", "InstanceNormalization", "Mul", "Reshape", "Reshape"]
    different = ["InstanceNormalization", "Mul", "Reshape", "Reshape", "Sub"]
    assert rewritten(emit, floats("x", 1, 4, 5, 3), by=[SubtractedBiases()]) == (different if changed else usual)


def test_group_normalizations_of_lines() -> None:
    emit = _normalized([1, 2, -1], [1, 4, 15], (4, 1), (4, 1))
    assert "Sub" in rewritten(emit, floats("x", 1, 4, 15), by=[SubtractedBiases()])


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.Add(op.Mul(op.Reshape(x, [1, 60]), 2.0), 3.0),
        lambda op, x: op.Add(op.Mul(op.Neg(op.Reshape(x, [1, 60])), np.ones(60, np.float32)), np.ones(60, np.float32)),
    ],
)
def test_other_sums_stay(emit: Any) -> None:
    assert "Add" in rewritten(emit, floats("x", 1, 4, 5, 3), by=[SubtractedBiases()])
