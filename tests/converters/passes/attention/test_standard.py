"""The graphs that become Attention of ONNX 23, with near misses, run before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.attention.standard import LowerToStandardAttention
from onnx_specops.building import NodeError, Value, new_value
from tests.converters.passes.graphs import graph, operators

D = ir.DataType
RNG = np.random.default_rng(0)
LOWEST = float(np.finfo(np.float32).min)
SEEN = np.array([[1, 1, 0, 0, 1], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]], bool)
PARTLY = SEEN & np.array([[True], [False], [True]])
"""The second query has no visible key."""

Step = Callable[..., Value]


def _same(op: Any, x: Value) -> Value:
    return x


def _attention(op: Any, q: Value, k: Value, v: Value, between: Step = _same, weights: Step = _same) -> Value:
    scores = op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2]))
    return op.MatMul(weights(op, op.Softmax(between(op, scores), axis=-1)), v)


def _run(model: ir.Model, arrays: list[np.ndarray], opset: int) -> np.ndarray:
    model.graph.opset_imports[""] = opset
    proto = ir.to_proto(model)
    session = ort.InferenceSession(proto.SerializeToString())
    return session.run(None, {port.name: array for port, array in zip(session.get_inputs(), arrays, strict=True)})[0]


def _lowered(emit: Callable[..., Value], *dims: tuple[int | None, ...], dtype: ir.DataType = D.FLOAT) -> list[ir.Node]:
    """Return the Attention nodes; both graphs must agree."""
    model = graph(emit, *(new_value(dtype, shape, name) for name, shape in zip("qkvm", dims, strict=False)))
    arrays = [RNG.standard_normal([2 if d is None else d for d in shape]).astype(dtype.numpy()) for shape in dims]
    before = _run(model, arrays, 21)
    LowerToStandardAttention()(model)
    RemoveUnusedNodesPass()(model)
    found = [node for node in model.graph if node.op_type == "Attention"]
    if found:
        assert not {"Softmax", "MatMul"} & set(operators(model))
        tolerance = 1e-5 if dtype == D.FLOAT else 1e-2
        np.testing.assert_allclose(_run(model, arrays, 23), before, rtol=tolerance, atol=tolerance, strict=True)
    return found


QUERY, KEY, VALUE = (2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)


def _lowered_with(emit: Callable[..., Value], mask: tuple[ir.DataType, Any, np.ndarray]) -> set[str]:
    """Return the operators in a graph with Attention whose mask is an input, or an empty set if it has no Attention. The
    results must be those of the original graph.
    """
    dtype, dims, array = mask

    def model() -> ir.Model:
        inputs = [new_value(D.FLOAT, shape, name) for name, shape in zip("qkv", [QUERY, KEY, VALUE], strict=True)]
        return graph(emit, *inputs, new_value(dtype, list(dims), "mask"))

    arrays = [*(RNG.standard_normal(shape).astype(np.float32) for shape in (QUERY, KEY, VALUE)), array]
    lowered = model()
    LowerToStandardAttention()(lowered)
    RemoveUnusedNodesPass()(lowered)
    before = _run(model(), arrays, 21)
    for opset in (23, 24, 25):
        np.testing.assert_allclose(_run(lowered, arrays, opset), before, rtol=1e-5, atol=1e-5, strict=True)
    found = set(operators(lowered))
    return found if "Attention" in found else set()


@pytest.mark.parametrize(
    ("between", "found"),
    [
        (_same, True),
        (lambda op, s: op.Mul(s, 0.5), True),
        (lambda op, s: op.Mul(s, -0.5), False),  # no square root
        (lambda op, s: op.Mul(op.Tanh(op.Div(s, 3.0)), 3.0), True),
        (lambda op, s: op.Add(op.Mul(op.Tanh(op.Div(s, 3.0)), 3.0), np.where(SEEN, 0, LOWEST).astype(np.float32)), True),
        (lambda op, s: op.Add(s, np.where(SEEN, 0, -np.inf).astype(np.float32)), True),
        (lambda op, s: op.Add(s, np.where(PARTLY, 0, -np.inf).astype(np.float32)), True),  # no visible key
        (lambda op, s: op.Add(s, np.where(PARTLY, 0, LOWEST).astype(np.float32)), True),
        (lambda op, s: op.Add(s, np.where(PARTLY, -np.inf, LOWEST).astype(np.float32)), True),
        (lambda op, s: op.Add(s, np.full((3, 5), np.nan, np.float32)), False),
        (lambda op, s: op.Add(s, RNG.standard_normal((4, 1, 5)).astype(np.float32)), True),
        (lambda op, s: op.Add(s, RNG.standard_normal((2, 1, 3, 1)).astype(np.float32)), True),
        (lambda op, s: op.Add(s, op.ReduceMean(s, [-1])), False),  # depends on the scores
        (lambda op, s: op.Where(SEEN, s, -np.inf), True),
        (lambda op, s: op.Where(SEEN, s, LOWEST), True),
        (lambda op, s: op.Where(SEEN, s, -2e4), False),
        (lambda op, s: op.Where(PARTLY, s, -np.inf), True),
        (lambda op, s: op.Where(PARTLY, s, LOWEST), True),
    ],
)
def test_conditions(between: Step, found: bool) -> None:
    assert len(_lowered(lambda op, q, k, v: _attention(op, q, k, v, between), QUERY, KEY, VALUE)) == found


MASKS = {
    "partly": np.where(PARTLY, 0, -np.inf),
    "low": np.where(PARTLY, 0, LOWEST),
    "both": np.where(PARTLY, 0, np.where(np.eye(3, 5), LOWEST, -np.inf)),
    "keys": np.where(SEEN[:1], 0, LOWEST),
    "queries": np.where(SEEN[:, :1], 1, LOWEST),
    "four": np.stack([np.where(PARTLY, 0, -np.inf), np.where(SEEN, 2, LOWEST)])[:, None],
    "numbers": RNG.standard_normal((4, 1, 5)),
    "unknown": np.full((3, 5), np.nan),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("guarded", [False, True])
def test_masks_of_the_run(name: str, known: bool, guarded: bool) -> None:
    """A query without visible keys gives NaN, the mean of the values, or 0 as in the original graph."""
    mask = MASKS[name].astype(np.float32)

    def emit(op: Any, q: Value, k: Value, v: Value, given: Value) -> Value:
        mixed = _attention(op, q, k, v, lambda op, scores: op.Add(scores, given))
        blind = op.Equal(op.ReduceMax(given, [-1], keepdims=1), op.const(np.float32(-np.inf)))
        return op.Where(blind, op.const(np.float32(0)), mixed) if guarded else mixed

    dims = mask.shape if known else [*mask.shape[:-2], None, None]
    assert _lowered_with(emit, (D.FLOAT, dims, mask))


@pytest.mark.parametrize(("axis", "zeros"), [(-1, 1), (-2, 0)])
def test_a_guard_of_another_axis(axis: int, zeros: int) -> None:
    """Columns that no query attends to differ from queries without visible keys, which stay NaN."""
    mask = np.where(PARTLY[:, [0, 1, 2, 3, 3]], 0, -np.inf).astype(np.float32)

    def emit(op: Any, q: Value, k: Value, v: Value, given: Value) -> Value:
        mixed = _attention(op, q, k, v, lambda op, scores: op.Add(scores, given))
        blind = op.Equal(op.ReduceMax(given, [axis], keepdims=1), op.const(np.float32(-np.inf)))
        return op.Where(blind, op.const(np.float32(0)), mixed)

    dims = [QUERY, KEY, (2, 4, 5, 5)]
    inputs = [new_value(D.FLOAT, shape, name) for name, shape in zip("qkv", dims, strict=True)]
    model = graph(emit, *inputs, new_value(D.FLOAT, mask.shape, "mask"))
    arrays = [*(RNG.standard_normal(shape).astype(np.float32) for shape in dims), mask]
    before = _run(model, arrays, 21)
    assert np.isnan(before).any() != bool(zeros)
    assert LowerToStandardAttention()(model).modified
    RemoveUnusedNodesPass()(model)
    np.testing.assert_allclose(_run(model, arrays, 23), before, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("lowest", [-np.inf, LOWEST, -2e4])
@pytest.mark.parametrize("visible", [SEEN, PARTLY, PARTLY[1:2], SEEN[:, :1]])
def test_boolean_masks_of_the_run(lowest: float, visible: np.ndarray) -> None:
    def emit(op: Any, q: Value, k: Value, v: Value, given: Value) -> Value:
        return _attention(op, q, k, v, lambda op, scores: op.Where(given, scores, lowest))

    assert bool(_lowered_with(emit, (D.BOOL, visible.shape, visible))) == (lowest < -1e30)


@pytest.mark.parametrize(
    ("emit", "operators_of_mask"),
    [
        (lambda op, x: op.Mul(op.Sub(1.0, op.Cast(op.Cast(x, to=D.BOOL), to=D.FLOAT)), -1e9), set()),
        (lambda op, x: op.Where(op.Cast(x, to=D.BOOL), 0.0, LOWEST), {"Max"}),
        (lambda op, x: op.Mul(op.Sub(1.0, x), LOWEST), {"Max", "ReduceMax"}),  # twice as much is -inf
        (lambda op, x: op.Add(op.Where(op.Cast(x, to=D.BOOL), 0.0, LOWEST), LOWEST), {"Max", "ReduceMax"}),
        (lambda op, x: op.Mul(op.Mul(op.Where(op.Cast(x, to=D.BOOL), 0.0, LOWEST), 2.0), 0.25), {"Max", "ReduceMax"}),
    ],
)
def test_bounds_of_masks(emit: Any, operators_of_mask: set[str]) -> None:
    """A mask without -inf or values near the lowest number is unchanged."""

    def whole(op: Any, q: Value, k: Value, v: Value, given: Value) -> Value:
        return _attention(op, q, k, v, lambda op, scores: op.Add(scores, emit(op, given)))

    found = _lowered_with(whole, (D.FLOAT, SEEN.shape, PARTLY.astype(np.float32)))
    assert found and {"Max", "ReduceMax"} & found == operators_of_mask


@pytest.mark.parametrize(
    ("dims", "found"),
    [((2, 1, 1, 5), True), ((3, 1, 1, 5), False), ((None, 1, 1, 5), False), ((2, None, 1, 5), False)],
)
def test_masks_that_may_repeat_queries(dims: tuple[int | None, ...], found: bool) -> None:
    inputs = [new_value(D.FLOAT, shape, name) for name, shape in zip("qkv", [QUERY, KEY, VALUE], strict=True)]

    def emit(op: Any, q: Value, k: Value, v: Value, given: Value) -> Value:
        return _attention(op, q, k, v, lambda op, scores: op.Add(scores, given))

    try:
        model = graph(emit, *inputs, new_value(D.FLOAT, dims, "mask"))
    except NodeError:
        assert not found  # three batches instead of two
        return
    assert LowerToStandardAttention()(model).modified == found


@pytest.mark.parametrize(
    ("queries", "rows", "keys", "found"), [(3, 3, 5, True), (1, 1, 5, True), (1, 3, 5, False), (3, 3, 1, True)]
)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("boolean", [True, False])
def test_masks_of_more_queries(queries: int, rows: int, keys: int, found: bool, constant: bool, boolean: bool) -> None:
    """One query under a mask of several is repeated."""
    visible = np.ones((rows, keys), bool)
    visible[0, : keys - 1] = False
    array = visible if boolean else np.where(visible, 0, -np.inf).astype(np.float32)

    def emit(op: Any, q: Value, k: Value, v: Value, *given: Value) -> Value:
        mask = given[0] if given else array
        return _attention(op, q, k, v, lambda op, s: op.Where(mask, s, -np.inf) if boolean else op.Add(s, mask))

    dims = [(2, 4, queries, 8), KEY, VALUE]
    inputs = [new_value(D.FLOAT, shape, name) for name, shape in zip("qkv", dims, strict=True)]
    mask = new_value(D.BOOL if boolean else D.FLOAT, array.shape, "mask")
    model = graph(emit, *inputs, *([] if constant else [mask]))
    assert LowerToStandardAttention()(model).modified == found


@pytest.mark.parametrize(("rank", "found"), [(1, True), (4, True), (5, False)])
def test_factors_of_more_dimensions(rank: int, found: bool) -> None:
    factor = np.full([1] * rank, 0.5, np.float32)
    assert (
        len(_lowered(lambda op, q, k, v: _attention(op, q, k, v, lambda op, s: op.Mul(s, factor)), QUERY, KEY, VALUE))
        == found
    )


@pytest.mark.parametrize(
    ("visible", "causal"),
    [(np.tri(3, 5, dtype=bool), 1), (np.tri(3, 5, 2, dtype=bool), 0), (np.eye(3, 5, dtype=bool), 0)],
)
@pytest.mark.parametrize("floats", [False, True])
def test_causal_masks(visible: np.ndarray, causal: int, floats: bool) -> None:
    """Each query attends to the keys up to its own: no mask."""
    mask = np.where(visible, 0, LOWEST).astype(np.float32)

    def between(op: Any, scores: Value) -> Value:
        return op.Add(scores, mask) if floats else op.Where(visible, scores, -np.inf)

    (node,) = _lowered(lambda op, q, k, v: _attention(op, q, k, v, between), QUERY, KEY, VALUE)
    assert node.attributes.get_int("is_causal", 0) == causal
    assert len(node.inputs) == (3 if causal else 4)


@pytest.mark.parametrize(
    ("dims", "found"),
    [
        ((QUERY, KEY, VALUE), True),
        # Batches that may differ; ONNX Runtime rejects empty ones.
        pytest.param(((None, 4, 3, 8), (None, 4, 5, 8), (None, 4, 5, 6)), True, marks=pytest.mark.unverified),
        ((QUERY, (1, 4, 5, 8), (1, 4, 5, 6)), True),
        # ONNX Runtime (1.32) rejects zero tokens.
        pytest.param(((2, 4, None, 8), (2, 4, None, 8), (2, 4, None, 6)), True, marks=pytest.mark.unverified),
        ((QUERY, (2, 1, 5, 8), (2, 1, 5, 6)), True),
        ((QUERY, (2, 1, 5, 8), VALUE), False),
        (((2, 1, 3, 8), KEY, VALUE), False),  # the query is broadcast
        (((1, 4, 3, 8), KEY, VALUE), True),
    ],
)
def test_shapes(dims: tuple[tuple[int | None, ...], ...], found: bool) -> None:
    assert len(_lowered(_attention, *dims)) == found


@pytest.mark.parametrize(
    ("perm", "key", "found"),
    [
        ((0, 2, 3, 1), (2, 5, 4, 8), True),  # keys before heads: one Transpose instead of two
        ((0, 1, 2, 3), (2, 4, 8, 5), True),
        ((1, 0, 3, 2), (4, 2, 5, 8), False),
    ],
)
def test_transposed_keys(perm: tuple[int, ...], key: tuple[int, ...], found: bool) -> None:
    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        return op.MatMul(op.Softmax(op.MatMul(q, op.Transpose(k, perm=perm)), axis=-1), v)

    assert len(_lowered(emit, QUERY, key, VALUE)) == found


@pytest.mark.unverified  # products of large numbers overflow float16
def test_half() -> None:
    assert _lowered(_attention, QUERY, KEY, VALUE, dtype=D.FLOAT16)


@pytest.mark.parametrize(
    ("order", "shared"),
    [([1, 1, 2, 1, 1], True), (None, False)],
    ids=["each head twice", "all heads twice"],
)
def test_grouped_heads(order: list[int] | None, shared: bool) -> None:
    """Two groups of keys for four heads; heads in another order are different heads."""

    def repeated(op: Any, x: Value, size: int) -> Value:
        axis, by = (2, [1, 1, 2, 1, 1]) if order else (1, [1, 2, 1, 1, 1])
        return op.Reshape(op.Expand(op.Unsqueeze(x, [axis]), by), [2, 4, 5, size])

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        return _attention(op, q, repeated(op, k, 8), repeated(op, v, 6))

    (node,) = _lowered(emit, QUERY, (2, 2, 5, 8), (2, 2, 5, 6))
    assert (node.inputs[1] is not None and node.inputs[1].name == "k") is shared


def test_attention_weights_with_another_consumer() -> None:
    inputs = [new_value(D.FLOAT, dims, name) for name, dims in zip("qkv", [QUERY, KEY, VALUE], strict=True)]
    model = graph(_both, *inputs)
    assert not LowerToStandardAttention()(model).modified


def _both(op: Any, q: Value, k: Value, v: Value) -> list[Value]:
    weights = op.Softmax(op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2])), axis=-1)
    return [op.MatMul(weights, v), weights]


ROWS, COLUMNS, VALUES = (6, 3, 8), (6, 5, 8), (6, 5, 7)
"""Batch and heads in one dimension."""


def _of_three_dimensions(between: Step = _same, order: tuple[int, ...] = (0, 2, 1), axis: int = -1) -> Callable[..., Value]:
    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        return op.MatMul(op.Softmax(between(op, op.MatMul(q, op.Transpose(k, perm=order))), axis=axis), v)

    return emit


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (_of_three_dimensions(), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(axis=2), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(axis=1), (ROWS, COLUMNS, VALUES), False),
        pytest.param(_of_three_dimensions(), ((None, 3, 8), (None, 5, 8), (None, 5, 7)), True, marks=pytest.mark.unverified),
        (_of_three_dimensions(order=(1, 2, 0)), (ROWS, (5, 6, 8), VALUES), True),
        (_of_three_dimensions(order=(0, 1, 2)), (ROWS, (6, 8, 5), VALUES), True),
        (_of_three_dimensions(order=(1, 0)), (ROWS, (5, 8), VALUES), False),  # shared keys
        (_of_three_dimensions(), (ROWS, COLUMNS, (5, 7)), False),  # shared values
        (_of_three_dimensions(), ((1, 3, 8), COLUMNS, VALUES), True),  # shared queries
        (_of_three_dimensions(lambda op, s: op.Mul(op.Tanh(op.Mul(s, 0.1)), 4.0)), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Mul(s, -0.5)), (ROWS, COLUMNS, VALUES), False),
        (_of_three_dimensions(lambda op, s: op.Add(s, RNG.standard_normal((6, 3, 5)).astype("f"))),
         (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Add(s, RNG.standard_normal((6, 1, 5)).astype("f"))),
         (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Add(s, RNG.standard_normal((3, 5)).astype("f"))),
         (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Where(SEEN, s, -np.inf)), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Where(PARTLY, s, -np.inf)), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Where(PARTLY[None], s, LOWEST)), (ROWS, COLUMNS, VALUES), True),
        (_of_three_dimensions(lambda op, s: op.Add(s, RNG.standard_normal((6, 3, 5)).astype("f"))),
         ((1, 3, 8), (1, 5, 8), VALUES), False),  # the mask repeats the scores
        (_of_three_dimensions(lambda op, s: op.Reshape(op.Add(s, np.zeros((1, 1, 3, 5), "f")), [6, 3, 5])),
         (ROWS, COLUMNS, VALUES), False),
    ],
)  # fmt: skip
def test_batch_and_heads_in_one_dimension(emit: Any, dims: Any, found: bool) -> None:
    assert len(_lowered(emit, *dims)) == found


def test_three_dimensions_of_a_mask_that_is_computed() -> None:
    def emit(op: Any, q: Value, k: Value, v: Value, mask: Value) -> Value:
        return _of_three_dimensions(lambda op, s: op.Add(s, op.Mul(mask, -1e9)))(op, q, k, v)

    assert len(_lowered(emit, ROWS, COLUMNS, VALUES, (6, 3, 5))) == 1
    assert len(_lowered(emit, ROWS, COLUMNS, VALUES, (1, 3, 5))) == 1
    assert len(_lowered(emit, (1, 3, 8), (1, 5, 8), (1, 5, 7), (6, 3, 5))) == 0


@pytest.mark.unverified  # other numbers of heads have no scores
@pytest.mark.parametrize(
    ("shape_of", "right", "found"),
    [("q", [32], True), ("y", [32], False), ("q", [1, 32], True), ("q", [2, 32], False)],
    ids=["one shape", "two shapes", "another rank", "two batches"],
)
def test_an_unknown_number_of_heads(shape_of: str, right: list[int], found: bool) -> None:
    """Keys and values are reshaped to a number of heads that depends on the shape of another tensor."""
    of_keys, of_values = (RNG.standard_normal((*dims, 32)).astype(np.float32) for dims in ([32], right))

    def emit(op: Any, q: Value, x: Value, y: Value) -> Value:
        shape = op.Concat(op.Shape(q, start=0, end=1), op.Shape(x, start=1, end=2), [-1, 8], axis=0)
        other = op.Concat(op.Shape(y, start=0, end=1), op.Shape(x, start=1, end=2), [-1, 8], axis=0)
        key = op.Transpose(op.Reshape(op.MatMul(x, of_keys), shape), perm=[0, 2, 1, 3])
        value = op.Reshape(op.MatMul(x, of_values), shape if shape_of == "q" else other)
        return op.Add(_attention(op, q, key, op.Transpose(value, perm=[0, 2, 1, 3])), op.ReduceMean(y))

    dims = (None, 4, 3, 8), (None, None, 32), (None, 2)
    arrays = [RNG.standard_normal([size or 2 for size in shape]).astype(np.float32) for shape in dims]
    model = graph(emit, *(new_value(D.FLOAT, shape, name) for name, shape in zip("qxy", dims, strict=True)))
    before = _run(model, arrays, 21)
    LowerToStandardAttention()(model)
    RemoveUnusedNodesPass()(model)
    assert ("Attention" in operators(model)) == found
    np.testing.assert_allclose(_run(model, arrays, 23), before, rtol=1e-5, atol=1e-5, strict=True)


def _sunk(mask: Step = _same, last: float = 0, steps: bool = True, end: int = -1) -> Callable[..., Value]:
    """Return attention with an additional last column of scores, whose weights are dropped."""

    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        sink = np.broadcast_to(np.array([1, 2, -3, last], np.float32)[None, :, None, None], (2, 4, 3, 1))
        between = lambda op, s: op.Concat(mask(op, s), op.const(sink), axis=-1)  # noqa: E731
        return _attention(op, q, k, v, between, lambda op, w: op.Slice(w, [0], [end], [3], *([[1]] if steps else [])))

    return emit


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize(
    "mask",
    [
        _same,
        lambda op, s: op.Add(s, np.where(SEEN, 0, LOWEST).astype(np.float32)),
        lambda op, s: op.Add(s, np.where(PARTLY, 0, LOWEST).astype(np.float32)),  # no visible key but the sink
        lambda op, s: op.Add(s, np.where(PARTLY, 0, -np.inf).astype(np.float32)),
        lambda op, s: op.Where(PARTLY, s, -np.inf),
        lambda op, s: op.Where(PARTLY, s, LOWEST),
        lambda op, s: op.Add(op.Mul(s, 0.5), RNG.standard_normal((4, 1, 5)).astype(np.float32)),
    ],
)
def test_attention_sinks(mask: Step, steps: bool) -> None:
    """The sink is the score of a key of zeros, whose value is 0."""
    assert len(_lowered(_sunk(mask, steps=steps), QUERY, KEY, VALUE)) == 1


@pytest.mark.parametrize("last", [-np.inf, 1e31])
def test_sinks_that_may_absorb_scores(last: float) -> None:
    assert not _lowered(_sunk(last=last), QUERY, KEY, VALUE)


def test_a_sink_that_is_not_dropped() -> None:
    """The weights have as many columns as the values, with the sink's."""
    assert not _lowered(_sunk(end=5000), QUERY, KEY, (2, 4, 6, 6))


@pytest.mark.unverified  # ONNX Runtime rejects zero tokens
def test_sinks_of_unknown_lengths() -> None:
    def emit(op: Any, q: Value, k: Value, v: Value) -> Value:
        rows = op.Concat(op.Shape(q, start=0, end=3), [1], axis=0)
        sink = op.Expand(np.array([[[[1.0]], [[2.0]], [[-3.0]], [[0.0]]]], np.float32), rows)
        between = lambda op, s: op.Concat(s, sink, axis=-1)  # noqa: E731
        return _attention(op, q, k, v, between, lambda op, w: op.Slice(w, [0], [-1], [3]))

    assert len(_lowered(emit, (None, 4, None, 8), (None, 4, None, 8), (None, 4, None, 6))) == 1
