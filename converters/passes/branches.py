"""Move nodes that only one branch of an If needs into that branch.

Rules emit the inputs of a layer before the layer. If the layer is an If, such as the choice between a variable and its
initial value, the inputs of the unselected branch would be computed unnecessarily.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.graphs import RANDOM, all_nodes, nested


class MoveIntoBranches(OperatorPass):
    """Move nodes that only one branch of an If needs into that branch, including nodes of nested graphs."""

    operators = frozenset(("If",))

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=_moved(model.graph) > 0)


def _moved(graph: ir.Graph) -> int:
    """Move nodes within a graph and its nested graphs, and return their number."""
    branches: dict[ir.Graph | ir.Function, ir.Graph] = {}
    for node in graph:
        if node.op_type == "If" and not node.domain:
            for branch in nested(node):
                branches |= dict.fromkeys((branch, *_within(branch)), branch)
    count, names = 0, {branch: {node.name for node in branch} for branch in set(branches.values())}
    for node in reversed(graph) if branches else ():
        taking = _branch_of(node, branches)
        if taking is not None:
            graph.remove(node)
            _rename(node, names[taking])
            taking.insert_before(taking[0], node)
            branches |= dict.fromkeys(_graphs_of(node), taking)
            count += 1
    return count + sum(_moved(branch) for node in graph for branch in nested(node))


def _rename(node: ir.Node, names: set[str | None]) -> None:
    """Give a node an unused name, because each graph numbers its unnamed nodes separately."""
    while node.name in names:
        node.name = f"{node.name}_moved"
    names.add(node.name)


def _within(graph: ir.Graph) -> list[ir.Graph]:
    return [inner for node in all_nodes(graph) for inner in nested(node)]


def _graphs_of(node: ir.Node) -> list[ir.Graph]:
    return [inner for branch in nested(node) for inner in (branch, *_within(branch))]


def _branch_of(node: ir.Node, branches: dict[ir.Graph | ir.Function, ir.Graph]) -> ir.Graph | None:
    """Return the only branch that uses the results of a node; ``None`` if there is none."""
    if node.op_type in RANDOM or any(value.is_graph_output() for value in node.outputs):
        return None
    users = {user.graph for value in node.outputs for user, _ in value.uses()}
    taking = {None if user is None else branches.get(user) for user in users}
    return taking.pop() if len(taking) == 1 else None
