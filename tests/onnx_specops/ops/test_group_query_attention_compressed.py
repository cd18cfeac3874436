"""GroupQueryAttentionCompressed: its cache in every form, and agreement with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from onnx_specops.domain import find
from onnx_specops.runtime.library import has_library
from tests.onnx_specops.ops.one_node import RAISED, run

OPERATOR = "GroupQueryAttentionCompressed"
HEADS = {"num_heads": 4, "kv_num_heads": 2}
FORMS = ["numpy", "body", "reference", "python", *(["native"] if has_library() else [])]
TYPES = [np.uint8, np.float16]


def tokens(type_: Any, sequence: int, past: int, size: int = 16, batch: int = 1) -> dict[str, np.ndarray]:
    """Return the operator's inputs for new tokens after past ones, with capacity for three more."""
    rng = np.random.default_rng(sequence)
    query, key, value = (rng.standard_normal((batch, sequence, n * size), np.float32) for n in (4, 2, 2))
    caches = [encoded(rng.standard_normal((batch, 2, past + sequence + 3, size), np.float32), type_) for _ in range(2)]
    return {
        "query": query,
        "key": key,
        "value": value,
        "past_key": caches[0],
        "past_value": caches[1],
        "seqlens_k": np.full(batch, past + sequence - 1, np.int32),
        "total_sequence_length": np.array(past + sequence, np.int32),
    }


def encoded(floats: np.ndarray, type_: Any) -> np.ndarray:
    """Encode rows of a cache as documented: 256 steps from minimum to maximum."""
    if type_ == np.float16:
        return floats.astype(np.float16)
    least = np.float16(np.floor(floats.min(-1, keepdims=True) * 64) / 64)
    step = np.float16(np.ceil((floats.max(-1, keepdims=True) - least) * 8192 / 255) / 8192)
    codes = np.rint((floats - least) / step).astype(np.uint8)
    return np.concatenate([codes, step.view(np.uint8), least.view(np.uint8)], -1)


def decoded(rows: np.ndarray) -> np.ndarray:
    if rows.dtype == np.float16:
        return rows.astype(np.float32)
    step, least = np.split(np.ascontiguousarray(rows[..., -4:]).view(np.float16).astype(np.float32), 2, -1)
    return rows[..., :-4] * step + least


def by_onnx_runtime(inputs: dict[str, np.ndarray], attributes: dict[str, Any]) -> list[np.ndarray]:
    """Run ONNX Runtime's GroupQueryAttention with the cache as floats."""
    given = {name: decoded(array) if name.startswith("past") else array for name, array in inputs.items()}
    names = [*list(given)[:7], "cos_cache", "sin_cache"]
    node = helper.make_node(
        "GroupQueryAttention",
        [name if name in given else "" for name in names],
        ["output", "present_key", "present_value"],
        domain="com.microsoft",
        do_rotary=int("cos_cache" in given),
        **attributes,
    )
    described = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "graph", described, outputs)
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return ort.InferenceSession(model.SerializeToString()).run(None, given)


def turning(positions: int, pairs: int) -> dict[str, np.ndarray]:
    angles = np.arange(positions)[:, None] * np.float32(0.5) ** np.arange(pairs)
    return {"cos_cache": np.cos(angles).astype(np.float32), "sin_cache": np.sin(angles).astype(np.float32)}


CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "first": (5, 0, {}),
    "one-more": (1, 40, {}),
    "several-more": (3, 7, {}),
    "window": (3, 7, {"local_window_size": 4}),
    "softcap": (2, 7, {"softcap": 2.0, "scale": 0.7}),
    "rotary": (2, 7, {"rotary_interleaved": 0}),
    "rotary-interleaved": (2, 7, {"rotary_interleaved": 1}),
}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_group_query_attention_on_floats(name: str, form: str, type_: Any) -> None:
    sequence, past, attributes = CASES[name]
    inputs = tokens(type_, sequence, past)
    if "rotary_interleaved" in attributes:
        inputs |= turning(16, 8)
    wanted = by_onnx_runtime(inputs, {**HEADS, **attributes})
    got = run(form, OPERATOR, inputs, {**HEADS, **attributes})
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-3, atol=1e-5)
    for one, other, before in zip(got[1:], wanted[1:], (inputs["past_key"], inputs["past_value"]), strict=True):
        assert one.dtype == type_
        np.testing.assert_array_equal(one[:, :, :past], before[:, :, :past])
        new, rows = other[:, :, past : past + sequence], decoded(one[:, :, past : past + sequence])
        spread = new.max(-1, keepdims=True) - new.min(-1, keepdims=True)
        allowed = 2**-11 * np.abs(new) if type_ == np.float16 else 0.502 * (spread / 255 + 2**-10 * np.abs(new).max())
        assert (np.abs(rows - new) <= allowed + 1e-6).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_cache_encoding_of_special_rows(form: str) -> None:
    """Equal elements, zeros, tiny and large ones, one sign only; rows that float16 cannot represent become NaN."""
    size = 8
    rows = np.float32(
        [
            [0] * size,
            [-0.0] * size,
            [3] * size,
            [-1.0009] * size,
            np.linspace(100, 101, size),
            np.linspace(-1e-7, 1e-7, size),
            np.linspace(-65504, 65504, size),
            np.linspace(-7, -5, size),
            [-1e-9] * size,
        ]
    )
    beyond = np.float32([[65536, *[0] * 7], [np.nan, *[0] * 7], [-np.inf, *[0] * 7]])
    both = np.concatenate([rows, beyond])[None]
    count = both.shape[1]
    empty = np.zeros((1, 1, 0, size + 4), np.uint8)
    inputs = {
        "query": np.zeros_like(both), "key": both, "value": both, "past_key": empty, "past_value": empty,
        "seqlens_k": np.int32([count - 1]), "total_sequence_length": np.array(count, np.int32),
    }  # fmt: skip
    _, key, value = run(form, OPERATOR, inputs, {"num_heads": 1, "kv_num_heads": 1})
    np.testing.assert_array_equal(key, value)
    got = decoded(key)[0, 0]
    assert np.isnan(got[len(rows) :]).all()
    spread = rows.max(-1, keepdims=True) - rows.min(-1, keepdims=True)
    # The step is at least float16's smallest number, as is the rounding of the minimum.
    steps = spread / 255 + np.abs(rows.min(-1, keepdims=True)) * 2**-10 / 255 + 2**-23
    assert (np.abs(got[: len(rows)] - rows) <= 0.51 * steps).all()


KERNELS = [form for form in FORMS if form not in ("body", "reference")]
"""Forms that detect rows without such tokens; a body leaves that to the runtime's operators."""

NO_SUCH_TOKENS = [
    ({"seqlens_k": np.int32([-(1 << 30)])}, r"seqlens_k\[0\] = -1073741824 is out of range"),
    ({"seqlens_k": np.int32([99])}, r"seqlens_k\[0\] = 99 is out of range"),
    (
        {"seqlens_k": np.int32([98]), "total_sequence_length": np.array(99, np.int32)},
        r"seqlens_k\[0\] = 98 is out of range: the cache has room for 12 tokens",
    ),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("changed", "message"), NO_SUCH_TOKENS)
def test_invalid_numbers_of_tokens(form: str, changed: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(RAISED[form], match=message if form in KERNELS else None):
        run(form, OPERATOR, tokens(np.uint8, 2, 7) | changed, HEADS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("type_", [np.float16, np.uint8])
def test_rows_padded_on_the_left(form: str, type_: Any) -> None:
    """onnxruntime-genai's form encodes such rows with an impossible number of tokens."""
    with pytest.raises(RAISED[form], match="out of range" if form in KERNELS else None):
        run(form, OPERATOR, tokens(type_, 5, 0) | {"seqlens_k": np.int32([-(1 << 30)])}, HEADS)


NO_FIT = [
    (
        {"total_sequence_length": np.int32([9, 9])},
        r"total_sequence_length has the shape \[2\]; expected a scalar or \[1\]",
    ),
    ({"sin_cache": np.zeros((20, 8), np.float32)}, "cos_cache and sin_cache"),
    ({"head_sink": np.zeros(5, np.float32)}, r"head_sink has the shape \[5\] instead of \[4\]"),
]


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(("changed", "message"), NO_FIT)
def test_invalid_inputs(form: str, changed: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(RAISED[form], match=message):
        run(form, OPERATOR, tokens(np.uint8, 2, 7) | changed, HEADS)


def test_sines_without_cosines_have_no_body() -> None:
    with pytest.raises(RAISED["body"], match="cos_cache and sin_cache must be given together"):
        run("body", OPERATOR, tokens(np.uint8, 2, 7) | {"sin_cache": np.zeros((20, 8), np.float32)}, HEADS)


@pytest.mark.parametrize("form", FORMS)
def test_positions_outside_the_tables(form: str) -> None:
    message = "position 8 is out of range of the cos_cache's 5" if form in KERNELS else None
    with pytest.raises(RAISED[form], match=message):
        run(form, OPERATOR, tokens(np.uint8, 2, 7) | turning(5, 8), HEADS)


def test_invalid_shapes() -> None:
    operator = find(OPERATOR)
    inputs = tokens(np.uint8, 2, 7)
    for name, array, message in (
        ("past_key", inputs["past_key"][..., :-1], r"slots, 20\]"),
        ("key", inputs["key"][..., :-1], "key and value have the shapes"),
        ("query", inputs["query"][..., :-1], r"expected \[batch, tokens, 4 \* head size\]"),
        ("seqlens_k", np.int32([1, 2]), r"seqlens_k has the shape \[2\] instead of \[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            operator(*(inputs | {name: array}).values(), **operator.node_attributes(HEADS))
