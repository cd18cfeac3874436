"""Operators of opset 23 and 24: the graphs that become one, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.newer_forms import newer_forms
from onnx_specops.lowering import Stamp
from tests.converters.passes.graphs import floats, graph, operators, run

HEADS, TOKENS, SIZE = 2, 3, 8
SHAPE = (2, HEADS, TOKENS, SIZE)


def _newer(emit: Any, opset: int, array: np.ndarray, *dims: int | None) -> list[str]:
    """Return the operators in an opset; the results must be unchanged."""
    before = run(graph(emit, floats("x", *(dims or array.shape))), array)
    model = graph(emit, floats("x", *(dims or array.shape)))
    for step in [*newer_forms(opset), Stamp(opset)]:
        step(model)
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6, strict=True)
    return operators(model)


# -- RMSNormalization ------------------------------------------------------------------------------------------------------

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)
SCALE = np.linspace(0.5, 2, 4, dtype=np.float32)


def _mean_square(op, x, axes=(-1,), epsilon=1e-5):
    return op.Add(op.ReduceMean(op.Mul(x, x), list(axes), keepdims=1), op.const(epsilon))


ROOTS = {
    "quotient": lambda op, x, square: op.Div(x, op.Sqrt(square)),
    "reciprocal": lambda op, x, square: op.Mul(op.Reciprocal(op.Sqrt(square)), x),
    "one by": lambda op, x, square: op.Mul(x, op.Div(op.const(1.0), op.Sqrt(square))),
    "power": lambda op, x, square: op.Mul(x, op.Pow(square, op.const(-0.5))),
}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", [None, SCALE, SCALE.reshape(1, 1, 4)], ids=["plain", "vector", "rank"])
def test_rms_normalization(root: str, scale: np.ndarray | None) -> None:
    def emit(op, x):
        normal = ROOTS[root](op, x, _mean_square(op, x))
        return normal if scale is None else op.Mul(op.const(scale), normal)

    assert _newer(emit, 23, X) == ["RMSNormalization"]
    assert "RMSNormalization" not in _newer(emit, 22, X)


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, x, axes=(1,)))),
        lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, x, axes=(1, 2)))),
        lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, op.Abs(op.Neg(x))))),  # same magnitude, another value
        lambda op, x: op.Mul(x, op.Sqrt(_mean_square(op, x))),
        lambda op, x: op.Mul(x, op.Pow(_mean_square(op, x), op.const(-0.25))),
        lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, x, epsilon=SCALE))),
        lambda op, x: op.Div(x, op.Sqrt(op.Add(op.ReduceSum(op.Mul(x, x), [-1], keepdims=1), op.const(1e-5)))),
    ],
)
def test_other_normalizations(emit: Any) -> None:
    assert "RMSNormalization" not in _newer(emit, 23, X)


@pytest.mark.parametrize("size", [0, 1])
def test_rms_normalization_of_short_rows(size: int) -> None:
    """ONNX Runtime rejects rows without elements."""
    emit = lambda op, x: op.Mul(op.Div(x, op.Sqrt(_mean_square(op, x))), op.const(np.full(size, 3, np.float32)))  # noqa: E731
    assert ("RMSNormalization" in _newer(emit, 23, X[..., :size])) == bool(size)


def test_an_epsilon_of_more_dimensions_than_the_input() -> None:
    emit = lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, x, epsilon=np.full((1, 1, 1, 1), 1e-5, np.float32))))  # noqa: E731
    assert "RMSNormalization" not in _newer(emit, 23, X)


def test_numbers_beyond_the_range() -> None:
    array = X.copy()
    array[0, 0, 0], array[0, 1, 1], array[0, 2], array[1, 0, 0] = np.nan, np.inf, 0, 3e38
    for epsilon in (0.0, 1e-5):
        assert _newer(lambda op, x: op.Div(x, op.Sqrt(_mean_square(op, x, epsilon=epsilon))), 23, array)  # noqa: B023


def test_a_scale_per_row_is_a_product() -> None:
    rows = np.array([[1.0], [2], [3]], np.float32)
    emit = lambda op, x: op.Mul(op.Div(x, op.Sqrt(_mean_square(op, x))), op.const(rows))  # noqa: E731
    assert _newer(emit, 23, X) == ["Mul", "RMSNormalization"]


# -- RotaryEmbedding -------------------------------------------------------------------------------------------------------

ROTATED = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
ANGLES = np.linspace(0, 3, TOKENS * SIZE // 2, dtype=np.float32).reshape(TOKENS, SIZE // 2)
HALVES = np.concatenate([ANGLES, ANGLES], -1)
NEIGHBOURS = np.repeat(ANGLES, 2, -1)


def _half_turn(op, x):
    size = x.dims[-1]
    return op.Concat(op.Neg(op.Slice(x, [size // 2], [size], [-1])), op.Slice(x, [0], [size // 2], [-1]), axis=-1)


def _neighbour_turn(op, x):
    first, second = (op.Unsqueeze(op.Slice(x, [begin], [SIZE], [-1], [2]), [-1]) for begin in (0, 1))
    return op.Reshape(op.Concat(op.Mul(second, op.const(-1.0)), first, axis=-1), list(x.dims))


def _rotated(op, x, cosine, sine, turn=_half_turn):
    return op.Add(op.Mul(x, cosine), op.Mul(turn(op, x), sine))


def _constant(angles: np.ndarray, turn=_half_turn):
    return lambda op, x: _rotated(op, x, op.const(np.cos(angles)), op.const(np.sin(angles)), turn)


def _computed(op, x):
    angles = op.Mul(
        op.Reshape(op.ReduceMean(x, [0, 1, 3], keepdims=0), [1, TOKENS, 1]), op.const(np.ones((1, 1, 4), np.float32))
    )
    both = op.Concat(angles, angles, axis=-1)
    return _rotated(op, x, *(op.Unsqueeze(function(both), [1]) for function in (op.Cos, op.Sin)))


def _pairs(op, x):
    first, second = op.Split(x, axis=-1, num_outputs=2, outputs=2)
    cosine, sine = op.const(np.cos(ANGLES)), op.const(np.sin(ANGLES))
    real = op.Sub(op.Mul(first, cosine), op.Mul(second, sine))
    return op.Concat(real, op.Add(op.Mul(second, cosine), op.Mul(first, sine)), axis=-1)


def _neighbouring_pairs(op, x):
    pairs = op.Reshape(x, [*x.dims[:-1], SIZE // 2, 2])
    first, second = (op.Gather(pairs, op.const(which), axis=-1) for which in (0, 1))
    cosine, sine = op.const(np.cos(ANGLES)), op.const(np.sin(ANGLES))
    parts = op.Sub(op.Mul(first, cosine), op.Mul(second, sine)), op.Add(op.Mul(first, sine), op.Mul(second, cosine))
    return op.Reshape(
        op.Concat(*(op.Unsqueeze(op.Expand(part, [1, SIZE // 2]), [-1]) for part in parts), axis=-1), list(x.dims)
    )


@pytest.mark.parametrize(
    "emit",
    [
        _neighbouring_pairs,
        _constant(HALVES),
        _constant(NEIGHBOURS, _neighbour_turn),
        _constant(HALVES[None, None]),
        _computed,
        _pairs,
    ],
)
def test_rotary_embedding(emit: Any) -> None:
    assert _newer(emit, 23, ROTATED).count("RotaryEmbedding") == 1
    assert "RotaryEmbedding" not in _newer(emit, 22, ROTATED)


@pytest.mark.parametrize("doubled", [True, False])
def test_angles_of_many_paths(doubled: bool) -> None:
    """Each step multiplies the angles by themselves; the last one has 2^19 paths to the first."""

    def emit(op, x):
        angles = op.Slice(op.Abs(x), [0, 0, 0], [1, 1, SIZE // 2], [0, 1, 3])
        cosine = op.Concat(angles, angles if doubled else op.Neg(angles), axis=-1)
        for _ in range(17):
            cosine = op.Mul(cosine, cosine)
        return _rotated(op, x, cosine, op.const(np.sin(HALVES)), _half_turn)

    assert ("RotaryEmbedding" in _newer(emit, 23, ROTATED)) == doubled


@pytest.mark.parametrize(
    ("dims", "found"),
    [((None, HEADS, TOKENS, SIZE), True), ((None, HEADS, None, SIZE), False), ((2, None, TOKENS, SIZE), True)],
)
def test_rotary_embedding_of_unknown_dimensions(dims: tuple[int | None, ...], found: bool) -> None:
    """One token would be broadcast to the angles of several."""
    assert ("RotaryEmbedding" in _newer(_constant(HALVES), 23, ROTATED, *dims)) == found


def test_rotary_embedding_of_tokens_before_heads() -> None:
    x = np.ascontiguousarray(ROTATED.transpose(0, 2, 1, 3))
    assert "RotaryEmbedding" in _newer(_constant(HALVES[:, None]), 23, x)


@pytest.mark.parametrize("heads", [0, 1])
def test_rotary_embedding_of_no_heads(heads: int) -> None:
    """ONNX Runtime rejects zero heads."""
    x = np.ascontiguousarray(ROTATED.transpose(0, 2, 1, 3)[:, :, :heads])
    assert ("RotaryEmbedding" in _newer(_constant(HALVES[:, None]), 23, x)) == bool(heads)


def test_rows_that_a_reshape_moves_are_not_rotated() -> None:
    """Pairs of [2, 3, 4, 8], rotated as [3, 2, 4, 4]."""

    def emit(op, x):
        pairs = op.Reshape(x, [3, 2, 4, SIZE // 2, 2])
        first, second = (op.Gather(pairs, op.const(which), axis=-1) for which in (0, 1))
        cosine, sine = (op.const(f(np.arange(96, dtype=np.float32).reshape(3, 2, 4, 4)[:1, :1])) for f in (np.cos, np.sin))
        parts = op.Sub(op.Mul(first, cosine), op.Mul(second, sine)), op.Add(op.Mul(first, sine), op.Mul(second, cosine))
        return op.Reshape(op.Concat(*(op.Unsqueeze(part, [-1]) for part in parts), axis=-1), list(x.dims))

    x = np.random.default_rng(0).standard_normal((2, 3, 4, SIZE)).astype(np.float32)
    assert "RotaryEmbedding" not in _newer(emit, 23, x)


def test_rotary_embedding_without_a_batch() -> None:
    assert "RotaryEmbedding" in _newer(_constant(HALVES[None]), 23, ROTATED[0])


@pytest.mark.parametrize(
    "emit",
    [
        _constant(NEIGHBOURS),  # different angles for the two elements of a pair
        _constant(HALVES, _neighbour_turn),
        _constant(np.stack([HALVES, 2 * HALVES])[None]),  # different angles for each head
        lambda op, x: op.Sub(op.Mul(x, op.const(np.cos(HALVES))), op.Mul(_half_turn(op, x), op.const(np.sin(HALVES)))),
        lambda op, x: op.Add(op.Mul(x, op.const(HALVES)), op.Mul(_half_turn(op, op.Neg(x)), op.const(HALVES))),
        lambda op, x: _rotated(
            op, x, op.const(np.cos(HALVES)), op.const(np.sin(HALVES)), lambda op, x: op.Neg(_half_turn(op, x))
        ),
    ],
)
def test_other_rotations(emit: Any) -> None:
    assert "RotaryEmbedding" not in _newer(emit, 23, ROTATED)


# -- Swish -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Mul(x, op.Sigmoid(x)), ["Swish"]),
        (lambda op, x: op.Mul(op.Sigmoid(op.Mul(x, op.const(1.5))), x), ["Swish"]),
        (lambda op, x: op.Mul(x, op.Sigmoid(op.Neg(x))), ["Mul", "Neg", "Sigmoid"]),
        (lambda op, x: op.Mul(x, op.Sigmoid(op.Mul(x, op.const(SCALE)))), ["Mul", "Mul", "Sigmoid"]),
    ],
)
def test_swish(emit: Any, found: list[str]) -> None:
    assert _newer(emit, 24, X) == found
    assert "Swish" not in (*_newer(emit, 23, X), *_newer(emit, 25, X))


def test_float64_is_unchanged() -> None:
    emit = lambda op, x: op.Mul(x, op.Sigmoid(x))  # noqa: E731
    model = graph(
        lambda op, x: op.Cast(emit(op, op.Cast(x, to=ir.DataType.DOUBLE)), to=ir.DataType.FLOAT), floats("x", 2, 3)
    )
    for step in newer_forms(24):
        step(model)
    assert "Swish" not in operators(model)
