"""If as both branches and a selection, for programs without control flow."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.copied_nodes import emitted
from converters.passes.workaround import InnerFirst
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import RANDOM, nested

_NODES = 1000
"""The largest number of nodes of both branches."""


class SelectedBranches(InnerFirst):
    """Compute both branches of an If, and select the results with Where.

    QNN (2.7) leaves branches that read values of the graph around them to the CPU. Other programs have no If. Conditions:
    known and equal shapes of the results, and at most 1,000 nodes, none of which is a Loop or Scan, or computes random
    numbers.
    """

    operators = frozenset(("If",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition = node.inputs[0]
        branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        inner = [one for branch in branches for one in branch]
        if not isinstance(condition, Value) or len(inner) > _NODES:
            return None
        if any(nested(one) or (not one.domain and one.op_type in RANDOM) for one in inner):
            return None
        if any(not _selects(*pair) for pair in zip(*(branch.outputs for branch in branches), strict=True)):
            return None
        condition = condition if condition.rank == 0 else op.Reshape(condition, [])
        pairs = zip(*(emitted(op, branch) for branch in branches), strict=True)
        return [op.Where(condition, *pair) for pair in pairs]


def _selects(one: ir.Value, other: ir.Value) -> bool:
    """Return whether two values have the same known shape and a type that Where has."""
    if one.dtype is None or one.dtype != other.dtype or one.dtype == ir.DataType.STRING:
        return False
    dims, others = (None if value.shape is None else list(value.shape) for value in (one, other))
    return dims is not None and dims == others and all(isinstance(size, int) for size in dims)
