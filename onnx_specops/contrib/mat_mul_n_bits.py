"""MatMulNBits: a matrix multiplication with block-quantized weights of 4 or 8 bits."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.attributes import Limits
from onnx_specops.contrib.declaring import contrib_operator
from onnx_specops.domain import NoBodyError


@contrib_operator(
    inputs={"A": "T1", "B": "T2", "scales": "T1", "zero_points": "T3"},
    outputs={"Y": "T1"},
    types={"T1": ("float", "float16"), "T2": ("uint8",), "T3": ("uint8",)},
)
def MatMulNBits(
    op,
    A,
    B,
    scales,
    zero_points=None,
    *,
    K: Annotated[int, Limits(1)],
    N: Annotated[int, Limits(1)],
    block_size: Annotated[int, Limits(16)],
    bits: Annotated[int, Limits(4, 8)] = 4,
    accuracy_level: Annotated[int, Limits(0, 4)] = 0,
):
    """Computes the matrix product of ``A`` and the transpose of ``(B - zero_points) * scales``.

    Inputs:
        A: [..., K].
        B: [N, blocks, block_size * bits / 8]. With 4 bits, each byte contains two integers, the first in the low bits.
        scales: [N * blocks].
        zero_points: packed like ``B``, row by row: [N * ceil(blocks * bits / 8)]. 8 or 128 if omitted.

    Attributes:
        bits: the size of an integer. ONNX Runtime computes with 8 bits since 1.22.
        accuracy_level: 4 allows the kernel to round blocks of ``A`` to 8 bits. The body never does.

    Output: [..., N].

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    if bits not in (4, 8):
        raise NoBodyError(f"MatMulNBits: bits is {bits}; expected 4 or 8")
    blocks = -(-K // block_size)
    numbers = op.Reshape(_numbers(op, B, bits), [N, blocks, block_size])
    zero = op.const(np.float32(1 << (bits - 1)))
    if zero_points is not None:
        rows = op.Reshape(_numbers(op, op.Reshape(zero_points, [N, -1]), bits), [N, -1])
        zero = op.Reshape(op.Slice(rows, [0], [blocks], [1]), [N, blocks, 1])
    weights = op.Mul(op.Sub(numbers, zero), op.Reshape(op.Cast(scales, to=Type.FLOAT), [N, blocks, 1]))
    matrix = op.Slice(op.Reshape(weights, [N, blocks * block_size]), [0], [K], [1])
    return op.MatMul(A, op.CastLike(op.Transpose(matrix, perm=[1, 0]), A))


def _numbers(op, packed, bits):
    """Convert integers to floats. Those of 4 bits are unpacked into a new last dimension."""
    if bits == 8:
        return op.Cast(packed, to=Type.FLOAT)
    every = np.arange(256)[:, None] >> np.array([0, 4]) & 15
    return op.Gather(op.const(every.astype(np.float32)), op.Cast(packed, to=Type.INT32))


@MatMulNBits.infer_shapes
def _(node):
    a = node.shape(0)
    return [None if not a else [*a[:-1], node.attributes["N"]]]
