"""Scales and zero points of blocks of weights, in the layout of the operator."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from converters.passes.compressed_weights.codes import PACKED, Codes
from converters.passes.compressed_weights.finding import Weights
from converters.passes.dequantization import CAST_TO, source, standard, static
from onnx_specops.building import Builder, Value, constant_value

D = ir.DataType


def blocks_of(weights: Weights) -> tuple[int, int | None] | None:
    """Return the size of the blocks along the depth of a MatMul, and the axis of the elements of a block.

    The axis is ``None`` if the decompressed shape is the used shape.
    """
    rows, columns = weights.matrices[-2:]
    batch = weights.matrices[:-2]
    axis, depth = (-1, columns) if weights.swapped else (-2, rows)
    if weights.shape == weights.matrices:
        across = {padded(value, len(weights.shape)) for value in (weights.zero, weights.scale) if value is not None}
        if None in across:
            return None
        along = {dims[axis] for dims in across if dims is not None} - {1}
        return (1 if along and depth > 1 else max(depth, 1)), None
    if len(weights.shape) != len(weights.matrices) + 1 or weights.shape[: len(batch)] != batch:
        return None
    first, second, third = weights.shape[-3:]
    if weights.swapped and (first, second * third) == (rows, columns):
        return max(third, 1), -1
    if not weights.swapped and (first * second, third) == (rows, columns):
        return max(second, 1), -2
    return None


def of_blocks(op: Builder, value: ir.Value, weights: Weights, dropped: int | None) -> Value | None:
    """Remove the dimension of the elements of a block, which is 1, from scales or zero points."""
    dims = padded(value, len(weights.shape))
    if dims is None:
        return None
    if dropped is not None:
        if dims[dropped] != 1:
            return None
        dims = dims[:-1] if dropped == -1 else (*dims[:-2], dims[-1])
    batch = weights.matrices[:-2]
    if dims[:-2] != batch:
        if math.prod(dims[:-2]) != 1:
            return None
        dims = dims[-2:]
    numbers = plain(value)
    # Scales are floats. Zero points may be integers, too.
    if numbers.dtype in (D.UINT8, D.INT8) and (value is weights.scale or not _fits(numbers, weights.codes)):
        numbers = op.Cast(numbers, to=D.FLOAT)
    return numbers if static(numbers) == dims else op.Reshape(numbers, list(dims))


def _fits(zero: ir.Value, codes: Codes) -> bool:
    """Return whether integer zero points are in the range of the elements."""
    if codes.packed == "no":
        return True
    if zero.const_value is None:
        return False
    numbers, half = zero.const_value.numpy().astype(np.int64), 1 << (codes.bits - 1)
    least, most = (-half, half - 1) if codes.packed == "int4" else (0, 2 * half - 1)
    return not numbers.size or bool(least <= numbers.min() and numbers.max() <= most)


def plain(value: ir.Value) -> Value:
    """Return scales or zero points in the type in which they are stored, which the operator accepts."""
    while (node := standard(value)) is not None and node.op_type == "Cast" and value.dtype in CAST_TO:
        stored = source(node)
        if stored.dtype not in (D.UINT8, D.INT8, D.UINT4, D.INT4, D.FLOAT16, D.BFLOAT16, D.FLOAT):
            break
        if stored.dtype == D.FLOAT or PACKED in stored.meta or {stored.dtype, value.dtype} == {D.FLOAT16, D.BFLOAT16}:
            break
        if stored.dtype in (D.UINT4, D.INT4) and stored.const_value is None:
            break  # computed, such as transposed
        value = stored
    if value.dtype in (D.UINT4, D.INT4):
        assert value.const_value is not None
        wide = D.UINT8 if value.dtype == D.UINT4 else D.INT8
        return constant_value(value.const_value.numpy().astype(wide.numpy()), name=value.name)
    assert isinstance(value, Value)
    return value


def padded(value: ir.Value, rank: int) -> tuple[int, ...] | None:
    dims = static(value)
    return None if dims is None or len(dims) > rank else (1,) * (rank - len(dims)) + dims
