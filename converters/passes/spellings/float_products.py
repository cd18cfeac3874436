"""Products and windows of float64 as float32."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class FloatProducts(Workaround):
    """Compute MatMul, Gemm, MaxPool and Softmax of float64 in float32.

    OpenCV (5.0.0) rejects MatMul, MaxPool and Softmax of float64, and computes wrong numbers for Gemm. OpenVINO's CPU plugin
    computes all float64 in float32. Condition: no indices of the maxima.
    """

    operators = frozenset(("Gemm", "MatMul", "MaxPool", "Softmax"))
    equal = False  # float32 is less precise

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if x is None or x.dtype != ir.DataType.DOUBLE or len(node.outputs) > 1:
            return None
        inputs = [None if value is None else op.Cast(value, to=ir.DataType.FLOAT) for value in node.inputs]
        return [op.Cast(op.node(node.op_type, *inputs, **attributes_of(node)), to=ir.DataType.DOUBLE)]
