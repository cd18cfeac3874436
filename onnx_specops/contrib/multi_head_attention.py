"""MultiHeadAttention: attention of several heads, that lie side by side in each token's row."""

from __future__ import annotations

import math

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(
    inputs={"query": "T", "key": "T", "value": "T"},
    outputs={"output": "T"},
    types={"T": ("float16", "float")},
)
def MultiHeadAttention(op, query, key, value, *, num_heads: int, scale: float = 0.0):
    """``softmax(scale * query @ key.T) @ value`` in each head.

    Inputs:
        query: [batch, queries, num_heads * N].
        key: [batch, keys, num_heads * N].
        value: [batch, keys, num_heads * V].

    Attributes:
        num_heads: how many heads there are.
        scale: the factor; ``1 / sqrt(N)`` where it is 0.

    Output: [batch, queries, num_heads * V].

    Source: ONNX Runtime, docs/ContribOperators.md. What it has besides (biases, masks, keys and values of the past) no
    converted model uses.
    """

    def heads(rows, perm):
        return op.Transpose(op.Reshape(rows, [0, 0, num_heads, size_of_head(rows, num_heads)]), perm=perm)

    q, k, v = heads(query, [0, 2, 1, 3]), heads(key, [0, 2, 3, 1]), heads(value, [0, 2, 1, 3])
    if scale:
        factor = scale
    elif query.dims is not None and query.dims[-1] is not None:
        factor = 1 / math.sqrt(query.dims[-1] / num_heads)
    else:
        factor = op.Reciprocal(op.Sqrt(op.CastLike(op.Shape(q, start=3, end=4), query)))
    weights = op.Softmax(op.Mul(op.MatMul(q, k), factor), axis=-1)
    size = size_of_head(value, num_heads)
    whole = [0, 0, size if size < 0 else num_heads * size]
    return op.Reshape(op.Transpose(op.MatMul(weights, v), perm=[0, 2, 1, 3]), whole)


def size_of_head(rows, heads: int) -> int:
    """What a head has of each row, or -1: of no rows nothing tells it but their dimension."""
    size = None if rows.dims is None else rows.dims[-1]
    return -1 if size is None else size // heads


@MultiHeadAttention.infer_shapes
def _(node):
    query, value = node.shape(0), node.shape(2)
    if query is None or value is None or len(query) != 3 or len(value) != 3:
        return [None]
    return [[*query[:2], value[2]]]
