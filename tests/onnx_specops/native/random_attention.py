"""Random nodes of GroupQueryAttentionCompressed: first and later runs, any head size, shorter rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_specops.domain import find
from tests.onnx_specops.native.nodes import Node, element_type

_SIZES = (1, 2, 7, 8, 16, 24, 33, 64, 80, 128, 192)


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def cache_of(floats: np.ndarray, type_: Any) -> np.ndarray:
    """Convert ``[batch, heads, tokens, size]`` to the operator's cache with its NumPy kernel."""
    batch, heads, tokens, size = floats.shape
    rows = floats.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * size)
    empty = np.zeros((batch, heads, 0, size + 4 if type_ == np.uint8 else size), type_)
    counted = np.full(batch, tokens - 1, np.int32), np.int32([tokens])
    attributes = {"num_heads": heads, "kv_num_heads": heads}
    operator = find("GroupQueryAttentionCompressed")
    return operator(rows, rows, rows, empty, empty, *counted, **operator.node_attributes(attributes))[1]


def group_query_attention_compressed(rng: np.random.Generator) -> Node:
    type_, size, is_first = _pick(rng, (np.uint8, np.float16)), int(_pick(rng, _SIZES)), rng.random() < 0.4
    groups, batch = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    heads = groups * int(rng.integers(1, 6))
    sequence = int(_pick(rng, (1, 2, 5, 17, 70, 130) if is_first else (1, 1, 1, 2, 3, 9, 40)))
    past = 0 if is_first else int(_pick(rng, (1, 5, 63, 65, 128, 200, 700)))
    room, total = past + int(_pick(rng, (0, 1, sequence, sequence + 9))), past + sequence
    lengths = np.full(batch, total - 1, np.int32)
    if not is_first:
        lengths[:-1] -= rng.integers(0, past + 1, batch - 1).astype(np.int32)
    arrays: list[np.ndarray | None] = [_normal(rng, batch, sequence, n * size) for n in (heads, groups, groups)]
    if room:
        arrays += [cache_of(_normal(rng, batch, groups, room, size), type_) for _ in range(2)]
    else:
        arrays += [np.zeros((batch, groups, 0, size + 4 if type_ == np.uint8 else size), type_) for _ in range(2)]
    arrays += [lengths, np.array(total, np.int32), None, None, None]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    if size > 1 and rng.random() < 0.5:
        # Angles whose rotation is exact, so that the caches are equal byte for byte.
        quarters = rng.integers(0, 4, (total + 3, int(rng.integers(1, size // 2 + 1))))
        arrays[7:9] = [np.float32([1, 0, -1, 0])[quarters], np.float32([0, 1, 0, -1])[quarters]]
        attributes["rotary_interleaved"] = int(rng.integers(2))
    if rng.random() < 0.3:
        arrays[9] = _normal(rng, heads)
    if rng.random() < 0.3:
        attributes["local_window_size"] = int(_pick(rng, (1, 3, 64, 100)))
    if rng.random() < 0.3:
        attributes |= {"softcap": 3.0, "scale": 0.37}
    cache = element_type(arrays[3])
    return "GroupQueryAttentionCompressed", arrays, [1, cache, cache], attributes
