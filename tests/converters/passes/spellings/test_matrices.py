"""The operands of MatMul, and near misses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, operators, rewritten
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(("dims", "found"), [((3,), ["MatMul", "Squeeze"]), ((3, 1), ["MatMul"])])
def test_matrices(dims: tuple[int, ...], found: list[str]) -> None:
    ones = np.ones(dims, np.float32)
    assert operators(spelled("matrix operands", lambda op, x: op.MatMul(x, op.const(ones)))) == found


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ((2, 3), (3,), {"MatMul": 1, "Unsqueeze": 1, "Squeeze": 1}),
        ((3,), (2, 3, 4), {"MatMul": 1, "Unsqueeze": 1, "Squeeze": 1}),
        ((3,), (3,), {"MatMul": 1, "Unsqueeze": 2, "Squeeze": 1}),
        ((2, 3), (3, 1), {"MatMul": 1}),
    ],
)
def test_vectors(left: tuple[int, ...], right: tuple[int, ...], found: dict[str, int]) -> None:
    by = [SPELLINGS["matrices for vectors"]()]
    names = rewritten(lambda op, x, y: op.MatMul(x, y), floats("x", *left), floats("y", *right), by=by)
    assert Counter(names) == found


@pytest.mark.parametrize(
    ("weights", "dims", "found"),
    [
        ((4, 6, 7), (2, 4, 5, 6), ["MatMul", "Transpose", "Transpose"]),
        ((2, 1, 6, 7), (2, 4, 5, 6), ["MatMul", "Transpose", "Transpose"]),
        ((1, 4, 6, 7), (1, 4, 5, 6), ["MatMul"]),
        ((4, 6, 7), (4, 5, 6), ["MatMul"]),
        ((4, 6, 7), (1, 5, 6), ["MatMul"]),
        ((1, 6, 7), (2, 5, 6), ["MatMul"]),
        ((6, 7), (2, 4, 5, 6), ["MatMul"]),
    ],
)
def test_batches_of_constants(weights: tuple[int, ...], dims: tuple[int, ...], found: list[str]) -> None:
    constant = np.random.default_rng(0).standard_normal(weights).astype(np.float32)
    by = [SPELLINGS["transposed batches"]()]
    assert rewritten(lambda op, x: op.MatMul(x, constant), floats("x", *dims), by=by) == found


def test_other_batches_stay() -> None:
    """A constant first operand, and two computed ones."""
    by = [SPELLINGS["transposed batches"]()]
    constant = np.ones((4, 7, 5), np.float32)
    assert rewritten(lambda op, x: op.MatMul(constant, x), floats("x", 2, 4, 5, 6), by=by) == ["MatMul"]
    computed = floats("x", 2, 4, 5, 6), floats("y", 4, 6, 7)
    assert rewritten(lambda op, x, y: op.MatMul(x, y), *computed, by=by) == ["MatMul"]
