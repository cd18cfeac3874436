"""Passes based on patterns: their matches, counts and remaining nodes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from converters.passes.patterns import PatternPass, number, rewrite
from onnx_specops.building import constant_value
from tests.converters.passes.graphs import floats, graph, operators, run

pytestmark = pytest.mark.unverified  # the replacements here differ on purpose, to show that they were applied

X = np.array([-1, 0.5, 2], np.float32)
Y = np.array([3, -4, 0.25], np.float32)


def product_and_sigmoid(op, x):
    return op.Mul(x, op.Sigmoid(x))


def seen(root, pattern, emit, **settings):
    """Return a pass of one rewrite, and the list of its arguments at each match."""
    calls = []

    @rewrite(root, pattern, **settings)
    def replace(op, **matched):
        calls.append(matched)
        return emit(op, **matched)

    class Pass(PatternPass):
        rewrites = (replace,)

    return Pass(), calls


def softsign(op, *, x):
    return op.Softsign(x)


def test_a_pattern_is_replaced() -> None:
    model = graph(lambda op, x: op.Relu(op.Mul(x, op.Sigmoid(x))), floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign)
    result = passed(model)
    assert (result.modified, len(calls)) == (True, 1)
    assert calls[0]["x"] is model.graph.inputs[0]
    assert operators(model) == ["Relu", "Softsign"]
    np.testing.assert_allclose(run(model, X)[0], np.maximum(X / (1 + abs(X)), 0), strict=True)


def test_nothing_is_modified_without_a_match() -> None:
    model = graph(lambda op, x: op.Add(x, op.Sigmoid(x)), floats("x"))
    passed, calls = seen("Add", product_and_sigmoid, softsign)
    assert not passed(model).modified
    assert calls == []
    assert operators(model) == ["Add", "Sigmoid"]


@pytest.mark.parametrize("commute", [True, False])
def test_inputs_in_the_other_order(commute: bool) -> None:
    def either_order(op, x):
        return op.Add(op.Mul(x, op.Sigmoid(x)), op.Mul(op.Sigmoid(x), x))

    model = graph(either_order, floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign, commute=commute)
    passed(model)
    assert len(calls) == (2 if commute else 1)
    assert operators(model) == sorted(["Add", "Softsign", "Softsign"] if commute else ["Add", "Mul", "Sigmoid", "Softsign"])


def test_each_of_several_matches_counts() -> None:
    def chain(op, x):
        for _ in range(5):
            x = op.Mul(x, op.Sigmoid(x))
        return x

    model = graph(chain, floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign)
    passed(model)
    assert len(calls) == 5
    assert operators(model) == ["Softsign"] * 5
    assert not passed(model).modified


@pytest.mark.parametrize("exclusive", [True, False])
def test_inner_values_with_other_consumers(exclusive: bool) -> None:
    def shared(op, x):
        inner = op.Sigmoid(x)
        return [op.Mul(x, inner), op.Neg(inner)]

    model = graph(shared, floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign, exclusive=exclusive)
    passed(model)
    assert len(calls) == (0 if exclusive else 1)
    # Values with other consumers remain.
    assert operators(model) == (["Mul", "Neg", "Sigmoid"] if exclusive else ["Neg", "Sigmoid", "Softsign"])
    np.testing.assert_allclose(run(model, X)[1], -1 / (1 + np.exp(-X)), rtol=1e-6, strict=True)


@pytest.mark.parametrize("exclusive", [True, False])
def test_an_inner_value_that_is_an_output(exclusive: bool) -> None:
    def both(op, x):
        inner = op.Sigmoid(x)
        return [inner, op.Mul(x, inner)]

    model = graph(both, floats("x"))
    names = [output.name for output in model.graph.outputs]
    passed, calls = seen("Mul", product_and_sigmoid, softsign, exclusive=exclusive)
    passed(model)
    assert len(calls) == (0 if exclusive else 1)
    assert [output.name for output in model.graph.outputs] == names
    np.testing.assert_allclose(run(model, X)[0], 1 / (1 + np.exp(-X)), rtol=1e-6, strict=True)


def test_a_match_that_is_an_output_keeps_its_name() -> None:
    model = graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x"))
    name = model.graph.outputs[0].name
    passed, _ = seen("Mul", product_and_sigmoid, softsign)
    passed(model)
    assert [output.name for output in model.graph.outputs] == [name]
    assert operators(model) == ["Softsign"]
    np.testing.assert_allclose(run(model, X)[0], X / (1 + abs(X)), strict=True)


@pytest.mark.parametrize("becomes", ["input", "constant"])
def test_an_output_that_becomes_an_input_or_a_constant(becomes: str) -> None:
    model = graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x", 3))
    passed, _ = seen("Mul", product_and_sigmoid, lambda op, *, x: x if becomes == "input" else op.const(Y))
    passed(model)
    assert operators(model) == ["Identity"]
    np.testing.assert_array_equal(run(model, X)[0], X if becomes == "input" else Y, strict=True)


def test_nested_graphs() -> None:
    def branches(op, x):
        inner = lambda op: op.Mul(x, op.Sigmoid(x))  # noqa: E731
        return op.if_(op.Greater(op.Size(x), 2), inner, lambda op: op.Mul(op.Neg(x), op.Sigmoid(op.Neg(x))))

    model = graph(branches, floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign)
    passed(model)
    # -x is computed twice in the other branch: these are two values.
    assert len(calls) == 1
    assert operators(model).count("Softsign") == 1
    np.testing.assert_allclose(run(model, X)[0], X / (1 + abs(X)), strict=True)
    np.testing.assert_allclose(run(model, X[:2])[0], -X[:2] / (1 + np.exp(X[:2])), rtol=1e-6, strict=True)


def test_a_constant_in_a_replacement_within_a_branch() -> None:
    model = graph(
        lambda op, x: op.if_(op.Greater(op.Size(x), 2), lambda op: op.Mul(x, op.Sigmoid(x)), lambda op: x), floats("x")
    )
    passed, _ = seen("Mul", product_and_sigmoid, lambda op, *, x: op.Add(x, np.float32(7)))
    passed(model)
    np.testing.assert_array_equal(run(model, X)[0], X + 7, strict=True)
    np.testing.assert_array_equal(run(model, X[:1])[0], X[:1], strict=True)


def test_a_replacement_that_declines_keeps_the_graph() -> None:
    model = graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, lambda op, *, x: None)
    assert not passed(model).modified
    assert len(calls) == 1
    assert operators(model) == ["Mul", "Sigmoid"]


def test_a_replacement_of_another_shape_declines() -> None:
    """The number adds dimensions that the replacement lacks."""
    one = np.ones((1, 1), np.float32)
    model = graph(lambda op, x: op.Mul(x, op.const(one)), floats("x"))
    passed, calls = seen("Mul", lambda op, x: op.Mul(x, number(1)), lambda op, *, x: op.Relu(x))
    assert not passed(model).modified and len(calls) == 1
    assert operators(model) == ["Mul"]
    assert run(model, X)[0].shape == (1, 3)


def test_the_first_rewrite_that_matches_is_applied() -> None:
    @rewrite("Mul", product_and_sigmoid)
    def declines(op, *, x):
        return None

    @rewrite("Mul", product_and_sigmoid)
    def as_softsign(op, *, x):
        return op.Softsign(x)

    @rewrite("Mul", lambda op, x, y: op.Mul(x, y))
    def as_sum(op, *, x, y):
        return op.Add(x, y)

    class Pass(PatternPass):
        rewrites = (declines, as_softsign, as_sum)

    model = graph(lambda op, x, y: op.Mul(op.Mul(x, op.Sigmoid(x)), y), floats("x"), floats("y"))
    Pass()(model)
    assert operators(model) == ["Add", "Softsign"]
    np.testing.assert_allclose(run(model, X, Y)[0], X / (1 + abs(X)) + Y, strict=True)


def test_numbers_match_constants() -> None:
    def doubled(op, x):
        return op.Mul(x, 2.0)

    model = graph(lambda op, x: op.Mul(op.Mul(x, np.float32(2)), np.float32(3)), floats("x"))
    passed, calls = seen("Mul", doubled, lambda op, *, x: op.Add(x, x))
    passed(model)
    assert len(calls) == 1
    assert operators(model) == ["Add", "Mul"]
    np.testing.assert_array_equal(run(model, X)[0], X * 6, strict=True)


def test_inner_values_are_passed_by_name() -> None:
    def named(op, x):
        inner = op.Sigmoid(x, _outputs=["inner"])
        return op.Mul(x, inner)

    model = graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x"))
    passed, calls = seen("Mul", named, lambda op, *, x, inner: op.Add(x, inner))
    passed(model)
    assert set(calls[0]) == {"x", "inner"}
    assert operators(model) == ["Add", "Sigmoid"]
    np.testing.assert_allclose(run(model, X)[0], X + 1 / (1 + np.exp(-X)), rtol=1e-6, strict=True)


def test_patterns_with_several_results() -> None:
    def halves(op, x):
        first, second = op.Split(x, num_outputs=2, _outputs=["first", "second"])
        return op.Add(first, second)

    def both(op, x):
        first, second = op.Split(x, num_outputs=2, outputs=2)
        return op.Add(first, second)

    model = graph(both, floats("x", 4))
    passed, calls = seen("Add", halves, lambda op, *, x, first, second: op.Sub(first, second))
    passed(model)
    assert len(calls) == 1
    assert operators(model) == ["Split", "Sub"]
    np.testing.assert_array_equal(run(model, np.arange(4, dtype=np.float32))[0], np.float32([-2, -2]), strict=True)


def test_types_and_shapes_of_replacements() -> None:
    model = graph(lambda op, x: op.Relu(op.Mul(x, op.Sigmoid(x))), floats("x", 2, None))
    passed, _ = seen("Mul", product_and_sigmoid, softsign)
    passed(model)
    node = next(node for node in model.graph if node.op_type == "Softsign")
    assert (node.outputs[0].dtype, node.outputs[0].dims) == (model.graph.inputs[0].dtype, [2, None])
    assert node.name


@pytest.mark.parametrize(
    "pattern", [lambda op, x: op.Mul(x, 2.0), lambda op, x: op.Mul(x, number(2))], ids=["literal", "number"]
)
@pytest.mark.parametrize("overridable", [False, True])
def test_an_input_with_an_initializer_is_no_constant(pattern, overridable: bool) -> None:
    """A caller can replace it."""
    two = constant_value(np.float32(2), name="two")
    model = graph(lambda op, x: op.Mul(x, two), floats("x"))
    if overridable:
        model.graph.inputs.append(two)
    passed, _ = seen("Mul", pattern, softsign)
    assert passed(model).modified is not overridable


def test_patterns_do_not_keep_a_graph_in_memory() -> None:
    model = graph(lambda op, x: op.Relu(op.Mul(x, op.Sigmoid(x))), floats("x"))
    passed, calls = seen("Mul", product_and_sigmoid, softsign, commute=True)
    passed(model)
    calls.clear()
    alive = weakref.ref(model.graph)
    del model
    gc.collect()
    assert alive() is None
