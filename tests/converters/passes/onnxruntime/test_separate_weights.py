"""Weights and zero points that ONNX Runtime converts to uint8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.passes.onnxruntime import SeparateWeights
from onnx_specops.bodies import attach_bodies
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten

SIZE = 12
SMALL = (np.arange(SIZE * SIZE) % 129 - 64).astype(np.int8).reshape(SIZE, SIZE)
WEIGHTS = np.where(SMALL == 64, np.int8(127), SMALL)
SCALE = np.linspace(0.001, 0.005, SIZE, dtype=np.float32)
MIDDLE = np.uint8(128)


def _dequantized(op: Builder, x: Value, weights: Value, number: int) -> Value:
    assert weights.dtype is not None
    return op.Add(x, op.DequantizeLinear(weights, number * SCALE, np.full(SIZE, number, weights.dtype.numpy()), axis=0))


def _multiplied(op: Builder, x: Value, weights: Value, number: int) -> Value:
    levels = op.QuantizeLinear(x, np.float32(0.05), MIDDLE)
    found: Value = op.contrib.MatMulIntegerToFloat(levels, weights, np.float32(0.05), number * SCALE, MIDDLE)
    return found


def _convolved(op: Builder, x: Value, weights: Value, number: int) -> Value:
    levels = op.QuantizeLinear(op.Reshape(x, [1, SIZE, 1, SIZE]), np.float32(0.05), MIDDLE)
    found = op.specops.QuantizedConv(
        levels, weights, number * SCALE, np.zeros(SIZE, np.float32), MIDDLE, np.float32(0), channels=SIZE, kernel="1,1"
    )
    return op.Reshape(found, [SIZE, SIZE])


def _scaled(op: Builder, x: Value, weights: Value, number: int) -> Value:
    """Integers that are not weights."""
    return op.Add(x, op.Mul(op.Cast(weights, to=ir.DataType.FLOAT.value), number * SCALE))


def _nothing(op: Builder, x: Value, weights: Value, number: int) -> Value:
    return op.Concat(x, op.DequantizeLinear(weights, np.float32(number)), axis=1)


def _load(model: ir.Model) -> None:
    """Load the model in ONNX Runtime with the session option for processors without VNNI."""
    attach_bodies(model)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    ort.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("use", "numbers", "copied"),
    [
        ((_dequantized, _dequantized), WEIGHTS, True),
        ((_dequantized, _multiplied), WEIGHTS, True),
        ((_multiplied, _multiplied), WEIGHTS, True),
        ((_convolved, _convolved), WEIGHTS.reshape(SIZE, SIZE, 1, 1), True),
        ((_dequantized, _dequantized), WEIGHTS.astype(np.uint8), False),  # not converted
        ((_dequantized, _dequantized), SMALL, False),
        ((_multiplied, _multiplied), SMALL, False),
        ((_convolved, _convolved), SMALL.reshape(SIZE, SIZE, 1, 1), False),
        ((_nothing, _nothing), np.zeros((SIZE, 0), np.int8), False),
        ((_dequantized, _scaled), WEIGHTS, False),
    ],
)
def test_shared_weights(use: Any, numbers: np.ndarray, copied: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        weights = op.const(numbers)
        return use[1](op, use[0](op, x, weights, 1), weights, 2)

    model = graph(emit, floats("x", SIZE, SIZE))
    count = len(model.graph.initializers)
    assert SeparateWeights()(model).modified is copied
    assert len(model.graph.initializers) == count + copied
    assert not SeparateWeights()(model).modified
    _load(model)
    rewritten(emit, floats("x", SIZE, SIZE), by=[SeparateWeights()])


def test_three_nodes_with_the_same_weights() -> None:
    def emit(op: Builder, x: Value) -> Value:
        weights = op.const(WEIGHTS)
        for number in (1, 2, 3):
            x = _dequantized(op, x, weights, number)
        return x

    model = graph(emit, floats("x", SIZE, SIZE))
    SeparateWeights()(model)
    assert len({node.inputs[0] for node in model.graph if node.op_type == "DequantizeLinear"}) == 3
    _load(model)
    rewritten(emit, floats("x", SIZE, SIZE), by=[SeparateWeights()])


@pytest.mark.parametrize(
    ("numbers", "count"),
    [
        (WEIGHTS, 3),
        (SMALL, 1),
        (WEIGHTS.astype(np.uint8), 1),
    ],
)
def test_three_nodes_with_the_same_dequantized_weights(numbers: np.ndarray, count: int) -> None:
    def emit(op: Builder, x: Value) -> Value:
        weights = op.DequantizeLinear(numbers, SCALE, np.zeros(SIZE, numbers.dtype), axis=1)
        for _ in range(3):
            levels = op.QuantizeLinear(x, np.float32(0.05), MIDDLE)
            x = op.MatMul(op.DequantizeLinear(levels, np.float32(0.05), MIDDLE), weights)
        return x

    model = graph(emit, floats("x", SIZE, SIZE))
    assert SeparateWeights()(model).modified is (count > 1)
    assert len({node.inputs[1] for node in model.graph if node.op_type == "MatMul"}) == count
    assert len(set(_weights(model, 0))) == len(set(_weights(model, 2))) == count
    assert not SeparateWeights()(model).modified
    _load(model)
    rewritten(emit, floats("x", SIZE, SIZE), by=[SeparateWeights()])


def _weights(model: ir.Model, index: int) -> list[ir.Value | None]:
    """Return an input of each DequantizeLinear of weights."""
    dequantized = [node for node in model.graph if node.op_type == "DequantizeLinear"]
    return [
        node.inputs[index] for node in dequantized if node.inputs[0] is not None and node.inputs[0].const_value is not None
    ]


def _zero_points(model: ir.Model) -> list[ir.Value | None]:
    return [node.inputs[2] for node in model.graph if node.op_type == "DequantizeLinear"]


@pytest.mark.parametrize(
    ("dtype", "second", "copied"),
    [
        (np.int8, lambda op, x: op.const(WEIGHTS[:2] + np.int8(1)), True),
        (np.int8, lambda op, x: op.Cast(x, to=ir.DataType.INT8.value), False),  # not a constant
        (np.uint8, lambda op, x: op.const(WEIGHTS[:2].astype(np.uint8)), False),  # not converted
        (np.int32, lambda op, x: op.const(WEIGHTS[:2].astype(np.int32)), False),
    ],
)
def test_shared_zero_points(dtype: Any, second: Any, copied: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        scale, zero = (
            op.const(np.array([0.5, 0.25], np.float32)),
            op.const(np.array([0, 1 if dtype != np.int32 else 0], dtype)),
        )
        for weights in (op.const(WEIGHTS[:2].astype(dtype)), second(op, x)):
            x = op.Add(x, op.DequantizeLinear(weights, scale, zero, axis=0))
        return x

    model = graph(emit, floats("x", 2, SIZE))
    assert SeparateWeights()(model).modified is copied
    assert (len(set(_zero_points(model))) == 2) is copied
    assert not SeparateWeights()(model).modified
    rewritten(emit, floats("x", 2, SIZE), by=[SeparateWeights()])  # the results agree


def test_the_levels_of_activations_share_theirs() -> None:
    def emit(op: Builder, x: Value) -> Value:
        scale, zero = op.const(np.float32(0.5)), op.const(np.int8(0))
        for _ in range(2):
            x = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
        return x

    assert not SeparateWeights()(graph(emit, floats("x", 2, SIZE))).modified
