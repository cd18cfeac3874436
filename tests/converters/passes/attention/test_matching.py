"""The attention with a cache that GroupQueryAttention can represent, with near misses, as ONNX graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.attention.caches import Cache
from converters.passes.attention.matching import Attention, Matcher, UnsupportedAttention
from converters.passes.attention.probe_shapes import Inputs
from converters.passes.attention.probing import Dependence
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph

D = ir.DataType
RNG = np.random.default_rng(0)
LOWEST = float(np.finfo(np.float32).min)

Step = Callable[..., Value]


def _same(op: Any, x: Value, *_: Value) -> Value:
    return x


def _numbers(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


def match(
    products: Step = _same,
    *,
    query: Step = _same,
    keys: Step = _same,
    transposed: Step = _same,
    turn: tuple[int, ...] = (0, 1, 3, 2),
    weights: Step = _same,
    axis: int = -1,
    heads: int = 2,
    groups: int = 2,
) -> Attention | None:
    """Build the attention of a small decoder, whose parts are changed by functions of them, the data and the mask."""
    found: dict[str, Value] = {}

    def emit(op: Any, x: Value, past_keys: Value, past_values: Value, mask: Value) -> Value:
        def projected(count: int) -> Value:
            rows = op.MatMul(x, op.const(_numbers(8, 4 * count)))
            return op.Transpose(op.Reshape(rows, [0, 0, count, 4]), perm=[0, 2, 1, 3])

        q, found["new keys"], found["new values"] = projected(heads), projected(groups), projected(groups)
        found["keys"] = op.Concat(past_keys, found["new keys"], axis=2)
        found["values"] = op.Concat(past_values, found["new values"], axis=2)
        k, v = (_repeated(op, found[name], heads // groups) for name in ("keys", "values"))
        columns = transposed(op, op.Transpose(keys(op, k, x, mask), perm=turn), x, mask)
        scores = op.MatMul(query(op, q, x, mask), columns)
        found["softmax"] = op.Softmax(products(op, scores, x, mask), axis=axis)
        return op.MatMul(weights(op, found["softmax"], x, mask), v)

    cache = [(name, floats(name, None, groups, None, 4)) for name in ("past_keys", "past_values")]
    model = graph(
        emit, floats("x", None, None, 8), *(value for _, value in cache), new_value(D.INT64, [None, None], "attention_mask")
    )
    pasts = dict(cache)
    inputs = Inputs(model.graph, dict.fromkeys(pasts.values(), 2))
    caches = [Cache(name, pasts[f"past_{name}"], found[name], found[f"new {name}"], 2) for name in ("keys", "values")]
    softmax = found["softmax"].producer()
    assert softmax is not None
    return Matcher(inputs, caches, Dependence(model.graph, inputs.sources)).match(softmax)


def _repeated(op: Any, cache: Value, times: int) -> Value:
    """Repeat each head of a cache consecutively."""
    if times == 1:
        return cache
    five = op.Expand(op.Unsqueeze(cache, [2]), [1, 1, times, 1, 1])
    return op.Reshape(five, op.Concat(op.Shape(cache, end=1), [-1], op.Shape(cache, start=2), axis=0))


def _hidden(op: Any, mask: Value) -> Value:
    """Return the mask as addends."""
    return op.Unsqueeze(op.Mul(op.Cast(op.Sub(1, mask), to=D.FLOAT), LOWEST), [1, 2])


def _shown(op: Any, mask: Value) -> Value:
    return op.Unsqueeze(op.Cast(mask, to=D.BOOL), [1, 2])


@pytest.mark.parametrize(
    ("products", "scale", "softcap"),
    [
        (_same, 1.0, 0.0),
        (lambda op, s, x, m: op.Mul(s, 0.5), 0.5, 0.0),
        (lambda op, s, x, m: op.Div(s, 4.0), 0.25, 0.0),
        (lambda op, s, x, m: op.Div(op.Mul(0.5, s), 4.0), 0.125, 0.0),
        (lambda op, s, x, m: op.Mul(op.Tanh(op.Div(s, 50.0)), 50.0), 1.0, 50.0),
        (lambda op, s, x, m: op.Mul(op.Tanh(op.Div(op.Mul(s, 0.5), 50.0)), 50.0), 0.5, 50.0),
        (lambda op, s, x, m: op.Mul(op.Tanh(op.Div(s, 50.0)), -50.0), -1.0, 50.0),
        (lambda op, s, x, m: op.Add(op.Mul(s, 0.5), _hidden(op, m)), 0.5, 0.0),
        (lambda op, s, x, m: op.Where(_shown(op, m), op.Mul(s, 0.5), LOWEST), 0.5, 0.0),
    ],
)
def test_factors(products: Step, scale: float, softcap: float) -> None:
    found = match(products)
    assert found is not None
    np.testing.assert_allclose([found.scale, found.softcap], [scale, softcap], rtol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("products", "reason"),
    [
        (lambda op, s, x, m: op.Mul(s, _numbers(2, 1, 1)), "several numbers"),
        (lambda op, s, x, m: op.Mul(s, op.ReduceMax(x)), "two data-dependent inputs"),
        (lambda op, s, x, m: op.Mul(s, op.Cast(op.ReduceSum(m), to=D.FLOAT)), "changes with the tokens"),
        (lambda op, s, x, m: op.Mul(s, s), "two data-dependent inputs"),
        (lambda op, s, x, m: op.Div(2.0, s), "Div precedes"),
        (lambda op, s, x, m: op.Sub(s, 1.0), "Sub precedes"),
        (lambda op, s, x, m: op.Mul(op.Add(s, _hidden(op, m)), 0.5), "Add precedes"),  # the mask is multiplied
        (lambda op, s, x, m: op.Add(op.Add(s, _hidden(op, m)), _hidden(op, m)), "Add precedes"),
        (lambda op, s, x, m: op.Tanh(op.Add(s, _hidden(op, m))), "Add precedes"),
        (lambda op, s, x, m: op.Tanh(op.Tanh(s)), "Tanh precedes"),
        (lambda op, s, x, m: op.Mul(s, 0.0), "which is 0 or beyond"),
        (lambda op, s, x, m: op.Mul(op.Tanh(s), 0.0), "which is 0 or beyond"),
        (lambda op, s, x, m: op.Div(s, 1e-40), "which is 0 or beyond"),
        (lambda op, s, x, m: op.Where(_shown(op, m), s, -100.0), "does not hide the masked positions"),
        (lambda op, s, x, m: op.Where(_shown(op, m), LOWEST, s), "Where precedes"),  # reversed
        (lambda op, s, x, m: op.Cast(op.Cast(s, to=D.FLOAT16), to=D.FLOAT), "its attention scores are rounded"),
    ],
)
def test_unsupported_attention(products: Step, reason: str) -> None:
    with pytest.raises(UnsupportedAttention, match=reason):
        match(products)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"turn": (0, 1, 2, 3), "heads": 2}, "not transposed"),
        ({"axis": 2}, "not transposed"),
        ({"axis": 3}, None),
        ({"heads": 4, "groups": 2}, None),
        ({"heads": 4, "groups": 4}, None),
        ({"keys": lambda op, k, x, m: op.Mul(k, 2.0)}, "not those of the cache"),
        ({"keys": lambda op, k, x, m: op.Gather(k, [1, 0], axis=1)}, "not those of the cache"),  # its heads are swapped
        ({"keys": lambda op, k, x, m: op.Neg(op.Neg(k))}, None),
    ],
)
def test_keys_and_axes(options: dict[str, Any], reason: str | None) -> None:
    if reason is None:
        assert match(**options) is not None
        return
    with pytest.raises(UnsupportedAttention, match=reason):
        match(**options)


@pytest.mark.parametrize(
    ("query", "scale"),
    [
        (lambda op, q, x, m: op.Mul(q, 0.5), 0.5),
        (lambda op, q, x, m: op.Div(q, 4.0), 0.25),
        (lambda op, q, x, m: op.Mul(op.Div(q, 4.0), 0.5), 0.125),
        (lambda op, q, x, m: op.Div(4.0, q), 1.0),  # another query
        (lambda op, q, x, m: op.Mul(q, _numbers(4)), 1.0),
        (lambda op, q, x, m: op.Mul(q, 0.0), 1.0),
        (lambda op, q, x, m: op.Mul(q, 1e-40), 1.0),
    ],
)
def test_factors_of_the_query(query: Step, scale: float) -> None:
    """One number becomes part of the scale; anything else stays with the query."""
    found = match(query=query)
    assert found is not None
    np.testing.assert_allclose(found.scale, scale, rtol=1e-6, strict=True)
    producer = found.query.producer()
    assert producer is not None and (producer.op_type in ("Mul", "Div")) is (scale == 1.0)


@pytest.mark.parametrize(
    ("transposed", "scale"),
    [
        (lambda op, k, x, m: op.Mul(k, 0.5), 0.5),
        (lambda op, k, x, m: op.Div(op.Mul(0.5, k), 4.0), 0.125),
        (lambda op, k, x, m: op.Mul(k, _numbers(4, 1)), None),
        (lambda op, k, x, m: op.Mul(k, op.Cast(op.ReduceSum(m), to=D.FLOAT)), None),  # it changes with the tokens
        (lambda op, k, x, m: op.Add(k, 0.5), None),
        (lambda op, k, x, m: op.Div(4.0, k), None),
        (lambda op, k, x, m: op.Mul(k, 0.0), None),
    ],
)
def test_factors_of_the_transposed_keys(transposed: Step, scale: float | None) -> None:
    """PyTorch's exporter to ONNX multiplies the query and the transposed keys by the root of the scale."""

    def query(op: Any, q: Value, *_: Value) -> Value:
        scaled: Value = op.Mul(q, 0.25)
        return scaled

    if scale is None:
        with pytest.raises(UnsupportedAttention, match="not transposed"):
            match(query=query, transposed=transposed)
        return
    found = match(query=query, transposed=transposed)
    assert found is not None
    np.testing.assert_allclose(found.scale, 0.25 * scale, rtol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        (lambda op, w, x, m: op.Identity(w), True),
        (lambda op, w, x, m: op.Cast(op.Cast(w, to=D.FLOAT16), to=D.FLOAT), False),
        (lambda op, w, x, m: op.Mul(w, 2.0), False),
        (lambda op, w, x, m: op.Slice(w, [0], [1], [2]), False),
    ],
)
def test_consumers_of_the_softmax(weights: Step, found: bool) -> None:
    assert (match(weights=weights) is not None) is found


@pytest.mark.parametrize(("end", "found"), [(-1, True), (8, False)])
def test_the_dropped_column(end: int, found: bool) -> None:
    """Eight is the number of tokens with which the attention is evaluated first."""

    def with_sink(op: Any, scores: Value, *_: Value) -> Value:
        column = op.Concat(op.Shape(scores, end=3), [1], axis=0)
        whole: Value = op.Concat(scores, op.Expand(_numbers(1, 2, 1, 1), column), axis=3)
        return whole

    attention = match(with_sink, weights=lambda op, w, x, m: op.Slice(w, [0], [end], [3]))
    assert (attention is not None and attention.sink is not None) is found
