"""ScaledDotProductAttentionWithKVCache: attention with a cache of keys and values, which it extends."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import operator


@operator(
    inputs={
        "query": "T",
        "key": "T",
        "value": "T",
        "past_key": "T",
        "past_value": "T",
        "attention_mask": "T",
        "beam_idx": "T_B",
        "past_length": "tensor(int64)",
        "sink": "T",
    },
    outputs={"Y": "T", "present_key": "T", "present_value": "T"},
    types={"T": ("float",), "T_B": ("int32", "int64")},
)
def ScaledDotProductAttentionWithKVCache(
    query,
    key,
    value,
    past_key,
    past_value,
    attention_mask=None,
    beam_idx=None,
    past_length=None,
    sink=None,
    *,
    scale: float,
    softcap: float = 0.0,
    mask_replaces: int = 0,
):
    """Computes attention over a cache of keys and values, and adds the keys and values of this run's tokens to the cache.

    The result is ``Softmax(query @ keys * scale + attention_mask) @ values``. The memory of the cache may have room for
    more tokens than it contains; ``past_length`` is then the number of valid tokens. If a caller binds the same memory to
    an input and the corresponding output of the cache, the cache is extended in place, without a copy.

    Inputs:
        query: ``[batch, heads, sequence, size]``.
        key: ``[batch, groups, sequence, size]``, the keys of this run's tokens. Each group serves ``heads / groups``
            heads.
        value: ``[batch, groups, sequence, value size]``.
        past_key: ``[rows, groups, room, size]``.
        past_value: ``[rows, groups, room, value size]``.
        attention_mask: ``[batch or 1, heads or 1, sequence or 1, past_length + sequence]``, added to the scores. If omitted,
            there is no mask. A score to which -1e30 or less is added may be ignored if the token has other scores.
        beam_idx: ``[batch]``, the row of the cache that each row continues, in ``[-rows, rows)``. If omitted, each row
            continues its own. An empty cache may have any number of rows.
        past_length: a scalar, at most ``room``. ``room`` if omitted.
        sink: ``[heads]``, an additional attention score per head, without a value.

    Attributes:
        scale: the factor of the scores.
        softcap: replaces each score ``x`` by ``softcap * tanh(x / softcap)`` before the mask is added. 0 means no softcap.
        mask_replaces: 1: numbers of -1e30 or less in ``attention_mask`` replace the scores, which may be infinite or NaN. 0:
            all numbers are added.

    Outputs:
        Y: ``[batch, heads, sequence, value size]``; 0 where all scores are ``-inf`` after the mask is added.
        present_key, present_value: ``[batch, groups, max(room, past_length + sequence), size]``, the cache with this
            run's tokens from ``past_length`` on.

    Source: the node of this name in OpenVINO's CPU plugin, which replaces ReadValue, Gather, Concat,
    ScaledDotProductAttention and Assign.
    """
    name = "ScaledDotProductAttentionWithKVCache"
    room = past_key.shape[2] if past_key.ndim == 4 else 0
    length = room if past_length is None else int(past_length.reshape(()))
    _check(name, query, key, value, past_key, past_value, attention_mask, beam_idx, length)
    if sink is not None and sink.shape != query.shape[1:2]:
        raise ValueError(f"{name}: sink has the shape {list(sink.shape)} instead of [{query.shape[1]}]")
    present_key, present_value = (
        _extended(past, new, beam_idx, length) for past, new in ((past_key, key), (past_value, value))
    )
    total, times = length + key.shape[2], query.shape[1] // key.shape[1] if key.shape[1] else 1
    keys, values = (np.repeat(whole[:, :, :total], times, axis=1) for whole in (present_key, present_value))
    with np.errstate(invalid="ignore", over="ignore"):
        products = np.matmul(query, np.swapaxes(keys, 2, 3)) * np.float32(scale)
        if softcap:
            products = np.tanh(products / np.float32(softcap)) * np.float32(softcap)
        if attention_mask is not None:
            masked = products + attention_mask
            replaced = attention_mask <= _HIDDEN if mask_replaces else False
            products = np.where(replaced, attention_mask, masked)
        if sink is not None:
            column = np.broadcast_to(sink[:, None, None], (*products.shape[:3], 1))
            products = np.concatenate([products, column], axis=-1)
        hidden = np.all(products == -np.inf, axis=-1, keepdims=True)
        weights = np.exp(products - products.max(axis=-1, keepdims=True, initial=-np.inf))
        weights = np.where(hidden, np.float32(0), weights / weights.sum(axis=-1, keepdims=True))[..., :total]
    return np.matmul(weights, values), present_key, present_value


_HIDDEN = np.float32(-1e30)


def _check(name, query, key, value, past_key, past_value, mask, beams, length) -> None:
    inputs = {"query": query, "key": key, "value": value, "past_key": past_key, "past_value": past_value}
    for what, array in inputs.items():
        if array.ndim != 4:
            raise ValueError(f"{name}: {what} has the shape {list(array.shape)}; expected [batch, heads, tokens, size]")
    batch, heads, sequence, size = query.shape
    groups = key.shape[1]
    if key.shape != (batch, groups, sequence, size) or value.shape[:3] != key.shape[:3]:
        raise ValueError(f"{name}: {_shapes(query=query, key=key, value=value)} do not match")
    if heads and (not groups or heads % groups):
        raise ValueError(f"{name}: {heads} query heads are not a multiple of {groups} key heads")
    room = past_key.shape[2]
    if past_key.shape[1::2] != key.shape[1::2] or past_value.shape[1::2] != value.shape[1::2] or (
        past_key.shape[:3] != past_value.shape[:3]
    ):  # fmt: skip
        shapes = _shapes(key=key, value=value, past_key=past_key, past_value=past_value)
        raise ValueError(f"{name}: {shapes} do not match")
    if not 0 <= length <= room:
        raise ValueError(f"{name}: past_length = {length} is out of range [0, {room}]")
    if beams is not None and beams.shape != (batch,):
        raise ValueError(f"{name}: beam_idx has the shape {list(beams.shape)} instead of [{batch}]")
    rows = past_key.shape[0]
    if room and beams is None and rows != batch:
        raise ValueError(f"{name}: the cache has {rows} rows instead of {batch}")
    if room and beams is not None and ((beams < -rows) | (beams >= rows)).any():
        raise ValueError(f"{name}: beam_idx has a number out of [{-rows}, {rows})")
    if mask is not None:
        whole = (batch, heads, sequence, length + sequence)
        fits = mask.ndim == 4 and mask.shape[3] == whole[3]
        if not fits or any(d not in (1, w) for d, w in zip(mask.shape, whole, strict=True)):
            raise ValueError(f"{name}: attention_mask has the shape {list(mask.shape)} instead of {list(whole)}")


def _shapes(**arrays: np.ndarray) -> str:
    return ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())


def _extended(past: np.ndarray, new: np.ndarray, beams: np.ndarray | None, length: int) -> np.ndarray:
    """Append this run's tokens to the first ``length`` tokens of the cache."""
    batch, groups, sequence, size = new.shape
    room = past.shape[2]
    whole = np.empty((batch, groups, max(room, length + sequence), size), new.dtype)
    if room:
        whole[:, :, :room] = past if beams is None else past[beams]
    whole[:, :, length : length + sequence] = new
    return whole


@ScaledDotProductAttentionWithKVCache.infer_shapes
def _(node):
    query, key, value = node.shape(0), node.shape(1), node.shape(2)
    if any(shape is None or len(shape) != 4 for shape in (query, key, value)):
        return [None, None, None]
    caches = [[*shape[:2], None, shape[3]] for shape in (key, value)]
    return [[*query[:3], value[3]], *caches]


@ScaledDotProductAttentionWithKVCache.body
def _(
    op,
    query,
    key,
    value,
    past_key,
    past_value,
    attention_mask,
    beam_idx,
    past_length,
    sink,
    *,
    scale,
    softcap,
    mask_replaces,
):
    sequence, room = op.Shape(key, start=2, end=3), op.Shape(past_key, start=2, end=3)
    length = room if past_length is None else op.Reshape(past_length, [1])
    beyond = op.Or(op.Less(length, 0), op.Greater(length, room))
    length = required(op, "ScaledDotProductAttentionWithKVCache: past_length must be in the cache", beyond, length)
    total = op.Add(length, sequence)
    as_it_is = op.Equal(length, room)
    if beam_idx is not None:
        beams = op.Cast(beam_idx, to=Type.INT64)
        own = op.Range(0, op.Squeeze(op.Shape(beams), [0]), 1)
        moved = op.ReduceSum(op.Cast(op.Not(op.Equal(beams, own)), to=Type.INT64), keepdims=1)
        every = op.Equal(op.Shape(beams), op.Shape(past_key, start=0, end=1))
        as_it_is = op.And(as_it_is, op.And(every, op.Equal(moved, 0)))
    as_it_is, is_first = op.Squeeze(as_it_is, [0]), op.Squeeze(op.Equal(room, 0), [0])

    def extended(op, past, new):
        def chosen(op):
            taken = past if beam_idx is None else op.Gather(past, beams, axis=0)
            held = op.Slice(taken, [0], length, [2])
            return op.Concat(held, new, op.Slice(taken, total, [2**62], [2]), axis=2)

        def longer(op):
            return op.if_(as_it_is, lambda op: op.Concat(past, new, axis=2), chosen)

        return op.if_(is_first, lambda op: op.Identity(new), longer)

    present_key, present_value = extended(op, past_key, key), extended(op, past_value, value)
    visible_keys, visible_values = present_key, present_value
    if past_length is not None:
        visible_keys, visible_values = (op.Slice(x, [0], total, [2]) for x in (present_key, present_value))
    # [batch, groups, heads of a group, ...]: the heads of a group share a key and value.
    batch, heads, groups = op.Shape(query, start=0, end=1), op.Shape(query, start=1, end=2), op.Shape(key, start=1, end=2)
    times = op.Max(op.Div(heads, op.Max(groups, 1)), 1)
    leading = op.Concat(batch, groups, times, sequence, axis=0)
    grouped = op.Reshape(query, op.Concat(leading, op.Shape(query, start=3), axis=0), allowzero=1)
    products = op.MatMul(grouped, op.Transpose(op.Unsqueeze(visible_keys, [2]), perm=[0, 1, 2, 4, 3]))
    products = op.Mul(products, scale)
    if softcap:
        products = op.Mul(op.Tanh(op.Div(products, softcap)), softcap)
    products = op.Reshape(products, op.Concat(batch, heads, sequence, total, axis=0), allowzero=1)
    if attention_mask is not None:
        masked = op.Add(products, attention_mask)
        replaced = op.LessOrEqual(attention_mask, _HIDDEN) if mask_replaces else None
        products = masked if replaced is None else op.Where(replaced, attention_mask, masked)
    if sink is not None:
        column = op.Expand(op.Reshape(sink, [1, -1, 1, 1]), op.Concat(batch, heads, sequence, [1], axis=0))
        products = op.Concat(products, column, axis=-1)
    counts = op.Cast(op.Not(op.Equal(products, -np.inf)), to=Type.FLOAT)
    is_hidden = op.Equal(op.ReduceSum(counts, [-1], keepdims=1), 0.0)
    weights = op.Where(is_hidden, 0.0, op.Softmax(products, axis=-1))
    if sink is not None:
        weights = op.Slice(weights, [0], total, [3])
    weights = op.Reshape(weights, op.Concat(leading, total, axis=0), allowzero=1)
    mixed = op.MatMul(weights, op.Unsqueeze(visible_values, [2]))
    mixed = op.Reshape(mixed, op.Concat(batch, heads, sequence, op.Shape(value, start=3), axis=0), allowzero=1)
    return mixed, present_key, present_value
