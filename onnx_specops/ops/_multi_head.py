"""Shared code of the operators for multi-head attention. The heads of a token are adjacent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onnx_specops.heads import join_heads, split_heads

if TYPE_CHECKING:  # not needed for ``import onnx_specops``
    from onnx_specops.building import Builder, Value

LARGEST = 1 << 24
"""The maximum number of heads."""


def check(name: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, kv_heads: int) -> None:
    """Raise ``ValueError`` if the shapes of queries, keys, values and the numbers of heads contradict each other."""
    if heads % kv_heads:
        raise ValueError(f"{name}: q_num_heads = {heads} is not a multiple of kv_num_heads = {kv_heads}")
    fits = all(x.ndim == 3 for x in (q, k, v)) and not q.shape[2] % heads
    fits = fits and not k.shape[2] % kv_heads and not v.shape[2] % kv_heads
    fits = fits and q.shape[2] // heads == k.shape[2] // kv_heads
    if not (fits and q.shape[0] == k.shape[0] == v.shape[0] and k.shape[1] == v.shape[1]):
        raise ValueError(
            f"{name}: Q, K and V have the shapes {list(q.shape)}, {list(k.shape)} and {list(v.shape)}; expected "
            f"[batch, tokens, heads * size], {heads} heads in Q and {kv_heads} in K and V"
        )


def by_head(rows: np.ndarray, count: int, heads: int) -> np.ndarray:
    """Split rows with ``count`` heads, and repeat each head for the query heads that share it."""
    split = rows.reshape(rows.shape[0], rows.shape[1], count, rows.shape[2] // count).transpose(0, 2, 1, 3)
    return np.repeat(split, heads // count, axis=1)


def factor(scale: float, size: int) -> np.float32:
    """Return the factor of the scores for a head size."""
    return np.float32(scale or 1 / math.sqrt(max(size, 1)))


def attended(name: str, scores: np.ndarray, mask: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    """Return the rows of ``softmax(scores + mask) @ values`` for scores ``[batch, heads, queries, keys]``."""
    batch, heads, queries, keys = scores.shape
    width = heads * values.shape[-1]
    if mask is not None:
        whole = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        if whole.ndim != 4 or any(a not in (1, b) for a, b in zip(whole.shape, scores.shape, strict=True)):
            raise ValueError(
                f"{name}: attn_mask has the shape {list(mask.shape)}; expected a shape that broadcasts to "
                f"{list(scores.shape)}"
            )
        scores = np.where(whole, scores, np.float32(-np.inf)) if whole.dtype == bool else scores + whole
    if not keys:
        return np.zeros((batch, queries, width), np.float32)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        result = np.matmul(weights / weights.sum(axis=-1, keepdims=True), values)
    return result.transpose(0, 2, 1, 3).reshape(batch, queries, width).astype(np.float32)


def output_shape(
    q: list[int | str | None] | None, v: list[int | str | None] | None, *, q_num_heads: int, kv_num_heads: int, **_: object
) -> list[int | str | None] | None:
    """Return the shape of the result from the shapes of queries and values and a node's attributes."""
    heads, kv_heads = q_num_heads, kv_num_heads
    if q is None or v is None or len(q) != 3 or len(v) != 3:
        return None
    size = v[2]
    return [*q[:2], size * (heads // kv_heads) if isinstance(size, int) else size if heads == kv_heads else None]


def shared_heads(op: Builder, rows: Value, count: int, heads: int) -> Value:
    """Emit the split of rows with ``count`` heads, repeated for ``heads`` query heads."""
    split = split_heads(op, rows, count)
    if count == heads:
        return split
    each = op.Expand(op.Unsqueeze(split, [2]), [1, 1, heads // count, 1, 1])
    shape = op.Mul(op.Shape(split), [1, heads // count, 1, 1])
    return op.Reshape(each, shape, allowzero=1)


def emitted_factor(op: Builder, scale: float, rows: Value, heads: int, split: Value) -> Value | float:
    """Emit the factor of the scores of ``rows``, which have ``heads`` heads; ``split`` are the same rows by head."""
    if scale:
        return scale
    if rows.dims is not None and isinstance(rows.dims[-1], int):
        return 1 / math.sqrt(rows.dims[-1] // heads)
    return op.Reciprocal(op.Sqrt(op.Cast(op.Shape(split, start=3, end=4), to=1)))


def emitted(op: Builder, scores: Value, mask: Value | None, values: Value) -> Value:
    """Emit the rows of ``softmax(scores + mask) @ values``."""
    if mask is not None:
        is_bool = mask.dtype is not None and mask.dtype.name == "BOOL"
        scores = op.Where(mask, scores, -np.inf) if is_bool else op.Add(scores, mask)
    return join_heads(op, op.MatMul(op.Softmax(scores, axis=-1), values))
