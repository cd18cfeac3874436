"""The pass that goes through a graph and says each node in the terms of another opset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import OPSET, Builder, NodeError
from onnx_specops.lowering import (  # noqa: F401  (importing them registers the adapters)
    arithmetic,
    networks,
    reductions,
    sampling,
    scattering,
    shapes,
    signal,
)
from onnx_specops.lowering.adapters import SAME, CannotSayError, LoweringBuilder, adapters
from onnx_specops.lowering.versions import check_opset, ir_version, opset_imports
from onnx_specops.replacing import take_place


@dataclass(frozen=True)
class Refusal:
    """A node that the opset aimed at cannot say.

    Attributes:
        node_name: the node's name, or that of an input or output of the model.
        message: what cannot be said.
        least: the least opset that can.
    """

    node_name: str
    message: str
    least: int


class LoweringError(ValueError):
    """Nodes that the opset aimed at cannot say.

    Attributes:
        refusals: all of them.
    """

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(f"{r.node_name}: {r.message} (opset {r.least} can)" for r in self.refusals))


class Lower(InPlacePass):
    """Says every standard node in the terms of ``opset``; of the domain's nodes only their functions are looked into.

    Raises (within onnx_ir's ``PassError``):
        LoweringError: with all nodes that cannot be said.
    """

    def __init__(self, opset: int) -> None:
        check_opset(opset)
        self.opset = opset

    def call(self, model: ir.Model) -> PassResult:
        refusals: list[Refusal] = []
        changed = self._lower(model.graph, refusals, function=False)
        for function in model.functions.values():
            changed |= self._lower(function.graph, refusals, function=True)
            function.opset_imports.update(_imports(function.opset_imports, self.opset))
        if refusals:
            raise LoweringError(refusals)
        model.graph.opset_imports.update(_imports(model.graph.opset_imports, self.opset))
        model.ir_version = ir_version(self.opset)
        return PassResult(model, modified=changed)

    def _lower(self, graph: ir.Graph, refusals: list[Refusal], *, function: bool) -> bool:
        root = Builder(graph, function=function)
        root.reserve(_names(graph))
        changed = False
        pending = list(reversed(list(graph)))
        while pending:
            node = pending.pop()
            try:
                emitted = self._say(node, root)
            except CannotSayError as error:
                refusals.append(Refusal(node.name or "", str(error), _least(node, self.opset)))
                continue
            changed |= emitted is not None
            pending.extend(reversed([*_nested(node), *(emitted or ())]))
        return changed

    def _say(self, node: ir.Node, root: Builder) -> list[ir.Node] | None:
        """Say one node; returns the nodes that stand in its place, ``None`` where it stays."""
        if node.domain or node.version == self.opset:
            return None
        for adapter in adapters(node.op_type):
            if adapter.opset <= self.opset:
                return None
            op = LoweringBuilder(self.opset, node, root)
            results = adapter(op, node)
            if results is SAME:
                continue
            _replace(node, [op.place(value) for value in ([results] if isinstance(results, ir.Value) else results)])
            return op.emitted
        return None


def _replace(node: ir.Node, results: list[ir.Value]) -> None:
    for old, new in zip(node.outputs, results, strict=True):
        take_place(old, new)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _least(node: ir.Node, opset: int) -> int:
    """The least opset above ``opset`` in which the node says what it means."""
    return min((adapter.opset for adapter in adapters(node.op_type) if adapter.opset > opset), default=OPSET)


def _imports(present: dict[str, int], opset: int) -> dict[str, int]:
    return {domain: version for domain, version in opset_imports(opset).items() if domain in present}


def _nested(node: ir.Node) -> Iterator[ir.Node]:
    if node.graph is None:  # replaced
        return
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from attribute.as_graph()


def _names(graph: ir.Graph) -> Iterator[str | None]:
    yield from (value.name for value in graph.inputs)
    yield from graph.initializers
    for node in ir.traversal.RecursiveGraphIterator(graph):
        yield from (value.name for value in node.outputs)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from (value.name for value in attribute.as_graph().inputs)
