"""Integer matrix products with float results."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.graph import Arrangement, Quantized, static_shape
from converters.passes.quantized.weights import weights
from onnx_specops.building import Builder, Value, constant_value


def product(work: Arrangement, node: ir.Node) -> None:
    """Convert a MatMul of quantized matrices. The second may be a constant with a scale for each column."""
    a, b = node.inputs
    if a is None or b is None or (first := work.quantized.get(a)) is None or first.affine.bits != 8:
        return
    op, tail, bias = work.before(node), node.outputs[0], None
    if (second := work.quantized.get(b)) is not None:
        if second.affine.bits != 8:
            return
    else:
        found, shape = weights(b, axis=-1), static_shape(b)
        if found is None or shape is None or len(shape) != 2:
            return
        if found.affine.scale_along(1) is None:
            return
        second = Quantized(found.emit(op), found.affine)
        if (added := added_bias(tail, -1, shape[1])) is not None:
            tail, bias = added[0].outputs[0], elements(added[1], shape[1]).astype(np.float32)
    work.replace(node, multiply(work, op, first, second, bias), tail)


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
