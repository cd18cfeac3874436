"""Infinities and NaN, found by comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value


class ComparedNonNumbers(Workaround):
    """Convert IsNaN and IsInf to comparisons. OpenCV 4.14 and MNN (3.6) do not support these operators.

    TVM (0.27) finds infinities of both signs even if only one is requested.
    """

    operators = frozenset(("IsInf", "IsNaN"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype is None or not x.dtype.is_floating_point():
            return None
        shape = [1] if x.rank else []
        if node.op_type == "IsNaN":
            zero = op.const(np.zeros(shape), x.dtype)
            return [op.Not(op.Or(op.GreaterOrEqual(x, zero), op.Less(x, zero)))]
        return [self._infinite(op, node, x, shape)]

    def _infinite(self, op: Builder, node: ir.Node, x: Value, shape: list[int]) -> Value:
        assert x.dtype is not None
        largest = np.full(shape, ml_dtypes.finfo(x.dtype.numpy()).max)
        positive = node.attributes.get_int("detect_positive", 1)
        negative = node.attributes.get_int("detect_negative", 1)
        if positive and negative:
            return op.Greater(op.Abs(x), op.const(largest, x.dtype))
        if positive:
            return op.Greater(x, op.const(largest, x.dtype))
        return op.Less(x, op.const(-largest if negative else np.full(shape, -np.inf), x.dtype))
