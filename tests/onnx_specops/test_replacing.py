"""Replacement of values: users, outputs, names, types, shapes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx_specops.building import Builder, new_value
from onnx_specops.replacing import replace_value
from tests.converters.passes.graphs import floats, graph, operators, run

X = np.array([-1, 0.5], np.float32)


def producers(model: ir.Model) -> list[str]:
    """Return the operators that produce the outputs."""
    return [output.producer().op_type for output in model.graph.outputs]


def names(model: ir.Model) -> list[str | None]:
    return [output.name for output in model.graph.outputs]


def test_every_user_gets_the_new_value() -> None:
    values = {}

    def emit(op, x):
        values["old"], values["new"] = op.Abs(x), op.Neg(x)
        return [op.Add(values["old"], values["old"]), op.Relu(values["old"])]

    model = graph(emit, floats("x"))
    before = values["old"].name
    replace_value(values["old"], values["new"])
    assert not values["old"].uses()
    assert values["new"].name == before != values["old"].name
    assert [output.tolist() for output in run(model, X)] == [(-2 * X).tolist(), np.maximum(-X, 0).tolist()]


@pytest.mark.parametrize("name", ["", None])
def test_an_unused_output_has_no_name_to_give(name: str | None) -> None:
    values = {}

    def emit(op, x):
        values["old"], values["new"] = op.Abs(x), op.Neg(x)
        return op.Relu(values["new"])

    graph(emit, floats("x"))
    values["old"].name, before = name, values["new"].name
    replace_value(values["old"], values["new"])
    assert values["new"].name == before


def test_an_output_becomes_another_value() -> None:
    values = {}

    def emit(op, x):
        values["old"], values["new"] = op.Abs(x), op.Neg(x)
        return values["old"]

    model = graph(emit, floats("x"))
    before = names(model)
    replace_value(values["old"], values["new"])
    assert names(model) == before
    assert producers(model) == ["Neg"]
    np.testing.assert_array_equal(run(model, X)[0], -X)


@pytest.mark.parametrize("kind", ["input", "constant", "earlier output", "later output"])
def test_an_output_becomes_a_copy_if_necessary(kind: str) -> None:
    values = {}

    def emit(op, x):
        earlier, values["old"], later = op.Neg(x), op.Abs(x), op.Exp(x)
        constant = op.place(op.const(np.float32([3, 4])))
        values["new"] = {"input": x, "constant": constant, "earlier output": earlier, "later output": later}[kind]
        return [values["old"], earlier, later]

    model = graph(emit, floats("x", 2))
    before, source = names(model), values["new"].name
    replace_value(values["old"], values["new"])
    assert names(model) == before
    assert len(set(before)) == 3
    assert values["new"].name == source
    assert producers(model) == ["Identity", "Neg", "Exp"]
    assert model.graph.outputs[0].dtype == ir.DataType.FLOAT
    assert list(model.graph.outputs[0].shape) == [2]
    expected = {"input": X, "constant": [3, 4], "earlier output": -X, "later output": np.exp(X)}[kind]
    first, second, third = run(model, X)
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_array_equal(second, -X)
    np.testing.assert_allclose(third, np.exp(X), rtol=1e-6)


def test_an_output_with_other_users() -> None:
    values = {}

    def emit(op, x):
        values["old"] = op.Abs(x)
        return [values["old"], op.Add(values["old"], values["old"])]

    model = graph(emit, floats("x", 2))
    before = names(model)
    replace_value(values["old"], model.graph.inputs[0])
    assert names(model) == before
    assert model.graph.inputs[0].name == "x"
    assert operators(model) == ["Abs", "Add", "Identity"]
    first, second = run(model, X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, 2 * X)


def test_a_duplicate_output() -> None:
    values = {}

    def emit(op, x):
        values["old"], values["new"] = op.Abs(x), op.Neg(x)
        return [values["old"], op.Identity(values["old"])]

    model = graph(emit, floats("x", 2))
    replace_value(values["old"], values["new"])
    assert [output.tolist() for output in run(model, X)] == [(-X).tolist()] * 2


def test_the_new_value_inherits_unknown_properties() -> None:
    model = graph(lambda op, x: op.Relu(op.Abs(x)), floats("x", 2, None))
    old = model.graph[0].outputs[0]
    new = new_value(None)
    node = ir.Node("", "Neg", [model.graph.inputs[0]], outputs=[new])
    model.graph.insert_before(model.graph[0], node)
    replace_value(old, new)
    assert (new.dtype, new.dims) == (ir.DataType.FLOAT, [2, None])


def test_the_new_value_keeps_known_properties() -> None:
    model = graph(lambda op, x: op.Relu(op.Abs(x)), floats("x", 2, None))
    op = Builder(model.graph, before=model.graph[0])
    new = op.Expand(model.graph.inputs[0], [2, 3])
    replace_value(next(node for node in model.graph if node.op_type == "Abs").outputs[0], new)
    assert new.dims == [2, 3]


def test_the_output_of_a_branch_becomes_a_value_from_outside() -> None:
    model = graph(lambda op, x: op.if_(op.Greater(op.Size(x), 1), lambda op: op.Abs(x), lambda op: op.Neg(x)), floats("x"))
    inner = next(node for node in ir.traversal.RecursiveGraphIterator(model.graph) if node.op_type == "Abs")
    replace_value(inner.outputs[0], model.graph.inputs[0])
    assert model.graph.inputs[0].name == "x"
    np.testing.assert_array_equal(run(model, X)[0], X)
    np.testing.assert_array_equal(run(model, X[:1])[0], -X[:1])
