"""LRN: ONNX Runtime (1.31) supports only four dimensions, odd sizes, and positive values of alpha and beta.

The kernel is also slow, and computes wrong sums after large numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value, cast_unrounded
from onnx_specops.graphs import attributes_of
from onnx_specops.widening import HALVES

_MOST_SHIFTS = 16
"""Sums of more numbers are computed from the sums of both halves."""
_MOST_PADS = 1 << 12
_TO_THE_END = 2**62


@rewrite("LRN", lambda op, x: op.LRN(x, _outputs=["whole"]))
def of_supported_form(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Reshape to four dimensions, with all spatial dimensions as one and a 1. Decompose an LRN with an even size, or whose
    alpha or beta is not positive.
    """
    node = whole.producer()
    assert node is not None
    attributes = attributes_of(node)
    alpha, beta, size = attributes.get("alpha", 1e-4), attributes.get("beta", 0.75), attributes["size"]
    if alpha <= 0 or beta <= 0 or size % 2 == 0:
        # float16 would round the attributes.
        wide = cast_unrounded(op, x, ir.DataType.FLOAT) if x.dtype in HALVES else x
        sums = op.Add(op.Mul(_sums(op, op.Mul(wide, wide), size), alpha / size), attributes.get("bias", 1.0))
        return cast_unrounded(op, op.Div(wide, op.Pow(sums, op.const(beta, wide.dtype))), x.dtype)
    if x.rank == 4:
        return None
    shape = op.Shape(x)
    four = op.Reshape(x, op.Concat(op.Slice(shape, [0], [2]), _inner(op, shape), [1], axis=0), allowzero=1)
    return op.Reshape(op.LRN(four, **attributes), shape, allowzero=1)


def _sums(op: Builder, x: Value, size: int) -> Value:
    """Return the sums of ``size`` channels around each channel."""
    shape = op.Shape(x)
    columns = op.Reshape(
        x, op.Concat(op.Slice(shape, [0], [1]), [1], op.Slice(shape, [1], [2]), _inner(op, shape), axis=0), allowzero=1
    )
    pads = [(size - 1) // 2, 0, size // 2, 0]
    means = op.AveragePool(columns, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    return op.Reshape(op.Mul(means, float(size)), shape, allowzero=1)


def _inner(op: Builder, shape: Value) -> Value:
    """Return the number of elements of a channel."""
    return op.ReduceProd(op.Slice(shape, [2], [2**31]), keepdims=1)


class LRNOfFourDimensions(PatternPass):
    """Convert LRN with a rank other than four, an even size, or an alpha or beta that is not positive."""

    rewrites = (of_supported_form,)


class LRNByShiftedSums(KernelWorkaround):
    """Compute LRN of float32 from sums of shifted squares.

    ONNX Runtime's kernel (1.32) adds the next square of a window and subtracts the previous one. After a large square, the
    sums have its rounding error; after an infinity or a NaN, they are NaN. The shifted sums also take a ninth of the time:
    0.6 ms instead of 5.1 for 64 x 56 x 56 numbers and windows of 5.

    Conditions: alpha and beta are positive; at most `_MOST_PADS` channels are added. float16 is for GPUs, whose kernels add
    each window.
    """

    operators = frozenset(("LRN",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        size, beta = int(attributes["size"]), float(attributes.get("beta", 0.75))
        if x.dtype != ir.DataType.FLOAT or x.rank is None:
            return None
        channels = x.dims[1] if x.dims is not None else None
        widest = size if channels is None else max(channels - 1, 0)
        before, after = min((size - 1) // 2, widest), min(size // 2, widest)
        count = before + after + 1
        if count > _MOST_PADS:
            return None
        rest = [0] * (x.rank - 2)
        padded = op.Pad(op.Mul(x, x), [0, before, *rest, 0, after, *rest], np.float32(0))
        if count > _MOST_SHIFTS:
            sums = _by_halves(op, padded, count)
        else:
            sums = reduce(op.Add, [_without(op, padded, k, count - 1 - k) for k in range(count)])
        bases = op.Add(op.Mul(sums, np.float32(attributes.get("alpha", 1e-4) / size)), np.float32(attributes.get("bias", 1)))
        return [cast(Value, op.Div(x, _power(op, bases, beta)))]


def _without(op: Builder, x: Value, first: int, last: int) -> Value:
    """Return a tensor without its first and last channels."""
    return cast(Value, op.Slice(x, [first], [-last if last else _TO_THE_END], [1]))


def _by_halves(op: Builder, x: Value, size: int) -> Value:
    """Return the sums of each ``size`` neighboring channels: those of 2, 4, 8, ... channels are computed first.

    Nothing is subtracted, so that each number affects only the sums that contain it.
    """
    sums = {1: x}
    while 2 * (half := max(sums)) <= size:
        sums[2 * half] = op.Add(_without(op, sums[half], 0, half), _without(op, sums[half], half, 0))
    parts, added = [], 0
    for count in sorted(sums, reverse=True):
        if size & count:
            parts.append(_without(op, sums[count], added, size - count - added))
            added += count
    return cast(Value, reduce(op.Add, parts))


def _power(op: Builder, bases: Value, exponent: float) -> Value:
    """Return a power of positive numbers; square roots take a fraction of the time of Pow."""
    if exponent == 1:
        return bases
    root = op.Sqrt(bases) if exponent in (0.5, 0.75) else None
    if root is None:
        return cast(Value, op.Pow(bases, np.float32(exponent)))
    return cast(Value, root if exponent == 0.5 else op.Mul(root, op.Sqrt(root)))
