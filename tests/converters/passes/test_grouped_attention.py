"""Attention with a cache becomes GroupQueryAttention if its attributes can represent it; near misses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.errors import ConversionError
from converters.openvino import convert
from tests.converters.passes.language_models import (
    Run,
    agrees,
    by_mask,
    by_onnx_runtime,
    by_openvino,
    causal,
    dim,
    floats,
    for_generators,
    hidden,
    layer,
    parameter,
    runs,
    whole,
)

GIVEN = runs(5, 1, 1)
KERNELS = ["native", "python", "none"]


def times(*factors: float) -> Callable[[Any, Any], Any]:
    def change(x: Any, _: Any) -> Any:
        for factor in factors:
            x = ops.multiply(x, floats(factor))
        return x

    return change


def capped(scale: float, softcap: float) -> Callable[[Any, Any], Any]:
    return lambda x, _: ops.multiply(ops.tanh(ops.multiply(x, floats(scale))), floats(softcap))


def divided(*divisors: float) -> Callable[[Any, Any], Any]:
    def change(x: Any, _: Any) -> Any:
        for divisor in divisors:
            x = ops.divide(x, floats(divisor))
        return x

    return change


@pytest.mark.parametrize("cache", ["float32", "float16"])
@pytest.mark.parametrize(
    ("products", "grouped"),
    [
        (times(0.3), 1),
        (times(-0.3), 1),
        (times(1e-37), 1),
        (times(1e-20, 1e-17), 1),
        (divided(4.0, -0.5), 1),
        (capped(0.1, 5.0), 1),
        (capped(0.1, -5.0), 1),
        (capped(-0.1, 5.0), 1),
        (times(0.0), 0),  # GroupQueryAttention interprets 0 as 1 / sqrt(head size)
        (times(1e-40), 0),
        (times(1e-20, 1e-20), 0),
        (times(1e25, 1e25, 1e-30, 1e-20), 0),  # infinite scores
        (capped(0.1, 0.0), 0),  # GroupQueryAttention interprets 0 as no softcap
        (capped(0.0, 5.0), 0),
        (capped(1e-30, 1e-30), 0),
        (divided(1e-39, 1e38), 0),
    ],
)
def test_scales_and_softcaps(products: Any, grouped: int, cache: Any) -> None:
    decoder = agrees(layer(products=products), GIVEN, kernels=KERNELS, kv_cache=cache)
    assert decoder.grouped == grouped
    assert grouped or "its attention scores are multiplied by " in " ".join(decoder.kept)


@pytest.mark.parametrize("factor", [0.5, 1e-25])
def test_a_scaled_query(factor: float) -> None:
    """Two factors whose product is 1: one stays."""
    products = times(1e-25 if factor == 1e-25 else 0.5)
    decoder = agrees(layer(query=times(factor), products=products), GIVEN)
    assert decoder.grouped == 1


@pytest.mark.parametrize(
    ("size", "cache", "grouped"), [(24, "float32", 1), (20, "float32", 0), (20, "float16", 1), (5, "uint8", 1)]
)
def test_sizes_of_heads(size: int, cache: Any, grouped: int) -> None:
    decoder = agrees(layer(size=size), GIVEN, kernels=KERNELS, kv_cache=cache)
    assert decoder.grouped == grouped
    assert grouped or list(decoder.kept) == ["its heads have 20 elements; ONNX Runtime requires a multiple of 8"]


def limited(x: Any, _: Any) -> Any:
    """Apply a limit like ``clip_qkv`` of OLMo, DBRX and MPT. The numbers of `LARGE` exceed it."""
    return ops.clamp(x, -8.0, 8.0)


LARGE = [Run(20 * run.x, run.mask, run.more) for run in GIVEN]


@pytest.mark.parametrize(
    ("place", "grouped", "in_place"),
    [
        ("products", 0, 0),
        ("query", 1, 1),
        ("key", 1, 1),
        ("value", 1, 1),
        ("mixed", 1, 1),
        ("held", 0, 0),
        ("past", None, 0),
    ],
)
def test_a_limit_stays(place: str, grouped: int | None, in_place: int) -> None:
    """Moved values must be unchanged at any magnitude, so that a limit beyond usual numbers is detected."""
    model = layer(**{place: limited})
    if grouped is None:
        with pytest.raises(ConversionError, match="beam_idx does not select the rows"):
            for_generators(model)
    else:
        assert agrees(model, LARGE).grouped == grouped
    conversion = convert(model.clone())
    assert conversion.report.nodes.get("onnx_specops.ScaledDotProductAttentionWithKVCache", 0) == in_place
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    for run, wanted in zip(LARGE, by_openvino(model, LARGE), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})[0]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


def rotated(x: Any, tokens: Any) -> Any:
    """Rotary embeddings of 16 elements, by halves."""
    angles = ops.multiply(
        ops.convert(ops.unsqueeze(tokens.positions, whole([1, 3])), "f32"),
        floats(10.0 ** -np.arange(0, 2, 0.25).reshape(1, 1, 1, 8)),
    )
    both = ops.concat([angles, angles], 3)
    halves = ops.split(x, whole(3), 2)
    turned = ops.concat([ops.negative(halves.output(1)), halves.output(0)], 3)
    return ops.add(ops.multiply(x, ops.cos(both)), ops.multiply(turned, ops.sin(both)))


@pytest.mark.parametrize(
    ("change", "inside"),
    [
        (rotated, 1),
        (lambda x, tokens: rotated(limited(x, tokens), tokens), 1),
        (lambda x, tokens: limited(rotated(x, tokens), tokens), 0),
    ],
)
def test_a_limit_next_to_a_rotation_stays(change: Any, inside: int) -> None:
    decoder = agrees(layer(query=change, key=change, positions=True), LARGE)
    assert (decoder.grouped, decoder.rotated) == (1, inside)


@pytest.mark.parametrize("contrib", [True, False])
def test_logits_that_the_attention_gives(contrib: bool) -> None:
    """No node computes the logits of each token separately, so the last token is selected from the logits."""
    model = layer()
    conversion = convert(model.clone(), form="genai", positions=64, contrib=contrib)
    for got, wanted in zip(by_onnx_runtime(conversion, GIVEN), by_openvino(model, GIVEN), strict=True):
        np.testing.assert_allclose(got, wanted[:, -1:], rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


def by_position(x: Any, tokens: Any) -> Any:
    """Times a factor that is 1 for the first 16 tokens, as queries of Llama 4 are for the first 8192."""
    places = ops.convert(ops.unsqueeze(tokens.positions, whole([1, 3])), "f32")
    return ops.multiply(x, ops.add(ops.multiply(ops.floor(ops.divide(places, floats(16))), floats(0.5)), floats(1)))


def by_length(x: Any, tokens: Any) -> Any:
    """The same by the number of all tokens, one factor for all of them."""
    total = ops.convert(ops.squeeze(tokens.total, whole(0)), "f32")
    return ops.multiply(x, ops.maximum(ops.divide(ops.log(total), floats(np.log(16))), floats(1)))


@pytest.mark.parametrize(
    ("changes", "grouped", "in_place"),
    [
        ({"query": by_position}, 1, 1),
        ({"query": lambda x, tokens: by_position(rotated(x, tokens), tokens), "key": rotated, "positions": True}, 1, 1),
        ({"value": by_position}, 1, 1),
        ({"mixed": by_position}, 1, 1),
        ({"products": by_length}, 0, 0),
        ({"query": by_length}, 1, 1),
        ({"held": by_length}, 0, 0),
    ],
)
@pytest.mark.parametrize("positions", [None, 64])
def test_factors_that_grow_later(changes: dict[str, Any], grouped: int, in_place: int, positions: int | None) -> None:
    """The first tokens, with which graphs are evaluated, do not show them."""
    model, given = layer(**changes), runs(20, 1, 1)
    assert agrees(model, given, positions=positions).grouped == grouped
    conversion = convert(model.clone())
    assert conversion.report.nodes.get("onnx_specops.ScaledDotProductAttentionWithKVCache", 0) == in_place
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    for run, wanted in zip(given, by_openvino(model, given), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in names})[0]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


PADDED = hidden(runs(5, 1, 1), 3, 4)
"""Runs with padding after the first tokens of a row."""


@pytest.mark.parametrize(
    ("changes", "grouped"),
    [
        ({"query": by_mask("last")}, 1),
        ({"mixed": by_mask("last")}, 1),
        ({"key": by_mask("last"), "value": by_mask("last"), "seen": causal}, 1),
        ({"held": by_mask("last"), "seen": causal}, 0),
        ({"past": by_mask("first"), "seen": causal}, None),
    ],
)
def test_factors_of_padding(changes: dict[str, Any], grouped: int | None) -> None:
    """A mask without padding does not show them."""
    if grouped is None:
        with pytest.raises(ConversionError, match="beam_idx does not select the rows"):
            for_generators(layer(**changes))
    else:
        assert agrees(layer(**changes), PADDED).grouped == grouped


def rotated_by_tokens(x: Any, tokens: Any) -> Any:
    """Rotary embeddings at positions that count visible tokens."""
    counts = ops.subtract(ops.cum_sum(tokens.mask, whole(1)), whole(1))
    begin = ops.negative(ops.gather(ops.shape_of(x), whole([2]), whole(0)))
    own = ops.slice(counts, begin, whole([2**31 - 1]), whole([1]), whole([1]))
    return rotated(x, replace(tokens, positions=own))


@pytest.mark.parametrize(
    ("change", "seen", "inside"),
    [
        (rotated_by_tokens, None, 1),  # GroupQueryAttention counts visible tokens
        (rotated, None, 0),  # all tokens
        (rotated_by_tokens, causal, 0),
        (rotated, causal, 1),
    ],
)
def test_positions_after_padding(change: Any, seen: Any, inside: int) -> None:
    changes = {} if seen is None else {"seen": seen}
    assert agrees(layer(query=change, key=change, **changes), GIVEN).rotated == inside
    conversion = for_generators(layer(query=change, key=change, **changes))
    wanted = by_openvino(layer(query=change, key=change, **changes), PADDED)
    for run, got, want in zip(PADDED, by_onnx_runtime(conversion, PADDED), wanted, strict=True):
        valid = run.mask[:, -run.x.shape[1] :] > 0
        np.testing.assert_allclose(got[valid], want[valid], rtol=0, atol=1e-4 * float(np.abs(want).max()), strict=True)


def test_caches_of_two_attentions() -> None:
    """GroupQueryAttention moves padding after the tokens of later runs, where the other attention does not expect it."""
    assert agrees(layer(second=False), PADDED).grouped == 1
    decoder = agrees(layer(second=True), PADDED)
    assert list(decoder.kept) == ["other nodes use its cache, in which the operator moves padding"]


@pytest.mark.parametrize(("slot", "error"), [(2, "seqlens_k"), (3, None), (4, "seqlens_k"), (5, "seqlens_k")])
def test_padding_before_tokens_of_a_run(slot: int, error: str | None) -> None:
    given = hidden(runs(4, 1, 1), slot)
    model = layer()
    if error is None:
        assert agrees(model, given).grouped == 1
    else:
        with pytest.raises(Exception, match=error):
            by_onnx_runtime(for_generators(model), given)


@pytest.mark.parametrize("kv_cache", ["float32", "uint8"])
@pytest.mark.parametrize("logits", ["all", "last"])
@pytest.mark.parametrize(
    ("row", "is_valid"),
    [([1, 1, 1, 0, 0], True), ([1, 1, 1, -1, -1], False), ([1, 1, 1, 1, -1], False), ([2, 1, 0, 0, 0], False)],
)
def test_numbers_of_an_attention_mask(row: list[int], is_valid: bool, logits: Any, kv_cache: Any) -> None:
    """The sum of a mask's row is its number of tokens only for 0 and 1. Models treat other numbers differently."""
    (run,) = runs(5)
    given = [Run(run.x, np.array([row, [1] * 5]), {})]
    conversion = convert(layer(), form="genai", positions=64, logits=logits, kv_cache=kv_cache)
    if not is_valid:
        with pytest.raises(Exception, match="seqlens_k"):
            by_onnx_runtime(conversion, given)
        return
    (got,), (wanted,) = by_onnx_runtime(conversion, given), by_openvino(layer(), given)
    wanted = wanted if logits == "all" else wanted[[0, 1], [2, 4]][:, None]
    np.testing.assert_allclose(got[0, :3], wanted[0, :3], rtol=0, atol=2e-2 * float(np.abs(wanted).max()), strict=True)


@pytest.mark.parametrize(("number", "is_valid"), [(1, True), (-1, False), (2, False)])
def test_numbers_of_an_attention_mask_of_other_attention(number: int, is_valid: bool) -> None:
    """The last token of a row is known for 0 and 1 only, also if the attention stays in standard ONNX."""
    (run,) = runs(3)
    given = [Run(run.x, np.array([[1, 1, 0], [1, number, 0]]), {})]
    conversion = convert(layer(), form="genai", positions=64, contrib=False)
    if not is_valid:
        with pytest.raises(Exception, match="attention_mask_of_other_numbers"):
            by_onnx_runtime(conversion, given)
        return
    (got,), (wanted,) = by_onnx_runtime(conversion, given), by_openvino(layer(), given)
    np.testing.assert_allclose(got, wanted[:, 1:2], rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


def test_another_input_before_the_tokens() -> None:
    """The number of tokens and the last tokens are those of the input of the tokens."""
    images = parameter("images", [-1, 64], np.float32)
    model = layer(first=[images], mixed=lambda x, _: ops.add(x, ops.reduce_mean(images, whole([0, 1]), False)))
    given = [Run(run.x, run.mask, {"images": np.ones((3, 64), np.float32)}) for run in PADDED]
    assert agrees(model, given).grouped == 1
    conversion = convert(model.clone(), form="genai", positions=64)
    for run, got, wanted in zip(given, by_onnx_runtime(conversion, given), by_openvino(model, given), strict=True):
        last = run.mask[:, -run.x.shape[1] :].cumsum(1).argmax(1)
        wanted = wanted[np.arange(2), last][:, None]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


def test_a_boolean_attention_mask() -> None:
    given = [Run(run.x, run.mask.astype(bool), run.more) for run in PADDED]
    assert agrees(layer(booleans=True), given).grouped == 1


def by_tokens_of_run(x: Any, _: Any) -> Any:
    """Times a half in a run of one token."""
    count = ops.squeeze(dim(x, 2), whole(0))
    return ops.multiply(x, ops.select(ops.equal(count, whole(1)), floats(0.5), floats(1)))


def by_first_run(x: Any, tokens: Any) -> Any:
    """Times a half in the first run."""
    past = ops.squeeze(ops.subtract(tokens.total, dim(x, 2)), whole(0))
    return ops.multiply(x, ops.select(ops.equal(past, whole(0)), floats(0.5), floats(1)))


@pytest.mark.parametrize("factor", [by_tokens_of_run, by_first_run])
@pytest.mark.parametrize(
    ("place", "grouped", "in_place"), [("products", 0, 0), ("query", 1, 1), ("key", 1, 1), ("value", 1, 1), ("mixed", 1, 1)]
)
def test_factors_of_some_runs(place: str, grouped: int, in_place: int, factor: Any) -> None:
    """A run of several tokens after others does not show them."""
    changes = {place: factor}
    if place == "products":
        changes = {place: lambda x, tokens: ops.multiply(factor(x, tokens), floats(0.25))}
    model = layer(**changes)
    assert agrees(model, GIVEN).grouped == grouped
    conversion = convert(model.clone())
    assert conversion.report.nodes.get("onnx_specops.ScaledDotProductAttentionWithKVCache", 0) == in_place
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    for run, wanted in zip(GIVEN, by_openvino(model, GIVEN), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})[0]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)
