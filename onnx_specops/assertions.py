"""Run-time assertions for bodies in standard ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value


def required(op: Builder, rule: str, violations: Any, value: Any) -> Value:
    """Return ``value``; its computation fails at run time if any element of ``violations`` is true.

    Standard ONNX has no assertion, but every runtime rejects an index that is out of range. The number of violations is an
    index into a tensor with one element, 0, which is added to ``value`` (of an integer type). The names of the nodes contain
    ``rule``, so the runtime's error message contains it.
    """
    outer, op.scope = op.scope, rule
    count = op.ReduceSum(op.Cast(violations, to=_INT64), keepdims=0)
    zero = op.Gather(op.const([0]), count, axis=0)
    checked = op.Add(value, op.Cast(zero, to=value.dtype))
    op.scope = outer
    return checked


_INT64 = 7  # onnx.TensorProto.INT64
