"""Fusion of an added bias into a MatMul or convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

_FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


_STORED = {"Cast", "Mul", "Reshape", "Sub", "Transpose", "Unsqueeze"}
"""The operators of weights that are stored in fewer bits."""

_MAX_STEPS = 5


def _is_weight(value: ir.Value | None, steps: int = _MAX_STEPS) -> bool:
    """Return whether a value is a constant, or computed from constants. Quantized weights have their own biases."""
    if value is None or value.is_graph_input():
        return False
    if value.const_value is not None:
        return True
    node = value.producer()
    if node is None or node.domain or node.op_type not in _STORED or not steps:
        return False
    return all(_is_weight(given, steps - 1) for given in node.inputs)


def _convolution(operator: str) -> Rewrite:
    def pattern(op: Any, x: Any, weight: Any, bias: Any) -> Any:
        return op.Add(getattr(op, operator)(x, weight, _outputs=["product"]), bias, _outputs=["whole"])

    @rewrite("Add", pattern, commute=True)
    def replace(op: Builder, *, x: Value, weight: Value, bias: Value, product: Value, whole: Value) -> Value | None:
        node = product.producer()
        assert node is not None
        if not _is_weight(weight) or product.dtype not in _FLOATS or product.rank is None:
            return None
        channels = (product.dims or [None, None])[1]
        if (
            channels is None
            or bias.constant is None
            or bias.is_graph_input()
            or (bias.rank or 0) > product.rank
            or whole.rank != product.rank
        ):
            return None
        aligned = [1] * (product.rank - len(bias.constant.shape)) + list(bias.constant.shape)
        if any(size != 1 for axis, size in enumerate(aligned) if axis != 1) or aligned[1] not in (1, channels):
            return None
        added = np.ascontiguousarray(np.broadcast_to(bias.constant.reshape(-1), [channels]))
        attributes = attributes_of(node)
        return op.node(operator, x, weight, added, types=[(whole.dtype, whole.shape)], **attributes)

    return replace


@rewrite(
    "Add",
    lambda op, x, weight, bias: op.Add(op.MatMul(x, weight, _outputs=["product"]), bias, _outputs=["whole"]),
    commute=True,
)
def product_of_matrices(op: Builder, *, x: Value, weight: Value, bias: Value, product: Value, whole: Value) -> Value | None:
    """Convert a MatMul with a constant matrix and an added constant row to Gemm."""
    if not (_is_weight(weight) and _is_weight(bias, 0)) or product.dtype not in _FLOATS:
        return None
    if not x.rank == weight.rank == product.rank == whole.rank == 2:
        return None
    row = (bias.dims or [])[-1:]
    if row != (weight.dims or [])[-1:] or (bias.dims or [])[:-1] not in ([], [1]):
        return None
    return op.Gemm(x, weight, op.Reshape(bias, row) if bias.rank == 2 else bias)


class FuseBiases(PatternPass):
    """Fuse a constant that is added to each channel or column of Conv, ConvTranspose and two-dimensional MatMul."""

    rewrites = (_convolution("Conv"), _convolution("ConvTranspose"), product_of_matrices)
