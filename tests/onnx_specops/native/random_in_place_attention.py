"""Random nodes of ScaledDotProductAttentionWithKVCache: all optional inputs, masks of all shapes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.onnx_specops.native.nodes import Node

F = np.float32
NAMES = ("query", "key", "value", "past_key", "past_value", "attention_mask", "beam_idx", "past_length", "sink")
LOWEST = np.finfo(F).min
SCALE = 0.25


def attention(rng: np.random.Generator) -> Node:
    """Return a node with its inputs in the order of `NAMES`."""

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(F)

    batch, groups, sequence = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 7, 20, 70]))
    heads, room, rows = groups * int(rng.integers(1, 4)), int(rng.choice([0, 1, 5, 63, 64, 130])), int(rng.integers(1, 5))
    size, value_size = int(rng.choice([1, 8, 16, 40, 65])), int(rng.choice([3, 16, 80]))
    has_beams = bool(rng.integers(2))
    rows = rows if has_beams or not room else batch
    inputs: dict[str, np.ndarray] = {
        "query": normal(batch, heads, sequence, size),
        "key": normal(batch, groups, sequence, size),
        "value": normal(batch, groups, sequence, value_size),
        "past_key": normal(rows, groups, room, size),
        "past_value": normal(rows, groups, room, value_size),
    }
    length = room
    if rng.integers(2):
        length = int(rng.integers(0, room + 1))
        inputs["past_length"] = np.array(length)
    if has_beams:
        beams = rng.integers(-rows if room else 0, rows, batch) if rng.integers(2) or rows != batch else np.arange(batch)
        inputs["beam_idx"] = beams.astype(rng.choice([np.int32, np.int64]))
    if rng.random() < 0.8:
        whole = (batch, heads, sequence, length + sequence)
        shape = [d if rng.random() < 0.6 else 1 for d in whole[:3]] + [whole[3]]
        seen = np.arange(whole[3]) <= length + np.arange(shape[2])[:, None]
        if rng.integers(2):
            seen &= np.arange(whole[3]) >= rng.integers(0, length + 1)
        mask = np.where(seen, 0, rng.choice([-np.inf, LOWEST]))
        inputs["attention_mask"] = (np.broadcast_to(mask, shape) + (normal(*shape) if rng.integers(2) else 0)).astype(F)
    if rng.random() < 0.3:
        inputs["sink"] = 3 * normal(heads)
    attributes = {"scale": SCALE, "softcap": 0.0 if rng.random() < 0.8 else 3.0, "mask_replaces": int(rng.integers(2))}
    arrays = [inputs.get(name) for name in NAMES]
    return "ScaledDotProductAttentionWithKVCache", arrays, [TensorProto.FLOAT] * 3, attributes
