"""ONNX Runtime's MatMulNBits for compressed weights: its layout of integers, scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_specops.assertions import required

_FLOAT, _UINT8, _INT32 = 1, 2, 6  # constants of onnx.TensorProto

LEAST_BLOCK = 16
"""The smallest block of MatMulNBits. Its blocks are powers of two."""


def is_possible(codes: Any, zero_points: Any, *, N: int, K: int, block_size: int) -> bool:
    """Return whether MatMulNBits can have the weights.

    They are one matrix with elements, its blocks divide its rows, and its zero points are integers of 8 bits.
    """
    is_integer = zero_points is None or (zero_points.dtype is not None and zero_points.dtype.name in ("UINT8", "INT8"))
    return codes.rank == 2 and N * K > 0 and block_size >= LEAST_BLOCK and K % block_size == 0 and is_integer


def multiply(
    op: Any,
    A: Any,
    codes: Any,
    scales: Any,
    zero_points: Any,
    *,
    N: int,
    K: int,
    block_size: int,
    bits: int,
    offset: int,
    accuracy_level: int = 0,
) -> Any:
    """Emit MatMulNBits for ``A @ ((codes - offset - zero_points) * scales).T`` in float32.

    Args:
        op: the builder.
        A: ``[..., K]``; cast to float32.
        codes: ``[N, K * bits / 8]`` bytes of unsigned integers.
        scales: numbers that broadcast to ``[N, K / block_size]``; 1 if omitted.
        zero_points: integers of the same shapes, before the offset; 0 if omitted. One that is not in the range of the
            integers is an error when the model runs.
        N, K: the dimensions of the matrix.
        block_size: a power of two from 16 on that divides ``K``.
        bits: 4 or 8.
        offset: the number that was added to the integers: 0, or half of their range.
        accuracy_level: see the operator.
    """
    blocks, largest = K // block_size, (1 << bits) - 1
    codes = op.Reshape(codes, [N, blocks, block_size * bits // 8])
    factors = op.Cast(1.0 if scales is None else scales, to=_FLOAT)
    factors = op.Reshape(op.Expand(factors, [N, blocks]), [-1])
    packed_zeros = None
    if zero_points is not None or not offset:
        zeros = op.Add(op.Cast(0 if zero_points is None else zero_points, to=_INT32), np.int32(offset))
        beyond = op.Or(op.Less(zeros, np.int32(0)), op.Greater(zeros, np.int32(largest)))
        zeros = op.Expand(required(op, f"zero_points_beyond_{bits}_bits", beyond, zeros), [N, blocks])
        if bits == 4:
            if blocks % 2:
                zeros = op.Pad(zeros, [0, 0, 0, 1])
            pairs = op.Reshape(zeros, [-1, 2])
            zeros = op.ReduceSum(op.Mul(pairs, np.array([1, 16], np.int32)), [1], keepdims=0)
        else:
            zeros = op.Reshape(zeros, [-1])
        packed_zeros = op.Cast(zeros, to=_UINT8)
    return op.contrib.MatMulNBits(
        op.Cast(A, to=_FLOAT), codes, factors, packed_zeros,
        K=K, N=N, bits=bits, block_size=block_size, accuracy_level=accuracy_level,
    )  # fmt: skip
