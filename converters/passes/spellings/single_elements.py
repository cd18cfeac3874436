"""InstanceNormalization of single elements."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import dimension


class DecomposeInstanceNormalization(Workaround):
    """Decompose each InstanceNormalization that may have only one element per channel.

    With one element, the result is the bias. ONNX Runtime's CUDA provider (1.31.1) returns NaN, because cuDNN divides by the
    number of elements minus 1. This occurs for images of one pixel, or if each channel is a group.
    """

    operators = frozenset(("InstanceNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return None if _has_several_elements(node) else [decomposed(op, node)]


def _has_several_elements(node: ir.Node) -> bool:
    x = node.inputs[0]
    if x is None or x.shape is None:
        return False
    if any(isinstance(size, int) and size > 1 for size in x.shape[2:]):
        return True
    # A group of several channels, as GroupNormalization is written.
    producer = x.producer()
    source = producer.inputs[0] if producer is not None and producer.op_type == "Reshape" else None
    if source is None or source.shape is None or len(source.shape) < 2 or dimension(source, 0) != dimension(x, 0):
        return False
    channels, groups = source.shape[1], x.shape[1]
    return isinstance(channels, int) and isinstance(groups, int) and channels > groups


def decomposed(op: Builder, node: ir.Node) -> Value:
    """Return an InstanceNormalization as means and arithmetic, in float32 for 16-bit floats."""
    x, scale, bias = node.inputs
    assert isinstance(x, Value) and isinstance(scale, Value) and isinstance(bias, Value)
    dtype = x.dtype
    epsilon = node.attributes.get_float("epsilon", 1e-5)
    size = op.ReduceProd(op.Shape(x, start=2), keepdims=1)
    rows = op.Reshape(x, op.Concat(op.Shape(x, end=2), size, axis=0), allowzero=1)
    if dtype != ir.DataType.DOUBLE:
        rows, scale, bias = (op.Cast(value, to=ir.DataType.FLOAT) for value in (rows, scale, bias))
    centered = op.Sub(rows, op.ReduceMean(rows, [2], keepdims=1))
    variance = op.ReduceMean(op.Mul(centered, centered), [2], keepdims=1)
    normal = op.Div(centered, op.Sqrt(op.Add(variance, op.const(epsilon, rows.dtype))))
    normal = op.Add(op.Mul(normal, op.Unsqueeze(scale, [1])), op.Unsqueeze(bias, [1]))
    return op.Reshape(op.Cast(normal, to=dtype), op.Shape(x), allowzero=1)
