"""Attention: numbers and sizes of heads, kinds and shapes of masks, errors."""

from __future__ import annotations

import numpy as np

from tests.onnx_specops.ops.case import Case

F = np.float32
NAMES = ("Q", "K", "V", "attn_mask")
INF = np.float32(np.inf)


def layer(q, k, v, mask=None, *, q_num_heads, kv_num_heads, scale=0.0):
    from openvino import opset13 as ops

    def heads(rows, count):
        split = ops.transpose(ops.reshape(rows, ops.constant([0, 0, count, -1]), True), ops.constant([0, 2, 1, 3]))
        which = np.repeat(np.arange(count), q_num_heads // count)
        return ops.gather(split, ops.constant(which), ops.constant(1))

    options = {} if mask is None else {"attention_mask": mask}
    if scale:
        options["scale"] = ops.constant(F(scale))
        options.setdefault("attention_mask", ops.constant(F(0)))
    q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    result = ops.scaled_dot_product_attention(q, k, v, **options)
    size = result.output(0).get_partial_shape()
    rows = ops.transpose(result, ops.constant([0, 2, 1, 3]))
    return ops.reshape(rows, ops.constant([0, 0, size[1].get_length() * size[3].get_length()]), True)


def _case(name, q, k, v, mask=None, heads=2, kv_heads=None, scale=0.0, **options):
    rng = np.random.default_rng(0)
    arrays = [x if isinstance(x, np.ndarray) else rng.standard_normal(x).astype(F) for x in (q, k, v)]
    arrays += [] if mask is None else [mask]
    attributes = {"q_num_heads": heads, "kv_num_heads": kv_heads or heads, "scale": scale}
    options = {"rtol": 1e-4, "atol": 1e-5, "layer": layer, **options}
    return Case("Attention", name, dict(zip(NAMES, arrays, strict=False)), attributes, **options)


def _cases():
    rng = np.random.default_rng(1)
    yield _case("plain", (2, 5, 12), (2, 5, 12), (2, 5, 12), heads=3)
    yield _case("sizes", (2, 3, 8), (2, 7, 8), (2, 7, 10), scale=0.3)
    yield _case("one-query", (1, 1, 64), (1, 40, 64), (1, 40, 64))
    yield _case("many", (1, 61, 96), (1, 530, 96), (1, 530, 70), atol=2e-5)
    yield _case("shared-keys", (2, 4, 24), (2, 6, 8), (2, 6, 6), heads=6, kv_heads=2)
    yield _case("shared-keys-mask", (2, 4, 24), (2, 6, 8), (2, 6, 6), rng.standard_normal((4, 6)).astype(F), 6, 2)
    for shape in ((2, 2, 5, 7), (2, 1, 1, 7), (1, 2, 5, 1), (5, 7), (1, 7)):
        name = "-".join(map(str, shape))
        added, kept = rng.standard_normal(shape).astype(F), rng.random(shape) < 0.7
        kept[..., 0] = True
        yield _case(f"added-{name}", (2, 5, 8), (2, 7, 8), (2, 7, 8), added)
        yield _case(f"kept-{name}", (2, 5, 8), (2, 7, 8), (2, 7, 8), kept)
    causal = np.tril(np.ones((600, 600), bool))
    yield _case("causal", (1, 600, 8), (1, 600, 8), (1, 600, 8), causal, 1, atol=2e-5)
    late = np.where(np.arange(530) < 520, -INF, F(0))[None]  # the first visible keys are in another block
    yield _case("late", (1, 3, 8), (1, 530, 8), (1, 530, 8), late)
    lowest = np.full((1, 4), np.finfo(F).min)
    yield _case("lowest", (1, 3, 8), (1, 4, 8), (1, 4, 8), lowest)
    nan, reason = np.full((1, 3, 8), np.nan, F), "OpenVINO's plugin gives zeros where the specification is silent"
    yield _case("none-count", (1, 3, 8), (1, 4, 8), (1, 4, 8), np.zeros((1, 4), bool), expected=nan, reason=reason)
    unknown = rng.standard_normal((1, 3, 8)).astype(F)
    unknown[0, 1] = np.nan
    yield _case("nan", unknown, (1, 4, 8), (1, 4, 8), heads=1, expected=_numpy, reason="OpenVINO's plugin has no NaN")
    keys, kept = rng.standard_normal((1, 21, 8)).astype(F), np.arange(21) != 18
    keys[0, 18, 2] = INF
    yield _case(
        "kept-infinite", (1, 3, 8), keys, (1, 21, 8), kept[None], heads=1, expected=_numpy, reason="OpenVINO adds -infinity"
    )
    for name, batch, queries, keys, reason in (
        ("no-rows", 0, 3, 4, "OpenVINO's plugin compiles no batch of none"),
        ("no-queries", 2, 0, 4, ""),
        ("no-keys", 2, 3, 0, "OpenVINO's plugin does not write the result, or crashes"),
    ):
        given = {"expected": np.zeros((batch, queries, 8), F), "reason": reason} if reason else {}
        q, k, v = ((batch, tokens, 8) for tokens in (queries, keys, keys))
        yield _case(name, q, k, v, **given)
        yield _case(f"{name}-mask", q, k, v, np.zeros((queries, keys), F), 4, **given)
        yield _case(f"{name}-shared", q, (*k[:2], 4), (*v[:2], 4), None, 4, 2, **given)
    yield _case("error-heads", (1, 3, 8), (1, 4, 8), (1, 4, 8), None, 3, error="Q, K and V have the shapes")
    yield _case("error-keys", (1, 3, 8), (1, 4, 8), (1, 5, 8), error="Q, K and V have the shapes")
    yield _case("error-sizes", (1, 3, 8), (1, 4, 6), (1, 4, 8), error="Q, K and V have the shapes")
    yield _case("error-mask", (1, 3, 8), (1, 4, 8), (1, 4, 8), np.zeros((3, 5), F), error="attn_mask has the shape")
    yield _case("error-shared", (1, 3, 12), (1, 4, 8), (1, 4, 8), None, 3, 2, error="q_num_heads = 3 is not a multiple")


def _numpy(Q, K, V, attn_mask=True):
    scores = Q.astype(np.float64) @ K.astype(np.float64).swapaxes(1, 2) / np.sqrt(Q.shape[-1])
    shares = np.where(attn_mask, np.exp(scores), 0)
    return (shares / shares.sum(-1, keepdims=True) @ V).astype(F)


CASES = [*_cases()]
