"""Passes that rewrite a graph for another opset: its nodes, then its element types."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import nested, origin
from onnx_specops.lowering import (  # noqa: F401  (importing them registers the adapters)
    arithmetic,
    networks,
    reductions,
    sampling,
    scattering,
    shapes,
    signal,
)
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, adapters
from onnx_specops.lowering.checking import form_problem, illegal, least_opset, settle_attributes
from onnx_specops.lowering.types import widen_absent_types
from onnx_specops.lowering.unsupported import LoweringError, UnsupportedNode
from onnx_specops.lowering.versions import check_opset, ir_version, opset_imports
from onnx_specops.replacing import replace_value


class Lower(InPlacePass):
    """Rewrite every standard node for ``opset``. Element types may need casts afterwards.

    Args:
        opset: the target opset.
        found: problems that are already known when the pass runs.

    Raises (within onnx_ir's ``PassError``):
        LoweringError: all nodes without an equivalent.
    """

    def __init__(self, opset: int, found: Sequence[UnsupportedNode] = ()) -> None:
        check_opset(opset)
        self.opset, self.found = opset, found

    def call(self, model: ir.Model) -> PassResult:
        unsupported = [*self.found, *widen_absent_types(model, self.opset)]
        changed = self._lower(model.graph, unsupported)
        if unsupported:
            raise LoweringError(unsupported)
        return PassResult(model, modified=changed)

    def _lower(self, graph: ir.Graph, unsupported: list[UnsupportedNode]) -> bool:
        root = Builder.of_existing(graph)
        changed = False
        pending = list(reversed(list(graph)))
        while pending:
            node = pending.pop()
            try:
                emitted = self._lower_node(node, root)
            except NotRepresentableError as error:
                unsupported.append(UnsupportedNode(node.name or "", str(error), self._least(node), origin(node)))
                continue
            changed |= emitted is not None
            pending += [inner for inside in reversed(nested(node)) for inner in reversed(list(inside))]
            pending += reversed(emitted or ())
        return changed

    def _lower_node(self, node: ir.Node, root: Builder) -> list[ir.Node] | None:
        """Rewrite one node; return the new nodes, or ``None`` if the node remains."""
        if node.domain or node.version == self.opset:
            return None
        for adapter in adapters(node.op_type):
            if adapter.opset <= self.opset:
                break
            op = LoweringBuilder(self.opset, node, root)
            results = adapter(op, node)
            if results is not SAME:
                _replace(op, node, [results] if isinstance(results, ir.Value) else list(results))
                return op.emitted
        settle_attributes(node, self.opset)
        if problem := form_problem(node, self.opset):
            raise NotRepresentableError(problem)
        return None

    def _least(self, node: ir.Node) -> int:
        opsets = [adapter.opset for adapter in adapters(node.op_type) if adapter.opset > self.opset]
        return min(opsets, default=least_opset(node, self.opset))


def _replace(op: LoweringBuilder, node: ir.Node, results: list[ir.Value]) -> None:
    own = {value for emitted in op.emitted for value in emitted.outputs}
    for old, new in zip(node.outputs, results, strict=True):
        if old is new:  # an unused output
            continue
        placed = op.place(new) if isinstance(new, Value) else new
        if placed in own and old.shape is not None:
            placed.shape = old.shape
        replace_value(old, placed, equal=False)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


class Stamp(InPlacePass):
    """Set the opset and the version of the file format after checking that every node is valid in the opset.

    Raises (within onnx_ir's ``PassError``):
        LoweringError: all invalid nodes.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def call(self, model: ir.Model) -> PassResult:
        graphs = [model.graph, *(function.graph for function in model.functions.values())]
        if unsupported := [unsupported for graph in graphs for unsupported in illegal(graph, self.opset)]:
            raise LoweringError(unsupported)
        imports = opset_imports(self.opset)
        for graph in graphs:
            graph.opset_imports.update(
                {domain: version for domain, version in imports.items() if domain in graph.opset_imports}
            )
        model.ir_version = ir_version(self.opset)
        return PassResult(model, modified=True)
