"""Scores in other orders than in the canonical form of attention, with near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.attention.regular_scores import REGULAR
from converters.passes.attention.standard import LowerToStandardAttention
from onnx_specops.building import Value
from tests.converters.passes.graphs import floats, graph, operators, run

RNG = np.random.default_rng(0)
LOWEST = float(np.finfo(np.float32).min)
BIAS = RNG.standard_normal((1, 4, 3, 5)).astype(np.float32)
HIDDEN = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 1, 0], [0, 1, 0, 1, 1]], bool)
MASK = np.where(HIDDEN, LOWEST, 0).astype(np.float32)
BLIND = np.where(HIDDEN | [[0], [1], [0]], LOWEST, 0).astype(np.float32)
"""The second query has no visible key."""
FIVE_DIMENSIONS = np.full((1,) * 5, 0.5, np.float32)
SHAPES = (2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)


def _product(op: Any, q: Value, k: Value) -> Value:
    return op.MatMul(q, op.Transpose(k, perm=[0, *range(1, len(k.dims) - 2), len(k.dims) - 1, len(k.dims) - 2]))


def _regular(emit: Any, *dims: tuple[int, ...]) -> list[str]:
    """Return the operators; the results are unchanged, including NaN and the mean of all values."""
    inputs = lambda: [floats(name, *shape) for name, shape in zip("qkv", dims, strict=True)]  # noqa: E731
    arrays = [RNG.standard_normal(shape).astype(np.float32) for shape in dims]
    before = run(graph(emit, *inputs()), *arrays)
    model = graph(emit, *inputs())
    for step in (
        *(step() for step in REGULAR),
        RemoveUnusedNodesPass(),
        LowerToStandardAttention(),
        RemoveUnusedNodesPass(),
    ):
        step(model)
    model.graph.opset_imports[""] = 23
    for old, new in zip(before, run(model, *arrays), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5, strict=True)
    return operators(model)


def _attention(between: Any) -> Any:
    return lambda op, q, k, v: op.MatMul(op.Softmax(between(op, _product(op, q, k), q), axis=-1), v)


@pytest.mark.parametrize(
    ("between", "found"),
    [
        (lambda op, s, q: op.Add(op.Add(s, BIAS), MASK), True),
        (lambda op, s, q: op.Add(BIAS, op.Add(MASK, op.Mul(s, 0.25))), True),
        (lambda op, s, q: op.Add(op.Add(s, BLIND), MASK), True),  # keys hidden by both are -inf
        (lambda op, s, q: op.Div(op.Add(s, BLIND), 2.5), True),
        (lambda op, s, q: op.Mul(op.Add(op.Mul(s, 0.5), BIAS), 0.5), True),
        (lambda op, s, q: op.Div(2.5, op.Add(s, BIAS)), False),
        (lambda op, s, q: op.Where(HIDDEN, LOWEST, s), True),
        (lambda op, s, q: op.Where(HIDDEN, -np.inf, op.Mul(s, 0.5)), True),
        (lambda op, s, q: op.Mul(op.Where(HIDDEN, s, LOWEST), 0.5), True),
        (lambda op, s, q: op.Where(HIDDEN, LOWEST, op.Add(s, BLIND)), True),
        (lambda op, s, q: op.Add(op.Where(HIDDEN, LOWEST, s), BLIND), True),
        (lambda op, s, q: op.Where(HIDDEN, -2e4, op.Add(s, BIAS)), False),  # the number does not absorb the scores
        (lambda op, s, q: op.Where(HIDDEN, BIAS, s), False),
        (lambda op, s, q: op.Add(op.Mul(s, np.array([1, 2, 3, 4], np.float32).reshape(4, 1, 1)), BIAS), True),
        (lambda op, s, q: op.Mul(s, np.array([1, 2, 3], np.float32).reshape(3, 1)), False),  # depends on queries
        (lambda op, s, q: op.Mul(op.Tanh(s), np.array([1, 2, 3, 4], np.float32).reshape(4, 1, 1)), False),
        (lambda op, s, q: op.Add(op.Add(s, op.ReduceMean(q, [-1], keepdims=1)), BIAS), True),
        (lambda op, s, q: op.Sub(op.Add(s, BIAS), MASK), False),
        (lambda op, s, q: op.Where(HIDDEN, op.const(LOWEST, s.dtype), s), True),
        (lambda op, s, q: op.Where(HIDDEN, np.full((1,) * 4, LOWEST, np.float32), s), True),
        (lambda op, s, q: op.Where(HIDDEN, FIVE_DIMENSIONS * np.float32(LOWEST), s), False),
        (lambda op, s, q: op.Mul(op.Add(s, BIAS), FIVE_DIMENSIONS), False),
        (lambda op, s, q: op.Add(op.Add(op.Div(s, FIVE_DIMENSIONS), BIAS), MASK), False),
    ],
)
def test_orders(between: Any, found: bool) -> None:
    assert ("Attention" in _regular(_attention(between), *SHAPES)) == found


def test_scores_with_other_consumers() -> None:
    def emit(op: Any, q: Value, k: Value, v: Value) -> list[Value]:
        biased = op.Add(_product(op, q, k), BIAS)
        return [op.MatMul(op.Softmax(op.Add(biased, MASK), axis=-1), v), biased]

    assert "Attention" not in _regular(emit, *SHAPES)


def _of_three_dimensions(op: Any, q: Value, k: Value, v: Value, heads: int = 4, axis: int = -1) -> Value:
    scores = op.Reshape(_product(op, q, k), [q.dims[0] // heads, heads, q.dims[1], k.dims[1]])
    weights = op.Softmax(op.Reshape(op.Add(scores, MASK), [q.dims[0], q.dims[1], k.dims[1]]), axis=axis)
    return op.MatMul(weights, v)


@pytest.mark.parametrize(
    ("heads", "axis", "found"), [(4, -1, True), (2, 2, True), (4, 1, False)], ids=["four", "two", "another axis"]
)
def test_batch_and_heads_in_one_dimension(heads: int, axis: int, found: bool) -> None:
    emit = lambda op, q, k, v: _of_three_dimensions(op, q, k, v, heads, axis)  # noqa: E731
    assert ("Attention" in _regular(emit, (8, 3, 8), (8, 5, 8), (8, 5, 6))) == found


def test_other_products_of_three_dimensions() -> None:
    """Queries and keys that are swapped with heads."""

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        scores = op.Reshape(_product(op, q, k), [2, 3, 4, 5])
        return op.MatMul(op.Softmax(op.Reshape(scores, [8, 3, 5]), axis=-1), v)

    assert "Attention" not in _regular(emit, (8, 3, 8), (8, 5, 8), (8, 5, 6))


@pytest.mark.parametrize("windows", [4, 8])
def test_masks_of_windows(windows: int) -> None:
    """A bias for all windows, and two masks for each: windows of one image, and of two."""
    masks = [np.where(RNG.random((1, 4, 1, 3, 5)) < 0.2, -100, 0).astype(np.float32) for _ in range(2)]

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        scores = op.Reshape(op.Add(_product(op, q, k), BIAS), [windows // 4, 4, 4, 3, 5])
        scores = op.Reshape(op.Add(op.Add(scores, masks[0]), masks[1]), [-1, 4, 3, 5])
        return op.MatMul(op.Softmax(scores, axis=-1), v)

    assert "Attention" in _regular(emit, (windows, 4, 3, 8), (windows, 4, 5, 8), (windows, 4, 5, 6))


ROWS = RNG.standard_normal((8, 1, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("between", "target", "found"),
    [
        (lambda op, s: op.Add(ROWS, op.Mul(s, 0.5)), [2, 4, 3, 5], True),  # Bloom
        (lambda op, s: op.Div(op.Add(s, ROWS[:1]), 2.0), [2, 4, 3, 5], True),
        (lambda op, s: op.Add(op.Add(s, ROWS), BIAS[0, 0]), [2, 4, 3, 5], True),  # a mask of two dimensions
        (lambda op, s: op.Add(op.Div(op.Add(s, ROWS), 2.0), op.ReduceMean(s, [-1])), [2, 4, 3, 5], False),  # used twice
        (lambda op, s: op.Add(s, ROWS), [2, 3, 4, 5], False),  # queries and heads are swapped
        (lambda op, s: op.Sub(s, ROWS), [2, 4, 3, 5], False),
    ],
)
@pytest.mark.parametrize("divided", [False, True])
def test_steps_of_scores_of_three_dimensions(between: Any, target: list[int], found: bool, divided: bool) -> None:
    """Batch and heads are in one dimension except in the Softmax."""

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        transposed = op.Transpose(k, perm=[0, 2, 1])
        scores = op.MatMul(q, op.Div(transposed, 2.5) if divided else transposed)
        weights = op.Softmax(op.Add(op.Reshape(between(op, scores), target), MASK if found else 0.0), axis=-1)
        return op.MatMul(op.Reshape(weights, [8, 3, 5]), v)

    assert ("Attention" in _regular(emit, (8, 3, 8), (8, 5, 8), (8, 5, 6))) == found


@pytest.mark.parametrize(("axis", "rows"), [(2, [8, 3, 5]), (-1, [8, 5, 3])])
def test_weights_of_other_rows(axis: int, rows: list[int]) -> None:
    """A softmax of queries, and weights that are reshaped to other rows."""

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        scores = op.Add(op.Reshape(op.Add(_product(op, q, k), ROWS), [2, 4, 3, 5]), MASK)
        return op.MatMul(op.Reshape(op.Softmax(scores, axis=axis), rows), v)

    assert "Attention" not in _regular(emit, (8, 3, 8), (8, 5, 8), (8, rows[2], 6))
