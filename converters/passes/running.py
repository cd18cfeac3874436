"""The execution of passes in order, without those that cannot change the graph.

Most graphs contain few of the operators that passes look for. The runner finds the operators of a graph once, and again only
after a pass has changed it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass
from onnx_ir.passes.common import RemoveUnusedNodesPass

from onnx_specops.graphs import all_nodes

Operators = Set[tuple[str, str]]
"""Domains and names of operators."""


class SelectivePass(InPlacePass):
    """A pass that changes only graphs that contain nodes of some operators."""

    @abstractmethod
    def may_change(self, operators: Operators) -> bool:
        """Return whether the pass may change a graph that contains these operators, including those of nested graphs."""


class OperatorPass(SelectivePass):
    """A pass that changes only graphs that contain one of its operators.

    Attributes:
        operators: the names of the operators.
        domain: their domain; ONNX's by default.
    """

    operators: ClassVar[frozenset[str]]
    domain: ClassVar[str] = ""

    def may_change(self, operators: Operators) -> bool:
        return any((self.domain, operator) in operators for operator in self.operators)


class Runner:
    """Runs passes on a model. Between two runs of one `Runner`, nothing else changes the model.

    Args:
        model: the model.
        around: returns the context of a pass; by default there is none.
    """

    def __init__(
        self, model: ir.Model, around: Callable[[InPlacePass], AbstractContextManager[None]] = lambda step: nullcontext()
    ) -> None:
        self._model, self._around = model, around
        self._operators: Operators | None = None
        self._may_have_unused = True

    def run(self, step: InPlacePass) -> bool:
        """Run a pass, unless it cannot change the model. Return whether it changed the model, as far as it knows."""
        if isinstance(step, SelectivePass) and not step.may_change(self._present()):
            return False
        removes = isinstance(step, RemoveUnusedNodesPass)
        if removes and not self._may_have_unused:
            return False
        before = self._size()
        with self._around(step):
            modified = step(self._model).modified
        if modified or self._size() != before:  # a pass may leave nodes that it did not use
            self._operators = None
            self._may_have_unused = True
        if removes:
            self._may_have_unused = False
        return modified

    def _present(self) -> Operators:
        """Return the operators of the model."""
        if self._operators is None:
            self._operators = {(node.domain, node.op_type) for node in all_nodes(self._model.graph)}
        return self._operators

    def _size(self) -> tuple[int, int]:
        graph = self._model.graph
        return len(graph), len(graph.initializers)


def run_in_order(
    passes: Sequence[InPlacePass],
    model: ir.Model,
    around: Callable[[InPlacePass], AbstractContextManager[None]] = lambda step: nullcontext(),
) -> None:
    """Run passes on a model, each in the context that ``around`` returns for it."""
    runner = Runner(model, around)
    for step in passes:
        runner.run(step)
