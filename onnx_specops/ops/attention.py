"""Attention: multi-head attention. The heads of a token are adjacent."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops import _multi_head as multi_head
from onnx_specops.ops._multi_head import LARGEST


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
    """Computes ``softmax(scale * Q @ K.T + attn_mask) @ V`` for each head, like ONNX's Attention-23 with inputs of rank 3.

    Inputs:
        Q: ``[batch, queries, q_num_heads * N]``.
        K: ``[batch, keys, kv_num_heads * N]``.
        V: ``[batch, keys, kv_num_heads * M]``.
        attn_mask: added to the scores. A boolean mask keeps the scores where it is true and sets the others to ``-inf``. Its
            shape broadcasts to the shape of the scores, ``[batch, q_num_heads, queries, keys]``.

    Attributes:
        q_num_heads: the number of query heads.
        kv_num_heads: the number of key and value heads. Consecutive groups of query heads share one.
        scale: the factor by which the scores are multiplied. 0 means ``1 / sqrt(N)``.

    Output: ``[batch, queries, q_num_heads * M]``. The result is NaN where the mask excludes all keys, and 0 if
    there are no keys.

    Source: OpenVINO specification, ScaledDotProductAttention-13, and its decomposed forms; ONNX, Attention-23.
    """
    multi_head.check("Attention", Q, K, V, q_num_heads, kv_num_heads)
    q, k, v = (
        multi_head.by_head(rows, count, q_num_heads)
        for rows, count in ((Q, q_num_heads), (K, kv_num_heads), (V, kv_num_heads))
    )
    scores = np.matmul(q * multi_head.factor(scale, q.shape[-1]), k.swapaxes(-1, -2))
    return multi_head.attended("Attention", scores, attn_mask, v)


@Attention.infer_shapes
def _(node):
    return [multi_head.output_shape(node.shape(0), node.shape(2), **node.attributes)]


@Attention.body
def _(op, Q, K, V, attn_mask, *, q_num_heads, kv_num_heads, scale):
    if attn_mask is None and q_num_heads == kv_num_heads:
        return op.contrib.MultiHeadAttention(Q, K, V, num_heads=q_num_heads, scale=scale)
    q, k, v = (
        multi_head.shared_heads(op, rows, count, q_num_heads)
        for rows, count in ((Q, q_num_heads), (K, kv_num_heads), (V, kv_num_heads))
    )
    factor = multi_head.emitted_factor(op, scale, Q, q_num_heads, q)
    # The keys are transposed twice: ONNX Runtime fuses the second Transpose into the MatMul.
    scores = op.Mul(op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2])), factor)
    return multi_head.emitted(op, scores, attn_mask, v)
