"""Conditions that a body in standard ONNX checks at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value


def required(op: Builder, rule: str, violations: Any, value: Any) -> Value:
    """``value``, whose computation fails at run time where any element of ``violations`` is true.

    Standard ONNX has no assertion, but every runtime refuses an index that is out of range: the number of violations indexes
    a tensor of one element, a zero that is then added to ``value`` (of an integer type). ``rule`` names the nodes, so that
    the runtime's error says what was violated.
    """
    outer, op.scope = op.scope, rule
    count = op.ReduceSum(op.Cast(violations, to=_INT64), keepdims=0)
    zero = op.Gather(op.const([0]), count, axis=0)
    checked = op.Add(value, op.Cast(zero, to=value.dtype))
    op.scope = outer
    return checked


_INT64 = 7  # onnx.TensorProto.INT64
