"""Transposed constants are stored in their transposed layout."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.constant_transposes import FoldConstantTransposes
from tests.converters.passes.graphs import floats, graph, operators, run

# More elements than the builder folds.
SHAPE = (30, 40, 20)
WEIGHTS = np.random.default_rng(0).integers(-9, 9, SHAPE).astype(np.float32)
X = np.ones((1,), np.float32)


def folded(emit) -> tuple[ir.Model, bool]:
    model = graph(emit, floats("x", 1))
    modified = FoldConstantTransposes()(model).modified
    RemoveUnusedNodesPass()(model)
    return model, modified


@pytest.mark.parametrize("perm", [(2, 0, 1), (1, 0, 2), (2, 1, 0)])
def test_a_transposed_constant_is_a_constant(perm: tuple[int, ...]) -> None:
    model, modified = folded(lambda op, x: op.Add(op.Transpose(op.const(WEIGHTS), perm=perm), x))
    assert modified
    assert operators(model) == ["Add"]
    (weights,) = model.graph.initializers.values()
    assert list(weights.shape) == [SHAPE[axis] for axis in perm]
    np.testing.assert_array_equal(run(model, X)[0], WEIGHTS.transpose(perm) + 1, strict=True)


def test_transposes_of_strings_stay() -> None:
    words = np.array([f"word {k}".encode() for k in range(1200)], object).reshape(30, 40)

    def emit(op, x):
        return op.Identity(x), op.Transpose(op.const(words, ir.DataType.STRING), perm=(1, 0))

    model, modified = folded(emit)
    assert not modified
    assert operators(model) == ["Identity", "Transpose"]


@pytest.mark.unverified  # each replacement would be verified with all nodes before it
@pytest.mark.parametrize("count", [1, 2, 3, 1501, 1502])
def test_transposes_of_a_transposed_constant(count: int) -> None:
    """They are computed from the first constant: the order is (2, 0, 1), and three of them have no effect."""

    def emit(op, x):
        value = op.const(WEIGHTS)
        for _ in range(count):
            value = op.Transpose(value, perm=[2, 0, 1])
        return op.Add(value, x)

    model, _ = folded(emit)
    assert operators(model) == ["Add"]
    (weights,) = model.graph.initializers.values()
    assert len(weights.name or "") < 100
    expected = WEIGHTS
    for _ in range(count % 3):
        expected = expected.transpose(2, 0, 1)
    np.testing.assert_array_equal(run(model, X)[0], expected + 1, strict=True)


def test_axes_are_reversed_by_default() -> None:
    model, _ = folded(lambda op, x: op.Add(op.node("Transpose", op.const(WEIGHTS)), x))
    assert operators(model) == ["Add"]
    np.testing.assert_array_equal(run(model, X)[0], WEIGHTS.T + 1, strict=True)


@pytest.mark.parametrize("perms", [[(2, 0, 1)] * 2, [(2, 0, 1), (1, 0, 2)]])
def test_a_constant_that_is_transposed_twice(perms: list[tuple[int, ...]]) -> None:
    def emit(op, x):
        weights = op.const(WEIGHTS)
        return [op.Add(op.Transpose(weights, perm=perm), x) for perm in perms]

    model, _ = folded(emit)
    assert operators(model) == ["Add", "Add"]
    assert len(model.graph.initializers) == len(set(perms))
    for output, perm in zip(run(model, X), perms, strict=True):
        np.testing.assert_array_equal(output, WEIGHTS.transpose(perm) + 1, strict=True)


def test_the_constant_itself_may_be_used_too() -> None:
    def emit(op, x):
        weights = op.const(WEIGHTS)
        return [op.Add(op.Transpose(weights, perm=[1, 0, 2]), x), op.Add(weights, x)]

    model, _ = folded(emit)
    assert len(model.graph.initializers) == 2
    np.testing.assert_array_equal(run(model, X)[1], WEIGHTS + 1, strict=True)


def test_the_cast_of_weights_stored_in_16_bits_comes_after() -> None:
    def emit(op, x):
        wide = op.Cast(op.const(WEIGHTS.astype(np.float16)), to=ir.DataType.FLOAT)
        return op.Add(op.Transpose(wide, perm=[2, 1, 0]), x)

    model, _ = folded(emit)
    assert operators(model) == ["Add", "Cast"]
    (weights,) = model.graph.initializers.values()
    assert weights.dtype == ir.DataType.FLOAT16
    np.testing.assert_array_equal(run(model, X)[0], WEIGHTS.T + 1, strict=True)


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("also_used", [False, True])
def test_a_transposed_constant_that_is_an_output(cast: bool, also_used: bool) -> None:
    def emit(op, x):
        weights = op.const(WEIGHTS.astype(np.float16) if cast else WEIGHTS)
        turned = op.Transpose(op.Cast(weights, to=ir.DataType.FLOAT) if cast else weights, perm=[1, 2, 0])
        return [turned, op.Add(turned, x)] if also_used else turned

    model = graph(emit, floats("x", 1))
    names = [output.name for output in model.graph.outputs]
    assert FoldConstantTransposes()(model).modified
    RemoveUnusedNodesPass()(model)
    assert [output.name for output in model.graph.outputs] == names
    assert "Transpose" not in operators(model)
    outputs = run(model, X)
    np.testing.assert_array_equal(outputs[0], WEIGHTS.transpose(1, 2, 0), strict=True)
    if also_used:
        np.testing.assert_array_equal(outputs[1], WEIGHTS.transpose(1, 2, 0) + 1, strict=True)


def test_two_outputs_of_one_transposed_constant() -> None:
    def emit(op, x):
        weights = op.const(WEIGHTS)
        return [op.node("Transpose", weights, perm=[1, 2, 0]) for _ in range(2)]

    model, _ = folded(emit)
    assert len({output.name for output in model.graph.outputs}) == 2
    for output in run(model, X):
        np.testing.assert_array_equal(output, WEIGHTS.transpose(1, 2, 0), strict=True)


def test_other_values_are_unchanged() -> None:
    model = graph(lambda op, x: op.Transpose(x, perm=[1, 0]), floats("x", 2, 3))
    assert not FoldConstantTransposes()(model).modified
    assert operators(model) == ["Transpose"]


def test_constants_within_branches() -> None:
    def emit(op, x):
        weights = op.const(WEIGHTS)
        turned = lambda op: op.Transpose(weights, perm=[0, 2, 1])  # noqa: E731
        return op.if_(op.Greater(x, op.const(np.zeros(1, np.float32))), turned, lambda op: op.Neg(turned(op)))

    model, modified = folded(emit)
    assert modified
    assert "Transpose" not in operators(model)
    np.testing.assert_array_equal(run(model, X)[0], WEIGHTS.transpose(0, 2, 1), strict=True)
    np.testing.assert_array_equal(run(model, -X)[0], -WEIGHTS.transpose(0, 2, 1), strict=True)


def test_names_of_inputs_are_not_used() -> None:
    """An initializer with an input's name would be its default value. Names of other values are avoided, too."""

    def emit(op, x, weights_transposed):
        constant = op.const(ir.tensor(WEIGHTS, name="weights"))
        whole = op.Neg(weights_transposed)
        whole.name = "weights_transposed_1"
        return op.Add(op.Add(op.Transpose(constant, perm=[1, 0, 2]), x), whole)

    model = graph(emit, floats("x", 1), floats("weights_transposed", 1))
    assert FoldConstantTransposes()(model).modified
    RemoveUnusedNodesPass()(model)
    np.testing.assert_array_equal(run(model, X, X)[0], WEIGHTS.transpose(1, 0, 2), strict=True)
