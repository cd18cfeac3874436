"""Sign, and Abs, Neg and Relu of integers, as comparisons, selections and subtractions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))


class Signs(Workaround):
    """Convert Sign, and Abs and Neg of integers, to comparisons, selections and subtractions. WebGPU (0.4) lacks them."""

    operators = frozenset(("Abs", "Neg", "Sign"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype is None or x.rank is None:
            return None
        if x.dtype not in _INTEGERS and (node.op_type != "Sign" or not x.dtype.is_floating_point()):
            return None
        zero = op.const([0] if x.rank else 0, x.dtype)
        if node.op_type == "Sign" and x.dtype.is_floating_point():
            one, minus_one = (op.const([number] if x.rank else number, x.dtype) for number in (1, -1))
            return [op.Where(op.Greater(x, zero), one, op.Where(op.Less(x, zero), minus_one, x))]  # NaN and 0 stay
        if node.op_type == "Sign":
            positive, negative = (op.Cast(found, to=x.dtype) for found in (op.Greater(x, zero), op.Less(x, zero)))
            return [op.Sub(positive, negative)]
        negative = op.Sub(zero, x)
        return [op.Max(x, negative) if node.op_type == "Abs" else negative]


class ComparedSigns(Signs):
    """Convert Sign to comparisons and selections, or a subtraction.

    jaxonnxruntime (0.3) lacks it. The Sign of NaN is not NaN in TVM (0.27).
    """

    operators = frozenset(("Sign",))


class SignsOfIntegers(Signs):
    """Convert Abs, Neg, Relu and Sign of integers to other operators. OpenCV (5.0.0) supports these operators for floats
    only.
    """

    operators = frozenset(("Abs", "Neg", "Relu", "Sign"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype not in _INTEGERS:
            return None
        if node.op_type == "Relu":
            return [op.Max(x, op.const([0] if x.rank else 0, x.dtype))]
        return super().replacement(op, node)
