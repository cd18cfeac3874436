"""Products and quotients with constants take the sign of negations before and after them; near misses keep them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.simplification import MergeNegations, Simplify
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run

D = ir.DataType
C = np.array([0.1, -3.0, 0.0, np.inf], np.float32)
SPECIAL = np.array(
    [[0.0, -0.0, 1.0, -1.0], [np.inf, -np.inf, np.nan, 1e-45], [3e38, -3e38, 7.7, 1e-38], [0.3, -0.7, 1e30, -2.0]],
    np.float32,
)


def _bits(emit, array: np.ndarray, dtype: ir.DataType = D.FLOAT, dims=(4, 4)) -> list[str]:
    """Return the operators after the pass, which must not change a bit of the results except in NaN."""

    def made() -> ir.Model:
        return graph(emit, new_value(dtype, dims, "x"))

    (before,) = run(made(), array)
    model = made()
    MergeNegations()(model)
    (after,) = run(model, array)
    np.testing.assert_array_equal(after, before, strict=True)
    if array.dtype.kind == "f":
        known = ~np.isnan(before)
        np.testing.assert_array_equal(np.signbit(after[known]), np.signbit(before[known]))
    return operators(model)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Mul(op.Neg(x), C), ["Mul"]),
        (lambda op, x: op.Mul(C, op.Neg(x)), ["Mul"]),
        (lambda op, x: op.Mul(op.Mul(x, -1.0), C), ["Mul"]),
        (lambda op, x: op.Mul(C, op.Mul(op.const([-1.0], D.FLOAT), x)), ["Mul"]),
        (lambda op, x: op.Div(op.Neg(x), C), ["Div"]),
        (lambda op, x: op.Div(op.Mul(x, -1.0), C), ["Div"]),
        (lambda op, x: op.Div(C, op.Neg(x)), ["Div"]),
        (lambda op, x: op.Div(C, op.Mul(x, -1.0)), ["Div"]),
        (lambda op, x: op.Neg(op.Mul(x, C)), ["Mul"]),
        (lambda op, x: op.Neg(op.Div(x, C)), ["Div"]),
        (lambda op, x: op.Neg(op.Div(C, x)), ["Div"]),
        (lambda op, x: op.Mul(op.Div(x, C), -1.0), ["Div"]),
        (lambda op, x: op.Mul(op.Mul(x, C), -1.0), ["Mul"]),
        (lambda op, x: op.Mul(op.Mul(x, -1.0), -1.0), ["Mul"]),
        # near misses: another factor, not all of them -1, a sum, not a constant
        (lambda op, x: op.Mul(op.Mul(x, -2.0), C), ["Mul", "Mul"]),
        (lambda op, x: op.Mul(op.Mul(x, np.array([-1, -1, 1, -1], np.float32)), C), ["Mul", "Mul"]),
        (lambda op, x: op.Add(op.Neg(x), C), ["Add", "Neg"]),
        (lambda op, x: op.Mul(op.Neg(x), op.Relu(x)), ["Mul", "Neg", "Relu"]),
        (lambda op, x: op.Mul(op.Abs(x), C), ["Abs", "Mul"]),
        # -1 divided by x, and x divided by -1, are not negations
        (lambda op, x: op.Mul(op.Div(-1.0, x), C), ["Div", "Mul"]),
    ],
)  # fmt: skip
def test_forms(emit, found: list[str]) -> None:
    assert _bits(emit, SPECIAL) == found


@pytest.mark.parametrize("dtype", [D.FLOAT16, D.BFLOAT16, D.DOUBLE])
def test_other_floats(dtype: ir.DataType) -> None:
    model = graph(lambda op, x: op.Mul(op.Neg(x), op.const(np.array([0.1, 3.0]), dtype)), new_value(dtype, [2, 2], "x"))
    MergeNegations()(model)
    assert operators(model) == ["Mul"]
    (constant,) = (value for value in model.graph.node(0).inputs if value.const_value is not None)
    assert constant.dtype == dtype
    expected = np.array([-0.1, -3.0]).astype(dtype.numpy() if dtype != D.BFLOAT16 else ml_dtypes.bfloat16)
    np.testing.assert_array_equal(constant.const_value.numpy(), expected, strict=True)


@pytest.mark.parametrize("dtype", [D.INT32, D.INT64])
@pytest.mark.parametrize("operator", ["Mul", "Div"])
def test_integers(operator: str, dtype: ir.DataType) -> None:
    """The quotient of the smallest integer and -2 would have another sign."""
    smallest = np.array([[np.iinfo(dtype.numpy()).min, 5]], dtype.numpy())
    found = _bits(lambda op, x: op.node(operator, op.Neg(x), op.const(2, dtype)), smallest, dtype, [1, 2])
    assert found == sorted([operator, "Neg"])


def test_other_consumers() -> None:
    """The negation would remain."""

    def emit(op, x):
        negative = op.Neg(x)
        return op.Mul(negative, C), negative

    model = graph(emit, floats("x", 4, 4))
    assert not MergeNegations()(model).modified
    model = graph(lambda op, x: op.Mul(op.Neg(x), C), floats("x", 4, 4))
    assert MergeNegations()(model).modified


def test_shared_constants() -> None:
    """A constant with another consumer keeps its sign there."""

    def emit(op, x):
        return op.Mul(op.Neg(x), C), op.Add(x, C)

    expected = run(graph(emit, floats("x", 4, 4)), SPECIAL)
    model = graph(emit, floats("x", 4, 4))
    MergeNegations()(model)
    assert operators(model) == ["Add", "Mul"]
    for got, one in zip(run(model, SPECIAL), expected, strict=True):
        np.testing.assert_array_equal(got, one, strict=True)


@pytest.mark.parametrize(
    ("dims", "minus", "found"),
    [
        ([4], -1.0, ["Mul"]),
        ([4], [-1.0], ["Mul"]),
        ([4], [[-1.0]], ["Mul", "Mul"]),  # a dimension is added
        ([2, 4], [[-1.0]], ["Mul"]),
        (None, [-1.0], ["Mul"]),  # the constant has as many dimensions
        (None, [[-1.0]], ["Mul", "Mul"]),
    ],
)
def test_dimensions_of_minus_one(dims, minus, found: list[str]) -> None:
    x = new_value(D.FLOAT, dims, "x")
    model = graph(lambda op, x: op.Mul(op.Mul(x, op.const(minus, D.FLOAT)), C), x)
    MergeNegations()(model)
    assert operators(model) == found


@pytest.mark.parametrize(("size", "found"), [(1 << 16, ["Mul"]), ((1 << 16) + 1, ["Mul", "Neg"])])
def test_large_constants(size: int, found: list[str]) -> None:
    """A large constant is not copied."""
    model = graph(lambda op, x: op.Mul(op.Neg(x), np.ones(size, np.float32)), floats("x", size))
    MergeNegations()(model)
    assert operators(model) == found


def test_inputs_with_defaults() -> None:
    """A caller can replace the default of an input."""
    constant = floats("c", 4)
    constant.const_value = ir.tensor(C)
    model = graph(lambda op, x, c: op.Mul(op.Neg(x), c), floats("x", 4, 4), constant)
    model.graph.register_initializer(constant)
    assert not MergeNegations()(model).modified


@pytest.mark.parametrize(("fold", "fused", "found"), [(True, True, 1), (False, True, 2), (True, False, 2)])
def test_simplify(fold: bool, fused: bool, found: int) -> None:
    """Constants that stay as in the source's file take no sign, and a spelling keeps its negations."""
    model = graph(lambda op, x: op.Mul(op.Neg(x), C), floats("x", 4, 4))
    Simplify(fold=fold, fused=fused)(model)
    assert len(operators(model)) == found
