"""ReduceMax, ReduceMin, TopK and Unique of uint64: ONNX Runtime (1.31) has no kernels for this type.

A cast to another type would change the order. Subtracting 2**63 gives signed integers of the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

_TOP = -(2**63)


class ExtremesOfUnsigned(KernelWorkaround):
    """Convert ReduceMax and ReduceMin of uint64."""

    operators = frozenset(("ReduceMax", "ReduceMin"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *axes = (cast(Value, value) for value in node.inputs)
        if x.dtype != ir.DataType.UINT64:
            return None
        return [unsigned(op, op.node(node.op_type, signed(op, x), *axes, **attributes_of(node)))]


class TopKOfUnsigned(KernelWorkaround):
    """Convert TopK of uint64."""

    operators = frozenset(("TopK",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, k = (cast(Value, value) for value in node.inputs)
        if x.dtype != ir.DataType.UINT64:
            return None
        attributes = attributes_of(node)
        _, indices = op.TopK(signed(op, x), k, **attributes)
        return op.GatherElements(x, indices, axis=attributes.get("axis", -1)), indices


def signed(op: Builder, x: Value) -> Value:
    """Return int64 values in the order of uint64 values."""
    return cast(Value, op.Add(op.Cast(x, to=ir.DataType.INT64), _TOP))


def unsigned(op: Builder, x: Value) -> Value:
    """Return the uint64 values of a result of `signed`."""
    return cast(Value, op.Cast(op.Add(x, op.const(_TOP)), to=ir.DataType.UINT64))
