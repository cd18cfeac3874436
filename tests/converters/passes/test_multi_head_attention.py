"""Attention becomes one node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, operators

RNG = np.random.default_rng(0)


def _numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _heads(ops, x, numbers: int = 4):
    """Reshape [batch, tokens, 3 * numbers] to [batch, 3, tokens, numbers]."""
    return ops.transpose(ops.reshape(x, ops.constant([0, 0, 3, numbers]), True), ops.constant([0, 2, 1, 3]))


def _rows(ops, x, size: int = 12):
    return ops.reshape(ops.transpose(x, ops.constant([0, 2, 1, 3])), ops.constant([0, 0, size]), True)


def _attention(shape: list[int]):
    """Return query, key and value, from separate products of the same tokens."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter(shape, np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    return ov.Model([_rows(ops, ops.scaled_dot_product_attention(q, k, v))], [x])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [[2, 5, 12], [-1, -1, 12]], ids=["static", "dynamic"])
def test_separate_products(form: str, shape: list[int], oracle: Oracle, tmp_path: Path) -> None:
    found = operators(converted(_attention(shape), [_numbers(2, 5, 12)], oracle, tmp_path, form))
    if form == "opset-13":
        assert "Softmax" in found
    else:
        assert "Attention" in found and "Softmax" not in found
        assert "Transpose" not in found and "Reshape" not in found


@pytest.mark.parametrize("with_mask", [False, True], ids=["plain", "mask"])
def test_divided_scores(with_mask: bool, oracle: Oracle, tmp_path: Path) -> None:
    """Exporters before ScaledDotProductAttention-13 divide by the square root of the head size."""
    import openvino as ov
    from openvino import opset13 as ops

    x, mask = ops.parameter([2, 5, 12], np.float32), ops.parameter([2, 1, 1, 5], np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    scores = ops.divide(ops.matmul(q, k, False, True), ops.constant(np.float32(np.sqrt(5))))
    scores = ops.add(scores, mask) if with_mask else scores
    model = ov.Model([_rows(ops, ops.matmul(ops.softmax(scores, -1), v, False, False))], [x, *([mask] if with_mask else [])])
    hidden = np.where(RNG.random((2, 1, 1, 5)) < 0.3, np.float32(-1e4), np.float32(0))
    found = operators(converted(model, [_numbers(2, 5, 12), *([hidden] if with_mask else [])], oracle, tmp_path))
    assert "Attention" in found and "Softmax" not in found


@pytest.mark.parametrize("form", FORMS)
def test_one_product(form: str, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([-1, 5, 12], np.float32)
    packed = ops.matmul(x, ops.constant(_numbers(12, 36)), False, False)
    five = ops.reshape(packed, ops.constant([0, 0, 3, 3, 4]), True)
    parts = ops.split(ops.transpose(five, ops.constant([2, 0, 3, 1, 4])), ops.constant(0), 3)
    q, k, v = (ops.squeeze(output, ops.constant([0])) for output in parts.outputs())
    model = ov.Model([_rows(ops, ops.scaled_dot_product_attention(q, k, v))], [x])
    found = operators(converted(model, [_numbers(2, 5, 12)], oracle, tmp_path, form))
    if form == "opset-13":
        assert "Softmax" in found
    else:
        assert "Attention" in found and "Squeeze" not in found
        assert "Transpose" not in found and "Reshape" not in found


@pytest.mark.parametrize(
    ("shape", "apart", "together", "left"),
    [
        ([-1, -1, 12], [0, 0, 3, 4], [0, 0, 12], 0),
        ([2, 5, 12], [10, 12], [2, 5, 12], 0),
        ([2, 5, 12], [2, 5, 3, 4], [0, 0, 12], 0),
        ([-1, 5, 12], [-1, 12], [-1, 5, 12], 0),
        ([2, 5, 12], [0, 60], [5, 2, 12], 1),
    ],
)
def test_reshapes_there_and_back(shape, apart, together, left: int, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter(shape, np.float32)
    inner = ops.reshape(ops.sin(x), ops.constant(apart), True)
    model = ov.Model([ops.relu(ops.reshape(inner, ops.constant(together), True))], [x])
    found = operators(converted(model, [_numbers(2, 5, 12)], oracle, tmp_path))
    assert [*found].count("Reshape") == left


def _direct(q: list[int], k: list[int], v: list[int], mask: list[int] | None = None, causal: bool = False):
    """Return heads in their original layout."""
    import openvino as ov
    from openvino import opset13 as ops

    inputs = [ops.parameter(shape, np.float32) for shape in (q, k, v, *([mask] if mask else []))]
    return ov.Model([ops.scaled_dot_product_attention(*inputs, causal=causal)], inputs)


def test_many_keys(oracle: Oracle, tmp_path: Path) -> None:
    """Long enough for additional transpositions to pay off."""
    model = _direct([2, 3, 7, 4], [2, 3, 300, 4], [2, 3, 300, 6])
    inputs = [_numbers(2, 3, 7, 4), _numbers(2, 3, 300, 4), _numbers(2, 3, 300, 6)]
    assert "Attention" in operators(converted(model, inputs, oracle, tmp_path))


@pytest.mark.parametrize(
    "shapes",
    [
        ([2, 3, 7, 4], [2, 3, 5, 4], [2, 3, 5, 6]),  # as many transpositions as before, and few keys
        ([2, 3, 7, 4], [1, 3, 300, 4], [1, 3, 300, 6]),  # one batch of keys for all
        ([2, 3, 7, 4], [2, 1, 300, 4], [2, 1, 300, 6]),  # one head of keys for all
        ([2, 7, 4], [2, 300, 4], [2, 300, 4]),  # no heads
        ([2, 3, 7, 4], [2, 3, 300, 4], [2, 3, 300, 6], [1, 1, 7, 300]),  # a mask, and additional transpositions
    ],
    ids=["few", "one-batch", "one-head", "no-heads", "mask"],
)
def test_unchanged_attention(shapes, oracle: Oracle, tmp_path: Path) -> None:
    inputs = [_numbers(*shape) for shape in shapes]
    assert "Attention" not in operators(converted(_direct(*shapes), inputs, oracle, tmp_path))


def _masked(kind: str, mask: list[int], query_factor: bool = False):
    """Return query, key and value of [2, 5, 12] with 3 heads, and a mask."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([2, 5, 12], np.float32)
    counts = ops.parameter(mask, np.bool_ if kind == "kept" else np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    if not query_factor:
        return ov.Model([_rows(ops, ops.scaled_dot_product_attention(q, k, v, counts))], [x, counts])
    scores = ops.matmul(ops.multiply(q, ops.constant(np.float32(0.4))), k, False, True)
    scores = ops.add(ops.multiply(scores, ops.constant(np.float32(1))), counts)
    return ov.Model([_rows(ops, ops.matmul(ops.softmax(scores, 3), v, False, False))], [x, counts])


@pytest.mark.parametrize("mask", [[2, 3, 5, 5], [1, 1, 1, 5], [5, 5]])
@pytest.mark.parametrize("kind", ["added", "kept", "factor"])
def test_with_a_mask(kind: str, mask: list[int], oracle: Oracle, tmp_path: Path) -> None:
    """For ONNX Runtime only; the factor of the query becomes part of the attention's scale."""
    counts = RNG.random(mask) < 0.7 if kind == "kept" else _numbers(*mask)
    if kind == "kept":
        counts[..., 0] = True
    found = operators(converted(_masked(kind, mask, kind == "factor"), [_numbers(2, 5, 12), counts], oracle, tmp_path))
    assert "Attention" in found and "Softmax" not in found and "Mul" not in found


def test_a_mask_that_makes_scores_wider(oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x, counts = ops.parameter([1, 5, 12], np.float32), ops.parameter([2, 1, 5, 5], np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    scores = ops.multiply(ops.matmul(q, k, False, True), ops.constant(np.float32(0.5)))
    shares = ops.softmax(ops.add(scores, counts), 3)
    model = ov.Model([_rows(ops, ops.matmul(shares, v, False, False))], [x, counts])
    inputs = [_numbers(1, 5, 12), _numbers(2, 1, 5, 5)]
    assert "Attention" not in operators(converted(model, inputs, oracle, tmp_path))


def _windows(pictures: int, mask: list[int], bias: list[int], together: list[int], apart: int = 4):
    """Build attention within the four windows of each image, with five tokens and three heads, like Swin's shifted
    windows.
    """
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([-1 if pictures < 0 else 4 * pictures, 5, 12], np.float32)
    five = ops.reshape(ops.matmul(x, ops.constant(_numbers(12, 36)), False, False), ops.constant([0, 0, 3, 3, 4]), True)
    parts = ops.split(ops.transpose(five, ops.constant([2, 0, 3, 1, 4])), ops.constant(0), 3)
    q, k, v = (ops.squeeze(output, ops.constant([0])) for output in parts.outputs())
    scores = ops.matmul(ops.multiply(q, ops.constant(np.float32(0.5))), k, False, True)
    scores = ops.reshape(ops.add(scores, ops.constant(_numbers(*bias))), ops.constant([-1, apart, 3, 5, 5]), False)
    hidden = np.where(RNG.random(mask) < 0.3, np.float32(-100), np.float32(0))
    scores = ops.reshape(ops.add(scores, ops.constant(hidden)), ops.constant(together), False)
    return ov.Model([_rows(ops, ops.matmul(ops.softmax(scores, 3), v, False, False))], [x])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pictures", [1, 2, -1], ids=["one", "two", "any"])
def test_windows(form: str, pictures: int, oracle: Oracle, tmp_path: Path) -> None:
    """The bias of all windows and the mask of each window are combined into one mask."""
    model = _windows(pictures, [1, 4, 1, 5, 5], [1, 3, 5, 5], [-1, 3, 5, 5])
    count = 4 * (pictures if pictures > 0 else 3)
    found = operators(converted(model, [_numbers(count, 5, 12)], oracle, tmp_path, form))
    if form == "opset-13":
        assert "Softmax" in found
    else:
        assert "Attention" in found and "Softmax" not in found and "Mul" not in found


@pytest.mark.parametrize(
    ("mask", "bias", "together", "apart"),
    [
        ([2, 4, 1, 5, 5], [1, 3, 5, 5], [-1, 3, 5, 5], 4),  # a mask for each image
        ([1, 4, 1, 5, 5], [1, 3, 5, 5], [-1, 3, 5, 5], 8),  # for another number of windows: it does not fit, see below
        ([4, 3, 5, 5], [8, 3, 5, 5], [-1, 3, 5, 5], 4),  # a bias for each window
        ([1, 1, 5, 1], [3, 1, 1], [-1, 3, 5, 5], 4),  # the same for all windows
    ],
    ids=["pictures", "windows", "biases", "all"],
)
def test_other_masks_of_windows(mask, bias, together, apart: int, oracle: Oracle, tmp_path: Path) -> None:
    """They are correct in any spelling."""
    if apart == 8:
        mask = [1, 8, *mask[2:]]
    converted(_windows(2, mask, bias, together, apart), [_numbers(8, 5, 12)], oracle, tmp_path)


@pytest.mark.parametrize("what", ["factor", "nothing"])
def test_factors_with_more_dimensions(what: str, oracle: Oracle, tmp_path: Path) -> None:
    """A factor, or the value of hidden scores: the result has its dimensions."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([2, 5, 12], np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    wide = [1] * 5
    factor = ops.constant(np.full(wide if what == "factor" else [], 0.5, np.float32))
    scores = ops.multiply(ops.matmul(q, k, False, True), factor)
    if what == "nothing":
        seen = ops.constant(np.tril(np.ones((5, 5), bool)))
        scores = ops.select(seen, scores, ops.constant(np.full(wide, -np.inf, np.float32)))
    model = ov.Model([ops.matmul(ops.softmax(scores, -1), v, False, False)], [x])
    assert "Attention" not in operators(converted(model, [_numbers(2, 5, 12)], oracle, tmp_path))


def test_more_than_three_parts_in_one_product(oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([-1, -1, 72], np.float32)
    five = ops.reshape(x, ops.constant([0, 0, 6, 3, 4]), True)
    pairs = ops.split(ops.transpose(five, ops.constant([2, 0, 3, 1, 4])), ops.constant(0), 3)
    q, k, v = (ops.gather(output, ops.constant(1), ops.constant(0)) for output in pairs.outputs())
    model = ov.Model([_rows(ops, ops.scaled_dot_product_attention(q, k, v))], [x])
    converted(model, [_numbers(2, 5, 72)], oracle, tmp_path)


@pytest.mark.parametrize(
    ("of_query", "of_products", "fused"),
    [
        (0.5, 0.25, True),
        (1e-20, 1e-17, True),
        (1e-20, 1e-20, False),  # 0 as one attribute, which would mean 1 / sqrt(head size)
        (1e25, 1e25, False),  # infinite as one attribute
    ],
)
def test_two_factors(of_query: float, of_products: float, fused: bool, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([2, 5, 12], np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    scores = ops.matmul(ops.multiply(q, np.float32(of_query)), k, False, True)
    whole = _rows(ops, ops.matmul(ops.softmax(ops.multiply(scores, np.float32(of_products)), -1), v, False, False))
    found = operators(converted(ov.Model([whole], [x]), [_numbers(2, 5, 12)], oracle, tmp_path))
    assert ("Attention" in found) == fused


def test_a_factor_of_zero(oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([2, 5, 12], np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)) for _ in range(3))
    scores = ops.multiply(ops.matmul(q, k, False, True), np.float32(1e-40))
    whole = _rows(ops, ops.matmul(ops.softmax(scores, -1), v, False, False))
    found = operators(converted(ov.Model([whole], [x]), [_numbers(2, 5, 12)], oracle, tmp_path))
    assert "Attention" not in found


def _of_batches(query: str, keys: str):
    """Return query, keys and values of the same tokens with an unknown batch, computed by each of `_BATCHES`."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([-1, 5, 12], np.float32)

    def heads(way: str):
        value = ops.matmul(x, ops.constant(_numbers(12, 12)), False, False)
        if way.startswith("constant"):
            value = ops.add(value, ops.constant(_numbers(*(int(size) for size in way.split()[1:]))))
        shape = ops.constant({"-1": [-1, 5, 3, 4], "one": [1, -1, 3, 4]}.get(way, [0, 0, 3, 4]))
        if way == "asked":
            batch = ops.gather(ops.shape_of(x), ops.constant([0]), ops.constant(0))
            shape = ops.concat([batch, ops.constant([-1, 3, 4])], 0)
        return ops.transpose(ops.reshape(value, shape, True), ops.constant([0, 2, 1, 3]))

    q, k, v = heads(query), heads(keys), heads(keys)
    return ov.Model([_rows(ops, ops.scaled_dot_product_attention(q, k, v))], [x])


_BATCHES = [
    *(("0", "0", True), ("-1", "0", True), ("asked", "0", True), ("asked", "-1", True), ("one", "one", True)),
    *(("constant 12", "0", True), ("constant 1 5 12", "0", True), ("constant 1 1 1", "-1", True)),
    *(("constant 3 1 12", "0", False), ("0", "constant 3 5 1", False), ("one", "0", False), ("asked", "one", False)),
]


@pytest.mark.parametrize(
    ("query", "keys", "fused", "batch"),
    [
        (query, keys, fused, batch)
        for query, keys, fused in _BATCHES
        for batch in (1, 3)
        if batch == 1 or query == keys or "one" not in (query, keys)  # these do not broadcast to three
    ],
    ids=str,
)
def test_batches(query: str, keys: str, fused: bool, batch: int, oracle: Oracle, tmp_path: Path) -> None:
    """Query, keys and values must have equal batches, which a constant or a Reshape may change for one of them."""
    found = operators(converted(_of_batches(query, keys), [_numbers(batch, 5, 12)], oracle, tmp_path))
    assert ("Attention" in found) is fused


def _quantized_attention(near: str = "", with_mask: bool = True):
    """Return attention whose query and key are multiplied by a number and quantized after they are transposed."""
    import openvino as ov
    from openvino import opset13 as ops

    x, mask = ops.parameter([2, 5, 12], np.float32), ops.parameter([2, 1, 5, 5], np.float32)
    weights = np.random.default_rng(1).standard_normal((3, 12, 12)).astype(np.float32)
    q, k, v = (_heads(ops, ops.matmul(x, ops.constant(part), False, False)) for part in weights)
    q = ops.multiply(q, ops.constant(np.full([1, 1, 1, 1] if near == "factors" else [], 0.5, np.float32)))
    top = np.full([1, 3, 1, 1] if near == "limits" else [], 20, np.float32)
    if near == "limits":
        top = top * np.array([0.5, 1, 2], np.float32).reshape(1, 3, 1, 1)
    if near == "factors":
        q = ops.multiply(q, ops.constant(np.array([0.5, 1, 2, 4], np.float32)))
    limits = [ops.constant(limit) for limit in (-top, top, -top, top)]
    first, second = (ops.fake_quantize(part, *limits, 255) for part in (q, k))
    scores = ops.matmul(first, second, False, True)
    scores = ops.add(scores, mask) if with_mask else scores
    result = _rows(ops, ops.matmul(ops.softmax(scores, -1), v, False, False))
    results = [result, ops.sin(q)] if near == "consumer" else [result]
    return ov.Model(results, [x, *([mask] if with_mask else [])])


@pytest.mark.parametrize("near", ["", "limits", "factors", "consumer"])
@pytest.mark.parametrize("with_mask", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("quantized", ["integer", "float"])
@pytest.mark.unverified  # integers round ties differently
def test_quantized_queries_and_keys(near: str, with_mask: bool, quantized: Any, tmp_path: Path) -> None:
    """Attention of quantized queries and keys is one node, which multiplies them in integers."""
    import onnx_specops
    from converters.openvino import convert
    from tests.converters.passes.quantized.networks import answers

    model = _quantized_attention(near, with_mask)
    rng = np.random.default_rng(2)  # other tests do not change its numbers, which are not halfway between two levels
    given = [rng.standard_normal((2, 5, 12)), *([-100.0 * (rng.random((2, 1, 5, 5)) < 0.3)] if with_mask else [])]
    expected = answers(model, *(x.astype(np.float32) for x in given))
    made = convert(model, quantized=quantized).model
    found = [node.op_type for node in made.graph.node]
    # Heads before tokens stay there: each is a batch of one head, for which the mask has the wrong dimensions.
    is_fused = not near or (near != "limits" and not with_mask)
    expected_names = {"QuantizedAttention" if quantized == "integer" else "Attention"} if is_fused else set()
    assert {"Attention", "QuantizedAttention"} & {*found} == expected_names
    for kernels in ("native", "none"):
        session = onnx_specops.InferenceSession(made.SerializeToString(), kernels=kernels)
        feeds = {value.name: x.astype(np.float32) for value, x in zip(session.get_inputs(), given, strict=True)}
        np.testing.assert_allclose(session.run(None, feeds)[0], expected, rtol=1e-3, atol=2e-3, strict=True)
