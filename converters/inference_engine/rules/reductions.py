"""Reductions along the axes in the second input."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.inference_engine.rule import layer
from converters.openvino.rule import Context
from onnx_specops.building import Builder, Value

_NODES = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def _register(name: str) -> None:
    @layer(f"Reduce{name}", integers=True)
    def emit(op: Builder, x: Value, axes: Value, *, keep_dims: bool = True, context: Context):
        if x.dtype != context.output_type() == ir.DataType.FLOAT:
            x = op.Cast(x, to=ir.DataType.FLOAT)
        return op.node(f"Reduce{name}", x, _axes(op, axes), keepdims=int(keep_dims))


for _name in _NODES:
    _register(_name)


@layer("ReduceAnd")
def reduce_and(op: Builder, x: Value, axes: Value, *, keep_dims: bool = True):
    """ReduceAnd: 1 if no element is 0."""
    truth = op.Cast(op.Not(op.Equal(x, 0.0)), to=x.dtype)
    return op.ReduceMin(truth, _axes(op, axes), keepdims=int(keep_dims))


@layer("ReduceOr")
def reduce_or(op: Builder, x: Value, axes: Value, *, keep_dims: bool = True):
    """ReduceOr: 1 if an element is not 0."""
    truth = op.Cast(op.Not(op.Equal(x, 0.0)), to=x.dtype)
    return op.ReduceMax(truth, _axes(op, axes), keepdims=int(keep_dims))


def _axes(op: Builder, axes: Value) -> Value:
    if axes.constant is not None:
        return op.const(axes.constant.astype(np.int64).reshape(-1))
    return op.Reshape(op.Cast(axes, to=ir.DataType.INT64), [-1])
