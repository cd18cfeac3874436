"""Integer matrix multiplications.

A MatMul with constant weights is a convolution of one pixel with channels last. The function and the quantization that
follow become part of it (`fusion`), also if numbers are moved in between (`hoisting`). Other MatMuls have float results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.affine import Affine, is_scale
from converters.passes.quantized.fused import ConvAttributes, per_channel
from converters.passes.quantized.fusion import fused
from converters.passes.quantized.graph import Arrangement, Quantized, factor_of, one_factor_of, only_user, static_shape
from converters.passes.quantized.hoisting import quantize_before_moves, split_results
from converters.passes.quantized.weights import Weights, arranged, weights
from onnx_specops.building import Builder, Value, constant_value


def product(work: Arrangement, node: ir.Node) -> None:
    """Convert a MatMul of quantized matrices. The second may be a constant with a scale for each column."""
    a, b = node.inputs
    if a is None or b is None or (first := work.find(a)) is None or first.affine.bits != 8:
        return
    op, tail, bias = work.before(node), node.outputs[0], None
    if (second := work.quantized.get(b)) is not None:
        if second.affine.bits != 8 or first.affine.offset is not None:
            return
        tail, first = _scaled(tail, first)
    else:
        found, shape = weights(b, axis=-1), static_shape(b)
        if found is None or shape is None or len(shape) != 2:
            return
        if found.affine.scale_along(1) is None:
            return
        if work.contrib and _fused(work, node, first, found, *shape):
            return
        second = Quantized(found.emit(op), found.affine)
        if (added := added_bias(tail, -1, shape[1])) is not None:
            tail, bias = added[0].outputs[0], elements(added[1], shape[1]).astype(np.float32)
        if first.affine.offset is not None:
            bias = (_offsets(op, first.affine, found, shape) + (0 if bias is None else bias)).astype(np.float32)
            first = Quantized(first.integers, first.affine.without_offset())
    work.replace(node, multiply(work, op, first, second, bias), tail)


def _offsets(op: Builder, a: Affine, found: Weights, shape: Sequence[int]) -> np.ndarray:
    """Return the number that the offset of the first matrix adds to each column of its product with weights."""
    zero = found.affine.zero_point
    matrix = arranged(found, op, lambda numbers: numbers, shape, ir.DataType.from_numpy(zero.dtype)).const_value
    assert matrix is not None and a.offset is not None
    sums = (matrix.numpy().astype(np.float64) - zero).sum(axis=0)
    return np.asarray(sums * found.affine.scale * float(a.scale) * float(a.offset))


def _scaled(value: ir.Value, first: Quantized) -> tuple[ir.Value, Quantized]:
    """Merge a positive factor of a product, as of attention scores, into the scale of the first matrix."""
    node = only_user(value)
    factor = None if node is None or not first.affine.is_per_tensor else one_factor_of(node, value)
    if node is None or factor is None or not is_scale((affine := first.affine.scaled(factor)).scale).all():
        return value, first
    return node.outputs[0], Quantized(first.integers, affine)


def _fused(work: Arrangement, node: ir.Node, x: Quantized, found: Weights, depth: int, columns: int) -> bool:
    """Convert a MatMul with constant weights ``[depth, columns]`` to QuantizedConv. Return whether it is possible.

    If the result is split into parts of the columns, each part becomes a QuantizedConv.

    Conditions: the result has three to five dimensions, which the operator supports, and the first matrix has one scale.
    """
    tail = node.outputs[0]
    if x.integers.shape is None or not 3 <= (rank := len(x.integers.shape)) <= 5 or not x.affine.is_per_tensor:
        return False
    bias, scales = np.zeros(columns), np.broadcast_to(found.affine.scale, (columns,)).astype(np.float64)
    while True:
        if (added := added_bias(tail, rank - 1, columns, broadcast=True)) is not None:
            tail, bias = added[0].outputs[0], bias + elements(added[1], columns)
        elif (factor := _factor(tail, rank - 1, columns)) is not None and is_scale(scales * factor[1]).all():
            tail, bias, scales = factor[0], bias * factor[1], scales * factor[1]
        else:
            break
    done = [
        _fused_part(work, node, x, found, scales, bias, depth, part, of)
        for part, of in split_results(tail, rank - 1)
        if part.uses() or part.is_graph_output()
    ]
    return all(done)


def _factor(value: ir.Value, axis: int, size: int) -> tuple[ir.Value, np.ndarray] | None:
    """Return the product of a value and positive constants along ``axis``, and these, if nothing else uses the value."""
    user = only_user(value)
    factor = None if user is None else per_channel(value, factor_of(user, value), size, axis)
    if user is None or factor is None or not is_scale(factor).all():
        return None
    return user.outputs[0], factor


def _fused_part(
    work: Arrangement,
    node: ir.Node,
    x: Quantized,
    found: Weights,
    scales: np.ndarray,
    bias: np.ndarray,
    depth: int,
    tail: ir.Value,
    of: slice,
) -> bool:
    """Convert the columns ``of`` a MatMul, whose sums with the bias are ``tail``."""
    assert x.integers.shape is not None
    scales, bias = scales[of], bias[of]
    stated = ConvAttributes.of_product(depth, len(scales), len(x.integers.shape))

    def emit(op: Builder) -> Value:
        dtype = ir.DataType.from_numpy(zero.dtype)
        return arranged(found, op, lambda matrix: matrix[:, of].T, stated.shape, dtype)

    scale, zero = found.affine.scale, found.affine.zero_point
    affine = Affine(scale, zero) if found.affine.is_per_tensor else Affine(scale[of], zero[of])
    quantize_before_moves(work, tail)
    return fused(work, node, x, Weights(emit, affine), scales, bias, tail, stated)


def multiply(work: Arrangement, op: Builder, a: Quantized, b: Quantized, bias: np.ndarray | None) -> Value:
    """Multiply integers [..., M, K] and [K, N]. The result [..., M, N] is floats.

    Without ONNX Runtime's own operator, emit the graph that ONNX Runtime fuses to it.
    """
    if not work.contrib:
        result = op.MatMul(a.affine.dequantize(op, a.integers), b.affine.dequantize(op, b.integers))
        return result if bias is None else op.Add(result, bias)
    return op.contrib.MatMulIntegerToFloat(
        a.integers,
        b.integers,
        constant_value(a.affine.scale),
        constant_value(b.affine.scale),
        constant_value(a.affine.zero_point),
        constant_value(b.affine.zero_point),
        None if bias is None else constant_value(bias),
    )
