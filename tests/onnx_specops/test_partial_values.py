"""Partially known shapes: matches and near misses."""

import numpy as np
import onnx_ir as ir
import pytest

from onnx_specops import partial_values
from onnx_specops.building import OPSET_IMPORTS, Builder, new_value


@pytest.fixture
def x():
    return new_value(ir.DataType.FLOAT, ["n", 3, "m"], "x")


@pytest.fixture
def y():
    return new_value(ir.DataType.FLOAT, ["k", 3, None], "y")


@pytest.fixture
def op(x, y):
    return Builder(ir.Graph([x, y], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS)))


def test_a_known_dimension_of_a_shape_is_a_constant(op, x):
    shape = op.Shape(x)
    assert op.Gather(shape, [1]).constant.tolist() == [3]
    assert op.Mul(op.Gather(shape, [-2]), 4).constant.tolist() == [12]
    assert op.Concat(op.Slice(shape, [1], [2]), [5], axis=0).constant.tolist() == [3, 5]
    assert op.Gather(shape, [0]).constant is None
    assert op.Gather(shape, new_value(ir.DataType.INT64, [1], "index")).constant is None


def test_equal_symbols_are_equal_and_others_are_not(op, x, y):
    n, m, k = (op.Gather(op.Shape(value), [axis]) for value, axis in ((x, 0), (x, 2), (y, 0)))
    assert op.Equal(n, op.Shape(x, start=0, end=1)).constant.tolist() == [True]
    assert op.Sub(op.Add(n, 2), n).constant.tolist() == [2]
    assert op.Equal(n, op.Add(n, 1)).constant.tolist() == [False]
    for other in (m, k, op.Gather(op.Shape(y), [2])):
        assert op.Equal(n, other).constant is None
        assert op.Sub(n, other).constant is None


def test_a_reshape_that_copies_dimensions_has_a_constant_target(op, x, y):
    n, m, k = op.Shape(x, start=0, end=1), op.Shape(x, start=2, end=3), op.Shape(y, start=0, end=1)
    copied = op.Reshape(x, op.Concat(n, [3], m, axis=0))
    assert copied.producer().inputs[1].constant.tolist() == [0, 3, 0]
    assert [None if isinstance(d, int) else d.value for d in copied.shape] == ["n", None, "m"]
    # The same dimension at another position, and another dimension, are not copies.
    for target in (op.Concat(m, [3], n, axis=0), op.Concat(k, [3], m, axis=0)):
        assert op.Reshape(x, target).producer().inputs[1].constant is None


def test_a_multiple_of_a_dimension_determines_the_rest(op, x):
    """-1 in the target becomes a number, so that the multiple can be -1."""
    whole = op.Reshape(x, [0, 12, 8])  # n x 12 x 8, of a tensor with other dimensions
    n, m = op.Shape(x, start=0, end=1), op.Shape(x, start=2, end=3)
    inner = op.Reshape(whole, op.Concat(op.Mul(n, 16), [-1], [1], axis=0))
    assert inner.producer().inputs[1].constant.tolist() == [-1, 6, 1] and inner.dims == [None, 6, 1]
    for target in ([op.Mul(n, 5), [-1]], [op.Mul(m, 16), [-1]], [op.Add(n, 1), [-1]], [op.Mul(n, 16), [-1], [0]]):
        assert op.Reshape(whole, op.Concat(*target, axis=0)).producer().inputs[1].constant is None


def test_a_dimension_that_may_be_0_keeps_its_target(op, x):
    """-1 cannot be inferred if another dimension is 0, which would break a constant target but not the original one."""
    n, m = op.Shape(x, start=0, end=1), op.Shape(x, start=2, end=3)
    moved = op.Reshape(x, op.Concat(n, op.Mul(m, 3), axis=0))
    assert moved.producer().inputs[1].constant is None


@pytest.mark.parametrize("kind", ["shared", "nested"])
def test_large_expressions_are_dropped(op, x, kind):
    """A chain of operators that use an operand twice doubles the expression at each step."""
    sizes = [op.Shape(x, start=0, end=1) for _ in range(2)]
    other = op.Shape(x, start=2, end=3)
    for _ in range(150):
        if kind == "shared":
            sizes = [op.Max(size, op.Div(op.Mul(size, other), 7)) for size in sizes]
        else:
            sizes = [op.Mod(op.Div(op.Add(size, 5), 7), 11) for size in sizes]
    assert op.Equal(*sizes).constant is None
    assert max(x.atoms for size in sizes for x in partial_values.elements(size)) <= 64


def test_floats_are_not_tracked(op, x):
    """Unknown floats are not tracked; rounding is left to the runtime."""
    n = op.Cast(op.Shape(x, start=0, end=1), to=ir.DataType.FLOAT)
    assert op.Sub(op.Add(n, 1.0), n).constant is None
    assert op.Cast(np.float32([2.5, -2.5]), to=ir.DataType.INT64).constant.tolist() == [2, -2]
    assert op.Cast(np.float32([3e10, np.nan]), to=ir.DataType.INT32).constant is None
