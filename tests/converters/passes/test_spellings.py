"""Spellings that targets require, and near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass
from openvino import opset13 as ops

from converters.passes.finish import finish_for
from converters.passes.spellings import SPELLINGS
from converters.targets import TARGETS
from onnx_specops.assertions import required
from onnx_specops.bodies import attach_bodies
from onnx_specops.building import new_value
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def _spelled(name: str, emit, array: np.ndarray = X, *dims: int | None) -> ir.Model:
    """Return the graph in a spelling that changes no result."""
    before = run(graph(emit, floats("x", *(dims or array.shape))), array)
    model = graph(emit, floats("x", *(dims or array.shape)))
    SPELLINGS[name]()(model)
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_array_equal(new, old, strict=True)
    return model


def test_pairs() -> None:
    def emit(op, x):
        return op.Sum(x, op.Neg(x), op.Abs(x)), op.Max(x, op.Neg(x), op.Abs(x)), op.Min(x, op.Neg(x)), op.Mean(x, x, x)

    found = operators(_spelled("binary operators", emit))
    assert found == sorted(["Add", "Add", "Max", "Max", "Min", "Mean", *["Neg"] * 3, *["Abs"] * 2])


def test_sums_of_constants() -> None:
    """The builder folds them, so the result is a constant."""

    def emit(op, x):
        ones = op.const(np.ones(2, np.float32))
        return op.Sum(ones, ones, ones), op.Neg(x)

    assert operators(_spelled("binary operators", emit)) == ["Identity", "Neg"]


def test_sorted_top() -> None:
    def emit(op, x):
        return op.TopK(x, [2], sorted=0, outputs=2)

    model = graph(emit, floats("x", 2, 3))
    SPELLINGS["sorted TopK"]()(model)
    (node,) = model.graph
    assert node.attributes.get_int("sorted", 1) == 1


@pytest.mark.parametrize(("dims", "target"), [((2, 3), [3, 2]), ((None, 3), [3, -1]), ((None, None), None)])
def test_targets_of_reshapes(dims: tuple[int | None, ...], target: list[int] | None) -> None:
    def emit(op, x):
        shape = op.node("Shape", x, types=[(ir.DataType.INT64, [2])])
        turned = op.node("Gather", shape, op.const([1, 0]), types=[(ir.DataType.INT64, [2])])
        return op.node("Reshape", x, turned, allowzero=1, types=[(ir.DataType.FLOAT, [dims[1], dims[0]])])

    model = _spelled("static Reshape", emit, X, *dims)
    node = next(node for node in model.graph if node.op_type == "Reshape")
    constant = node.inputs[1].const_value if node.inputs[1] is not None else None
    assert (None if constant is None else constant.numpy().tolist()) == target
    assert ("allowzero" in node.attributes) == (target is None)


def test_a_dimension_of_zero_keeps_allowzero() -> None:
    def emit(op, x):
        return op.node("Reshape", x, op.const([0, 5]), allowzero=1, types=[(ir.DataType.FLOAT, [0, 5])])

    empty = np.zeros((3, 0), np.float32)
    (node,) = _spelled("static Reshape", emit, empty, 3, 0).graph
    assert node.attributes.get_int("allowzero", 0) == 1


def test_scalars() -> None:
    def emit(op, x):
        return op.Mul(x, op.const(2.0)), op.Mul(op.ReduceSum(x, keepdims=0), op.const(2.0)), op.Gather(x, op.const(1))

    model = _spelled("no scalar constants", emit)
    products = [node for node in model.graph if node.op_type == "Mul"]
    assert [len(node.inputs[1].shape or ()) for node in products if node.inputs[1] is not None] == [1, 0]
    gather = next(node for node in model.graph if node.op_type == "Gather")
    assert gather.inputs[1] is not None and not gather.inputs[1].shape


def test_booleans() -> None:
    def emit(op, x):
        return op.Where(op.const(np.array([True, False, True])), x, op.Neg(x))

    model = _spelled("no boolean constants", emit)
    assert operators(model) == ["Cast", "Neg", "Where"]
    assert all(value.dtype != ir.DataType.BOOL for value in model.graph.initializers.values())


@pytest.mark.parametrize(("kind", "stored"), [(ir.DataType.UINT8, False), (ir.DataType.INT8, True)])
def test_bytes(kind: ir.DataType, stored: bool) -> None:
    def emit(op, x):
        return op.Max(op.Cast(x, to=kind), op.const([1, 2, 3], kind))

    found = operators(_spelled("no byte constants", emit, np.abs(X)))
    assert found == (["Cast", "Max"] if stored else ["Cast", "Cast", "Max"])


def test_zero_points_stay() -> None:
    def emit(op, x):
        return op.DequantizeLinear(
            op.QuantizeLinear(x, 0.5, op.const(3, ir.DataType.UINT8)), 0.5, op.const(3, ir.DataType.UINT8)
        )

    assert operators(_spelled("no byte constants", emit)) == ["DequantizeLinear", "QuantizeLinear"]


def test_a_boolean_input_is_not_a_constant() -> None:
    given = new_value(ir.DataType.BOOL, (3,), "given")
    model = graph(lambda op, x, given: op.Where(given, x, op.Neg(x)), floats("x", 2, 3), given)
    assert not SPELLINGS["no boolean constants"]()(model).modified


def test_constants_of_leading_ones() -> None:
    def emit(op, x):
        two = op.Reshape(x, [1, 2, 3])
        return op.Add(two, op.const(np.ones((1, 1, 3), np.float32))), op.Mul(x, op.const(np.ones((1, 1, 3), np.float32)))

    first, second = (node for node in _spelled("no leading 1s", emit).graph if node.op_type in ("Add", "Mul"))
    assert first.inputs[1] is not None and len(first.inputs[1].shape or ()) == 1
    assert second.inputs[1] is not None and len(second.inputs[1].shape or ()) == 3  # it gives the result its dimensions


@pytest.mark.parametrize(("beta", "left"), [(0.5, False), (0.4, True)])
def test_defaults(beta: float, left: bool) -> None:
    (node,) = _spelled("no defaults", lambda op, x: op.HardSigmoid(x, alpha=0.3, beta=beta)).graph
    assert ("beta" in node.attributes) == left and "alpha" in node.attributes


@pytest.mark.parametrize(("mode", "stated"), [(None, "constant"), ("constant", "constant"), ("edge", "edge")])
def test_modes_of_padding(mode: str | None, stated: str) -> None:
    attributes = {} if mode is None else {"mode": mode}
    (node,) = _spelled("stated modes", lambda op, x: op.Pad(x, [0, 1, 0, 1], **attributes)).graph
    assert node.attributes.get_string("mode") == stated


def test_levels() -> None:
    def emit(op, x):
        late = op.Exp(op.Sin(op.Neg(x)))
        return op.Add(late, op.Abs(x))

    assert [node.op_type for node in _spelled("sorted by depth", emit).graph] == ["Neg", "Abs", "Sin", "Exp", "Add"]


@pytest.mark.parametrize(("dims", "axes"), [((1, 2, 3), [3]), ((1, 1, 2, 3), None)])
def test_images(dims: tuple[int, ...], axes: list[int] | None) -> None:
    ones = np.ones(dims[1], np.float32)

    def emit(op, x):
        return op.InstanceNormalization(x, ones, ones)

    model = _spelled("4D InstanceNormalization", emit, X.reshape(dims))
    assert operators(model) == (["InstanceNormalization", "Squeeze", "Unsqueeze"] if axes else ["InstanceNormalization"])


@pytest.mark.parametrize(
    ("dims", "sizes", "found"),
    [
        ((1, 2, 1, 1), [1, 2, 3, 4], ["Expand"]),
        ((1, 2, 1, 4), [1, 2, 1, 6], ["Expand", "Resize"]),
        ((1, 2, 4, 1), [1, 2, 6, 5], ["Expand", "Resize"]),
        ((1, 2, 2, 3), [1, 2, 4, 6], ["Resize"]),
    ],
)
@pytest.mark.parametrize("scaled", [False, True, None])
def test_sides_of_one(dims: tuple[int, ...], sizes: list[int], found: list[str], scaled: bool | None) -> None:
    """By sizes, by scales, or by sizes with scales that are empty, as older opsets have them."""

    def emit(op, x):
        scales = np.array(sizes, np.float32) / np.array(dims, np.float32)
        given = op.const(scales if scaled else scales[:0]) if scaled is not False else None
        return op.Resize(x, None, given, None if scaled else sizes, mode="linear")

    array = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    before = run(graph(emit, floats("x", *dims)), array)
    model = graph(emit, floats("x", *dims))
    SPELLINGS["expanded Resize"]()(model)
    assert operators(model) == found
    np.testing.assert_allclose(run(model, array)[0], before[0], rtol=1e-6, atol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("dims", "other", "found"),
    [
        ((2, 3, 4), (1, 3, 1), ["Greater"]),
        ((2, 1, 4), (1, 3, 1), ["Expand", "Greater"]),
        ((1, 1, 4), (1, 1, 1), ["Greater"]),
    ],
)
def test_comparisons(dims: tuple[int, ...], other: tuple[int, ...], found: list[str]) -> None:
    right = np.linspace(-2, 2, int(np.prod(other)), dtype=np.float32).reshape(other)
    left = np.linspace(-3, 3, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    assert operators(_spelled("equal shapes", lambda op, x: op.Less(x, op.const(right)), left)) == found


@pytest.mark.parametrize(("other", "whole"), [((3, 1), (2, 3, 4)), ((1,), (1,)), ((2, 3, 4), (2, 3, 4))])
def test_choices(other: tuple[int, ...], whole: tuple[int, ...]) -> None:
    def emit(op, x):
        return op.Where(op.IsInf(x), x, op.const(np.ones(other, np.float32)))

    _, node = _spelled("equal shapes", emit, np.zeros((2, 3, 4), np.float32)).graph
    assert node.inputs[2] is not None and tuple(node.inputs[2].shape or ()) == whole


def test_integers_are_compared_directly() -> None:
    model = graph(lambda op, x: op.Less(op.Cast(x, to=ir.DataType.INT32), op.const(np.int32(1))), floats("x", 2, 3))
    assert not SPELLINGS["equal shapes"]()(model).modified


@pytest.mark.parametrize(
    ("dims", "found"), [((3, 1, 1), ["PRelu"]), ((1,), ["PRelu"]), ((2,), ["Add", "Max", "Min", "Mul"]), ((4, 1), 4)]
)
def test_slopes(dims: tuple[int, ...], found: list[str] | int) -> None:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 3, 4, 2)
    slope = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    left = operators(_spelled("channel slopes", lambda op, x: op.PRelu(x, op.const(slope)), x))
    assert left == found if isinstance(found, list) else len(left) == found


@pytest.mark.parametrize(
    ("dtype", "fmod", "found"),
    [
        (ir.DataType.INT32, 1, True),
        (ir.DataType.INT64, 1, True),
        (ir.DataType.INT32, 0, False),
        (ir.DataType.FLOAT, 1, False),
    ],
)
def test_remainders(dtype: ir.DataType, fmod: int, found: bool) -> None:
    x = np.array([-7, -1, 0, 3, 8], np.float32)
    left = operators(_spelled("Div for Mod", lambda op, x: op.Mod(op.Cast(x, to=dtype), op.const(3, dtype), fmod=fmod), x))
    assert ("Div" in left) is found and ("Mod" in left) is not found


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("sizes", [[8, 7], [9, 9], [10, 9]])
def test_padding(auto_pad: str, sizes: list[int]) -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 2, 4, 4)
    w = np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3)

    def emit(op, x):
        kwargs = {"strides": [2, 2], "output_shape": sizes, "auto_pad": auto_pad, "kernel_shape": [3, 3]}
        return op.node("ConvTranspose", x, op.const(w), types=[(ir.DataType.FLOAT, [1, 2, *sizes])], **kwargs)

    (node,) = _spelled("explicit padding", emit, x).graph
    assert "output_shape" not in node.attributes


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"pads": [0, 0, 1, 1], "count_include_pad": 1}, ["Pad"]),
        ({"pads": [0, 0, 1, 1], "count_include_pad": 0}, ["Mul", "Pad"]),  # fewer elements are averaged at the end
        ({"auto_pad": "SAME_UPPER"}, ["Mul", "Pad"]),
        ({"pads": [0, 1, 1, 0], "dilations": [2, 1]}, ["Mul", "Pad"]),
        ({"pads": [0, 0, 1, 1], "ceil_mode": 1}, None),
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1}, []),
        ({"auto_pad": "SAME_LOWER", "count_include_pad": 1}, ["Pad"]),
    ],
)
def test_even_padding(operator: str, attributes: dict, found: list[str] | None) -> None:
    x = np.linspace(-3, 1, 30, dtype=np.float32).reshape(1, 1, 5, 6)
    given = {name: value for name, value in attributes.items() if operator == "AveragePool" or name != "count_include_pad"}
    found = ["Pad"] if operator == "MaxPool" and found else found or []

    def emit(op, x):
        return op.node(operator, x, kernel_shape=[2, 2], strides=[2, 2], **given)

    before = run(graph(emit, floats("x", *x.shape)), x)
    model = graph(emit, floats("x", *x.shape))
    SPELLINGS["symmetric padding"]()(model)
    np.testing.assert_allclose(run(model, x)[0], before[0], rtol=1e-6, strict=True)
    assert operators(model) == sorted([*found, operator])


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1}, ["AveragePool", "Pad"]),
        ({"pads": [0, 0, 1, 1], "count_include_pad": 1, "strides": [2, 2]}, ["AveragePool", "Pad"]),
        ({"pads": [1, 1, 1, 1]}, ["AveragePool"]),
        ({"pads": [0, 0, 0, 0], "count_include_pad": 1}, ["AveragePool"]),
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1, "ceil_mode": 1, "strides": [2, 2]}, ["AveragePool"]),
    ],
)
def test_padding_before_means(attributes: dict[str, Any], found: list[str]) -> None:
    def emit(op, x):
        return op.AveragePool(x, kernel_shape=[3, 3], **attributes)

    assert rewritten(emit, floats("x", 1, 2, 6, 7), by=[SPELLINGS["counted padding"]()]) == found


@pytest.mark.parametrize(("opset", "found"), [(13, ["Mul", "ReduceMean"]), (12, ["ReduceSum"])])
def test_sums_along_one_axis(opset: int, found: list[str]) -> None:
    def emit(op, x):
        if opset < 13:
            return op.at(opset).ReduceSum(x, axes=[1])
        return op.ReduceSum(x, [1])

    model = graph(emit, floats("x", 2, 3))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    assert operators(model) == found
    means = [node for node in model.graph if node.op_type == "ReduceMean"]
    assert all(list(node.attributes.get_ints("axes", ())) == [1] for node in means)


@pytest.mark.parametrize(("dims", "keepdims", "found"), [((4,), 0, []), ((4,), 1, [1]), ((2, 4), 0, [2])])
def test_sums_keep_their_dimensions(dims: tuple[int, ...], keepdims: int, found: list[int]) -> None:
    """The sum of a vector is a scalar."""
    model = graph(lambda op, x: op.ReduceSum(x, [-1], keepdims=keepdims), floats("x", *dims))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    (product,) = (node for node in model.graph if node.op_type == "Mul")
    assert list(product.outputs[0].shape or ()) == found


@pytest.mark.parametrize(
    ("emit", "dims"),
    [
        (lambda op, x: op.ReduceSum(x, [0, 1]), (2, 3)),
        (lambda op, x: op.ReduceSum(x), (2, 3)),
        (lambda op, x: op.ReduceSum(op.Cast(x, to=ir.DataType.INT32), [1]), (2, 3)),
        (lambda op, x: op.ReduceSum(x, [1]), (2, None)),
    ],
)
def test_other_sums_stay(emit: Any, dims: tuple[int | None, ...]) -> None:
    assert "ReduceSum" in operators(_spelled("ReduceMean for ReduceSum", emit, X, *dims))


@pytest.mark.parametrize(("axis", "found"), [(0, "ReduceMean"), (1, "ReduceSum")])  # the mean of nothing is NaN
def test_sums_of_nothing_stay(axis: int, found: str) -> None:
    model = graph(lambda op, x: op.ReduceSum(x, [axis]), floats("x", 2, 0))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    assert found in operators(model)


@pytest.mark.parametrize(("dims", "found"), [((3,), ["MatMul", "Squeeze"]), ((3, 1), ["MatMul"])])
def test_matrices(dims: tuple[int, ...], found: list[str]) -> None:
    ones = np.ones(dims, np.float32)
    assert operators(_spelled("matrix operands", lambda op, x: op.MatMul(x, op.const(ones)))) == found


@pytest.mark.parametrize(
    ("k", "largest", "output", "found"),
    [(1, 1, 1, "ArgMax"), (1, 0, 1, "ArgMin"), (2, 1, 1, "TopK"), (1, 1, 0, "TopK"), (1, 1, slice(2), "TopK")],
)
def test_arg_max(k: int, largest: int, output: Any, found: str) -> None:
    """The index is that of the first of equal elements. A TopK whose values are used stays."""

    def emit(op, x):
        results = op.TopK(op.Cast(op.Greater(x, 0.0), to=ir.DataType.INT32), [k], axis=1, largest=largest, outputs=2)[output]
        return list(results) if isinstance(output, slice) else results

    assert found in operators(_spelled("ArgMax", emit))


@pytest.mark.parametrize(
    ("exponent", "found"), [(2.0, "Mul"), ([2.0], "Mul"), ([[[2.0]]], "Pow"), (3.0, "Pow"), ([2.0, 3, 2], "Pow")]
)
def test_products(exponent: Any, found: str) -> None:
    power = np.array(exponent, np.float32)
    assert operators(_spelled("Mul for squares", lambda op, x: op.Pow(x, op.const(power)))) == [found]


@pytest.mark.parametrize(("operator", "gates", "states"), [("GRU", 3, 1), ("LSTM", 4, 2), ("RNN", 1, 1)])
@pytest.mark.parametrize("used", [0, 1])
def test_last_states(operator: str, gates: int, states: int, used: int) -> None:
    """Each recurrent node names all outputs. Those that are named already keep their names."""

    def emit(op, x):
        weights = [np.full((1, gates * 2, n), 0.1, np.float32) for n in (3, 2)]
        outputs = [(ir.DataType.FLOAT, [4, 1, 1, 2]), *[(ir.DataType.FLOAT, [1, 1, 2])] * states]
        return op.node(operator, x, *weights, hidden_size=2, types=outputs)[used]

    numbers = np.arange(12, dtype=np.float32).reshape(4, 1, 3) - 6
    model = graph(emit, floats("x", 4, 1, 3))
    RemoveUnusedNodesPass()(model)
    before = [value.name for value in model.graph[0].outputs if value.name]
    expected = run(model, numbers)
    assert len(before) == 1 and SPELLINGS["last states"]()(model).modified
    after = [value.name for value in model.graph[0].outputs]
    assert len(after) == len(set(after)) == states + 1 and all(after) and before[0] == after[used]
    np.testing.assert_array_equal(run(model, numbers)[0], expected[0], strict=True)
    assert not SPELLINGS["last states"]()(model).modified


@pytest.mark.parametrize(("operator", "found"), [("And", ["Mul"]), ("Or", ["Max"]), ("Xor", ["Xor"])])
@pytest.mark.parametrize("limits", [X[::-1], np.array([[1], [-1]]), np.array(1)])
def test_logic_as_arithmetic(operator: str, found: list[str], limits: np.ndarray) -> None:
    def emit(op, x):
        return op.node(operator, op.Greater(x, 0.0), op.Less(x, op.const(limits.astype(np.float32))))

    names = rewritten(emit, floats("x", 2, 3), by=[SPELLINGS["Mul for And"]()])
    assert names == sorted([*found, *([] if operator == "Xor" else ["Cast"] * 3), "Greater", "Less"])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Mul(op.Mul(x, x), x), ["Pow"]),
        (lambda op, x: op.Mul(x, op.Mul(x, x)), ["Pow"]),
        (lambda op, x: op.Mul(op.Mul(x, x), op.Neg(x)), ["Mul", "Mul", "Neg"]),
        (lambda op, x: op.Cast(op.Mul(op.Mul(*[op.Cast(x, to=7)] * 2), op.Cast(x, to=7)), to=1), None),  # integers
    ],
)
def test_cubes(emit: Any, found: list[str] | None) -> None:
    names = rewritten(emit, floats("x", 2, 3), by=[SPELLINGS["Pow for cubes"]()], numbers=[X])
    assert names == found if found else "Pow" not in names


@pytest.mark.parametrize(
    ("dims", "pads", "found"),
    [
        ((1, 1, 6), [2, 0], ["Conv", "Pad"]),
        ((1, 1, 6), [2, 2], ["Conv"]),
        ((1, 1, 6), None, ["Conv"]),
        ((1, 1, 2, 3), [1, 0, 0, 1], ["Conv"]),  # two dimensions
    ],
)
def test_padding_of_one_dimension(dims: tuple[int, ...], pads: list[int] | None, found: list[str]) -> None:
    def emit(op, x):
        return op.Conv(x, np.ones((1, 1, *[2] * (len(dims) - 2)), np.float32), pads=pads)

    model = _spelled("symmetric 1D padding", emit, X.reshape(dims))
    assert operators(model) == found


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_powers_of_integers(kind: type) -> None:
    array, dtype = np.array([[1, 2, 3], [-4, 5, -6]], kind), ir.DataType.from_numpy(np.dtype(kind))

    def emit(op, x):
        return (op.Pow(x, op.const([3, 2, 1], x.dtype)),)

    model = graph(emit, new_value(dtype, [2, 3], "x"))
    SPELLINGS["rounded integer Pow"]()(model)
    (got,) = run(model, array)
    np.testing.assert_array_equal(got, array ** np.array([3, 2, 1], kind), strict=True)
    assert operators(model).count("Round") == 1


def test_powers_of_floats_stay() -> None:
    assert "Round" not in operators(_spelled("rounded integer Pow", lambda op, x: (op.Pow(x, 3.0),)))


@pytest.mark.parametrize(
    ("dims", "remains"),
    [
        ((2, 3, 1), False),
        ((2, 3, 1, 1), False),
        ((2, 3, None, None), False),
        ((2, 3, None, 2), True),  # two or more elements, or none
        ((2, 3, 4), True),
    ],
)
def test_normalizations_of_single_elements(dims: tuple[int | None, ...], remains: bool) -> None:
    array = np.random.default_rng(0).standard_normal([2, 3, 4, 2][: len(dims)]).astype(np.float32)
    array = array.reshape(-1)[: np.prod([dim or 2 for dim in dims])].reshape([dim or 2 for dim in dims])

    def emit(op, x):
        scale, bias = (op.const(np.array(values, np.float32)) for values in ([1, 2, 3], [0.5, -1, 0]))
        return (op.InstanceNormalization(x, scale, bias, epsilon=1e-3),)

    model = graph(emit, floats("x", *dims))
    expected = run(model, array)
    SPELLINGS["several elements"]()(model)
    np.testing.assert_allclose(run(model, array)[0], expected[0], rtol=1e-5, atol=1e-5, strict=True)
    assert ("InstanceNormalization" in operators(model)) == remains


@pytest.mark.parametrize(("groups", "remains"), [(2, True), (4, False)])
def test_normalizations_of_groups(groups: int, remains: bool) -> None:
    """Groups of one channel may have one element, if the image has one pixel."""

    def emit(op, x):
        ones = op.const(np.ones(groups, np.float32))
        rows = op.Reshape(x, [0, groups, -1])
        return (op.InstanceNormalization(rows, ones, ones),)

    model = graph(emit, new_value(ir.DataType.FLOAT, ["batch", 4, None], "x"))
    array = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    expected = run(model, array)
    SPELLINGS["several elements"]()(model)
    np.testing.assert_allclose(run(model, array)[0], expected[0], rtol=1e-5, atol=1e-5, strict=True)
    assert ("InstanceNormalization" in operators(model)) == remains


@pytest.mark.parametrize(
    ("emit", "stated"),
    [
        (lambda op, x: op.Conv(x, np.ones((1, 1, 1, 2), np.float32)), [1, 2]),
        (lambda op, x: op.ConvTranspose(x, np.ones((1, 1, 1, 2), np.float32)), [1, 2]),
        (lambda op, x: op.Conv(x, np.ones((1, 1, 1, 2), np.float32), kernel_shape=[1, 2]), None),
        (lambda op, x: op.MaxPool(x, kernel_shape=[1, 2]), None),
    ],
)
def test_kernels(emit: Any, stated: list[int] | None) -> None:
    model = graph(emit, floats("x", 1, 1, 2, 3))
    assert SPELLINGS["stated kernels"]()(model).modified == (stated is not None)
    assert list(model.graph[-1].attributes.get_ints("kernel_shape", ())) == (stated or [1, 2])


def test_kernels_of_unknown_sizes() -> None:
    model = graph(lambda op, x, w: op.Conv(x, w), floats("x", 1, 1, 2, 3), floats("w", 1, 1, None, 2))
    assert not SPELLINGS["stated kernels"]()(model).modified


BIG = np.array([[-3e6, -200, -50, -1, 0, 0.5], [3, 20, 60, 120, 4e3, 1e10]], np.float32)
EXPANDED = ["Exp", "Log", "ReduceMax", "ReduceSum", "Sub", "Sub"]


@pytest.mark.parametrize(
    ("name", "emit", "found"),
    [
        ("stable Softplus", lambda op, x: op.Softplus(x), ["Abs", "Add", "Max", "Neg", "Softplus"]),
        ("stable Softplus", lambda op, x: op.Softplus(op.Neg(x)), ["Abs", "Add", "Max", "Neg", "Neg", "Softplus"]),
        ("stable Softplus", lambda op, x: op.Softsign(x), ["Softsign"]),
        ("clipped Tanh", lambda op, x: op.Tanh(x), ["Clip", "Tanh"]),
        ("clipped Tanh", lambda op, x: op.Tanh(op.Clip(x, np.float32(-90), np.float32(90))), ["Clip", "Clip", "Tanh"]),
        ("clipped Tanh", lambda op, x: op.Atan(x), ["Atan"]),
        ("expanded LogSoftmax", lambda op, x: op.LogSoftmax(x), EXPANDED),
        ("expanded LogSoftmax", lambda op, x: op.LogSoftmax(x, axis=0), EXPANDED),
        ("expanded LogSoftmax", lambda op, x: op.Log(op.Softmax(x)), ["Log", "Softmax"]),
        ("odd Asinh", lambda op, x: op.Asinh(x), ["Abs", "Asinh", "Mul", "Sign"]),
        ("odd Asinh", lambda op, x: op.Asin(op.Tanh(x)), ["Asin", "Tanh"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=0), ["Softmax", "Transpose", "Transpose"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=-2), ["Softmax", "Transpose", "Transpose"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=1), ["Softmax"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x), ["Softmax"]),
    ],
)  # fmt: skip
def test_large_numbers(name: str, emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 2, 6), by=[SPELLINGS[name]()], numbers=[BIG]) == found


def test_softplus_of_mish_is_stable() -> None:
    """Mish becomes Softplus in an older opset, after the other spellings."""
    model = graph(lambda op, x: op.Mish(x), floats("x", 2, 6))
    finish_for(model, TARGETS["mnn"])
    assert operators(model).count("Abs") == 1


REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("axes", "count"), [([0, -3, 3], 2), ([1, 2], 1), ([-1], 1), (None, 2), ([0, 1, 2, 3, 4], 3)])
def test_reductions(operator: str, keepdims: int, axes: list[int] | None, count: int) -> None:
    def emit(op, x):
        return getattr(op, operator)(x, *([] if axes is None else [axes]), keepdims=keepdims)

    dims = (2, 3, 2, 2) if axes is None or max(axes) < 4 else (2, 1, 2, 3, 2)
    found = rewritten(emit, floats("x", *dims), by=[SPELLINGS["pairs of reduced axes"]()])
    assert sum(name.startswith("Reduce") for name in found) == count
    assert not {"ReduceL1", "ReduceL2", "ReduceSumSquare"} & set(found)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 19])
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_pairs_of_axes_stay_in_files(operator: str, opset: int) -> None:
    """Simplification merges reductions, and older opsets have axes as attributes."""
    array = np.random.default_rng(0).standard_normal((1, 2, 3, 4, 5)).astype(np.float32)

    def emit(op, x):
        return getattr(op, operator)(x, [2, 3, 4])

    before = run(graph(emit, floats("x", *array.shape)), array)
    model = graph(emit, floats("x", *array.shape))
    finish_for(model, TARGETS["opencv"], opset=opset)
    assert operators(model) == [operator] * 2
    np.testing.assert_allclose(run(model, array)[0], before[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "dims", "found"),
    [
        ((4, 6, 7), (2, 4, 5, 6), ["MatMul", "Transpose", "Transpose"]),
        ((2, 1, 6, 7), (2, 4, 5, 6), ["MatMul", "Transpose", "Transpose"]),
        ((1, 4, 6, 7), (1, 4, 5, 6), ["MatMul"]),
        ((4, 6, 7), (4, 5, 6), ["MatMul"]),
        ((4, 6, 7), (1, 5, 6), ["MatMul"]),
        ((1, 6, 7), (2, 5, 6), ["MatMul"]),
        ((6, 7), (2, 4, 5, 6), ["MatMul"]),
    ],
)
def test_batches_of_constants(weights: tuple[int, ...], dims: tuple[int, ...], found: list[str]) -> None:
    constant = np.random.default_rng(0).standard_normal(weights).astype(np.float32)
    by = [SPELLINGS["transposed batches"]()]
    assert rewritten(lambda op, x: op.MatMul(x, constant), floats("x", *dims), by=by) == found


def test_other_batches_stay() -> None:
    """A constant first operand, and two computed ones."""
    by = [SPELLINGS["transposed batches"]()]
    constant = np.ones((4, 7, 5), np.float32)
    assert rewritten(lambda op, x: op.MatMul(constant, x), floats("x", 2, 4, 5, 6), by=by) == ["MatMul"]
    computed = floats("x", 2, 4, 5, 6), floats("y", 4, 6, 7)
    assert rewritten(lambda op, x, y: op.MatMul(x, y), *computed, by=by) == ["MatMul"]


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.ReduceMean(x, [1, 2]),
        lambda op, x: op.ReduceLogSumExp(x, [0, 1, 2]),
        lambda op, x: op.ReduceMax(x, np.zeros(0, np.int64), noop_with_empty_axes=1),
    ],
)
def test_other_reductions_stay(emit: Any) -> None:
    model = graph(emit, floats("x", 2, 3, 4))
    assert not SPELLINGS["pairs of reduced axes"]()(model).modified


@pytest.mark.parametrize(("operator", "count"), [("ReduceMean", 1), ("ReduceL2", 1), ("ReduceSum", 2), ("ReduceMax", 2)])
def test_reductions_of_integers(operator: str, count: int) -> None:
    """A mean of means would be rounded twice."""
    numbers = np.array([[[0, 1], [1, 1]], [[1, 3], [0, 1]]], np.int32)
    x = new_value(ir.DataType.INT32, numbers.shape, "x")
    by = [SPELLINGS["pairs of reduced axes"]()]
    found = rewritten(lambda op, x: getattr(op, operator)(x, [0, 1, 2], keepdims=0), x, by=by, numbers=[numbers])
    assert found == [operator] * count


@pytest.mark.parametrize(
    ("kernel", "pads", "found"),
    [
        ((1, 1), [1, 0, 1, 1], ["Conv", "Pad"]),
        ((1, 1), [1, 1, 1, 1], ["Conv", "Pad"]),
        ((1,), [0, 2], ["Conv", "Pad"]),
        ((1, 1), [0, 0, 0, 0], ["Conv"]),
        ((1, 1), None, ["Conv"]),
        ((1, 2), [1, 0, 1, 1], ["Conv"]),
    ],
)
def test_padding_of_small_kernels(kernel: tuple[int, ...], pads: list[int] | None, found: list[str]) -> None:
    def emit(op, x):
        return op.Conv(x, np.ones((2, 1, *kernel), np.float32), pads=pads, strides=[2] * len(kernel))

    assert rewritten(emit, floats("x", 1, 1, *[6] * len(kernel)), by=[SPELLINGS["unpadded 1x1 kernels"]()]) == found


@pytest.mark.parametrize(
    ("dims", "attributes", "kernel"),
    [
        ((1, 1), {"pads": [1, 1, 1, 1]}, [1, 1]),
        ((1, 5), {"pads": [1, 1, 1, 1]}, [1, 3]),
        ((5, 1), {"pads": [0, 2, 0, 0]}, [3, 1]),
        ((1, 1), {"pads": [1, 0, 1, 2], "strides": [2, 2]}, [1, 1]),
        ((1, 1), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, [1, 1]),
        ((1, 5), {"pads": [1, 1, 3, 1], "dilations": [2, 1]}, [3, 3]),  # no element of the kernel meets the image
        ((1, 5), {"pads": [4, 1, 0, 1], "strides": [3, 1]}, [3, 3]),  # the image is beyond the kernel
        ((1, 1), {"pads": [2, 2, 2, 2]}, [3, 3]),  # several results
        ((2, 2), {"pads": [1, 1, 1, 1]}, [3, 3]),
        ((1, 1), {"pads": [1, 1, 1, 1], "group": 1}, [3, 3]),
    ],
)
def test_kernels_beside_the_image(dims: tuple[int, int], attributes: dict[str, Any], kernel: list[int]) -> None:
    attributes = {"group": 2, **attributes}
    weights = np.random.default_rng(0).standard_normal((2, 2 // attributes["group"], 3, 3)).astype(np.float32)
    x = np.random.default_rng(1).standard_normal((1, 2, *dims)).astype(np.float32)

    def emit(op, x):
        return op.Conv(x, weights, **attributes)

    before = run(graph(emit, floats("x", *x.shape)), x)
    model = graph(emit, floats("x", *x.shape))
    SPELLINGS["cropped kernels"]()(model)
    np.testing.assert_allclose(run(model, x)[0], before[0], rtol=1e-5, atol=1e-6)
    assert list(model.graph[0].inputs[1].shape or ())[2:] == kernel


@pytest.mark.parametrize(
    ("channels", "results", "group", "kernel", "split"),
    [
        (8, 24, 2, 1, True),
        (12, 9, 3, 1, True),
        (8, 16, 2, 1, False),  # multiples of 8
        (8, 24, 2, 3, False),
        (8, 24, 1, 1, False),
        (8, 24, 8, 1, False),  # one channel for each group
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_groups(channels: int, results: int, group: int, kernel: int, split: bool, bias: bool) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((results, channels // group, kernel, kernel)).astype(np.float32)
    offsets = [np.arange(results, dtype=np.float32)] if bias else []

    def emit(op, x):
        return op.Conv(x, weights, *offsets, group=group, kernel_shape=[kernel, kernel])

    found = rewritten(emit, floats("x", 2, channels, 5, 4), by=[SPELLINGS["split groups"]()], atol=1e-4)
    assert found == (["Concat", *["Conv"] * group, "Split"] if split else ["Conv"])


HALVES = np.array([[-3.5, -2.5, -1.5, -0.5, 0.49999997, 0.5], [1.5, 2.5, 3.7, -7.2, 4e6 + 0.5, 0]], np.float32)
LARGE = np.array([[2**23 + 1, 2**23 + 3, -(2**23) - 1, 2**24 + 2, 2**22 + 1.5, -1e-10, -0.49999997, 3e38]], np.float32)


@pytest.mark.parametrize(
    ("emit", "changed"),
    [(lambda op, x: op.Round(x), True), (lambda op, x: op.Floor(x), False)],
)
def test_rounding_to_even(emit: Any, changed: bool) -> None:
    model = _spelled("Floor for Round", emit, HALVES)
    assert ("Round" not in operators(model)) and (len(model.graph) > 1) is changed
    _spelled("Floor for Round", emit, LARGE)  # to which nothing below 1 can be added
    _spelled("Floor for Round", emit, np.array([np.inf, -np.inf, np.nan, 1.5], np.float32))


@pytest.mark.parametrize(
    ("emit", "changed"),
    [
        (lambda op, x: op.Cast(x, to=ir.DataType.INT32), True),
        (lambda op, x: op.Cast(op.Cast(op.Floor(x), to=ir.DataType.INT64), to=ir.DataType.FLOAT), True),
        (lambda op, x: op.Cast(x, to=ir.DataType.BOOL), False),
        (lambda op, x: op.Cast(x, to=ir.DataType.DOUBLE), False),
        (lambda op, x: op.Div(x, op.const(3.0)), False),
    ],
)
def test_truncation(emit: Any, changed: bool) -> None:
    assert ("Floor" in operators(_spelled("truncated integers", emit, HALVES))) is changed


@pytest.mark.parametrize(
    ("attributes", "kept"), [({}, False), ({"pads": [0, 0, 1, 1]}, True), ({"auto_pad": "SAME_UPPER"}, True)]
)
def test_counted_padding(attributes: dict, kept: bool) -> None:
    def emit(op, x):
        return op.AveragePool(x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=0, count_include_pad=1, **attributes)

    (node,) = _spelled("no defaults", emit, np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)).graph
    assert ("count_include_pad" in node.attributes) is kept


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "found"),
    [
        ([-1], [-(2**31)], [1], [-1], ["Gather"]),
        ([3], [1], [-1], [-2], ["Gather"]),
        ([1, 9], [3, -9], [1, 0], [1, -1], ["Gather", "Slice"]),
        ([4], [-1], [1], [-1], ["Gather"]),  # nothing is before the last element
        ([-9], [-20], [1], [-1], ["Gather"]),  # the first element, at which a start before it begins
        ([-6], [-5], [1], [-1], ["Gather"]),  # nothing
        ([-9], [-20], [1], [1], ["Slice"]),
        ([1], [9], [1], [2], ["Slice"]),
    ],
)
def test_reversed_slices(starts: list, ends: list, axes: list, steps: list, found: list[str]) -> None:
    by = [SPELLINGS["Gather for reversed Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, starts, ends, axes, steps), floats("x", 3, 5), by=by) == found


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "found"),
    [
        ([1], [9], [1], [2], ["Gather"]),
        ([0, 1], [3, 5], [0, 1], [2, 3], ["Gather", "Gather"]),
        ([1, 0], [3, 4], [0, 1], [1, 2], ["Gather", "Slice"]),
        ([-1], [-(2**31)], [1], [-1], ["Gather"]),
        ([1], [9], [1], [1], ["Slice"]),
    ],
)
def test_strided_slices(starts: list, ends: list, axes: list, steps: list, found: list[str]) -> None:
    by = [SPELLINGS["Gather for strided Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, starts, ends, axes, steps), floats("x", 3, 5), by=by) == found


def test_strided_slices_of_unknown_sizes_stay() -> None:
    by = [SPELLINGS["Gather for strided Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, [0], [9], [1], [2]), floats("x", 3, None), by=by) == ["Slice"]


@pytest.mark.parametrize(
    ("dilations", "constant", "kernel"),
    [([2, 1], True, [3, 3]), ([2, 3], True, [3, 7]), ([1, 1], True, [2, 3]), ([2, 1], False, [2, 3])],
)
def test_dilations_of_transposed_convolutions(dilations: list[int], constant: bool, kernel: list[int]) -> None:
    weights = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 2, 2, 3)

    def emit(op, x):
        w = op.const(weights) if constant else op.Mul(op.ReduceSum(x, keepdims=1), op.const(weights))
        return op.ConvTranspose(x, w, dilations=dilations, strides=[2, 1], pads=[1, 0, 0, 1])

    model = _spelled("undilated ConvTranspose", emit, X.reshape(1, 2, 1, 3))
    node = model.graph[-1]
    assert node.inputs[1] is not None and list(node.inputs[1].shape or ())[2:] == kernel
    assert ("dilations" in node.attributes) == (kernel == [2, 3])


@pytest.mark.parametrize(("more", "modified"), [(0, True), (1, False)])
def test_output_padding_that_a_dilation_allows(more: int, modified: bool) -> None:
    def emit(op, x):
        ones = np.ones((1, 1, 2, 2), np.float32)
        return op.ConvTranspose(x, ones, dilations=[2, 2], strides=[1, 1], output_padding=[0, more])

    assert SPELLINGS["undilated ConvTranspose"]()(graph(emit, floats("x", 1, 1, 2, 3))).modified is modified


def _ones(*dims: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)


@pytest.mark.parametrize(
    ("emit", "dims", "whole"),
    [
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (3,), [1, 3, 2, 3]),
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (3, 1, 1), None),
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (2, 1), None),  # not as many as channels
        (lambda op, x: op.Conv(x, _ones(3, 3, 1, 1)), (1,), None),
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (3,), [1, 3, 1, 3]),  # the sum is larger than the product
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (3, 1, 1, 1, 1), [3, 2, 3, 1, 1]),  # it has more dimensions
        (lambda op, x: op.Conv(x, _ones(3, 3, 2, 3)), (2, 1, 1, 1, 1), None),
        (lambda op, x: op.MatMul(x, _ones(3, 2)), (2, 1), [1, 1, 2, 2]),
        (lambda op, x: op.MatMul(x, _ones(3, 2)), (2,), None),
        (lambda op, x: op.Relu(x), (3,), None),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_addends(emit: Any, dims: tuple[int, ...], whole: list[int] | None, swapped: bool) -> None:
    def added(op, x):
        pair = [emit(op, x), op.const(_ones(*dims))]
        return op.Add(*(reversed(pair) if swapped else pair))

    node = _spelled("whole addends", added, _ones(2, 3, 2, 3)).graph[-1]
    constant = node.inputs[0 if swapped else 1]
    assert constant is not None and list(constant.shape or ()) == (whole or list(dims))


@pytest.mark.parametrize(
    ("axes", "weights", "unfused"),
    [
        ([-1], (4,), False),
        ([2], (1, 4), False),
        ([-1], (1,), True),
        ([-1], (3, 1), True),
        ([-2], (4,), True),
        ([1, 2], (4,), True),
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
def test_rms_normalizations(axes: list[int], weights: tuple[int, ...], unfused: bool, inverse: bool) -> None:
    def emit(op, x):
        root = op.Sqrt(op.Add(op.ReduceMean(op.Mul(x, x), axes), np.float32(1e-3)))
        return op.Mul(op.Mul(x, op.Reciprocal(root)) if inverse else op.Div(x, root), _ones(*weights))

    found = rewritten(emit, floats("x", 2, 3, 4), by=[SPELLINGS["unfused RMS normalization"]()])
    assert ("ReduceSum" in found) is unfused and ("ReduceMean" in found) is not unfused


@pytest.mark.parametrize(("axes", "keepdims"), [([0, 1], 0), ([0, 1], 1), ([0], 0), ([1], 0)])
def test_roots_of_means(axes: list[int], keepdims: int) -> None:
    """The mean of all elements may be a scalar."""
    model = _spelled(
        "unfused RMS normalization",
        lambda op, x: op.Sqrt(op.Add(op.ReduceMean(x, axes, keepdims=keepdims), np.float32(2))),
        np.array([[1, 2, 0, 1], [0, 4, 2, 6]], np.float32),
    )
    assert ("ReduceSum" in operators(model)) is (axes != [1])


def test_other_means_stay() -> None:
    model = graph(lambda op, x: op.Sqrt(op.ReduceMean(x, [1, 2])), floats("x", 2, 3, 4))
    assert not SPELLINGS["unfused RMS normalization"]()(model).modified


SIGNED_ZEROS = np.array([[0, -0.0, 1, -2, 0.5, 3]], np.float32)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Equal(x, op.const([0.0])), ["Greater", "Greater", "Not", "Or"]),
        (lambda op, x: op.Cast(x, to=ir.DataType.BOOL), ["Abs", "Greater"]),
        (lambda op, x: op.Cast(op.Cast(x, to=ir.DataType.INT32), to=ir.DataType.BOOL), ["Cast", "Equal", "Not"]),
        (lambda op, x: op.Equal(op.Cast(x, to=ir.DataType.INT64), op.const(1)), ["Cast", "Equal"]),
        (lambda op, x: op.Greater(x, op.const(0.0)), ["Greater"]),
    ],
)
def test_compared_numbers(emit: Any, found: list[str]) -> None:
    by = [SPELLINGS["compared numbers"]()]
    assert rewritten(emit, floats("x", 1, 6), by=by, numbers=[SIGNED_ZEROS]) == found


def test_assertions_by_shapes() -> None:
    """The violations become the number of elements of a Reshape, in the graph and in bodies."""

    def emit(op, x):
        count = op.Cast(op.Squeeze(x, [0]), to=ir.DataType.INT64)
        checked = required(op, "more_than_three", op.Greater(count, 3), count)
        gathered = op.Gather(op.const(np.int64([0, 1])), op.Clip(count, op.const(0), op.const(1)), axis=0)  # no assertion
        return checked, gathered

    model = graph(emit, floats("x", 1))
    SPELLINGS["assertions by Reshape"]()(model)
    assert operators(model).count("Gather") == 1 and operators(model).count("Reshape") == 1
    assert [array.item() for array in run(model, np.float32([3]))] == [3, 1]
    with pytest.raises(Exception, match="more_than_three/Gather/Reshape"):
        run(model, np.float32([4]))


def test_assertions_in_bodies() -> None:
    def emit(op, x):
        indices = op.Cast(x, to=ir.DataType.INT64)
        table = op.const(np.arange(12, dtype=np.float32).reshape(4, 3))
        return (op.specops.EmbeddingBagOffsetsSum(table, indices, op.const(np.int64([0, 2]))),)

    model = graph(emit, floats("x", 3))
    attach_bodies(model)
    before = run(model, np.float32([0, 2, 1]))
    (body,) = model.functions.values()
    count = sum(node.op_type == "Gather" for node in body)
    SPELLINGS["assertions by Reshape"]()(model)
    assert sum(node.op_type == "Gather" for node in body) < count
    np.testing.assert_array_equal(run(model, np.float32([0, 2, 1])), before, strict=True)
    with pytest.raises(Exception, match="indices_are_negative"):
        run(model, np.float32([0, -1, 1]))


@pytest.mark.parametrize(
    ("source", "to", "found"),
    [
        (ir.DataType.FLOAT, ir.DataType.UINT8, ["Cast", "Cast", "Max"]),
        (ir.DataType.FLOAT16, ir.DataType.UINT16, ["Cast", "Cast", "Max"]),
        (ir.DataType.DOUBLE, ir.DataType.UINT32, ["Cast", "Cast", "Max"]),
        (ir.DataType.FLOAT, ir.DataType.INT8, ["Cast"]),
        (ir.DataType.FLOAT, ir.DataType.INT32, ["Cast"]),
        (ir.DataType.FLOAT, ir.DataType.UINT64, ["Cast"]),
        (ir.DataType.INT32, ir.DataType.UINT8, ["Cast"]),
        (ir.DataType.BOOL, ir.DataType.UINT8, ["Cast"]),
    ],
)
def test_casts_to_unsigned_integers(source: ir.DataType, to: ir.DataType, found: list[str]) -> None:
    array = np.array([0, 1, 3, 100], source.numpy())
    model = graph(lambda op, x: (op.Cast(x, to=to),), new_value(source, [4], "x"))
    SPELLINGS["Cast through integers"]()(model)
    assert operators(model) == found
    np.testing.assert_array_equal(run(model, array)[0], array.astype(to.numpy()), strict=True)


@pytest.mark.parametrize("through", [None, ir.DataType.INT32])
def test_casts_keep_the_low_bits(through: ir.DataType | None) -> None:
    def emit(op, x):
        return (op.Cast(x if through is None else op.Cast(x, to=through), to=ir.DataType.UINT8),)

    model = graph(emit, floats("x", 4))
    SPELLINGS["Cast through integers"]()(model)
    assert operators(model) == ["Cast", "Cast", "Max"]
    np.testing.assert_array_equal(
        run(model, np.float32([-1, 256, 300.7, -130]))[0], np.uint8([255, 0, 44, 126]), strict=True
    )


_TABLE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


@pytest.mark.parametrize(
    ("operator", "shapes", "axis"),
    [
        ("ScatterElements", ((9, 3, 2), (9, 3, 2)), 0),
        ("ScatterElements", ((2, 7, 1), (2, 7, 1)), 1),
        ("ScatterElements", ((4, 3, 5), (4, 3, 5)), -1),
        ("ScatterElements", ((0, 3, 2), (0, 3, 2)), 0),
        ("ScatterElements", ((4, 0, 2), (4, 0, 2)), 1),
        ("ScatterND", ((9, 1), (9, 3, 2)), 4),
        ("ScatterND", ((3, 5, 2), (3, 5, 2)), 3),
        ("ScatterND", ((30, 3), (30,)), 2),
        ("ScatterND", ((0, 1), (0, 3, 2)), 4),
    ],
)
@pytest.mark.parametrize("constant", [True, False])
def test_the_last_of_equal_indices(operator: str, shapes: Any, axis: int, constant: bool) -> None:
    rng = np.random.default_rng(1)
    size = _TABLE.shape[axis] if operator == "ScatterElements" else axis
    indices = rng.integers(-size, size, shapes[0])
    if operator == "ScatterND":
        indices = rng.integers(-2, 2, shapes[0])
    updates = rng.standard_normal(shapes[1]).astype(np.float32)

    def emit(op, x, *more):
        how = {"axis": axis} if operator == "ScatterElements" else {}
        return (
            op.node(operator, op.const(_TABLE) if more else x, op.const(indices) if constant else more[0], updates, **how),
        )

    inputs = [floats("x", 4, 3, 2)] if constant else [floats("x", 1), new_value(ir.DataType.INT64, indices.shape, "i")]
    arrays = [_TABLE] if constant else [np.zeros(1, np.float32), indices]
    model = graph(emit, *inputs)
    (expected,) = run(model, *arrays)
    SPELLINGS["last of equal indices"]()(model)
    np.testing.assert_array_equal(run(model, *arrays)[0], expected, strict=True)
    found = [node.attributes.get_string("reduction", "none") for node in model.graph if node.op_type.startswith("Scatter")]
    assert found == (["none"] if constant and not indices.size else ["max"])


@pytest.mark.parametrize(
    ("operator", "indices", "stays"),
    [
        ("ScatterElements", [[0, 2, 1]], True),
        ("ScatterElements", [[0, 2, 2]], False),
        ("ScatterElements", [[0, 2, -2]], True),
        ("ScatterElements", [[0, 2, -1]], False),  # -1 is 2
        ("ScatterND", [[0], [1]], True),
        ("ScatterND", [[0], [-2]], False),
        ("ScatterND", [[0, 1], [0, 2], [1, 1]], True),
        ("ScatterND", [[0, 1], [0, 2], [0, 1]], False),
    ],
)
def test_constant_indices_that_differ_stay(operator: str, indices: list[list[int]], stays: bool) -> None:
    updates = np.arange(np.size(indices), dtype=np.float32).reshape(np.shape(indices)) + 10
    if operator == "ScatterND":
        updates = updates[:, 0] if len(indices[0]) == 2 else np.repeat(updates, 3, 1)

    def emit(op, x):
        how = {"axis": 1} if operator == "ScatterElements" else {}
        return (op.node(operator, x, op.const(np.int64(indices)), updates, **how),)

    model = _spelled("last of equal indices", emit)
    assert all(
        (node.attributes.get_string("reduction", "none") == "none") is stays
        for node in model.graph
        if "Scatter" in node.op_type
    )


@pytest.mark.parametrize(
    ("dims", "scales", "how"),
    [((3,), (), {}), ((3,), (3,), {"axis": 0}), ((2, 3), (3,), {"axis": 1}), ((3, 2), (3,), {"axis": 0})],
)
def test_dequantized_constants_of_32_bits(dims: Any, scales: Any, how: dict[str, int]) -> None:
    integers = np.random.default_rng(0).integers(-(2**30), 2**30, dims).astype(np.int32)
    factors = np.random.default_rng(1).random(scales).astype(np.float32)

    def emit(op, x):
        floats_ = op.DequantizeLinear(op.const(integers), op.const(factors), **how)
        return (op.Add(op.ReduceSum(x, keepdims=0), floats_),)

    assert "DequantizeLinear" not in operators(_spelled("float biases", emit))


def test_dequantized_biases_of_float16() -> None:
    """The integer is beyond float16, and its product is not."""

    def emit(op, x):
        floats_ = op.DequantizeLinear(op.const(np.array([200000, 7], np.int32)), op.const(np.float16(0.01)))
        return op.Add(op.ReduceSum(x, keepdims=0), op.Cast(floats_, to=ir.DataType.FLOAT))

    assert "DequantizeLinear" not in operators(_spelled("float biases", emit))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_dequantized_constants_of_8_bits_stay(kind: type) -> None:
    def emit(op, x):
        return (op.Add(op.ReduceSum(x, keepdims=0), op.DequantizeLinear(op.const(np.arange(6, dtype=kind)), 0.5)),)

    assert "DequantizeLinear" in operators(_spelled("float biases", emit))


def test_dequantized_integers_at_run_time_stay() -> None:
    def emit(op, x):
        return (op.DequantizeLinear(op.Cast(x, to=ir.DataType.INT32), 0.5),)

    assert "DequantizeLinear" in operators(_spelled("float biases", emit))


def _matrices(op, x, *order: int):
    """Return 4 products of matrices, [4, 2, 5], transposed."""
    return op.Transpose(op.MatMul(x, np.ones((4, 3, 5), np.float32)), perm=order)


COPIED = ["Gather", "MatMul", "Transpose"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _matrices(op, x, 2, 1, 0), COPIED),
        (lambda op, x: _matrices(op, x, 1, 2, 0), COPIED),
        (lambda op, x: _matrices(op, x, 1, 0, 2), COPIED[1:]),
        (lambda op, x: _matrices(op, x, 0, 2, 1), COPIED[1:]),
        (lambda op, x: op.Transpose(op.Relu(op.Mul(op.MatMul(x, x), 2.0)), perm=[1, 2, 0]), [*COPIED, "Mul", "Relu"]),
        (lambda op, x: op.Transpose(op.Concat(op.MatMul(x, x), x, axis=1), perm=[1, 2, 0]), ["Concat", *COPIED]),
        (lambda op, x: op.Transpose(op.Softmax(op.MatMul(x, x)), perm=[1, 0, 2]), ["MatMul", "Softmax", "Transpose"]),
        (lambda op, x: op.Transpose(op.Unsqueeze(op.MatMul(x, x), [3]), perm=[2, 1, 0, 3]), [*COPIED, "Unsqueeze"]),
        (lambda op, x: op.Transpose(op.Reshape(op.MatMul(x, x), [4, 1, 9]), perm=[2, 1, 0]), [*COPIED[1:], "Reshape"]),
        (lambda op, x: op.Transpose(op.Transpose(op.MatMul(x, x), perm=[1, 0, 2]), perm=[0, 2, 1]), [*COPIED, "Transpose"]),
        (lambda op, x: op.Transpose(op.LayerNormalization(op.MatMul(x, x), np.ones(3, np.float32)), perm=[1, 2, 0]),
            ["LayerNormalization", *COPIED[1:]]),
        (lambda op, x: op.Transpose(op.Relu(x), perm=[1, 2, 0]), ["Relu", "Transpose"]),
        (lambda op, x: op.Einsum(x, x, equation="bmk,bkn->mnb", types=[(x.dtype, [3, 3, 4])]), [*COPIED[::2], "Einsum"]),
        (lambda op, x: op.Einsum(x, x, equation="bmk,bkn->mbn", types=[(x.dtype, [3, 4, 3])]), ["Einsum"]),
        (lambda op, x: op.Einsum(x, equation="bmk->mkb", types=[(x.dtype, [3, 3, 4])]), ["Einsum"]),
    ],
)  # fmt: skip
def test_products_with_the_batch_last(emit: Any, found: list[str]) -> None:
    array = np.random.default_rng(0).standard_normal((4, 3, 3)).astype(np.float32)
    assert operators(_spelled("copied products", emit, array)) == sorted(found)


def test_products_of_one_matrix() -> None:
    def emit(op, x):
        return op.Transpose(op.MatMul(x, x), perm=[1, 2, 0])

    one = np.random.default_rng(0).standard_normal((1, 3, 3)).astype(np.float32)
    assert operators(_spelled("copied products", emit, one)) == ["MatMul", "Transpose"]
    assert operators(_spelled("copied products", emit, one, None, 3, 3)) == COPIED  # a batch of unknown size
    unknown = [*COPIED[:1], "Gather", "MatMul", "Range", "Shape", "Squeeze", "Transpose"]
    assert operators(_spelled("copied products", emit, one, None, None, None)) == unknown


@pytest.mark.parametrize(
    ("split", "order", "merged", "found"),
    [
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 2, 6, 10], ["DepthToSpace"]),
        ([1, 2, 2, 2, 3, 5], [0, 3, 4, 1, 5, 2], [1, 2, 6, 10], ["DepthToSpace"]),
        ([1, 2, 2, 2, 3, 5], [0, 1, 5, 2, 4, 3], [1, 2, 10, 6], None),  # rows and columns exchanged
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 3, 5, 2], [1, 2, 6, 10], None),  # the block transposed
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 4, 6, 5], None),  # merged differently
        ([1, 8, 1, 1, 3, 5], [0, 1, 4, 2, 5, 3], [1, 8, 3, 5], ["DepthToSpace"]),
        ([1, 1, 4, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 1, 12, 10], None),  # blocks that are not square
        ([1, 2, 2, 2, 5, 3], [0, 1, 4, 2, 5, 3], [1, 2, 10, 6], None),  # another height
    ],
)
def test_blocks_of_channels(split: list[int], order: list[int], merged: list[int], found: list[str] | None) -> None:
    def emit(op, x):
        return op.Reshape(op.Transpose(op.Reshape(x, split), perm=order), merged)

    array = np.arange(8 * 15, dtype=np.float32).reshape(1, 8, 3, 5)
    model = _spelled("DepthToSpace for Transpose", emit, array)
    RemoveUnusedNodesPass()(model)
    assert operators(model) == (found or ["Reshape", "Reshape", "Transpose"])


@pytest.mark.parametrize(
    ("dims", "order", "found"),
    [
        ([1, 2, 3, 2, 3, 5], [0, 1, 3, 2, 4, 5], 1),
        ([2, 1, 3, 2, 5], [3, 0, 2, 1, 4], 1),  # a dimension of 1 in the middle
        ([2, 3, 2, 3, 2], [4, 0, 1, 2, 3], 1),
        ([2, 3, 2, 3, 2], [4, 3, 2, 1, 0], 4),  # five groups
        ([2, 3, 2, 3, 2, 2], [0, 2, 4, 1, 3, 5], 2),
        ([1, 2, 3, 1, 5], [0, 3, 1, 2, 4], 0),  # no elements move
        ([1, 2, 3, 2, 5], [0, 2, 4, 3, 1], None),  # a batch of 1 and four dimensions
        ([2, 3, 2, 5], [1, 3, 0, 2], None),  # four dimensions
    ],
)
def test_axes_of_transposes(dims: list[int], order: list[int], found: int | None) -> None:
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    model = _spelled("merged axes", lambda op, x: op.Neg(op.Transpose(x, perm=order)), array)
    transposes = [node for node in model.graph if node.op_type == "Transpose"]
    assert len(transposes) == (1 if found is None else found)
    assert found is None or all(len(node.attributes.get_ints("perm", ())) <= 5 for node in transposes)
    assert ("Reshape" in operators(model)) == (found is not None)


@pytest.mark.parametrize(
    ("parts", "order", "axis", "sizes", "found"),
    [
        ([2, 4, 3, 2, 5], [2, 0, 3, 1, 4], 0, [1, 1, 1], True),
        ([2, 4, 3, 2, 5], [0, 3, 2, 1, 4], 2, [1, 1, 1], True),
        ([2, 2, 2, 3, 2, 5], [3, 0, 1, 4, 2, 5], 0, [1, 1, 1], True),  # tokens of two dimensions
        ([2, 4, 2, 3, 5], [3, 0, 2, 1, 4], 0, [1, 1, 1], False),  # projections of each head
        ([2, 4, 3, 2, 5], [2, 0, 3, 1, 4], 0, [1, 2], False),
        ([2, 4, 6, 5], [2, 0, 1, 3], 0, [1] * 6, False),  # four dimensions
        ([2, 4, 3, 2, 5], None, 2, [1, 1, 1], False),
    ],
)
def test_splits_of_projections(parts: list[int], order: list[int] | None, axis: int, sizes: list[int], found: bool) -> None:
    def emit(op, x):
        whole = op.Reshape(x, parts)
        whole = whole if order is None else op.Transpose(whole, perm=order)
        return [op.Neg(part) for part in op.Split(whole, sizes, axis=axis, outputs=len(sizes))]

    array = np.arange(240, dtype=np.float32).reshape(2, 4, 30)
    model = _spelled("Split before Transpose", emit, array)
    RemoveUnusedNodesPass()(model)
    (split,) = (node for node in model.graph if node.op_type == "Split")
    assert (split.inputs[0] is model.graph.inputs[0]) == found


def _concatenated(op, x, copied):
    return op.MatMul(op.Concat(copied, np.ones((2, 4, 5), np.float32), axis=2), np.ones((8, 3), np.float32))


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _concatenated(op, x, op.Expand(x, [1, 4, 1])), ["Concat", "Gather", "MatMul"]),
        (lambda op, x: _concatenated(op, x, op.Tile(x, [1, 4, 1])), ["Concat", "Gather", "MatMul"]),
        (lambda op, x: op.MatMul(op.Expand(op.Relu(x), [3, 1, 4, 1]), np.ones((3, 3), np.float32)),
            ["Gather", "Gather", "MatMul", "Relu", "Unsqueeze"]),
        (lambda op, x: op.MatMul(op.Relu(op.Expand(x, [1, 4, 1])), np.ones((3, 3), np.float32)),
            ["Expand", "MatMul", "Relu"]),
        (lambda op, x: op.MatMul(op.Reshape(op.Expand(x, [1, 4, 1]), [2, 2, 6]), np.ones((6, 3), np.float32)),
            ["Expand", "MatMul", "Reshape"]),
        (lambda op, x: op.MatMul(op.Tile(x, [2, 1, 1]), np.ones((3, 3), np.float32)), ["MatMul", "Tile"]),
        (lambda op, x: op.Add(op.Expand(x, [1, 4, 1]), 1.0), ["Add", "Expand"]),
    ],
)  # fmt: skip
def test_expanded_factors(emit: Any, found: list[str]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    assert operators(_spelled("Gather for Expand", emit, array)) == found


@pytest.mark.parametrize(
    ("dims", "repeats", "given", "found"),
    [
        ([-1, 1, 4], [1, 3, 1], (2, 1, 4), ["Gather", "MatMul"]),
        ([-1, 1, 4], [2, 3, 1], (2, 1, 4), ["MatMul", "Tile"]),  # the unknown dimension is repeated, too
    ],
)
def test_repeated_unknown_dimensions(
    dims: list[int], repeats: list[int], given: tuple[int, ...], found: list[str], oracle: Oracle, tmp_path: Path
) -> None:
    x = ops.parameter(dims, np.float32, name="x")
    tiled = ops.tile(x, ops.constant(np.array(repeats, np.int64)))
    model = ov.Model([ops.matmul(tiled, ops.constant(np.ones((4, 5), np.float32)), False, False)], [x])
    data = np.random.default_rng(0).standard_normal(given).astype(np.float32)
    made = converted(model, [data], oracle, tmp_path, target="tract")
    assert sorted(node.op_type for node in made.graph.node) == found


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ([-1, 3, 4], ["Expand", "MatMul", "Relu", "Shape"]),  # the unknown dimension may be 1
        ([1, 3, 4], ["Gather", "MatMul", "Relu"]),
    ],
)
def test_unknown_dimensions_that_broadcast(target: list[int], found: list[str], oracle: Oracle, tmp_path: Path) -> None:
    x, y = (ops.parameter(dims, np.float32, name=name) for name, dims in (("x", [-1, 1, 4]), ("y", target)))
    wide = ops.broadcast(x, ops.shape_of(y), broadcast_spec="BIDIRECTIONAL")
    outputs = [ops.matmul(wide, ops.constant(np.ones((4, 5), np.float32)), False, False), ops.relu(y)]
    rows = 2 if target[0] < 0 else 1
    numbers = np.arange(12 * rows, dtype=np.float32).reshape(rows, 3, 4)
    made = converted(ov.Model(outputs, [x, y]), [numbers[:1, :1] - 1, numbers], oracle, tmp_path, target="tract")
    assert sorted(node.op_type for node in made.graph.node) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.ReduceMean(x, [0, 1], keepdims=0), ["ReduceMean", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceSum(x, keepdims=0), ["ReduceSum", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceL2(x, keepdims=0), ["ReduceL2", "Reshape", "Reshape"]),
        (lambda op, x: op.ArgMax(op.Reshape(x, [6]), axis=0, keepdims=0), ["ArgMax", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceMean(x, [1], keepdims=0), ["ReduceMean"]),
        (lambda op, x: op.ReduceMean(x, [0, 1]), ["ReduceMean"]),
        (
            lambda op, x: op.ReduceMean(op.ReduceSum(x, keepdims=0), keepdims=0),
            ["ReduceMean", "ReduceSum", *["Reshape"] * 2],
        ),
    ],
)
def test_reductions_to_scalars(emit: Any, found: list[str]) -> None:
    assert operators(_spelled("Reshape for scalars", emit)) == found
