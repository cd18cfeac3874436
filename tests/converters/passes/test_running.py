"""Passes run only on graphs that they may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.running import OperatorPass, Runner, run_in_order
from onnx_specops.building import Builder
from onnx_specops.domain import DOMAIN
from tests.converters.passes.graphs import floats, graph, operators


class _Counting(OperatorPass):
    """Count the runs."""

    operators = frozenset(("Exp", "Relu"))

    def __init__(self) -> None:
        self.runs = 0

    def call(self, model: ir.Model) -> PassResult:
        self.runs += 1
        return PassResult(model, modified=False)


class _OfTheDomain(_Counting):
    domain: ClassVar[str] = DOMAIN


class _Emitting(InPlacePass):
    """Emit a node that nothing uses."""

    def __init__(self, *, modified: bool) -> None:
        self.modified = modified

    def call(self, model: ir.Model) -> PassResult:
        Builder.of_existing(model.graph).Exp(model.graph.inputs[0])
        return PassResult(model, modified=self.modified)


class _Removing(RemoveUnusedNodesPass):
    """Count the runs."""

    runs = 0

    def call(self, model: ir.Model) -> PassResult:
        self.runs += 1
        return super().call(model)


def _in_a_branch(op, x):
    return op.If(op.Greater(op.ReduceMax(x), np.float32(0)), types=[(x.dtype, x.dims)], **_branches(op, x))


def _branches(op, x) -> dict[str, ir.Graph]:
    return {"then_branch": op.subgraph(lambda op: op.Relu(x)), "else_branch": op.subgraph(lambda op: op.Neg(x))}


@pytest.mark.parametrize(
    ("step", "emit", "runs"),
    [
        (_Counting, lambda op, x: op.Relu(x), 1),
        (_Counting, lambda op, x: op.Exp(x), 1),
        (_Counting, lambda op, x: op.Neg(x), 0),
        (_Counting, _in_a_branch, 1),
        (_OfTheDomain, lambda op, x: op.Relu(x), 0),
    ],
)
def test_a_pass_runs_if_one_of_its_operators_is_present(step: type[_Counting], emit: Callable, runs: int) -> None:
    counting = step()
    run_in_order([counting], graph(emit, floats("x")))
    assert counting.runs == runs


@pytest.mark.parametrize("modified", [False, True])
def test_a_pass_runs_on_operators_that_an_earlier_one_emits(modified: bool) -> None:
    before, after = _Counting(), _Counting()
    run_in_order([before, _Emitting(modified=modified), after], graph(lambda op, x: op.Neg(x), floats("x")))
    assert (before.runs, after.runs) == (0, 1)


def test_unused_nodes_are_removed_again_after_a_change_only() -> None:
    removing = _Removing()
    model = graph(lambda op, x: op.Neg(x), floats("x"))
    run_in_order([removing, _Counting(), removing], model)
    assert removing.runs == 1
    run_in_order([removing, _Emitting(modified=False), removing], model)
    assert (removing.runs, operators(model)) == (3, ["Neg"])


def test_the_result_says_whether_a_pass_changed_the_model() -> None:
    runner = Runner(graph(lambda op, x: op.Neg(x), floats("x")))
    assert [runner.run(step) for step in (_Counting(), _Emitting(modified=True), RemoveUnusedNodesPass())] == [
        False,
        True,
        True,
    ]
