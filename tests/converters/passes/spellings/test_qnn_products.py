"""Matrix multiplications whose results QNN's compiler cannot rearrange, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings.qnn_products import SeparateProducts
from tests.converters.passes.graphs import floats, rewritten

MATRIX = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def _of_squares(op: Any, product: Any) -> Any:
    return op.Reshape(op.Transpose(op.Reshape(product, [6, 4, 4]), perm=[0, 2, 1]), [1, 3, 2, 4, 4])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (_of_squares, True),
        (lambda op, y: op.Transpose(op.Reshape(y, [1, 3, 2, 4, 4]), perm=[0, 2, 1, 3, 4]), True),
        (lambda op, y: op.Unsqueeze(op.Transpose(op.Reshape(y, [6, 4, 4]), perm=[0, 2, 1]), [0, 1]), True),
        (lambda op, y: op.Exp(_of_squares(op, y)), True),
        (lambda op, y: op.Reshape(y, [1, 3, 2, 4, 4]), False),
        (lambda op, y: _of_squares(op, op.Relu(y)), False),
        (lambda op, y: op.Transpose(op.Reshape(y, [6, 4, 4]), perm=[0, 2, 1]), False),
        (lambda op, y: op.Reshape(op.Transpose(op.Reshape(y, [8, 3, 4]), perm=[0, 2, 1]), [2, 1, 4, 4, 3]), False),
    ],
)
def test_products_that_are_rearranged(emit: Any, found: bool) -> None:
    kept = rewritten(lambda op, x: emit(op, op.MatMul(x, MATRIX)), floats("x", 24, 6), by=[SeparateProducts()])
    assert ("Max" in kept) == found


def test_general_products() -> None:
    bias = np.ones(4, np.float32)
    kept = rewritten(lambda op, x: _of_squares(op, op.Gemm(x, MATRIX, bias)), floats("x", 24, 6), by=[SeparateProducts()])
    assert "Max" in kept


def test_computed_matrices() -> None:
    def emit(op, x, y):
        return _of_squares(op, op.MatMul(x, y))

    assert "Max" not in rewritten(emit, floats("x", 24, 6), floats("y", 6, 4), by=[SeparateProducts()])


def test_products_of_five_dimensions() -> None:
    def emit(op, x):
        return op.Transpose(op.MatMul(x, MATRIX), perm=[0, 2, 1, 3, 4])

    assert "Max" not in rewritten(emit, floats("x", 1, 3, 2, 4, 6), by=[SeparateProducts()])


def test_long_chains() -> None:
    """A chain of more reshapes than Python calls nest."""

    def emit(op, x):
        y = op.MatMul(x, MATRIX)
        for turn in range(1200):
            y = op.Reshape(y, [6, 16] if turn % 2 else [24, 4])
        return op.Reshape(y, [96])

    assert "Max" not in rewritten(emit, floats("x", 24, 6), by=[SeparateProducts()])
