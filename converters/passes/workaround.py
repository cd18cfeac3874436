"""The base class of passes for nodes that a program computes incorrectly or not at all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import replace_value


class Workaround(InPlacePass):
    """Replaces nodes of some operators of one domain.

    ``--verify`` does not check the replacements: ONNX Runtime may be unable to compute the original nodes.

    Attributes:
        operators: the names of the operators.
        domain: their domain; ONNX's by default.
        assumptions: after the pass, what must be true for the same results, by the name of a value.
    """

    operators: ClassVar[frozenset[str]]
    domain: ClassVar[str] = ""

    def __init__(self) -> None:
        self.assumptions: dict[str, str] = {}

    @abstractmethod
    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        """Return the replacements of the node's outputs; ``None``, before anything is emitted, to keep the node."""

    def call(self, model: ir.Model) -> PassResult:
        return Workarounds(self).call(model)


class Workarounds(InPlacePass):
    """Some workarounds in one traversal; a node is replaced by the first that applies, and not again."""

    def __init__(self, *workarounds: Workaround) -> None:
        self.by_operator: dict[tuple[str, str], list[Workaround]] = {}
        for workaround in workarounds:
            for operator in workaround.operators:
                self.by_operator.setdefault((workaround.domain, operator), []).append(workaround)

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            candidates = self.by_operator.get((node.domain, node.op_type))
            if candidates is None or not isinstance(node.graph, ir.Graph):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            values = next((found for one in candidates if (found := one.replacement(op, node)) is not None), None)
            if values is None:
                continue
            for old, new in zip(node.outputs, values, strict=True):
                replace_value(old, op.place(new), equal=False)
            node.graph.remove(node, safe=True)
            count += 1
        return PassResult(model, modified=count > 0)
