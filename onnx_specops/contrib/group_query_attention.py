"""GroupQueryAttention: causal attention with a cache of keys and values, which it extends."""

from __future__ import annotations

import math
from typing import Annotated

from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.attributes import Limits
from onnx_specops.contrib.declaring import contrib_operator
from onnx_specops.domain import NoBodyError
from onnx_specops.heads import join_heads, split_heads

_HEADS = Limits(1, 65536)


@contrib_operator(
    inputs={
        "query": "T", "key": "T", "value": "T", "past_key": "T_CACHE", "past_value": "T_CACHE", "seqlens_k": "M",
        "total_sequence_length": "M", "cos_cache": "T", "sin_cache": "T", "position_ids": "tensor(int64)",
        "attention_bias": "T", "head_sink": "T",
    },
    outputs={"output": "T", "present_key": "T_CACHE", "present_value": "T_CACHE"},
    types={
        "T": ("float16", "bfloat16", "float"),
        "T_CACHE": ("float16", "bfloat16", "float", "uint8", "int8"),
        "M": ("int32",),
    },
    optional_outputs=2,
)  # fmt: skip
def GroupQueryAttention(
    op,
    query,
    key=None,
    value=None,
    past_key=None,
    past_value=None,
    seqlens_k=None,
    total_sequence_length=None,
    cos_cache=None,
    sin_cache=None,
    position_ids=None,
    attention_bias=None,
    head_sink=None,
    *,
    num_heads: Annotated[int, _HEADS],
    kv_num_heads: Annotated[int, _HEADS],
    scale: float = 0.0,
    softcap: float = 0.0,
    local_window_size: Annotated[int, Limits(-1)] = -1,
    do_rotary: Annotated[int, Limits(0, 1)] = 0,
    rotary_interleaved: Annotated[int, Limits(0, 1)] = 0,
    smooth_softmax: Annotated[int, Limits(-1, 1)] = 0,
    causal: Annotated[int, Limits(0, 1)] = 1,
    qk_output: Annotated[int, Limits(0, 2)] = 0,
    sliding_window_cache: Annotated[int, Limits(0, 1)] = 0,
    kv_cache_bit_width: Annotated[int, Limits(0, 8)] = 0,
    k_quant_type: str = "NONE",
    v_quant_type: str = "NONE",
    qk_norm_epsilon: float = 1e-6,
):
    """Computes causal attention in which groups of ``num_heads`` query heads share ``kv_num_heads`` key and value heads.

    Row b of a batch has ``seqlens_k[b] + 1`` tokens, including those of this run. The tokens of this run follow the tokens
    in the cache. In the first run, where ``total_sequence_length`` equals the number of tokens of the run, they are the
    first tokens in the cache.

    Inputs:
        query: [batch, sequence, num_heads * head size].
        key, value: [batch, sequence, kv_num_heads * head size].
        past_key, past_value: [batch, kv_num_heads, past sequence, head size]. The past sequence may be longer than the
            number of cached tokens, up to the size of the allocated memory.
        seqlens_k: [batch], the number of tokens of each row, minus one.
        total_sequence_length: a scalar, the largest number of tokens of a row.
        cos_cache, sin_cache: [positions, rotated part of the head size / 2], with ``do_rotary``: the rotation of queries
            and keys at each position.
        position_ids: not supported by the body. ONNX Runtime reads only its first number, in a first run.
        attention_bias: [batch or 1, num_heads or 1, sequence, total sequence], added to the scaled attention scores.
        head_sink: [num_heads], an additional attention score per head, without a value.

    Outputs:
        output: [batch, sequence, num_heads * head size].
        present_key, present_value: the cache with the keys and values of this run. Its length is the larger of the past
            sequence and the total sequence.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    if key is None or past_key is None or position_ids is not None:
        raise NoBodyError("the body does not support packed queries, position_ids, or a node without a cache")
    if (smooth_softmax, causal, qk_output, sliding_window_cache, k_quant_type, v_quant_type) != (0, 1, 0, 0, "NONE", "NONE"):
        raise NoBodyError("the body supports only the causal mask and a cache of floats without window, and no score output")
    sequence = op.Shape(query, start=1, end=2)
    total = op.Reshape(op.Cast(total_sequence_length, to=Type.INT64), [1])
    lengths = op.Cast(seqlens_k, to=Type.INT64)
    begin = first_slots(op, lengths, sequence, total, past_key)
    steps = op.Range(0, op.Squeeze(sequence, [0]), 1)
    positions = op.Add(op.Unsqueeze(begin, [1]), steps)  # [batch, sequence]
    queries, keys, values = (
        split_heads(op, query, num_heads),
        split_heads(op, key, kv_num_heads),
        split_heads(op, value, kv_num_heads),
    )
    if do_rotary:
        cosine, sine = (op.Unsqueeze(op.Gather(cache, positions), [1]) for cache in (cos_cache, sin_cache))
        queries, keys = (rotated(op, x, cosine, sine, rotary_interleaved) for x in (queries, keys))
    present_key, present_value = (
        extended(op, past, new, begin, sequence, total) for past, new in ((past_key, keys), (past_value, values))
    )
    visible_keys, visible_values = (op.Slice(whole, [0], total, [2]) for whole in (present_key, present_value))
    # [batch, kv heads, heads of a group, ...]: the heads of a group share a key and value.
    grouped = op.Reshape(queries, op.Concat([0, kv_num_heads, num_heads // kv_num_heads], sequence, [-1], axis=0))
    products = op.MatMul(grouped, op.Transpose(op.Unsqueeze(visible_keys, [2]), perm=[0, 1, 2, 4, 3]))
    products = op.Mul(products, _factor(op, query, num_heads) if scale == 0 else scale)
    if softcap > 0:
        products = op.Mul(op.Tanh(op.Div(products, softcap)), softcap)
    whole = op.Concat([0, num_heads], sequence, total, axis=0)
    products = op.Reshape(products, whole)
    if attention_bias is not None:
        products = op.Add(products, attention_bias)
    slots = op.Range(0, op.Squeeze(total, [0]), 1)
    last = op.Unsqueeze(positions, [1, 3])
    # In the first run, the padding of shorter rows attends to the row's tokens too.
    seen = op.LessOrEqual(slots, op.Min(last, op.Unsqueeze(lengths, [1, 2, 3])))
    if local_window_size > 0:
        seen = op.And(seen, op.Greater(slots, op.Sub(last, local_window_size)))
    products = op.Where(seen, products, op.CastLike(-math.inf, query))
    if head_sink is None:
        weights = op.Softmax(products, axis=-1)
    else:
        column = op.Concat(op.Shape(products, end=-1), [1], axis=0)
        sinks = op.Expand(op.Reshape(head_sink, [1, num_heads, 1, 1]), column)
        weights = op.Slice(op.Softmax(op.Concat(products, sinks, axis=-1), axis=-1), [0], [-1], [-1])
    weights = op.Reshape(weights, op.Concat([0, kv_num_heads, num_heads // kv_num_heads], sequence, total, axis=0))
    mixed = op.Reshape(
        op.MatMul(weights, op.Unsqueeze(visible_values, [2])), op.Concat([0, num_heads], sequence, [-1], axis=0)
    )
    return join_heads(op, mixed), present_key, present_value


def first_slots(op, lengths, sequence, total, past):
    """Return [batch], the slot of each row's first token; fails at run time if ``lengths`` (seqlens_k) is out of range."""
    begin = op.Where(op.Equal(total, sequence), 0, op.Sub(op.Add(lengths, 1), sequence))
    outside = op.Or(op.Less(lengths, 0), op.GreaterOrEqual(lengths, total))
    beyond = op.Or(op.Less(begin, 0), op.Greater(begin, op.Shape(past, start=2, end=3)))
    return required(op, "seqlens_k is out of range", op.Or(outside, beyond), begin)


def _factor(op, query, heads):
    """Return 1 / sqrt(head size)."""
    size = op.Div(op.Squeeze(op.Shape(query, start=2, end=3), [0]), heads)
    return op.Reciprocal(op.Sqrt(op.CastLike(size, query)))


def rotated(op, x, cosine, sine, interleaved):
    """Rotate pairs of an embedding's elements by the angle of their position; elements beyond the pairs are unchanged."""
    half = op.Shape(cosine, start=3, end=4)
    rotated, rest = op.Slice(x, [0], op.Mul(half, 2), [3]), op.Slice(x, op.Mul(half, 2), [2**62], [3])
    if interleaved:
        first, second = (op.Slice(rotated, [start], [2**62], [3], [2]) for start in (0, 1))
    else:
        first, second = op.Slice(rotated, [0], half, [3]), op.Slice(rotated, half, [2**62], [3])
    real = op.Sub(op.Mul(first, cosine), op.Mul(second, sine))
    imaginary = op.Add(op.Mul(first, sine), op.Mul(second, cosine))
    if interleaved:
        pairs = op.Concat(op.Unsqueeze(real, [4]), op.Unsqueeze(imaginary, [4]), axis=4)
        return op.Concat(op.Reshape(pairs, op.Shape(rotated)), rest, axis=3)
    return op.Concat(real, imaginary, rest, axis=3)


def extended(op, past, new, begin, sequence, total):
    """Write the new keys or values into the cache, from slot ``begin`` of each row."""
    held = op.Shape(past, start=2, end=3)
    length = op.Max(held, total)
    padding = op.Concat([0, 0, 0, 0, 0, 0], op.Sub(length, held), [0], axis=0)
    slots = op.Range(0, op.Squeeze(length, [0]), 1)
    source = op.Sub(slots, op.Unsqueeze(begin, [1]))  # [batch, length]
    old = op.Where(op.Unsqueeze(op.Less(source, 0), [1, 3]), op.Pad(past, padding), op.CastLike(0, past))
    is_new = op.And(op.GreaterOrEqual(source, 0), op.Less(source, sequence))
    index = op.Unsqueeze(op.Where(is_new, source, 0), [1, 3])
    taken = op.GatherElements(new, op.Expand(index, op.Shape(old)), axis=2)
    return op.Where(op.Unsqueeze(is_new, [1, 3]), taken, old)


@GroupQueryAttention.infer_shapes
def _(node):
    query, past_key, past_value = node.shape(0), node.shape(3), node.shape(4)
    caches = [
        None if past is None or len(past) != 4 else [past[0], past[1], None, past[3]] for past in (past_key, past_value)
    ]
    return [query, *caches]
