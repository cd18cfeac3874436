"""If as both branches and a selection, for programs without control flow."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.copied_nodes import emitted
from converters.passes.workaround import InnerFirst
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import RANDOM, constant_array, nested

_NODES = 1000
"""The largest number of nodes of both branches."""


class SelectedBranches(InnerFirst):
    """Compute both branches of an If, and select the results with Where.

    QNN (2.7) leaves branches that read values of the graph around them to the CPU. Other programs have no If. Conditions:
    known and equal shapes of the results, and at most 1,000 nodes, none of which is a Loop or Scan, computes random
    numbers, divides integers by numbers that may be 0, or has computed indices that may be out of range.
    """

    operators = frozenset(("If",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition = node.inputs[0]
        branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        inner = [one for branch in branches for one in branch]
        if not isinstance(condition, Value) or len(inner) > _NODES:
            return None
        if any(is_unsafe(one) for one in inner):
            return None
        if any(not selects(*pair) for pair in zip(*(branch.outputs for branch in branches), strict=True)):
            return None
        condition = condition if condition.rank == 0 else op.Reshape(condition, [])
        pairs = zip(*(emitted(op, branch) for branch in branches), strict=True)
        return [selected(op, condition, *pair) for pair in pairs]


_INDEXED = frozenset(("GatherElements", "GatherND", "ScatterElements", "ScatterND"))
"""Operators that fail for indices out of range. The converter protects the indices of Gather."""


def is_unsafe(node: ir.Node) -> bool:
    """Return whether a node must not run if its results are not used: it has nested graphs, is random, or may fail."""
    if node.domain:
        return bool(nested(node))
    second = node.inputs[1] if len(node.inputs) > 1 else None
    if node.op_type in ("Div", "Mod") and second is not None and (second.dtype is None or second.dtype.is_integer()):
        divisor = constant_array(second)
        return divisor is None or not divisor.all()
    return bool(nested(node)) or node.op_type in RANDOM or (node.op_type in _INDEXED and constant_array(second) is None)


def selected(op: Builder, condition: Value, one: Value, other: Value) -> Value:
    """Emit the selection of a value, or of another one if a scalar condition is false.

    ONNX Runtime has no Where of booleans.
    """
    if one.dtype == ir.DataType.BOOL:
        if (array := constant_array(other)) is not None and not array.any():
            return op.And(condition, one)
        return op.Or(op.And(condition, one), op.And(op.Not(condition), other))
    return op.Where(condition, one, other)


def selects(one: ir.Value, other: ir.Value) -> bool:
    """Return whether two values have the same known shape and a type that Where has."""
    if one.dtype is None or one.dtype != other.dtype or one.dtype == ir.DataType.STRING:
        return False
    dims, others = (None if value.shape is None else list(value.shape) for value in (one, other))
    return dims is not None and dims == others and all(isinstance(size, int) for size in dims)
