"""GroupQueryAttentionCompressed: causal attention with a cache of quantized keys and values, which it extends."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.contrib.group_query_attention import GroupQueryAttention, extended, first_slots, rotated
from onnx_specops.domain import check_size, operator
from onnx_specops.heads import join_heads, split_heads
from onnx_specops.ops._checks import scalar

_HEADS = Limits(1, 65536)

TAIL = 4
"""The bytes after the elements of a uint8 row: its step and its minimum, two little-endian float16."""

_LARGEST = 65504.0  # the largest float16
_NAN = 0x7E00  # NaN as float16


@operator(
    inputs={
        "query": "tensor(float)", "key": "tensor(float)", "value": "tensor(float)", "past_key": "T_CACHE",
        "past_value": "T_CACHE", "seqlens_k": "tensor(int32)", "total_sequence_length": "tensor(int32)",
        "cos_cache": "tensor(float)", "sin_cache": "tensor(float)", "head_sink": "tensor(float)",
    },
    outputs={"output": "tensor(float)", "present_key": "T_CACHE", "present_value": "T_CACHE"},
    types={"T_CACHE": ("float16", "uint8")},
)  # fmt: skip
def GroupQueryAttentionCompressed(
    query,
    key,
    value,
    past_key,
    past_value,
    seqlens_k,
    total_sequence_length,
    cos_cache=None,
    sin_cache=None,
    head_sink=None,
    *,
    num_heads: Annotated[int, _HEADS],
    kv_num_heads: Annotated[int, _HEADS],
    scale: float = 0.0,
    softcap: float = 0.0,
    local_window_size: Annotated[int, Limits(-1)] = -1,
    rotary_interleaved: Annotated[int, Limits(0, 1)] = 0,
):
    """Computes causal attention like ONNX Runtime's GroupQueryAttention, with a compressed cache of keys and values.

    The keys and values of this run's tokens are used uncompressed. The cache stores the keys and values of earlier runs as
    follows:

    - float16: rounded to the nearest number;
    - uint8: ``minimum + step * code``. Each row (the key or the value of one token in one head) has its own 256 steps
      from its smallest to its largest element. ``step`` (rounded up) and ``minimum`` (rounded down) are float16. They
      follow the codes of the row, ``step`` first, in 4 bytes. A row with an element outside the range of float16 becomes
      NaN.

    Inputs:
        query: ``[batch, sequence, num_heads * head size]``.
        key, value: ``[batch, sequence, kv_num_heads * head size]``.
        past_key, past_value: ``[batch, kv_num_heads, past sequence, head size]``; for uint8 the last dimension is the
            head size plus 4. The past sequence may be longer than the number of cached tokens, up to the size of the
            allocated memory.
        seqlens_k: ``[batch]``, the number of tokens of each row, minus one. The tokens of this run follow the tokens in the
            cache. In the first run, where ``total_sequence_length`` equals the number of tokens of the run, they are the
            first tokens in the cache, and the padding of shorter rows is undefined.
        total_sequence_length: a scalar or ``[1]``, the largest number of tokens of a row.
        cos_cache, sin_cache: ``[positions, pairs]``, with at most half the head size of pairs: the rotation of queries
            and keys at each position. If omitted, there is no rotation.
        head_sink: ``[num_heads]``, an additional attention score per head, without a value.

    Attributes:
        num_heads, kv_num_heads: the number of query heads, and of key and value heads. Each key and value head serves
            ``num_heads / kv_num_heads`` query heads.
        scale: the factor of the scores; 0 means ``1 / sqrt(head size)``.
        softcap: replaces each score by ``softcap * tanh(score / softcap)``. 0 means no softcap.
        local_window_size: the number of tokens to which each token attends, including itself. -1 means all previous tokens.
        rotary_interleaved: whether the rotation combines adjacent elements. If not, it combines elements of the two halves.

    Outputs:
        output: ``[batch, sequence, num_heads * head size]``.
        present_key, present_value: the cache with the keys and values of this run. Its length is the larger of the past
            sequence and the total sequence. If it shares the memory of the past, the cache is extended in place.

    Source: ONNX Runtime, docs/ContribOperators.md, GroupQueryAttention; the uint8 format: OpenVINO's CPU plugin,
    KV_CACHE_PRECISION.
    """
    total = int(scalar(total_sequence_length, f"{_NAME}: total_sequence_length"))
    size, sequence = _check(query, key, value, past_key, past_value, num_heads, kv_num_heads, total)
    begin = _begins(seqlens_k, len(query), sequence, total, past_key.shape[2])
    queries, keys, values = (_in_heads(x, n) for x, n in ((query, num_heads), (key, kv_num_heads), (value, kv_num_heads)))
    positions = begin[:, None] + np.arange(sequence)
    if cos_cache is not None or sin_cache is not None:
        _check_rotation(cos_cache, sin_cache, positions, size)
        queries, keys = (
            _rotated(x, cos_cache[positions], sin_cache[positions], rotary_interleaved) for x in (queries, keys)
        )
    if head_sink is not None and head_sink.shape != (num_heads,):
        raise ValueError(f"{_NAME}: head_sink has the shape {list(head_sink.shape)} instead of [{num_heads}]")
    room = max(past_key.shape[2], total)
    shape = (*past_key.shape[:2], room, past_key.shape[3])
    check_size(f"{_NAME}: the cache", int(np.prod(shape)), [query, key, value, past_key, past_value])
    presents = np.zeros(shape, past_key.dtype), np.zeros(shape, past_key.dtype)
    mixed = np.zeros((*queries.shape[:3], size), np.float32)
    for row, first in enumerate(begin):
        floats = []
        for past, new, present in zip((past_key, past_value), (keys, values), presents, strict=True):
            present[row, :, :first] = past[row, :, :first]
            present[row, :, first : first + sequence] = _encoded(new[row], past.dtype)
            floats.append(np.concatenate([_decoded(past[row, :, :first], size), new[row]], axis=1))
        slots = np.arange(first + sequence)
        last = positions[row][:, None]
        seen = slots <= np.minimum(last, seqlens_k[row])
        if local_window_size > 0:
            seen &= slots > last - local_window_size
        for head in range(num_heads):
            group = head // (num_heads // kv_num_heads)
            products = queries[row, head] @ floats[0][group].T * (np.float32(scale) or np.float32(size**-0.5))
            if softcap > 0:
                products = np.tanh(products / np.float32(softcap)) * np.float32(softcap)
            sink = -np.inf if head_sink is None else head_sink[head]
            mixed[row, head] = _attend(np.where(seen, products, -np.inf), floats[1][group], np.float32(sink))
    return mixed.transpose(0, 2, 1, 3).reshape(query.shape), *presents


_NAME = "GroupQueryAttentionCompressed"


def _check(query, key, value, past_key, past_value, num_heads, kv_num_heads, total) -> tuple[int, int]:
    """Check the inputs; return the head size and the number of tokens in the run."""
    if num_heads % kv_num_heads:
        raise ValueError(f"{_NAME}: num_heads = {num_heads} is not a multiple of kv_num_heads = {kv_num_heads}")
    if query.ndim != 3 or query.shape[2] % num_heads or not query.shape[2]:
        raise ValueError(
            f"{_NAME}: query has the shape {list(query.shape)}; expected [batch, tokens, {num_heads} * head size]"
        )
    batch, sequence, width = query.shape
    size = width // num_heads
    wanted = (batch, sequence, kv_num_heads * size)
    if key.shape != wanted or value.shape != key.shape:
        shapes = f"{list(key.shape)} and {list(value.shape)}; expected {list(wanted)}"
        raise ValueError(f"{_NAME}: key and value have the shapes {shapes}")
    elements = size + TAIL if past_key.dtype == np.uint8 else size
    fits = past_key.ndim == 4 and past_key.shape == (batch, kv_num_heads, past_key.shape[2], elements)
    if not fits or past_value.shape != past_key.shape:
        shapes = f"{list(past_key.shape)} and {list(past_value.shape)}"
        expected = f"[{batch}, {kv_num_heads}, slots, {elements}]"
        raise ValueError(f"{_NAME}: past_key and past_value have the shapes {shapes}; expected {expected}")
    if total < sequence:
        raise ValueError(f"{_NAME}: total_sequence_length = {total} is less than the {sequence} tokens of the run")
    return size, sequence


def _begins(seqlens_k, batch, sequence, total, room) -> np.ndarray:
    """Return the slot of each row's first token."""
    if seqlens_k.shape != (batch,):
        raise ValueError(f"{_NAME}: seqlens_k has the shape {list(seqlens_k.shape)} instead of [{batch}]")
    lengths = seqlens_k.astype(np.int64) + 1
    begin = np.zeros_like(lengths) if total == sequence else lengths - sequence
    if (bad := np.flatnonzero((lengths < 1) | (lengths > total) | (begin < 0))).size:
        at = f"seqlens_k[{bad[0]}] = {seqlens_k[bad[0]]}"
        raise IndexError(f"{_NAME}: {at} is out of range for {total} tokens, {sequence} of them new")
    if (bad := np.flatnonzero(begin > room)).size:
        at = f"seqlens_k[{bad[0]}] = {seqlens_k[bad[0]]}"
        raise IndexError(f"{_NAME}: {at} is out of range: the cache has room for {room} tokens")
    return begin


def _check_rotation(cos_cache, sin_cache, positions, size) -> None:
    shape, other = ([] if cache is None else list(cache.shape) for cache in (cos_cache, sin_cache))
    if len(shape) != 2 or other != shape or 2 * shape[1] > size:
        shapes = f"{shape} and {other} for heads of {size} elements"
        raise ValueError(f"{_NAME}: cos_cache and sin_cache have the shapes {shapes}")
    if positions.size and positions.max() >= shape[0]:
        raise IndexError(f"{_NAME}: position {positions.max()} is out of range of the cos_cache's {shape[0]}")


def _in_heads(x, heads):
    """Reshape ``[batch, sequence, heads * size]`` to ``[batch, heads, sequence, size]``."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _rotated(x, cosine, sine, interleaved):
    """Rotate pairs of elements of ``x`` by position; ``cosine`` and ``sine`` are ``[batch, sequence, pairs]``."""
    pairs = cosine.shape[-1]
    first, second = (
        (np.s_[..., 0 : 2 * pairs : 2], np.s_[..., 1 : 2 * pairs : 2])
        if interleaved
        else (np.s_[..., :pairs], np.s_[..., pairs : 2 * pairs])
    )
    cosine, sine = cosine[:, None], sine[:, None]
    rotated = x.copy()
    rotated[first] = x[first] * cosine - x[second] * sine
    rotated[second] = x[first] * sine + x[second] * cosine
    return rotated


def _attend(products, values, sink):
    """Return the values weighted by the softmax of the attention scores and a sink."""
    with np.errstate(invalid="ignore"):
        largest = np.maximum(products.max(axis=-1, keepdims=True), sink)
        weights = np.exp(products - largest)
        return weights @ values / (weights.sum(axis=-1, keepdims=True) + np.exp(sink - largest))


def _encoded(x, dtype):
    """Encode keys or values ``[..., size]`` as rows of the cache."""
    if dtype == np.float16:
        with np.errstate(over="ignore"):
            return x.astype(np.float16)
    fits = (np.abs(x) <= _LARGEST).all(axis=-1, keepdims=True)
    x = np.where(fits, x, np.float32(0))
    least = x.min(axis=-1, keepdims=True)
    near = least.astype(np.float16)
    below = np.nextafter(near, np.float16(-np.inf), out=near.copy(), where=near > least)
    least = below + np.float16(0)  # turns -0 into 0
    base = least.astype(np.float32)
    step = (x.max(axis=-1, keepdims=True) - base) / np.float32(255)
    near = step.astype(np.float16)
    step = np.nextafter(near, np.float16(np.inf), out=near.copy(), where=near < step)
    wide = step.astype(np.float32)
    codes = np.divide(x - base, wide, out=np.zeros_like(x), where=wide > 0)
    tail = np.concatenate([step, least], axis=-1)
    tail = np.where(fits, tail, np.uint16(_NAN).view(np.float16))
    return np.concatenate([np.minimum(np.rint(codes), 255).astype(np.uint8), tail.view(np.uint8)], axis=-1)


def _decoded(rows, size):
    """Decode rows of the cache to floats ``[..., size]``."""
    if rows.dtype == np.float16:
        return rows.astype(np.float32)
    tail = np.ascontiguousarray(rows[..., size:]).view(np.float16).astype(np.float32)
    return rows[..., :size] * tail[..., :1] + tail[..., 1:]


@GroupQueryAttentionCompressed.infer_shapes
def _(node):
    caches = [None if past is None or len(past) != 4 else [past[0], past[1], None, past[3]] for past in
              (node.shape(3), node.shape(4))]  # fmt: skip
    return [node.shape(0), *caches]


_FLOAT, _UINT8, _INT64, _FLOAT16 = 1, 2, 7, 10  # constants of onnx.TensorProto


@GroupQueryAttentionCompressed.body
def _(op, query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache, head_sink, *,
      num_heads, kv_num_heads, rotary_interleaved, **others):  # fmt: skip
    if (cos_cache is None) != (sin_cache is None):
        raise ValueError("cos_cache and sin_cache must be given together")
    sequence = op.Shape(query, start=1, end=2)
    total = op.Reshape(op.Cast(total_sequence_length, to=_INT64), [1])
    lengths = op.Cast(seqlens_k, to=_INT64)
    begin = first_slots(op, lengths, sequence, total, past_key)
    queries, keys, values = (
        split_heads(op, query, num_heads),
        split_heads(op, key, kv_num_heads),
        split_heads(op, value, kv_num_heads),
    )
    if cos_cache is not None:
        positions = op.Add(op.Unsqueeze(begin, [1]), op.Range(0, op.Squeeze(sequence, [0]), 1))
        cosine, sine = (op.Unsqueeze(op.Gather(cache, positions), [1]) for cache in (cos_cache, sin_cache))
        queries, keys = (rotated(op, x, cosine, sine, rotary_interleaved) for x in (queries, keys))
    size = op.Div(op.Shape(query, start=2, end=3), num_heads)
    floats = [_decoded_body(op, op.Slice(past, [0], total, [2]), size) for past in (past_key, past_value)]
    tokens = [join_heads(op, x) for x in (queries, keys, values)]
    inputs = *tokens, *floats, seqlens_k, total_sequence_length, None, None, None, None, head_sink
    attributes = {"num_heads": num_heads, "kv_num_heads": kv_num_heads, **others}
    width = query.shape[2] if query.rank == 3 else None
    if isinstance(width, int) and width // num_heads % 8 == 0:  # a requirement of ONNX Runtime's kernel
        output, _, _ = op.contrib.GroupQueryAttention(*inputs, **attributes, outputs=3)
    else:
        emit = GroupQueryAttention.emit_body
        assert emit is not None
        output, _, _ = emit(op, *inputs, **attributes)
    presents = [
        extended(op, past, _encoded_body(op, new, past), begin, sequence, total)
        for past, new in ((past_key, keys), (past_value, values))
    ]
    return output, *presents


def _decoded_body(op, rows, size):
    if _is_float(rows):
        return op.Cast(rows, to=_FLOAT)
    # The upper byte of a float16 determines the start and the spacing of its range of numbers.
    upper = np.arange(256, dtype=np.uint16) << 8
    begins, following = (code.view(np.float16).astype(np.float32) for code in (upper, upper + 1))
    begins[~np.isfinite(begins)] = following[~np.isfinite(begins)] = np.nan
    steps = following - begins
    tail = op.Cast(op.Slice(rows, size, [2**62], [3]), to=_INT64)
    numbers = []
    for at in (0, 2):
        low, high = (op.Slice(tail, [at + i], [at + i + 1], [3]) for i in (0, 1))
        spread = op.Mul(op.Cast(low, to=_FLOAT), op.Gather(op.const(steps), high))
        numbers.append(op.Add(op.Gather(op.const(begins), high), spread))
    step, least = numbers
    return op.Add(op.Mul(op.Cast(op.Slice(rows, [0], size, [3]), to=_FLOAT), step), least)


def _encoded_body(op, x, past):
    if _is_float(past):
        return op.Cast(x, to=_FLOAT16)
    inside = op.Cast(op.LessOrEqual(op.Abs(x), _LARGEST), to=_INT64)
    fits = op.Equal(op.ReduceMin(inside, [3], keepdims=1), 1)
    x = op.Where(fits, x, 0.0)
    least = op.ReduceMin(x, [3], keepdims=1)
    near = op.Cast(op.Cast(least, to=_FLOAT16), to=_FLOAT)
    above = op.Greater(near, least)
    negative = op.Or(op.Less(near, 0.0), op.And(op.Equal(near, 0.0), above))
    one = op.Cast(above, to=_FLOAT)
    magnitude = op.Add(_half_code(op, op.Abs(near)), op.Where(negative, one, op.Neg(one)))
    least_code = op.Add(magnitude, op.Where(negative, 32768.0, 0.0))
    base = op.Mul(_half_value(op, magnitude), op.Where(negative, -1.0, 1.0))
    step = op.Div(op.Sub(op.ReduceMax(x, [3], keepdims=1), base), 255.0)
    near = op.Cast(op.Cast(step, to=_FLOAT16), to=_FLOAT)
    step_code = op.Add(_half_code(op, near), op.Cast(op.Less(near, step), to=_FLOAT))
    wide = _half_value(op, step_code)
    codes = op.Round(op.Div(op.Sub(x, base), op.Where(op.Greater(wide, 0.0), wide, 1.0)))
    tail = [part for code in (step_code, least_code) for part in _bytes(op, op.Where(fits, code, float(_NAN)))]
    return op.Cast(op.Concat(op.Min(codes, 255.0), *tail, axis=3), to=_UINT8)


_EXPONENTS = np.arange(30)  # the ranges of float16 with equal steps: up to 2^-13, 2^-12, ...


def _half_code(op, x):
    """Return the bits of non-negative float16 numbers as integers; ``x`` is ``[..., 1]``."""
    borders = (2.0 ** (_EXPONENTS[1:] - 14)).astype(np.float32)
    range_ = op.ReduceSum(op.Cast(op.GreaterOrEqual(x, borders), to=_INT64), [3], keepdims=1)
    steps = op.Gather(op.const((2.0 ** (24 - _EXPONENTS)).astype(np.float32)), range_)
    return op.Add(op.Mul(x, steps), op.Mul(op.Cast(range_, to=_FLOAT), 1024.0))


def _half_value(op, code):
    """Return the float16 numbers with these bits, as float32."""
    borders = (1024.0 * (_EXPONENTS[1:] + 1)).astype(np.float32)
    range_ = op.ReduceSum(op.Cast(op.GreaterOrEqual(code, borders), to=_INT64), [3], keepdims=1)
    steps = op.Gather(op.const((2.0 ** (_EXPONENTS - 24)).astype(np.float32)), range_)
    return op.Mul(op.Sub(code, op.Mul(op.Cast(range_, to=_FLOAT), 1024.0)), steps)


def _bytes(op, code):
    """Return the lower and the upper byte of a number."""
    upper = op.Floor(op.Div(code, 256.0))
    return [op.Sub(code, op.Mul(upper, 256.0)), upper]


def _is_float(value) -> bool:
    return value.dtype is not None and value.dtype.name == "FLOAT16"
