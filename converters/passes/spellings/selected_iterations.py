"""Loops that end early as all their iterations and selections, for programs without control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.copied_nodes import emitted
from converters.passes.loops import most_iterations
from converters.passes.spellings.selected_branches import SelectedBranches, is_unsafe, selected, selects
from converters.passes.workaround import InnerFirst
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array, nested

_NODES = 10_000
"""The largest number of nodes of all iterations."""


class SelectedIterations(InnerFirst):
    """Unroll a Loop that may end early, and select the states of its last iteration with Where.

    Most programs other than ONNX Runtime do not support control flow. All iterations are computed, and an If in the body
    becomes a selection, too. Conditions: a constant largest number of iterations, which is the trip count or a limit of a
    counter in the condition; known shapes of the states; no stacked results; and at most 10,000 nodes, none of which is a
    Loop or Scan, computes random numbers, divides integers by numbers that may be 0, or has computed indices that may be
    out of range.
    """

    operators = frozenset(("Loop",))

    def call(self, model: ir.Model) -> PassResult:
        branches = _BranchesOfLoops().call(model)
        return PassResult(model, modified=super().call(model).modified or branches.modified)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        body = node.attributes["body"].as_graph()
        start, states = node.inputs[1], body.outputs[1:]
        first = constant_array(start)
        if len(states) != len(node.inputs) - 2 or (first is not None and not first.all()):
            return None
        if any(is_unsafe(inner) for inner in body) or any(not selects(state, state) for state in states):
            return None
        limit = most_iterations(node, _NODES // max(len(body), 1))
        if limit is None or limit[1]:
            return None  # its number of iterations has no limit, or it does not end early
        count = limit[0]
        active = start if isinstance(start, Value) and first is None else None
        before: list[Any] = list(node.inputs[2:])
        if active is not None and any(not selects(*pair) for pair in zip(before, states, strict=True)):
            return None
        active = None if active is None else _scalar(op, active)
        final = before
        for iteration in range(count):
            given = [op.const(iteration, ir.DataType.INT64), op.const(True, ir.DataType.BOOL), *before]
            goes_on, *after = emitted(op, body, given)
            final = after if active is None else [selected(op, active, *pair) for pair in zip(after, final, strict=True)]
            # After the end, the iterations may count on, because their states are not selected.
            before = [new if new.const_value is not None else one for new, one in zip(after, final, strict=True)]
            if iteration + 1 < count:
                active = _scalar(op, goes_on) if active is None else op.And(active, _scalar(op, goes_on))
        return final


def _scalar(op: Builder, condition: Value) -> Value:
    return condition if condition.rank == 0 else op.Reshape(condition, [])


class _BranchesOfLoops(SelectedBranches):
    """Select the results of the branches in Loops only."""

    def __init__(self) -> None:
        super().__init__()
        self.graphs: set[ir.Graph] = set()

    def call(self, model: ir.Model) -> PassResult:
        loops = [node for node in all_nodes(model.graph) if node.op_type == "Loop" and not node.domain]
        bodies = [one for loop in loops for body in nested(loop) for one in all_nodes(body)]
        self.graphs = {one.graph for one in bodies if isinstance(one.graph, ir.Graph)}
        return super().call(model)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return super().replacement(op, node) if node.graph in self.graphs else None
