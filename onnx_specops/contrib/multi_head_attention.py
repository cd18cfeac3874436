"""MultiHeadAttention: attention with several heads. The heads of a token are adjacent."""

from __future__ import annotations

import math

from onnx_specops.contrib.declaring import contrib_operator
from onnx_specops.heads import join_heads, split_heads


@contrib_operator(
    inputs={"query": "T", "key": "T", "value": "T"},
    outputs={"output": "T"},
    types={"T": ("float16", "float")},
)
def MultiHeadAttention(op, query, key, value, *, num_heads: int, scale: float = 0.0):
    """Computes ``softmax(scale * query @ key.T) @ value`` for each head.

    Inputs:
        query: [batch, queries, num_heads * N].
        key: [batch, keys, num_heads * N].
        value: [batch, keys, num_heads * V].

    Attributes:
        num_heads: the number of heads.
        scale: the factor by which the scores are multiplied. 0 means ``1 / sqrt(N)``.

    Output: [batch, queries, num_heads * V].

    Source: ONNX Runtime, docs/ContribOperators.md. Converted models do not use its other inputs (bias, mask, past keys
    and values).
    """

    q, k, v = (split_heads(op, rows, num_heads) for rows in (query, key, value))
    if scale:
        factor = scale
    elif query.dims is not None and query.dims[-1] is not None:
        factor = 1 / math.sqrt(query.dims[-1] / num_heads)
    else:
        factor = op.Reciprocal(op.Sqrt(op.CastLike(op.Shape(q, start=3, end=4), query)))
    # The keys are transposed twice: ONNX Runtime fuses the second Transpose into the MatMul.
    weights = op.Softmax(op.Mul(op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2])), factor), axis=-1)
    return join_heads(op, op.MatMul(weights, v))


@MultiHeadAttention.infer_shapes
def _(node):
    query, value = node.shape(0), node.shape(2)
    if query is None or value is None or len(query) != 3 or len(value) != 3:
        return [None]
    return [[*query[:2], value[2]]]
