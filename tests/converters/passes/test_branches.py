"""Nodes that only one branch of an If uses move into it, without changing the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.passes.branches import MoveIntoBranches
from onnx_specops.building import Builder, Value, new_value

Make = Callable[[Builder, Value, Value], Value]


def moved(make: Make) -> tuple[list[str], list[Any]]:
    """Return the outer graph's operators after the pass, and the model's results for true and false."""
    condition, x = new_value(ir.DataType.BOOL, [], "condition"), new_value(ir.DataType.FLOAT, [2, 3], "x")
    graph = ir.Graph([condition, x], [], nodes=[], opset_imports={"": 21}, name="main")
    op = Builder(graph)
    result = op.result(make(op, condition, x))
    result.name = "result"
    graph.outputs.append(result)
    model = ir.Model(graph, ir_version=10)
    feeds = [{"condition": np.array(c), "x": np.arange(6, dtype=np.float32).reshape(2, 3) - 2} for c in (True, False)]
    before = [run(model, feed) for feed in feeds]
    MoveIntoBranches()(model)
    after = [run(model, feed) for feed in feeds]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    return [node.op_type for node in graph], after


def run(model: ir.Model, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(ir.serde.serialize_model(model).SerializeToString())
    found: np.ndarray = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})[0]
    return found


def of_one_branch(op: Builder, condition: Value, x: Value) -> Value:
    begun = op.Exp(op.Abs(x))
    return op.if_(condition, lambda op: x, lambda op: op.Neg(begun))


def of_both(op: Builder, condition: Value, x: Value) -> Value:
    begun = op.Abs(x)
    return op.if_(condition, lambda op: op.Neg(begun), lambda op: op.Exp(begun))


def of_the_outer_graph_too(op: Builder, condition: Value, x: Value) -> Value:
    begun = op.Abs(x)
    return op.Add(begun, op.if_(condition, lambda op: op.Neg(begun), lambda op: x))


def of_the_condition(op: Builder, condition: Value, x: Value) -> Value:
    turned = op.Not(condition)
    return op.if_(turned, lambda op: x, lambda op: op.Neg(x))


def of_an_if_within(op: Builder, condition: Value, x: Value) -> Value:
    begun = op.Abs(x)

    def inner(op: Builder) -> Value:
        return op.if_(op.Not(condition), lambda op: op.Exp(begun), lambda op: op.Neg(x))

    return op.if_(condition, lambda op: op.Identity(x), inner)


def of_a_loop_within(op: Builder, condition: Value, x: Value) -> Value:
    """The node moves into the If, not into the Loop, which would compute it repeatedly."""
    begun = op.Abs(x)

    def repeated(op: Builder) -> Value:
        return op.loop(3, op.const(np.bool_(True)), lambda op, _step, on, total: (on, op.Add(total, begun)), x)

    return op.if_(condition, repeated, lambda op: op.Neg(x))


def of_another_if(op: Builder, condition: Value, x: Value) -> Value:
    """The other If is in a branch itself."""
    begun = op.Abs(x)
    chosen = op.if_(op.Not(condition), lambda op: op.Exp(begun), lambda op: op.Identity(x))
    return op.if_(condition, lambda op: op.Identity(x), lambda op: op.Neg(chosen))


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (of_one_branch, ["If"]),
        (of_both, ["Abs", "If"]),
        (of_the_outer_graph_too, ["Abs", "If", "Add"]),
        (of_the_condition, ["Not", "If"]),
        (of_an_if_within, ["If"]),
        (of_a_loop_within, ["If"]),
        (of_another_if, ["If"]),
    ],
)
def test_nodes_that_move(make: Make, left: list[str]) -> None:
    outer, _ = moved(make)
    assert outer == left


def test_random_nodes_do_not_move() -> None:
    def drawn(op: Builder, condition: Value, x: Value) -> Value:
        begun = op.RandomUniformLike(x, seed=1.0)
        return op.if_(condition, lambda op: x, lambda op: op.Mul(op.const(np.float32(0)), begun))

    assert moved(drawn)[0] == ["RandomUniformLike", "If"]
