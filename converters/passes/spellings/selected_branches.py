"""If as both branches and a selection, for programs without control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import RANDOM, attributes_of, nested

_NODES = 1000
"""The largest number of nodes of both branches."""


class SelectedBranches(Workaround):
    """Compute both branches of an If, and select the results with Where.

    QNN (2.7) leaves branches that read values of the graph around them to the CPU. Other programs have no If. Conditions:
    known and equal shapes of the results, and at most 1,000 nodes, none of which is a Loop or Scan, or computes random
    numbers.
    """

    operators = frozenset(("If",))

    def call(self, model: ir.Model) -> PassResult:
        modified = False
        while super().call(model).modified:  # an inner If first, then the one around it
            modified = True
        return PassResult(model, modified=modified)

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
        pairs = zip(*(_inlined(op, branch) for branch in branches), strict=True)
        return [op.Where(condition, *pair) for pair in pairs]


def _selects(one: ir.Value, other: ir.Value) -> bool:
    """Return whether two values have the same known shape and a type that Where has."""
    if one.dtype is None or one.dtype != other.dtype or one.dtype == ir.DataType.STRING:
        return False
    dims, others = (None if value.shape is None else list(value.shape) for value in (one, other))
    return dims is not None and dims == others and all(isinstance(size, int) for size in dims)


def _inlined(op: Builder, graph: ir.Graph) -> list[Value]:
    """Emit the nodes of a branch, and return its results."""
    values: dict[ir.Value | None, Any] = {value: op.const(value.const_value) for value in graph.initializers.values()}
    for node in graph:
        given = [values.get(value, value) for value in node.inputs]
        found = op.node(node.op_type, *given, domain=node.domain, outputs=len(node.outputs), **attributes_of(node))
        values |= zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True)
    return [values.get(value, value) for value in graph.outputs]
