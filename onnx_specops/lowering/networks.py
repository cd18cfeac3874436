"""Activations, normalizations, recurrent layers and random numbers, decomposed for opsets that lack them."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Value, cast_unrounded
from onnx_specops.lowering.adapters import (
    SAME,
    LoweringBuilder,
    NotRepresentableError,
    along,
    below,
    in_float32,
    need_rank,
)
from onnx_specops.widening import HALVES

D = ir.DataType


@below(20, "Gelu")
@in_float32
def gelu(op: LoweringBuilder, x: Value, *, approximate="none"):
    if approximate == "tanh":
        inner = op.Mul(op.Add(x, op.Mul(op.Mul(op.Mul(x, x), x), 0.044715)), math.sqrt(2 / math.pi))
        return op.Mul(op.Mul(x, 0.5), op.Add(op.Tanh(inner), 1))
    return op.Mul(op.Mul(x, 0.5), op.Add(op.Erf(op.Mul(x, math.sqrt(0.5))), 1))


@below(18, "Mish")
@in_float32
def mish(op: LoweringBuilder, x: Value):
    return op.Mul(x, op.Tanh(op.Softplus(x)))


@below(14, "HardSwish")
@in_float32
def hard_swish(op: LoweringBuilder, x: Value):
    return op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5))


@below(12, "Celu")
@in_float32
def celu(op: LoweringBuilder, x: Value, *, alpha=1.0):
    return op.Add(op.Max(x, 0), op.Min(op.Mul(op.Sub(op.Exp(op.Div(x, alpha)), 1), alpha), 0))


@below(17, "LayerNormalization")
def layer_normalization(op: LoweringBuilder, x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1, node):
    axes = list(range(axis, 0)) if axis < 0 else list(range(axis, need_rank(x, "LayerNormalization")))
    wide = ir.DataType(stash_type)
    inner = cast_unrounded(op, x, wide)
    mean = op.ReduceMean(inner, axes)
    centered = op.Sub(inner, mean)
    deviation = op.Sqrt(op.Add(op.ReduceMean(op.Mul(centered, centered), axes), epsilon))
    normal = op.Div(centered, deviation)
    result = op.Mul(cast_unrounded(op, normal, x.dtype), scale)
    result = result if bias is None else op.Add(result, bias)
    return [result, mean, op.Reciprocal(deviation)][: len(node.outputs)]


@below(21, "GroupNormalization")
@in_float32
def group_normalization(op: LoweringBuilder, x, scale, bias, *, num_groups, epsilon=1e-5, stash_type=1):
    batch, channels = op.Shape(x, start=0, end=1), op.Shape(x, start=1, end=2)
    flat = op.Reshape(x, op.Concat(batch, [num_groups, -1], axis=0))
    normal = op.InstanceNormalization(
        flat, np.ones(num_groups, x.dtype.numpy()), np.zeros(num_groups, x.dtype.numpy()), epsilon=epsilon
    )
    normal = op.Reshape(normal, op.Shape(x), allowzero=1)
    each = op.Concat(channels, op.Expand(op.const([1]), op.Sub(op.Shape(op.Shape(x)), 2)), axis=0)
    return op.Add(op.Mul(normal, op.Reshape(scale, each)), op.Reshape(bias, each))


@below(14, "BatchNormalization")
def batch_normalization(
    op: LoweringBuilder, x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0, node
):
    if training_mode:
        raise NotRepresentableError("BatchNormalization in training mode")
    return op.old.BatchNormalization(x, scale, bias, mean, variance, epsilon=epsilon, momentum=momentum)


@below(14, "GRU", "LSTM", "RNN")
def recurrent(op: LoweringBuilder, x, *inputs, layout=0, node, **attributes):
    """With ``layout=1``, transpose the batch after the sequence and the directions."""
    if not layout:
        return SAME
    cell = getattr(op, node.op_type)
    given = 7 if node.op_type == "LSTM" else 5
    others = [*inputs, *[None] * (given - len(inputs))]
    # The states follow the weights and lengths; LSTM also has peephole weights.
    transposed = [None if s is None else op.Transpose(s, perm=[1, 0, 2]) for s in others[4:6]]
    outputs = len(node.outputs)
    results = cell(op.Transpose(x, perm=[1, 0, 2]), *others[:4], *transposed, *others[6:], outputs=outputs, **attributes)
    results = list(results) if outputs > 1 else [results]
    orders = [[2, 0, 1, 3], [1, 0, 2], [1, 0, 2]]
    return [op.Transpose(y, perm=order) for y, order in zip(results, orders, strict=False)]


@below(15, "Bernoulli")
def bernoulli(op: LoweringBuilder, x, *, dtype=None, seed=None):
    drawn = op.RandomUniformLike(x, seed=seed)
    return op.Cast(op.Less(drawn, x), to=ir.DataType(dtype) if dtype else x.dtype)


# -- quantization ---------------------------------------------------------------------------------------------------------

_SUBBYTE = {D.INT4: (-8, 7), D.UINT4: (0, 15)}


@below(23, "DequantizeLinear")
def dequantize_linear(op: LoweringBuilder, x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    if output_dtype and ir.DataType(output_dtype) != scale.dtype:
        result = op.DequantizeLinear(x, scale, zero_point, axis=axis, block_size=block_size)
        return op.Cast(result, to=ir.DataType(output_dtype))
    return SAME


@below(21, "DequantizeLinear")
def dequantize_blocks(op: LoweringBuilder, x, scale, zero_point=None, *, axis=1, block_size=0):
    return _dequantized(op, x, scale, zero_point, axis, block_size) if block_size or x.dtype in _SUBBYTE else SAME


@below(19, "DequantizeLinear")
def dequantize_floats(op: LoweringBuilder, x, scale, zero_point=None, *, axis=1, block_size=0):
    return _dequantized(op, x, scale, zero_point, axis, 0) if scale.dtype != D.FLOAT else SAME


@below(13, "DequantizeLinear")
def dequantize_axis(op: LoweringBuilder, x, scale, zero_point=None, *, axis=1, block_size=0):
    if scale.rank == 0:
        return op.old.DequantizeLinear(x, scale, zero_point)
    return _dequantized(op, x, scale, zero_point, axis, 0)


def _dequantized(op: LoweringBuilder, x, scale, zero_point, axis: int, block: int) -> Value:
    """Dequantize by arithmetic. float16 does not represent integers of 16 bits or more."""
    if scale.dtype in HALVES:
        return cast_unrounded(
            op, _dequantized(op, x, cast_unrounded(op, scale, D.FLOAT), zero_point, axis, block), scale.dtype
        )
    number = op.Cast(x, to=scale.dtype)
    if zero_point is not None:
        number = op.Sub(number, _spread(op, op.Cast(zero_point, to=scale.dtype), x, axis, block))
    return op.Mul(number, _spread(op, scale, x, axis, block))


def _spread(op: LoweringBuilder, scale: Value, x: Value, axis: int, block: int) -> Value:
    """Expand per-axis or blocked scales to all elements."""
    if not block and scale.rank in (0, None):
        return scale
    rank = need_rank(x, "quantization along an axis")
    (place,) = along([axis], rank)
    if not block:
        return op.Unsqueeze(scale, [i for i in range(rank) if i != place]) if rank > 1 else scale
    each = op.Unsqueeze(scale, [place + 1])
    repeated = op.Tile(each, [block if i == place + 1 else 1 for i in range(rank + 1)])
    shape = op.Concat(op.Shape(scale, end=place), [-1], op.Shape(scale, start=place + 1), axis=0)
    whole = op.Reshape(repeated, shape)
    return op.Slice(whole, [0], op.Shape(x, start=place, end=place + 1), [place])


@below(21, "QuantizeLinear")
def quantize_blocks(
    op: LoweringBuilder, x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0, saturate=1, precision=0
):
    if op.opset < 19 and scale.dtype in HALVES:  # the scale must be float32
        x, scale = (cast_unrounded(op, value, D.FLOAT) for value in (x, scale))
    target = ir.DataType(output_dtype) if output_dtype else D.UINT8 if zero_point is None else zero_point.dtype
    if block_size or target not in (D.INT8, D.UINT8) or (output_dtype and zero_point is None and target != D.UINT8):
        return _quantized(op, x, scale, zero_point, axis, block_size, target)
    if op.opset >= 13:
        return op.old.QuantizeLinear(x, scale, zero_point, axis=axis)
    if scale.rank == 0:
        return op.old.QuantizeLinear(x, scale, zero_point)
    return _quantized(op, x, scale, zero_point, axis, 0, target)


def _quantized(op: LoweringBuilder, x, scale, zero_point, axis: int, block: int, target: ir.DataType) -> Value:
    if not target.is_integer():
        raise NotRepresentableError(f"QuantizeLinear to {target.name}")
    if target in _SUBBYTE:
        raise NotRepresentableError(f"tensors of the type {target.name}")
    scaled = op.Round(op.Div(x, _spread(op, scale, x, axis, block)))
    if zero_point is not None:
        scaled = op.Add(scaled, _spread(op, op.Cast(zero_point, to=x.dtype), x, axis, block))
    bounds = np.iinfo(target.numpy())
    return op.Cast(op.Clip(scaled, float(bounds.min), float(bounds.max)), to=target)
