"""QuantizedAttention: multi-head attention of 8-bit queries and keys."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops import _multi_head as multi_head
from onnx_specops.ops._levels import check_scalar, emitted_levels, levels, scalar
from onnx_specops.ops._multi_head import LARGEST

MAX_SIZE = 1 << 15
"""Products of more numbers may overflow 32 bits."""


@operator(
    inputs={
        "Q": "tensor(uint8)",
        "q_scale": "tensor(float)",
        "q_zero_point": "tensor(uint8)",
        "K": "tensor(uint8)",
        "k_scale": "tensor(float)",
        "k_zero_point": "tensor(uint8)",
        "V": "tensor(float)",
        "y_scale": "tensor(float)",
        "y_zero_point": "T",
        "attn_mask": "U",
    },
    outputs={"Y": "T"},
    types={"T": ("uint8", "float"), "U": ("float", "bool")},
)
def QuantizedAttention(
    Q,
    q_scale,
    q_zero_point,
    K,
    k_scale,
    k_zero_point,
    V,
    y_scale,
    y_zero_point,
    attn_mask=None,
    *,
    q_num_heads: Annotated[int, Limits(1, LARGEST)],
    kv_num_heads: Annotated[int, Limits(1, LARGEST)],
    scale: float = 0.0,
):
    """Computes ``softmax(scale * q @ k.T + attn_mask) @ V`` for each head, as Attention does, from integers:
    ``q = q_scale * (Q - q_zero_point)`` and ``k = k_scale * (K - k_zero_point)``.

    The attention scores are exact 32-bit integers. All other operations compute in float32.

    Inputs:
        Q: ``[batch, queries, q_num_heads * N]``, with a head size N of at most 32,768.
        K: ``[batch, keys, kv_num_heads * N]``.
        q_scale, k_scale: ``[]``, the scales of the integers.
        q_zero_point, k_zero_point: ``[]``, the integers that represent zero.
        V: ``[batch, keys, kv_num_heads * M]``.
        y_scale: ``[]``, the scale of the result.
        y_zero_point: ``[]``, the integer in ``Y`` that represents zero: the result is divided by ``y_scale``, rounded to the
            nearest integer (ties to even), added to ``y_zero_point``, and clipped to [0, 255]. If its type is float, ``Y``
            is not quantized, and the values of ``y_scale`` and ``y_zero_point`` are ignored.
        attn_mask: added to the scores. A boolean mask keeps the scores where it is true and sets the others to ``-inf``. Its
            shape broadcasts to the shape of the scores, ``[batch, q_num_heads, queries, keys]``.

    Attributes:
        q_num_heads: the number of query heads.
        kv_num_heads: the number of key and value heads. Consecutive groups of query heads share one.
        scale: the factor by which the scores are multiplied. 0 means ``1 / sqrt(N)``.

    Output: ``[batch, queries, q_num_heads * M]``, of the type of ``y_zero_point``. As floats, it is NaN where the mask
    excludes all keys. It is zero if there are no keys.

    Source: OpenVINO specification, FakeQuantize-1 and ScaledDotProductAttention-13.
    """
    name = "QuantizedAttention"
    multi_head.check(name, Q, K, V, q_num_heads, kv_num_heads)
    numbers = {
        "q_scale": q_scale,
        "q_zero_point": q_zero_point,
        "k_scale": k_scale,
        "k_zero_point": k_zero_point,
        "y_scale": y_scale,
        "y_zero_point": y_zero_point,
    }
    for given, array in numbers.items():
        check_scalar(name, given, array)
    size = Q.shape[2] // q_num_heads
    if size > MAX_SIZE:
        raise ValueError(f"{name}: a head has {size} numbers; at most {MAX_SIZE} are supported")
    q, k = (
        multi_head.by_head(rows.astype(np.int32) - zero.reshape(()).astype(np.int32), count, q_num_heads)
        for rows, zero, count in ((Q, q_zero_point, q_num_heads), (K, k_zero_point, kv_num_heads))
    )
    factor = q_scale.reshape(()) * k_scale.reshape(()) * multi_head.factor(scale, size)
    scores = np.matmul(q, k.swapaxes(-1, -2)).astype(np.float32) * factor
    result = multi_head.attended(name, scores, attn_mask, multi_head.by_head(V, kv_num_heads, q_num_heads))
    return levels(result, y_scale, y_zero_point)


@QuantizedAttention.infer_shapes
def _(node):
    return [multi_head.output_shape(node.shape(0), node.shape(6), **node.attributes)]


@QuantizedAttention.body
def _(
    op, Q, q_scale, q_zero_point, K, k_scale, k_zero_point, V, y_scale, y_zero_point, attn_mask, *,
    q_num_heads, kv_num_heads, scale,
):  # fmt: skip
    q, k, v = (
        multi_head.shared_heads(op, rows, count, q_num_heads)
        for rows, count in ((Q, q_num_heads), (K, kv_num_heads), (V, kv_num_heads))
    )
    factor = multi_head.emitted_factor(op, scale, Q, q_num_heads, q)
    # ONNX Runtime computes the product of the DequantizeLinear nodes in integers.
    left = op.DequantizeLinear(q, op.Mul(scalar(op, q_scale), factor), scalar(op, q_zero_point))
    keys = op.Transpose(k, perm=[0, 1, 3, 2])
    right = op.DequantizeLinear(keys, scalar(op, k_scale), scalar(op, k_zero_point))
    result = multi_head.emitted(op, op.MatMul(left, right), attn_mask, v)
    return emitted_levels(op, result, y_scale, y_zero_point)
