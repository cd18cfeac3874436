"""Partially known shapes: matches and near misses."""

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops import partial_values
from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, new_value
from onnx_specops.partial_values import Expression


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


def _names(value):
    return [dim if isinstance(dim, int) else dim.value for dim in value.shape]


def _run(op, result, array):
    """Return the result of a graph for a value of ``x``."""
    op.graph.outputs.append(op.result(result))
    proto = ir.to_proto(ir.Model(op.graph, ir_version=IR_VERSION))
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": array, "y": np.zeros([1, 3, 1], np.float32)})[0]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_multiple_of_a_dimension_is_known_after_other_operators(op, x, n):
    """Windows of an image, and the image again: the batch is the only dimension that no number determines."""
    image = op.Reshape(x, [0, 3, 8, 4])
    windows = op.Reshape(op.Transpose(op.Reshape(image, [0, 3, 2, 4, 4]), perm=[0, 2, 1, 3, 4]), [-1, 3, 4, 4])
    assert _names(windows) == ["2*n", 3, 4, 4]
    sizes = op.Shape(op.Relu(windows))
    half = op.Div(op.Gather(sizes, [0]), 2)
    again = op.Reshape(op.Relu(windows), op.Concat(half, [2], op.Slice(sizes, [1], [4]), axis=0), allowzero=1)
    assert again.producer().inputs[1].constant.tolist() == [-1, 2, 3, 4, 4] and _names(again) == ["n", 2, 3, 4, 4]
    array = np.random.default_rng(n).random((n, 3, 32), np.float32)
    expected = array.reshape(n, 3, 2, 4, 4).transpose(0, 2, 1, 3, 4)
    assert np.array_equal(_run(op, again, array), expected)


def test_a_size_that_is_no_multiple_stays(op, x):
    windows = op.Reshape(op.Reshape(x, [0, 3, 8, 4]), [-1, 3, 4, 4])
    count = op.Shape(op.Relu(windows), start=0, end=1)
    for other in (op.Div(count, 3), op.Mul(op.Div(count, 3), 3), op.Sub(count, 1), op.Mod(count, 4)):
        assert op.Reshape(windows, op.Concat(other, [-1], axis=0)).producer().inputs[1].constant is None
    assert op.Sub(op.Div(count, 2), op.Shape(x, start=0, end=1)).constant.tolist() == [0]
    assert op.Sub(op.Mul(op.Div(count, 4), 4), count).constant is None


@pytest.mark.parametrize(
    ("name", "size"), [("n", 5), ("8*n", 40), ("m*n", 35), ("m+3*n*n+-2", 80), ("-1*n+4", -1), ("size.12", 7), ("a_0+1", 8)]
)
def test_names_are_those_of_the_expressions(name, size):
    expression = Expression.of_name(name)
    assert expression.name == name
    assert expression.evaluated(lambda part: {"n": 5}.get(part, 7)) == size


def test_a_given_name_is_no_expression(op):
    """An input "2*n" is not twice as long as an input "n"."""
    assert partial_values.symbol("inputs_0") == "inputs_0"
    names = [partial_values.symbol(name) for name in ("2*n", "2%2An", "n+1")]
    assert len(set(names)) == 3
    for name in names:
        twice, once = (op.Shape(new_value(ir.DataType.FLOAT, [given], given)) for given in (name, "n"))
        assert op.Sub(twice, op.Mul(once, 2)).constant is None
        assert op.Sub(twice, op.Add(once, 1)).constant is None
        assert op.Sub(twice, twice).constant.tolist() == [0]


def test_elements_that_are_no_dimensions_have_no_name(op, x):
    count = op.Reshape(new_value(ir.DataType.INT64, [], "count"), [1])
    assert _names(op.Expand(op.const(np.float32([1])), count)) == [None]
    third = op.Div(op.Shape(x, start=0, end=1), 3)
    assert _names(op.Expand(op.const(np.float32([1])), third)) == [None]


def test_a_shape_names_unknown_dimensions_of_a_new_model(x):
    op = Builder(ir.Graph([x], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS)), named_sizes=True)
    one, other = (op.Conv(x, np.ones((2, 3, size), np.float32)) for size in (2, 3))
    assert None in _names(one)
    sizes, same, different = op.Shape(one), op.Shape(op.Relu(one)), op.Shape(other)
    assert None not in _names(one)
    assert op.Equal(sizes, same).constant.tolist() == [True] * 3
    assert op.Equal(op.Gather(sizes, [2]), op.Gather(different, [2])).constant is None
    found = op.NonZero(x)
    assert op.Equal(op.Shape(found, start=1), op.Shape(op.Neg(found), start=1)).constant.tolist() == [True]
    assert op.Equal(op.Shape(found, start=1), op.Shape(op.NonZero(x), start=1)).constant is None


def test_other_models_get_no_names(op):
    """Their values may have the same names already."""
    y = op.Conv(new_value(ir.DataType.FLOAT, ["n", 1, "w"], "image"), np.ones((2, 1, 3), np.float32))
    op.Shape(y)
    assert _names(y)[2] is None


def test_sums_and_parts_of_dimensions(op, x, y):
    whole = op.Concat(x, x, axis=-1)
    assert _names(op.Concat(x, y, axis=2))[2] is None
    assert _names(whole) == ["n", 3, "2*m"]
    assert _names(op.Concat(x, x, axis=1)) == ["n", 6, "m"]
    m = op.Shape(x, start=2, end=3)
    parts = op.Split(whole, op.Concat(m, m, axis=0), axis=-1, outputs=2)
    assert [_names(part) for part in parts] == [["n", 3, "m"]] * 2
    rest = op.Split(whole, op.Concat(op.Sub(op.Shape(whole, start=2, end=3), 1), [1], axis=0), axis=2, outputs=2)
    assert [_names(part)[2] for part in rest] == [None, 1]
    unknown = new_value(ir.DataType.INT64, [2], "sizes")
    assert [_names(part)[2] for part in op.Split(whole, unknown, axis=2, outputs=2)] == [None, None]


@pytest.mark.parametrize("m", [0, 1, 4])
def test_minus_one_that_is_the_same_dimension_copies_it(op, x, m):
    sizes = op.Shape(x)
    same = op.Reshape(op.Relu(x), op.Concat([-1], op.Slice(sizes, [1], [3]), axis=0))
    assert same.producer().inputs[1].constant.tolist() == [0, 3, 0]
    array = np.ones((2, 3, m), np.float32)
    assert np.array_equal(_run(op, same, array), array)


def test_minus_one_of_other_dimensions_stays(op, x):
    n, m = op.Shape(x, start=0, end=1), op.Shape(x, start=2, end=3)
    # -1 is in the given target, too: it fails for no elements in both.
    assert op.Reshape(x, op.Concat(n, [-1], axis=0)).producer().inputs[1].constant.tolist() == [0, -1]
    assert op.Reshape(x, op.Concat(m, [-1], axis=0)).producer().inputs[1].constant is None
    # Only no elements can have this target.
    assert op.Reshape(x, op.Concat(n, [4], m, [-1], axis=0), allowzero=1).producer().inputs[1].constant is None


def test_parts_of_a_shape_are_constants(op, x):
    parts = op.Split(op.Shape(x), [1, 1, 1], outputs=3)
    assert [None if part.constant is None else part.constant.tolist() for part in parts] == [None, [3], None]


def test_remainders(op, x):
    twice, n = op.Mul(op.Shape(x, start=0, end=1), 2), op.Shape(x, start=0, end=1)
    for fmod in (0, 1):
        assert op.Mod(twice, 2, fmod=fmod).constant.tolist() == [0]
        assert op.Mod(n, 2, fmod=fmod).constant is None
        assert op.Mod(op.Sub(twice, 4), 2, fmod=fmod).constant is None  # a negative operand


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
