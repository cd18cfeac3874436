"""Reductions over axes, which may come at run time.

No axes at all leave the input as it is (L1 and L2 take its absolute values), axes may be negative or repeated, and over nothing
a sum is 0, a product 1, a mean 0. ONNX and ONNX Runtime hold with OpenVINO in all this.
"""

from __future__ import annotations

import numpy as np

from converters.openvino.rule import rule
from converters.openvino.rules._elementwise import D
from onnx_specops.building import Builder, Value

_LOWEST = float(np.finfo(np.float32).min)


def _register(operation: str, since: str = "opset1") -> None:
    @rule(operation, since=since)
    def emit(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
        return _reduce(op, operation, x, axes, keep_dims)


for _operation in ("ReduceSum", "ReduceProd"):
    _register(_operation)
for _operation in ("ReduceL1", "ReduceL2"):
    _register(_operation, "opset4")


@rule("ReduceMean")
def reduce_mean(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMean-1: the mean of integers is truncated towards zero."""
    if x.dtype != D.UINT64:
        return _reduce(op, "ReduceMean", x, axes, keep_dims)
    # No signed type holds the sums.
    total = _reduce(op, "ReduceSum", x, axes, keep_dims)
    count = op.Div(op.Size(x), op.Max(op.Size(total), 1))
    return op.Div(total, op.Cast(op.Max(count, 1), to=D.UINT64))


@rule("ReduceMax")
def reduce_max(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMax-1. In float32 OpenVINO starts from the lowest finite number: the maximum of -inf alone, or of nothing."""
    result = _extreme(op, "ReduceMax", x, axes, keep_dims)
    return op.Max(result, _LOWEST) if x.dtype == D.FLOAT else result


@rule("ReduceMin")
def reduce_min(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceMin-1; inf over nothing, as the reference kernel has it. (OpenVINO's CPU: the largest finite number.)"""
    return _extreme(op, "ReduceMin", x, axes, keep_dims)


def _extreme(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    if x.dtype != D.UINT64:
        return _reduce(op, operation, x, axes, keep_dims)
    # Flipping the top bit makes the order of signed integers that of unsigned ones.
    top = op.const(-(2**63))
    flipped = op.BitwiseXor(op.Cast(x, to=D.INT64), top)
    return op.Cast(op.BitwiseXor(_reduce(op, operation, flipped, axes, keep_dims), top), to=D.UINT64)


@rule("ReduceLogicalAnd")
def reduce_logical_and(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalAnd-1; true over nothing."""
    return _logical(op, "ReduceMin", x, axes, keep_dims)


@rule("ReduceLogicalOr")
def reduce_logical_or(op: Builder, x: Value, axes: Value, *, keep_dims: bool = False):
    """ReduceLogicalOr-1; false over nothing."""
    return _logical(op, "ReduceMax", x, axes, keep_dims)


def _logical(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    """Through uint8 where there may be nothing to reduce: ONNX Runtime has no extreme of no booleans."""
    if x.is_static and 0 not in (x.dims or []):
        return _reduce(op, operation, x, axes, keep_dims)
    return op.Cast(_reduce(op, operation, op.Cast(x, to=D.UINT8), axes, keep_dims), to=D.BOOL)


def _reduce(op: Builder, operation: str, x: Value, axes: Value, keep_dims: bool) -> Value:
    axes = axes if axes.dtype == D.INT64 else op.Cast(axes, to=D.INT64)
    axes = axes if axes.rank == 1 else op.Reshape(axes, [-1])
    return op.node(operation, x, axes, keepdims=int(keep_dims), noop_with_empty_axes=1)
