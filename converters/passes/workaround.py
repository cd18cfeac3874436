"""The base class of passes for nodes that a program computes incorrectly or not at all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass, Operators, SelectivePass
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of
from onnx_specops.replacing import may_replace, replace_value, rewriting


class Workaround(OperatorPass):
    """Replaces nodes of some operators of one domain.

    Attributes:
        equal: whether ONNX Runtime computes the same from a node and from its replacement. Only then are they compared.
        finite: whether they are the same for finite numbers only.
        tolerance: the allowed absolute difference.
        assumptions: after the pass, the conditions under which the results are the same, by the name of a value.
    """

    equal: ClassVar[bool] = True
    finite: ClassVar[bool] = False
    tolerance: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.assumptions: dict[str, str] = {}

    @abstractmethod
    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        """Return the replacements of the node's outputs; ``None``, before anything is emitted, to keep the node."""

    def call(self, model: ir.Model) -> PassResult:
        return Workarounds(self).call(model)


class InnerFirst(Workaround):
    """Replaces nodes without nested graphs in their own graphs, until none is left: inner nodes before those around them."""

    def call(self, model: ir.Model) -> PassResult:
        modified = False
        while super().call(model).modified:
            modified = True
        return PassResult(model, modified=modified)


class KernelWorkaround(Workaround):
    """Replaces nodes that ONNX Runtime computes incorrectly or not at all, so replacements are not compared with them."""

    equal = False


def again(op: Builder, node: ir.Node, *inputs: ir.Value | None, **changes: Any) -> Value:
    """Emit a node with one output again, with other inputs and some other attributes; ``None`` removes an attribute."""
    (result,) = node.outputs
    types = [(result.dtype, None if result.shape is None else list(result.shape))]
    emitted: Value = op.node(node.op_type, *inputs, domain=node.domain, types=types, **(attributes_of(node) | changes))
    return emitted


class Workarounds(SelectivePass):
    """Some workarounds in one traversal; a node is replaced by the first that applies, and not again."""

    def __init__(self, *workarounds: Workaround) -> None:
        self.by_operator: dict[tuple[str, str], list[Workaround]] = {}
        for workaround in workarounds:
            for operator in workaround.operators:
                self.by_operator.setdefault((workaround.domain, operator), []).append(workaround)

    def may_change(self, operators: Operators) -> bool:
        return not operators.isdisjoint(self.by_operator)

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            candidates = self.by_operator.get((node.domain, node.op_type))
            if candidates is None or not isinstance(node.graph, ir.Graph):
                continue
            root = root or Builder.of_existing(model.graph)
            count += any(_replaced(node, workaround, root) for workaround in candidates)
        return PassResult(model, modified=count > 0)


def _replaced(node: ir.Node, workaround: Workaround, root: Builder) -> bool:
    op = Builder.before_node(node, root)
    values = workaround.replacement(op, node)
    if values is None:
        return False
    pairs = [(old, op.place(new)) for old, new in zip(node.outputs, values, strict=True)]
    with rewriting(type(workaround).__name__, finite=workaround.finite, tolerance=workaround.tolerance):
        if workaround.equal and not may_replace(pairs):
            return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True
