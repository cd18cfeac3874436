"""Attention."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Context, Departure, rule
from converters.openvino.rules._caches import is_fused_with_cache
from onnx_specops.building import Builder, Value


@rule(
    "ScaledDotProductAttention",
    since="opset13",
    departs=[
        Departure(
            where="a token whose mask hides all keys, if keys and values are caches whose rows a Gather selects",
            cpu="gives 0 if the mask contains numbers, and the mean of all values if it contains booleans",
            reference="gives NaN",
            follows="cpu",
        ),
        Departure(
            where="equal numbers of tokens and heads, known dimensions, inputs that are parts of one tensor, and a "
            "transposed result",
            cpu="confuses tokens and heads",
            specification="distinguishes them",
            follows="specification",
        ),
    ],
)
def scaled_dot_product_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attention_mask: Value | None = None,
    scale: Value | None = None,
    sink: Value | None = None,
    *,
    causal: bool = False,
    context: Context,
):
    """ScaledDotProductAttention-13, with OpenVINO's additional input ``sink``: attention scores without a value."""
    blind: Value | None = None
    weights = op.MatMul(query, _swapped(op, key))
    weights = op.Mul(weights, _factor(op, query) if scale is None else scale)
    if causal:
        rows = op.Range(0, op.Squeeze(op.Shape(query, start=-2, end=-1), [0]), 1)
        columns = op.Range(0, op.Squeeze(op.Shape(key, start=-2, end=-1), [0]), 1)
        seen = op.LessOrEqual(columns, op.Unsqueeze(rows, [1]))
        weights = op.Add(weights, _hidden(op, seen, query))
    elif attention_mask is not None and not _is_zero(attention_mask):
        if attention_mask.dtype == ir.DataType.BOOL:
            if sink is None and is_fused_with_cache(context.layer, context.corrections):
                weights = op.Where(attention_mask, weights, op.const(_lowest(query), query.dtype))
            else:
                weights = op.Add(weights, _hidden(op, attention_mask, query))
        else:
            weights = op.Add(weights, attention_mask)
            if sink is None and is_fused_with_cache(context.layer, context.corrections):
                blind = op.Equal(op.ReduceMax(attention_mask, [-1], keepdims=1), op.const(-math.inf, attention_mask.dtype))
    if sink is None:
        mixed = op.MatMul(op.Softmax(weights, axis=-1), value)
        return mixed if blind is None else op.Where(blind, op.const(0, mixed.dtype), mixed)
    column = op.Concat(op.Shape(weights, end=-1), [1], axis=0)
    shares = op.Softmax(op.Concat(weights, op.Expand(sink, column), axis=-1), axis=-1)
    return op.MatMul(op.Slice(shares, [0], [-1], [-1]), value)


def _hidden(op: Builder, visible: Value, query: Value) -> Value:
    """Return the addend of scores, -inf for hidden keys. The score of a hidden key that is infinite becomes NaN."""
    return cast(Value, op.Where(visible, op.const(0, query.dtype), op.const(-math.inf, query.dtype)))


def _lowest(query: Value) -> float:
    """Return the lowest number of a float type."""
    kind = np.float16 if query.dtype == ir.DataType.FLOAT16 else np.float32
    return float(np.finfo(kind).min)


def _swapped(op: Builder, key: Value) -> Value:
    """Swap the last two dimensions of the key."""
    if key.rank is not None:
        if key.rank < 2:
            raise Malformed(f"its key has the rank {key.rank}; it must be 2 or more")
        return op.Transpose(key, perm=[*range(key.rank - 2), key.rank - 1, key.rank - 2])
    batch, rows, columns = op.Shape(key, end=-2), op.Shape(key, start=-2, end=-1), op.Shape(key, start=-1)
    matrices = op.Reshape(key, op.Concat(op.ReduceProd(batch, keepdims=1), rows, columns, axis=0))
    return op.Reshape(op.Transpose(matrices, perm=[0, 2, 1]), op.Concat(batch, columns, rows, axis=0))


def _factor(op: Builder, query: Value) -> Value:
    """Return the reciprocal square root of the size of an embedding."""
    size = op.Cast(op.Shape(query, start=-1), to=query.dtype)
    if size.constant is not None:
        return op.const(1 / np.sqrt(size.constant.astype(np.float64)), query.dtype)
    return op.Reciprocal(op.Sqrt(size))


def _is_zero(mask: Value) -> bool:
    """Return whether the mask is the number 0, which represents no mask. The boolean false hides all keys."""
    if mask.constant is None or mask.dtype == ir.DataType.BOOL:
        return False
    return mask.constant.size == 1 and not mask.constant.any()
