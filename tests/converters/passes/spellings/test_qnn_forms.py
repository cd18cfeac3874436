"""Forms for Qualcomm's HTP, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.qnn_forms import (
    ConcatenatedEnds,
    ConvForAveragePool,
    ExpandedSoftplus,
    FiveDimensions,
    FloorPooling,
    KernelsOfStrides,
    MaxBeforePad,
    PadBeforeConv,
    QuantizedMoves,
    ResizeOfHTP,
    ScalesOfQuantizations,
    SeparateActivations,
    SeparateQuantizations,
    SeparateTransposes,
    SumsOfProducts,
    WeightsOfFloatResults,
)
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

WEIGHTS = np.linspace(-1e5, 9, 6, dtype=np.float32).reshape(2, 3, 1, 1)
SMALL = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Sigmoid(op.Conv(x, WEIGHTS)), ["Conv", "Max", "Sigmoid"]),
        (lambda op, x: op.Tanh(op.Conv(x, WEIGHTS)), ["Conv", "Max", "Tanh"]),
        (lambda op, x: op.Gelu(op.Conv(x, WEIGHTS)), ["Conv", "Gelu", "Max"]),
        (lambda op, x: op.Gelu(op.Conv(x, WEIGHTS), approximate="tanh"), ["Conv", "Gelu", "Max"]),
        (lambda op, x: op.Sigmoid(op.MatMul(x, SMALL)), ["MatMul", "Max", "Sigmoid"]),
        (lambda op, x: op.Sigmoid(op.Add(1.0, op.MatMul(x, SMALL))), ["Add", "MatMul", "Max", "Sigmoid"]),
        (lambda op, x: op.Sigmoid(op.Neg(op.Conv(x, WEIGHTS))), ["Conv", "Neg", "Sigmoid"]),
        (lambda op, x: op.Relu(op.Conv(x, WEIGHTS)), ["Conv", "Relu"]),
        (lambda op, x: op.Sigmoid(op.Add(x, 1.0)), ["Add", "Sigmoid"]),
        (lambda op, x: op.Sigmoid(x), ["Sigmoid"]),
    ],
)
def test_activations_after_products(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 1, 3, 4, 4), by=[SeparateActivations()]) == found


MATRICES = np.random.default_rng(1).standard_normal((4, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("first", "weights", "last", "found"),
    [
        ([0, 2, 1, 3], MATRICES, [0, 2, 1, 3], True),
        ([0, 2, 1, 3], MATRICES[None], [0, 2, 1, 3], True),
        ([0, 2, 1, 3], MATRICES[:1], [0, 2, 1, 3], False),
        ([0, 2, 1, 3], MATRICES[0], [0, 2, 1, 3], False),
        ([0, 2, 1, 3], MATRICES, [0, 1, 3, 2], False),
        ([2, 0, 1, 3], MATRICES[:2], [0, 2, 1, 3], False),
    ],
)
def test_matrices_between_transposes(first: list[int], weights: np.ndarray, last: list[int], found: bool) -> None:
    def emit(op, x):
        return op.Transpose(op.MatMul(op.Transpose(x, perm=first), weights), perm=last)

    assert ("Max" in rewritten(emit, floats("x", 2, 3, 4, 5), by=[SeparateTransposes()])) == found


def test_computed_matrices_between_transposes() -> None:
    def emit(op, x, y):
        return op.Transpose(op.MatMul(op.Transpose(x, perm=[0, 2, 1, 3]), y), perm=[0, 2, 1, 3])

    assert "Max" not in rewritten(emit, floats("x", 2, 3, 4, 5), floats("y", 4, 5, 3), by=[SeparateTransposes()])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Softplus(op.Mul(x, 50.0)), ["Abs", "Add", "Add", "Exp", "Log", "Max", "Mul", "Neg"]),
        (lambda op, x: op.Mish(x), ["Abs", "Add", "Add", "Exp", "Log", "Max", "Mul", "Neg", "Tanh"]),
        (lambda op, x: op.HardSigmoid(x, alpha=0.3, beta=0.4), ["Add", "Clip", "Mul"]),
        (lambda op, x: op.HardSwish(x), ["HardSwish"]),
        (lambda op, x: op.HardSigmoid(op.ReduceSum(x, keepdims=0)), ["HardSigmoid", "ReduceSum"]),
    ],
)
def test_softplus(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 2, 3), by=[ExpandedSoftplus()]) == found


def _resized(sizes: list[int], **attributes: Any):
    return lambda op, x: op.Resize(x, None, None, [1, 2, *sizes], **attributes)


def _scaled(scales: list[float], **attributes: Any):
    return lambda op, x: op.Resize(x, None, op.const(np.array([1, 1, *scales], np.float32)), None, **attributes)


_PYTORCH = {"coordinate_transformation_mode": "pytorch_half_pixel"}


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (_resized([8, 10]), ["Resize"]),  # the same elements as those of asymmetric coordinates
        (_resized([8, 10], nearest_mode="ceil"), ["Gather", "Gather"]),
        (_resized([6, 7], nearest_mode="ceil", coordinate_transformation_mode="align_corners"), ["Gather", "Gather"]),
        (_scaled([1.6, 1.3], mode="linear"), ["MatMul", "MatMul", "Transpose", "Transpose"]),
        (_scaled([1.5, 2.0], mode="linear"), ["Resize"]),
        (_resized([6, 7], mode="linear"), ["Resize"]),
        (_resized([6, 7], mode="cubic"), ["Resize"]),
        (
            _resized([1, 5], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
            ["MatMul", "Transpose", "Transpose"],
        ),
        (_resized([1, 5], mode="linear"), ["Resize"]),
        (_resized([2, 5], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"), ["Resize"]),
    ],
)
def test_resize(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 1, 2, 4, 5), by=[ResizeOfHTP()]) == found


def test_nearest_elements_are_rounded_down() -> None:
    model = graph(_resized([8, 10]), floats("x", 1, 2, 4, 5))
    ResizeOfHTP()(model)
    (node,) = model.graph
    assert node.attributes.get_string("nearest_mode") == "floor"
    assert node.attributes.get_string("coordinate_transformation_mode") == "asymmetric"


@pytest.mark.parametrize(
    ("operator", "attributes", "changed"),
    [
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, True),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": 1}, True),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}, True),
        ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 0], "ceil_mode": 1}, True),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [3, 1], "dilations": [1, 2], "ceil_mode": 1}, True),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [1, 4], "dilations": [1, 2], "ceil_mode": 1}, False),
        ("MaxPool", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}, False),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "ceil_mode": 1, "count_include_pad": 1}, False),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2]}, False),
    ],
)
def test_pooling(operator: str, attributes: dict[str, Any], changed: bool) -> None:
    def emit(op, x):
        return op.node(operator, x, **attributes)

    for dims in ((1, 2, 10, 9), (2, 1, 7, 8)):
        assert rewritten(emit, floats("x", *dims), by=[FloorPooling()]) == [operator]
    model = graph(emit, floats("x", 1, 2, 10, 9))
    assert FloorPooling()(model).modified is changed
    assert not FloorPooling()(graph(emit, floats("x", 1, 2, None, 9))).modified


@pytest.mark.parametrize(
    ("attributes", "dims", "found"),
    [
        ({"kernel_shape": [3, 1], "pads": [1, 0, 1, 0]}, (2, 3, 8, 7), ["Conv", "Mul"]),
        ({"kernel_shape": [3, 1], "pads": [1, 0, 1, 0], "count_include_pad": 1}, (2, 3, 8, 7), ["Conv"]),
        ({"kernel_shape": [1, 2], "strides": [1, 2]}, (2, 3, 8, 7), ["Conv"]),
        ({"kernel_shape": [3, 3], "pads": [1, 0, 2, 1], "strides": [2, 1]}, (2, 1, 8, 7), ["Conv", "Mul"]),
        ({"kernel_shape": [3, 3], "pads": [1] * 4}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}, (2, 3, 8, 7), ["Conv", "Mul"]),
        ({"kernel_shape": [3, 3], "pads": [0, 0, 1, 1]}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [8, 7]}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [3, 2], "ceil_mode": 1}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [3, 2], "dilations": [2, 1]}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [3, 2]}, (2, 3, None, 7), ["AveragePool"]),
        ({"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}, (2, 3, 8, 7), ["AveragePool"]),
        ({"kernel_shape": [3]}, (2, 3, 8), ["AveragePool"]),
    ],
)
def test_means(attributes: dict[str, Any], dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(lambda op, x: op.AveragePool(x, **attributes), floats("x", *dims), by=[ConvForAveragePool()]) == found


def test_means_of_integers_stay() -> None:
    def emit(op, x):
        quantized = op.QuantizeLinear(x, op.const(np.float32(0.1)), op.const(np.uint8(128)))
        pooled = op.DequantizeLinear(quantized, op.const(np.float32(0.1)), op.const(np.uint8(128)))
        return op.AveragePool(pooled, kernel_shape=[3, 1])

    assert "AveragePool" in rewritten(emit, floats("x", 1, 3, 6, 6), by=[ConvForAveragePool()])


@pytest.mark.parametrize(
    ("attributes", "size", "found"),
    [
        ({"pads": [2, 2, 2, 2]}, 2, ["Conv", "Max", "Pad"]),
        ({"pads": [0, 0, 0, 2]}, 2, ["Conv", "Max", "Pad"]),
        ({"pads": [2, 2, 2, 2], "strides": [2, 1]}, 2, ["Conv", "Max", "Pad"]),
        ({"pads": [2, 2, 2, 2], "dilations": [2, 2]}, 2, ["Conv"]),
        ({"pads": [1, 1, 1, 1]}, 2, ["Conv"]),
        ({"pads": [1, 1, 1, 1]}, 1, ["Conv"]),
        ({}, 2, ["Conv"]),
    ],
)
def test_padding(attributes: dict[str, Any], size: int, found: list[str]) -> None:
    weights = np.random.default_rng(0).standard_normal((4, 3, size, size)).astype(np.float32)
    bias = np.arange(4, dtype=np.float32)
    emitted = rewritten(lambda op, x: op.Conv(x, weights, bias, **attributes), floats("x", 1, 3, 6, 5), by=[PadBeforeConv()])
    assert emitted == found


STEP, ZERO = np.float32(0.05), np.uint8(120)


def _around(emit: Any, scale: Any = STEP, zero: Any = ZERO) -> list[str]:
    """Return the operators of a graph of quantized images after the pass."""

    def whole(op, x):
        return op.DequantizeLinear(emit(op, op.QuantizeLinear(x, scale, zero, axis=1)), scale, zero, axis=1)

    found = rewritten(whole, floats("x", 1, 3, 4, 4), by=[QuantizedMoves()])
    return [name for name in found if not name.endswith("Linear")] * (found.count("QuantizeLinear") > 1)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.MaxPool(x, kernel_shape=[2, 2], pads=[1, 0, 0, 1]), ["MaxPool"]),
        (lambda op, x: op.Reshape(op.Transpose(x, perm=[0, 2, 3, 1]), [1, -1]), ["Reshape", "Transpose"]),
        (lambda op, x: op.Pad(x, [0, 0, 1, 0, 0, 0, 0, 2], ZERO), ["Pad"]),
        (lambda op, x: op.Pad(x, [0, 0, 1, 0, 0, 0, 0, 2], np.uint8(7)), ["Pad"]),
        (lambda op, x: op.Pad(x, [0, 0, 1, 0, 0, 0, 0, 2]), ["Pad"]),  # the integer 0, which is not the number 0
        (lambda op, x: op.Pad(x, [0, 0, 1, 0, 0, 0, 0, 2], mode="edge"), ["Pad"]),
        (lambda op, x: op.Concat(x, op.Slice(x, [1], [3], [2]), axis=2), ["Concat", "Slice"]),
        (lambda op, x: op.Concat(x, np.full((1, 3, 1, 4), 9, np.uint8), axis=2), []),  # a constant without a scale
    ],
)
def test_moves_of_integers(emit: Any, found: list[str]) -> None:
    assert _around(emit) == found


def test_moves_with_several_scales_stay() -> None:
    scale, zero = np.array([0.1, 0.05, 0.2], np.float32), np.full(3, 120, np.uint8)
    assert _around(lambda op, x: op.MaxPool(x, kernel_shape=[2, 2]), scale, zero) == []
    other = np.float32(0.04)
    found = rewritten(
        lambda op, x: op.Concat(op.QuantizeLinear(x, STEP, ZERO), op.QuantizeLinear(x, other, ZERO), axis=1),
        floats("x", 1, 3, 4, 4),
        by=[QuantizedMoves()],
    )
    assert found == ["Concat", "QuantizeLinear", "QuantizeLinear"]


def _product(columns: bool, conv: bool, function: bool = False, is_quantized: bool = True, data: bool = True) -> list[str]:
    """Return the operators of a product with stored weights after the pass."""
    stored = np.random.default_rng(0).integers(-9, 9, (4, 3, 1, 1) if conv else (4, 4)).astype(np.int8)
    count, axis = (4, 0) if conv else (4, 1)
    scale = np.linspace(0.1, 0.4, count, dtype=np.float32) if columns else np.float32(0.1)
    zero = np.zeros(count, np.int8) if columns else np.int8(0)

    def emit(op, x):
        weights = op.DequantizeLinear(stored, scale, zero, axis=axis)
        x = op.DequantizeLinear(op.QuantizeLinear(x, STEP, ZERO), STEP, ZERO) if data else x
        result = op.Conv(x, weights) if conv else op.MatMul(x, weights)
        result = op.Relu(result) if function else result
        return op.DequantizeLinear(op.QuantizeLinear(result, STEP, ZERO), STEP, ZERO) if is_quantized else result

    return rewritten(emit, floats("x", 1, 3, 4, 4), by=[WeightsOfFloatResults()])


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        ({"columns": True, "conv": True}, True),
        ({"columns": True, "conv": True, "function": True}, True),
        ({"columns": True, "conv": True, "is_quantized": False}, False),
        ({"columns": True, "conv": True, "data": False}, False),
        ({"columns": True, "conv": False}, False),
        ({"columns": False, "conv": False}, True),
        ({"columns": False, "conv": False, "is_quantized": False}, False),
    ],
)
def test_weights_of_float_results(options: dict[str, bool], stored: bool) -> None:
    count = 1 + options.get("data", True) + options.get("is_quantized", True)
    assert _product(**options).count("DequantizeLinear") == count - (not stored)


PLACES = np.array([[0, 1], [1, 2], [-1, 0]])


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Gather(x, PLACES, axis=2), (1, 2, 3, 2, 2), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, PLACES, axis=2), (1, 2, 3, 2), ["Gather", "Reshape", "Reshape"]),  # five dimensions
        (lambda op, x: op.Gather(x, PLACES[None, None], axis=0), (3, 1), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, PLACES[None], axis=0), (3, 1), ["Gather"]),
        (lambda op, x: op.Gather(x, PLACES, axis=2), (2, 3, 4), ["Gather"]),
        (
            lambda op, x: op.Gather(x, op.Cast(op.ReduceMax(op.Sign(x), [2, 3], keepdims=0), to=ir.DataType.INT64), axis=2),
            (1, 2, 3, 2),
            ["Cast", "Gather", "ReduceMax", "Reshape", "Reshape", "Reshape", "Sign"],
        ),
        (lambda op, x: op.Gather(x, [0, 1], axis=2), (1, 2, 3, 2, 2, 2), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, [0, 1], axis=0), (2, 2, 3, 2, 2), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, [0, 1], axis=1), (2, 2, 3, 2, 2), ["Gather"]),
        (lambda op, x: op.Gather(x, PLACES, axis=2), (1, None, 3, 2, 2), ["Gather"]),
        (lambda op, x: op.Gather(x, -1, axis=2), (1, 2, 3, 2, 2, 2), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, 1, axis=-1), (1, 2, 3, 2, 2, 2), ["Gather", "Reshape", "Reshape"]),
        (lambda op, x: op.Gather(x, 1, axis=2), (1, 2, 3, 2, 2), ["Gather"]),
        (lambda op, x: op.ReduceMax(x, [3]), (1, 2, 3, 4, 2, 2), ["ReduceMax", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceMean(x, [-1, -2], keepdims=0), (1, 2, 3, 4, 2, 2), ["ReduceMean", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceSum(x, [1, 3]), (1, 2, 3, 4, 2, 2), ["ReduceSum"]),
        (lambda op, x: op.ReduceMax(x, [3]), (1, 2, 3, 4, 2), ["ReduceMax"]),
    ],
)
def test_six_dimensions(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[FiveDimensions()]) == found


@pytest.mark.parametrize(
    ("scale", "zero", "found"),
    [
        (STEP, ZERO, []),
        (np.float32(0.02), ZERO, ["Mul"]),
        (np.float32(0.02), np.uint8(100), ["Add", "Mul"]),
        (STEP, np.uint8(140), ["Add", "Mul"]),
    ],
)
def test_another_scale_than_that_of_the_quantization(scale: np.float32, zero: np.uint8, found: list[str]) -> None:
    def emit(op, x):
        return op.DequantizeLinear(op.QuantizeLinear(x, STEP, ZERO), scale, zero)

    names = rewritten(emit, floats("x", 1, 3, 4, 4), by=[ScalesOfQuantizations()])
    assert [name for name in names if not name.endswith("Linear")] == found


@pytest.mark.parametrize("number", [None, 2.0])
@pytest.mark.parametrize(
    ("dims", "pads", "joined"),
    [
        ((1, 3, 4, 5), [0, 0, 0, 0, 0, 0, 1, 1], True),
        ((1, 3, 4, 5), [0, 0, 2, 0, 0, 0, 1, 3], True),
        ((1, 3, 4, 5), [0, 0, 0, 0, 0, 1, 0, 1], True),
        ((4, 5), [0, 0, 1, 1], True),
        ((1, 3, 4, 5), [0, 0, 0, 1, 0, 0, 1, 1], False),  # the begin of the last axis, too
        ((1, 3, 4, 5), [0, 0, 0, 0, 0, 0, 0, 1], False),  # only the last axis
        ((1, 3, 4, 5), [0, 0, 1, 0, 0, 0, 0, 1], False),  # the begin of another axis only
        ((1, 3, 4, 5), [0, 0, 1, 0, 0, 0, 1, 0], False),
        ((1, 3, 4, 5), [0, 0, 0, 0, 0, 0, -1, 1], False),
        ((1, 2, 3, 4, 5), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], False),  # five dimensions
        ((1, 3, 4, None), [0, 0, 0, 0, 0, 0, 1, 1], False),
    ],
)
def test_ends(dims: tuple[int | None, ...], pads: list[int], joined: bool, number: float | None) -> None:
    found = rewritten(lambda op, x: op.Pad(x, pads, number), floats("x", *dims), by=[ConcatenatedEnds()])
    assert found == (["Concat", "Pad"] if joined else ["Pad"])


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.Pad(x, [0, 0, 1, 1], mode="edge"),
        lambda op, x: op.Pad(x, [0, 0, 1, 1], op.ReduceMax(x, keepdims=0)),
        lambda op, x: op.Pad(op.DequantizeLinear(op.QuantizeLinear(x, 0.1), 0.1), [0, 0, 1, 1]),
        lambda op, x: op.Cast(op.Pad(op.Cast(x, to=ir.DataType.INT32), [0, 0, 1, 1]), to=ir.DataType.FLOAT),
    ],
)
def test_other_ends(emit: Any) -> None:
    assert "Concat" not in rewritten(emit, floats("x", 4, 5), by=[ConcatenatedEnds()])


@pytest.mark.parametrize(
    ("dtype", "number", "mode", "limited"),
    [
        (ir.DataType.FLOAT16, 1.0, "constant", True),
        (ir.DataType.FLOAT16, 0.0, "constant", False),
        (ir.DataType.FLOAT16, None, "constant", False),
        (ir.DataType.FLOAT16, 1.0, "reflect", False),
        (ir.DataType.DOUBLE, 1.0, "constant", False),
    ],
)
def test_padding_of_16_bits(dtype: ir.DataType, number: float | None, mode: str, limited: bool) -> None:
    def emit(op, x):
        return op.Pad(op.Cast(x, to=ir.DataType.FLOAT), [1, 0, 0, 1], number, mode=mode)

    numbers = [np.array([[1, -2, 3], [-60000, 60000, 0]]).astype(dtype.numpy())]
    found = rewritten(emit, new_value(dtype, (2, 3), "x"), by=[MaxBeforePad()], numbers=numbers)
    assert found == (["Cast", "Max", "Pad"] if limited else ["Cast", "Pad"])


@pytest.mark.parametrize(
    ("dtype", "dims", "axis", "kept"),
    [
        (ir.DataType.FLOAT, (2, 3, 4), 1, False),
        (ir.DataType.FLOAT, (2, 3, 4), -1, False),
        (ir.DataType.FLOAT, (1, 2, 3, 2, 2), 2, False),
        (ir.DataType.FLOAT, (1, None, 3, 2, 2), 2, True),
        (ir.DataType.INT32, (2, 3, 4), 1, True),
        (ir.DataType.FLOAT, (2, None, 4), 1, True),
    ],
)
@pytest.mark.parametrize("attributes", [{}, {"reverse": 1}, {"exclusive": 1}])
def test_running_sums(
    dtype: ir.DataType, dims: tuple[int | None, ...], axis: int, kept: bool, attributes: dict[str, int]
) -> None:
    x = new_value(dtype, dims, "x")
    numbers = [np.random.default_rng(0).integers(-9, 9, [size or 5 for size in dims]).astype(dtype.numpy())]
    found = rewritten(lambda op, x: op.CumSum(x, axis, **attributes), x, by=[SumsOfProducts()], numbers=numbers)
    assert ("CumSum" in found) is kept


@pytest.mark.parametrize(
    ("size", "stride", "options", "extended"),
    [
        (3, 4, {}, True),
        (3, 4, {"pads": [1, 1, 1, 1]}, True),
        (3, 4, {"pads": [0, 2, 1, 0]}, True),
        (1, 3, {}, True),
        (1, 2, {}, False),
        (3, 3, {}, False),
        (3, 5, {}, False),
        (3, 4, {"group": 1}, False),
        (3, 4, {"dilations": [2, 2]}, False),
        (3, 4, {"auto_pad": "SAME_UPPER"}, False),
        (3, 4, {"strides": [4, 1]}, False),
    ],
)
def test_kernels_as_large_as_strides(size: int, stride: int, options: dict[str, Any], extended: bool) -> None:
    attributes = {"group": 4, "strides": [stride, stride]} | options
    weights = np.random.default_rng(1).standard_normal((4, 4 // attributes["group"], size, size))

    def emit(op, x):
        return op.Conv(x, weights.astype(np.float32), np.ones(4, np.float32), **attributes)

    for height in (9, 10, 11, 12):
        assert rewritten(emit, floats("x", 1, 4, height, 13), by=[KernelsOfStrides()]) == ["Conv"]
        assert KernelsOfStrides()(graph(emit, floats("x", 1, 4, height, 13))).modified is extended


def _requantized(second: tuple[float, int], *, reads: bool = False, outputs: bool = False, moved: bool = True):
    """Return two quantizations, of which the first is before and after a MaxPool."""

    def emit(op, x):
        first = np.float32(0.01), np.uint8(128)
        integers = op.QuantizeLinear(x, *first)
        if moved:
            pooled = op.MaxPool(op.DequantizeLinear(integers, *first), kernel_shape=[2, 2])
            integers = op.QuantizeLinear(pooled, *first)
        floats = op.DequantizeLinear(integers, *first)
        scale, zero = np.float32(second[0]), np.uint8(second[1])
        results = [op.DequantizeLinear(op.QuantizeLinear(floats, scale, zero), scale, zero)]
        results += [op.DequantizeLinear(integers, np.float32(2), np.uint8(0))] if reads else []
        return [*results, floats] if outputs else results

    return emit


@pytest.mark.parametrize(
    ("emit", "separated"),
    [
        (_requantized((0.009, 0)), True),
        (_requantized((0.01, 0)), True),
        (_requantized((0.009, 0), moved=False), True),
        (_requantized((0.01, 128)), False),
        (_requantized((0.009, 0), reads=True), False),
        (_requantized((0.009, 0), outputs=True), False),
    ],
)
def test_separate_quantizations(emit: Any, separated: bool) -> None:
    """The results are equal with the optimizations of ONNX Runtime, too."""
    by = [SeparateQuantizations()]
    assert ("Max" in rewritten(emit, floats("x", 1, 2, 8, 8), by=by, optimized=True)) is separated
