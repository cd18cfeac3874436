"""Forms that the fusions of a program mistake for others, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, operators, rewritten
from tests.converters.passes.spellings.spelled import spelled


def _ones(*dims: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)


@pytest.mark.parametrize(
    ("emit", "dims", "whole"),
    [
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (3,), [1, 3, 2, 3]),
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (3, 1, 1), None),
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (2, 1), None),  # not as many as channels
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (1,), None),
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (3,), [1, 3, 1, 3]),  # the sum is larger than the product
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (3, 1, 1, 1, 1), [3, 2, 3, 1, 1]),  # it has more dimensions
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (2, 1, 1, 1, 1), None),
        (lambda op, x: op.MatMul(x, _ones(3, 2)), (2, 1), [1, 1, 2, 2]),
        (lambda op, x: op.MatMul(x, _ones(3, 2)), (2,), None),
        (lambda op, x: op.Relu(x), (3,), None),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_addends(emit: Any, dims: tuple[int, ...], whole: list[int] | None, swapped: bool) -> None:
    def added(op, x):
        pair = [emit(op, x), op.const(_ones(*dims))]
        return op.Add(*(reversed(pair) if swapped else pair))

    node = spelled("whole addends", added, _ones(2, 3, 2, 3)).graph[-1]
    constant = node.inputs[0 if swapped else 1]
    assert constant is not None and list(constant.shape or ()) == (whole or list(dims))


@pytest.mark.parametrize(
    ("axes", "weights", "unfused"),
    [
        ([-1], (4,), False),
        ([2], (1, 4), False),
        ([-1], (1,), True),
        ([-1], (3, 1), True),
        ([-2], (4,), True),
        ([1, 2], (4,), True),
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
def test_rms_normalizations(axes: list[int], weights: tuple[int, ...], unfused: bool, inverse: bool) -> None:
    def emit(op, x):
        root = op.Sqrt(op.Add(op.ReduceMean(op.Mul(x, x), axes), np.float32(1e-3)))
        return op.Mul(op.Mul(x, op.Reciprocal(root)) if inverse else op.Div(x, root), _ones(*weights))

    found = rewritten(emit, floats("x", 2, 3, 4), by=[SPELLINGS["unfused RMS normalization"]()])
    assert ("ReduceSum" in found) is unfused and ("ReduceMean" in found) is not unfused


@pytest.mark.parametrize(("axes", "keepdims"), [([0, 1], 0), ([0, 1], 1), ([0], 0), ([1], 0)])
def test_roots_of_means(axes: list[int], keepdims: int) -> None:
    """The mean of all elements may be a scalar."""
    model = spelled(
        "unfused RMS normalization",
        lambda op, x: op.Sqrt(op.Add(op.ReduceMean(x, axes, keepdims=keepdims), np.float32(2))),
        np.array([[1, 2, 0, 1], [0, 4, 2, 6]], np.float32),
    )
    assert ("ReduceSum" in operators(model)) is (axes != [1])


def test_other_means_stay() -> None:
    model = graph(lambda op, x: op.Sqrt(op.ReduceMean(x, [1, 2])), floats("x", 2, 3, 4))
    assert not SPELLINGS["unfused RMS normalization"]()(model).modified
