"""The graphs that become one attention node, with near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.attention.encoder import (
    FUSE_ATTENTION,
    DropInverseTransposes,
    FuseAttention,
    JoinMasks,
    SplitProjections,
)
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

D = ir.DataType
RNG = np.random.default_rng(0)


def _numbers(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


def _heads(op, x: Value, heads: int = 3, numbers: int = 4) -> Value:
    return op.Transpose(op.Reshape(x, [0, 0, heads, numbers]), perm=[0, 2, 1, 3])


def _attention(
    op,
    q: Value,
    k: Value,
    v: Value,
    *,
    scale: Any = 0.5,
    divisor: Any = None,
    mask: Any = None,
    axis: int = -1,
    keys: tuple[int, ...] = (0, 1, 3, 2),
    transposed: Callable[..., Value] = lambda op, keys: keys,
    between: Callable[..., Value] = lambda op, scores: scores,
) -> Value:
    scores = op.MatMul(q, transposed(op, op.Transpose(k, perm=keys)))
    if divisor is not None:
        scores = op.Div(scores, divisor)
    elif scale is not None:
        scores = op.Mul(scores, scale)
    if mask is not None:
        scores = op.Add(scores, mask)
    return op.MatMul(op.Softmax(between(op, scores), axis=axis), v)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"scale": None}, True),
        ({"axis": 3}, True),
        ({"scale": np.full((1, 1, 1, 1), 0.5, np.float32)}, True),
        ({"divisor": 3.0}, True),
        ({"divisor": 3.0, "mask": _numbers(5, 5)}, True),
        ({"divisor": np.full((1, 1, 1, 1), 3, np.float32), "mask": _numbers(2, 1, 1, 5)}, True),
        ({"divisor": _numbers(3, 1, 1)}, False),  # a divisor for each head
        ({"divisor": np.float32(1e-40)}, False),
        ({"divisor": np.float32(3e38)}, False),  # its reciprocal is inexact
        ({"divisor": np.float32(3), "between": lambda op, scores: op.Div(scores, op.const(np.float32(2)))}, True),
        ({"between": lambda op, scores: op.Mul(op.Mul(scores, 0.5), 3.0)}, True),
        ({"between": lambda op, scores: op.Mul(op.Add(scores, op.const(_numbers(5, 5))), 0.5)}, False),  # after the mask
        ({"between": lambda op, scores: op.Mul(scores, scores)}, False),
        ({"between": lambda op, scores: op.Div(op.const(np.float32(2)), scores)}, False),
        ({"transposed": lambda op, keys: op.Mul(keys, 0.7)}, True),
        ({"transposed": lambda op, keys: op.Mul(keys, op.const(_numbers(4, 1)))}, False),
        ({"transposed": lambda op, keys: op.Mul(keys, op.ReduceMax(keys))}, False),  # the keys have other consumers
        ({"mask": _numbers(5, 5)}, True),
        ({"mask": _numbers(2, 1, 1, 5)}, True),
        ({"mask": _numbers(3, 5, 1)}, True),
        ({"axis": 2}, False),  # as many queries as keys
        ({"keys": (0, 1, 2, 3)}, None),
        ({"scale": _numbers(3, 1, 1)}, False),  # a scale for each head
        ({"scale": np.full((1, 1, 1, 1, 1), 0.5, np.float32)}, False),  # it adds a dimension
        ({"scale": 0.0}, False),
        ({"scale": 1e-40}, False),
        ({"scale": np.float32(np.inf)}, False),
        ({"mask": _numbers(1, 1, 1, 5, 5)}, False),
        ({"between": lambda op, scores: op.Tanh(scores)}, False),  # this node has no softcap
    ],
)
def test_conditions(options: dict[str, Any], found: bool | None) -> None:
    if found is None:
        options, numbers = options, 5  # keys without a transpose fit only square scores
    else:
        numbers = 4

    def emit(op, *inputs: Value) -> Value:
        q, k, v = (_heads(op, x, numbers=numbers) for x in inputs)
        given = {name: op.const(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
        return _attention(op, q, k, v, **given)

    inputs = [floats(name, 2, 5, 3 * numbers) for name in "qkv"]
    if options.get("scale") is not None and np.isinf(np.max(options["scale"])):
        model = graph(emit, *inputs)
        assert not FuseAttention()(model).modified
        return
    got = rewritten(emit, *inputs, by=[FuseAttention()], atol=1e-4)
    assert ("Attention" in got) is bool(found)


@pytest.mark.parametrize(
    ("shape", "keys", "found"),
    [
        ([0, 0, 3, 4], (0, 2, 3, 1), True),
        ([0, 0, 4, 3], (0, 3, 2, 1), False),  # the elements of a head are not next to each other
        ([0, 3, -1, 4], (0, 1, 3, 2), False),  # heads first, but not by a Transpose
    ],
)
def test_keys_in_one_transpose(shape: list[int], keys: tuple[int, ...], found: bool) -> None:
    """The keys ``[batch, tokens, heads, size]``, transposed for the scores, as OpenVINO merges two Transposes of ONNX."""

    def emit(op, q: Value, k: Value, v: Value) -> Value:
        return _attention(op, _heads(op, q), op.Reshape(k, shape), _heads(op, v), keys=keys)

    inputs = [floats(name, 2, 5, 12) for name in "qkv"]
    assert ("Attention" in rewritten(emit, *inputs, by=[FuseAttention()], atol=1e-4)) is found


@pytest.mark.parametrize(
    ("q", "k", "v", "found"),
    [
        ((2, 3, 5, 4), (2, 3, 300, 4), (2, 3, 300, 6), True),
        ((1, 3, 5, 4), (1, 3, 300, 4), (1, 3, 300, 6), True),
        ((1, 3, 5, 4), (2, 3, 300, 4), (2, 3, 300, 6), False),  # the query is broadcast
        ((2, 3, 5, 4), (2, 3, 300, 4), (1, 3, 300, 6), False),
        ((2, 3, 5, 4), (2, 1, 300, 4), (2, 1, 300, 6), False),
        ((2, 1, 5, 4), (2, 3, 300, 4), (2, 3, 300, 6), False),
        ((2, 3, 5, 4), (3, 300, 4), (3, 300, 6), False),
        ((2, 3, 5, 4), (2, 3, 20, 4), (2, 3, 20, 6), False),  # too short for transpositions to pay off
        ((None, 3, 5, 4), (None, 3, 300, 4), (None, 3, 300, 6), False),  # the batches may differ
    ],
    ids=str,
)
def test_shapes(q: tuple, k: tuple, v: tuple, found: bool) -> None:
    """Heads in their original layout, without broadcasting."""

    def emit(op, q, k, v):
        return _attention(op, q, k, v, keys=(0, 1, 3, 2) if len(k.dims) == 4 else (0, 2, 1))

    got = rewritten(emit, floats("q", *q), floats("k", *k), floats("v", *v), by=[FuseAttention()], atol=1e-4)
    assert ("Attention" in got) is found


@pytest.mark.parametrize(("unknown", "found"), [("k", True), ("q", False), ("v", False)])
def test_sizes_of_heads(unknown: str, found: bool) -> None:
    """The size of a key is that of a query."""

    def emit(op, *inputs: Value) -> Value:
        return _attention(op, *(op.Transpose(x, perm=[0, 2, 1, 3]) for x in inputs))

    inputs = [floats(name, 2, 5, 3, None if name == unknown else 4) for name in "qkv"]
    numbers = [_numbers(2, 5, 3, 4) for _ in "qkv"]
    assert ("Attention" in rewritten(emit, *inputs, by=[FuseAttention()], numbers=numbers, atol=1e-4)) is found


def test_scores_with_another_consumer() -> None:
    def emit(op, *inputs: Value) -> list[Value]:
        q, k, v = (_heads(op, x) for x in inputs)
        weights = op.Softmax(op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2])))
        return [op.MatMul(weights, v), weights]

    assert "Softmax" in rewritten(emit, *(floats(name, 2, 5, 12) for name in "qkv"), by=[FuseAttention()], atol=1e-4)


@pytest.mark.parametrize(
    ("dims", "otherwise", "found"),
    [
        ((2, 1, 5, 5), -np.inf, True),
        ((5, 5), -np.inf, True),
        ((1, 1, 1, 5, 5), -np.inf, False),
        ((5, 5), -1e4, False),  # this number does not hide a key if all keys have it
    ],
    ids=str,
)
def test_masks_of_booleans(dims: tuple[int, ...], otherwise: float, found: bool) -> None:
    def emit(op, q, k, v, mask):
        q, k, v = (_heads(op, x) for x in (q, k, v))
        return _attention(op, q, k, v, between=lambda op, scores: op.Where(mask, scores, otherwise))

    mask = np.tril(np.ones(dims, bool))
    numbers = [_numbers(2, 5, 12) for _ in "qkv"]
    inputs = [floats(name, 2, 5, 12) for name in "qkv"]
    got = rewritten(
        emit, *inputs, new_value(D.BOOL, dims, "mask"), by=[FuseAttention()], numbers=[*numbers, mask], atol=1e-4
    )
    assert ("Attention" in got) is found


@pytest.mark.parametrize(
    ("dims", "found"), [((2, 1, 5, 5), True), ((2, 1, 1, None), False), ((None, 5), False), ((None,), False)], ids=str
)
def test_masks_of_unknown_size(dims: tuple[int | None, ...], found: bool) -> None:
    """An unknown size may be 1 or another number."""

    def emit(op, q, k, v, mask):
        q, k, v = (_heads(op, x) for x in (q, k, v))
        return _attention(op, q, k, v, mask=mask)

    numbers = [*(_numbers(2, 5, 12) for _ in "qkv"), _numbers(*(1 if size is None else size for size in dims))]
    inputs = [floats(name, 2, 5, 12) for name in "qkv"]
    got = rewritten(emit, *inputs, floats("mask", *dims), by=[FuseAttention()], numbers=numbers, atol=1e-4)
    assert ("Attention" in got) is found


@pytest.mark.parametrize(
    ("factor", "found"),
    [
        (np.float32(3), True),
        (_numbers(1, 1, 1, 1), True),
        (_numbers(4), False),
        (np.float32(0), False),
        (np.float32(1e-38), False),
    ],
    ids=["number", "four dimensions", "of numbers", "zero", "tiny"],
)
def test_a_scaled_query(factor: np.ndarray, found: bool) -> None:
    """Its factor becomes part of the attention's scale if one number can represent both."""

    def emit(op, *inputs: Value) -> Value:
        q, k, v = (_heads(op, x) for x in inputs)
        return _attention(op, op.Mul(q, op.const(factor)), k, v, scale=1e-3)

    got = rewritten(emit, *(floats(name, 2, 5, 12) for name in "qkv"), by=[FuseAttention()], atol=1e-4)
    assert ("Mul" not in got and "Attention" in got) is found


# -- surroundings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        ([0, 2, 1, 3], [0, 2, 1, 3], True),
        ([1, 2, 3, 0], [3, 0, 1, 2], True),
        ([1, 2, 3, 0], [1, 2, 3, 0], False),
        ([0, 2, 1, 3], [0, 1, 3, 2], False),
    ],
)
def test_transpositions(first: list[int], second: list[int], gone: bool) -> None:
    got = rewritten(
        lambda op, x: op.Relu(op.Transpose(op.Transpose(op.Abs(x), perm=first), perm=second)),
        floats("x", 2, 2, 2, 2),
        by=[DropInverseTransposes()],
    )
    assert ("Transpose" not in got) is gone


@pytest.mark.parametrize(
    ("dims", "first", "second", "gone"),
    [
        ((2, 5, 12), [0, 0, 3, 4], [0, 0, 12], True),
        ((None, None, 12), [0, 0, 3, 4], [0, 0, 12], True),
        ((2, 5, 12), [10, 12], [2, 5, 12], True),
        ((2, 6, 12), [0, 0, 3, 4], [0, 12, 6], False),
        ((None, 6, 12), [6, -1, 12], [-1, 6, 12], False),
        ((12, 12, 12), [0, -1], [0, 12, 12], True),
    ],
    ids=str,
)
def test_changes_of_shape(dims: tuple, first: list[int], second: list[int], gone: bool) -> None:
    got = rewritten(
        lambda op, x: op.Relu(op.Reshape(op.Reshape(op.Abs(x), first), second)),
        floats("x", *dims),
        by=[DropInverseTransposes()],
    )
    assert ("Reshape" not in got) is gone


@pytest.mark.parametrize(
    ("dims", "perm", "axis", "found"),
    [
        ((2, 5, 3, 3, 4), [2, 0, 3, 1, 4], 0, True),
        ((None, None, 3, 3, 4), [2, 0, 3, 1, 4], 0, True),
        ((3, 5, 3, 3, 4), [2, 0, 3, 1, 4], 1, False),
        ((2, 5, 6, 3, 4), [2, 0, 3, 1, 4], 0, False),
        ((3, 5, 3, 3, 4), [0, 2, 3, 1, 4], 0, False),
    ],
    ids=str,
)
def test_projections(dims: tuple, perm: list[int], axis: int, found: bool) -> None:
    def emit(op, x):
        return list(op.Split(op.Transpose(x, perm=perm), axis=axis, num_outputs=3, outputs=3))

    got = rewritten(emit, floats("x", *dims), by=[SplitProjections()])
    assert ("Unsqueeze" in got) is found


@pytest.mark.parametrize(("put", "taken", "gone"), [([1], [1], True), ([0, 2], [0, 2], True), ([1], [0], False)])
def test_added_and_removed_dimensions(put: list[int], taken: list[int], gone: bool) -> None:
    got = rewritten(
        lambda op, x: op.Relu(op.Squeeze(op.Unsqueeze(op.Abs(x), put), taken)), floats("x", 1, 1, 5), by=[FuseAttention()]
    )
    assert ("Squeeze" not in got) is gone


@pytest.mark.parametrize(
    ("bias", "mask", "joined"),
    [
        (None, (1, 2, 1, 4, 4), True),
        (None, (2, 3, 4, 4), True),
        (None, (2, 2, 1, 4, 4), False),
        (None, (1, 1, 1, 4, 4), False),
        ((1, 3, 4, 4), (1, 2, 1, 4, 4), True),
        ((3, 4, 4), (2, 1, 4, 4), True),
        ((3, 4, 4), (2, 3, 4, 4), True),
        ((3, 4, 4), (1, 2, 1, 1, 4), True),
        ((1, 3, 4, 4), (2, 2, 1, 4, 4), False),  # different for each image
        ((4, 3, 4, 4), (1, 2, 1, 4, 4), True),  # a separate addition
        ((1, 3, 4, 4), (1, 1, 1, 4, 4), False),
    ],
    ids=str,
)
def test_masks_of_windows(bias: tuple[int, ...] | None, mask: tuple[int, ...], joined: bool) -> None:
    def emit(op, x):
        biased = op.Abs(x) if bias is None else op.Add(op.Abs(x), op.const(_numbers(*bias)))
        windows = op.Add(op.Reshape(biased, [2, 2, 3, 4, 4]), op.const(_numbers(*mask)))
        return op.Relu(op.Reshape(windows, [4, 3, 4, 4]))

    model = graph(emit, floats("x", 4, 3, 4, 4))
    assert JoinMasks()(model).modified is joined
    rewritten(emit, floats("x", 4, 3, 4, 4), by=[JoinMasks()])


def test_the_passes_together() -> None:
    """A layer of an encoder keeps no Transpose."""

    def emit(op, x):
        q, k, v = (_heads(op, op.MatMul(x, op.const(_numbers(12, 12)))) for _ in range(3))
        whole = op.Transpose(_attention(op, q, k, v), perm=[0, 2, 1, 3])
        return op.Relu(op.Reshape(whole, [0, 0, 12]))

    got = rewritten(emit, floats("x", None, None, 12), by=[step() for step in FUSE_ATTENTION], atol=1e-3)
    assert "Attention" in got and "Transpose" not in got
