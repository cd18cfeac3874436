"""Attention: multi-head attention. The heads of a token are adjacent in its row."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.heads import join_heads, split_heads

LARGEST = 1 << 24
"""The maximum number of heads."""


@operator(
    inputs={"Q": "T", "K": "T", "V": "T", "attn_mask": "U"},
    outputs={"Y": "T"},
    types={"T": ("float",), "U": ("float", "bool")},
)
def Attention(
    Q,
    K,
    V,
    attn_mask=None,
    *,
    q_num_heads: Annotated[int, Limits(1, LARGEST)],
    kv_num_heads: Annotated[int, Limits(1, LARGEST)],
    scale: float = 0.0,
):
    """Computes ``softmax(scale * Q @ K.T + attn_mask) @ V`` for each head, as ONNX's Attention-23 does for inputs of rank
    3.

    Inputs:
        Q: ``[batch, queries, q_num_heads * N]``.
        K: ``[batch, keys, kv_num_heads * N]``.
        V: ``[batch, keys, kv_num_heads * M]``.
        attn_mask: added to the scores. A boolean mask keeps the scores where it is true and sets the others to ``-inf``.
            Its shape broadcasts to that of the scores, ``[batch, q_num_heads, queries, keys]``.

    Attributes:
        q_num_heads: the number of query heads.
        kv_num_heads: the number of key and value heads. Consecutive groups of query heads share one.
        scale: the factor of the scores; 0 means ``1 / sqrt(N)``.

    Output: ``[batch, queries, q_num_heads * M]``. It is NaN where the mask excludes all keys, and 0 if there are no
    keys.

    Source: OpenVINO specification, ScaledDotProductAttention-13, and its decomposed forms; ONNX, Attention-23.
    """
    name = "Attention"
    if q_num_heads % kv_num_heads:
        raise ValueError(f"{name}: q_num_heads = {q_num_heads} is not a multiple of kv_num_heads = {kv_num_heads}")
    shapes = [x.shape for x in (Q, K, V)]
    fits = all(len(shape) == 3 for shape in shapes) and not Q.shape[2] % q_num_heads
    fits = fits and not K.shape[2] % kv_num_heads and not V.shape[2] % kv_num_heads
    fits = fits and Q.shape[2] // q_num_heads == K.shape[2] // kv_num_heads
    if not (fits and Q.shape[0] == K.shape[0] == V.shape[0] and K.shape[1] == V.shape[1]):
        raise ValueError(
            f"{name}: Q, K and V have the shapes {list(Q.shape)}, {list(K.shape)} and {list(V.shape)}; expected "
            f"[batch, tokens, heads * size], {q_num_heads} heads in Q and {kv_num_heads} in K and V"
        )
    batch, queries, _ = Q.shape
    keys = K.shape[1]
    size = Q.shape[2] // q_num_heads
    factor = np.float32(scale or 1 / math.sqrt(max(size, 1)))

    def heads(rows, count):
        split = rows.reshape(batch, rows.shape[1], count, rows.shape[2] // count).transpose(0, 2, 1, 3)
        return np.repeat(split, q_num_heads // count, axis=1)

    q, k, v = heads(Q, q_num_heads), heads(K, kv_num_heads), heads(V, kv_num_heads)
    scores = np.matmul(q * factor, k.swapaxes(-1, -2))
    if attn_mask is not None:
        mask = attn_mask.reshape((1,) * (4 - attn_mask.ndim) + attn_mask.shape)
        if mask.ndim != 4 or any(a not in (1, b) for a, b in zip(mask.shape, scores.shape, strict=True)):
            raise ValueError(
                f"{name}: attn_mask has the shape {list(attn_mask.shape)}; expected a shape that broadcasts to "
                f"{list(scores.shape)}"
            )
        scores = np.where(mask, scores, np.float32(-np.inf)) if mask.dtype == bool else scores + mask
    if not keys:
        return np.zeros((batch, queries, q_num_heads * v.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        result = np.matmul(weights / weights.sum(axis=-1, keepdims=True), v)
    return result.transpose(0, 2, 1, 3).reshape(batch, queries, q_num_heads * v.shape[-1]).astype(np.float32)


@Attention.infer_shapes
def _(node):
    q, v = node.shape(0), node.shape(2)
    if q is None or v is None or len(q) != 3 or len(v) != 3:
        return [None]
    heads, kv_heads = node.attributes["q_num_heads"], node.attributes["kv_num_heads"]
    return [[*q[:2], v[2] * (heads // kv_heads) if isinstance(v[2], int) else v[2] if heads == kv_heads else None]]


@Attention.body
def _(op, Q, K, V, attn_mask, *, q_num_heads, kv_num_heads, scale):
    if attn_mask is None and q_num_heads == kv_num_heads:
        return op.contrib.MultiHeadAttention(Q, K, V, num_heads=q_num_heads, scale=scale)

    def heads(rows, count):
        split = split_heads(op, rows, count)
        if count == q_num_heads:
            return split
        # each is shared by several query heads
        each = op.Expand(op.Unsqueeze(split, [2]), [1, 1, q_num_heads // count, 1, 1])
        shape = op.Mul(op.Shape(split), [1, q_num_heads // count, 1, 1])
        return op.Reshape(each, shape, allowzero=1)

    q, k, v = heads(Q, q_num_heads), heads(K, kv_num_heads), heads(V, kv_num_heads)
    size = op.Shape(q, start=3, end=4)
    factor = scale if scale else op.Reciprocal(op.Sqrt(op.CastLike(size, Q)))
    if not scale and Q.dims is not None and isinstance(Q.dims[-1], int):
        factor = 1 / math.sqrt(Q.dims[-1] // q_num_heads)
    # The keys are transposed twice: ONNX Runtime fuses the second Transpose into the MatMul.
    scores = op.Mul(op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2])), factor)
    if attn_mask is not None:
        is_bool = attn_mask.dtype is not None and attn_mask.dtype.name == "BOOL"
        scores = op.Where(attn_mask, scores, -np.inf) if is_bool else op.Add(scores, attn_mask)
    return join_heads(op, op.MatMul(op.Softmax(scores, axis=-1), v))
