"""Casts to unsigned integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import producer_of

_WRAPPING = frozenset((ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32))
_SIGNED = frozenset((ir.DataType.INT32, ir.DataType.INT64))


class CastThroughIntegers(Workaround):
    """Cast floats to unsigned integers by way of signed integers.

    OpenVINO and ONNX Runtime's CPU provider return the low bits of a number that is out of range. The CUDA provider
    (1.31.1) returns the nearest number in the range. A Max that changes nothing keeps ONNX Runtime from merging the two
    casts.
    """

    operators = frozenset(("Cast",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, to = node.inputs[0], node.outputs[0].dtype
        if not isinstance(x, Value) or x.dtype is None or to not in _WRAPPING:
            return None
        if x.dtype in _SIGNED:
            first = producer_of(x, "Cast")
            if first is None or first.inputs[0] is None or not _is_float(first.inputs[0]):
                return None
            signed = x
        elif _is_float(x):
            signed = op.Cast(x, to=ir.DataType.INT64)
        else:
            return None
        assert signed.dtype is not None
        least = np.iinfo(signed.dtype.numpy()).min
        return [op.Cast(op.Max(signed, op.const(least, signed.dtype)), to=to)]


class WrappedIntegers(Workaround):
    """Convert Cast from int32 to uint32 and on to int64 to int64, and add 2^32 to negative numbers.

    OpenVINO converts indices in this way. OpenCV (5.0.0) and onnx2torch (1.5.15) have no unsigned integers of 32 bits.
    """

    operators = frozenset(("Cast",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        first = producer_of(node.inputs[0], "Cast")
        x = None if first is None else first.inputs[0]
        if first is None or first.outputs[0].dtype != ir.DataType.UINT32 or node.outputs[0].dtype != ir.DataType.INT64:
            return None
        if not isinstance(x, Value) or x.dtype != ir.DataType.INT32:
            return None
        wide = op.Cast(x, to=ir.DataType.INT64)
        return [op.Where(op.Less(wide, op.const([0])), op.Add(wide, op.const([2**32])), wide)]


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()
