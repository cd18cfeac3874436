"""Outputs that are transposed and quantized afterwards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from converters.passes.onnxruntime.moved_outputs import CopyMovedOutputs
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, operators, run

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}


def _network() -> ov.Model:
    """Return a network with an output that is transposed, quantized and averaged."""
    x = ops.parameter([1, 6, 10, 8], np.float32, name="x")
    first = ops.tanh(x)
    moved = ops.transpose(first, ops.constant(np.array([0, 3, 1, 2])))
    limits = [ops.constant(np.float32(limit)) for limit in (-0.5, 0.5 * 127 / 128, -0.5, 0.5 * 127 / 128)]
    levels = ops.fake_quantize(moved, *limits, 256)
    means = ops.avg_pool(levels, [1, 1], [0, 0], [0, 0], [2, 2], False)
    return ov.Model([ops.result(ops.exp(means)), ops.result(first)], [x])


@pytest.mark.parametrize(
    "options", [{}, {"contrib": False}, {"opset": 13}, {"opset": 17}, {"target": "standard"}, {"target": "qnn"}], ids=str
)
@pytest.mark.parametrize("session", [ort.InferenceSession, onnx_specops.InferenceSession])
def test_network(session: Any, options: dict[str, Any]) -> None:
    model = _network()
    x = np.random.default_rng(1).standard_normal((1, 6, 10, 8)).astype(np.float32)
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", EXACT)(x).values())
    converted = convert(model, **options).model
    got = session(converted.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[0], wanted[0], atol=0.02)  # a number halfway between two levels may round to either


def _quantized(op: Builder, x: Value, zero_point: int = 128) -> Value:
    scale, zero = op.const(np.float32(0.004)), op.const(np.uint8(zero_point))
    result: Value = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
    return result


def _moved(op: Builder, x: Value) -> Value:
    result: Value = op.Transpose(x, perm=[0, 2, 1])
    return result


def _sum(op: Builder, x: Value) -> Value:
    """Return a sum of transposed numbers, after which ONNX Runtime transposes."""
    result: Value = op.Add(_moved(op, op.Sin(x)), _moved(op, op.Cos(x)))
    return result


@pytest.mark.parametrize(
    ("emit", "copied"),
    [
        (lambda op, x: [y := op.Sin(x), _quantized(op, _moved(op, y))], True),
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Reshape(_moved(op, y), [2, -1]))], True),
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Reshape(y, [2, -1]))], False),  # it is not transposed
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Relu(_moved(op, y)), 0)], True),
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Identity(_moved(op, y)))], True),
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Clip(_moved(op, y), np.float32(0), np.float32(2)), 0)], True),
        (lambda op, x: [y := op.Sin(x), op.Relu(_moved(op, y))], False),  # it is not quantized
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.Relu(_moved(op, y)))], False),  # integers for negative numbers
        (lambda op, x: [y := op.Sin(x), _quantized(op, op.LeakyRelu(_moved(op, y)), 0)], False),
        (lambda op, x: [y := op.Sin(x), _quantized(op, _moved(op, y)), op.Neg(y)], False),  # another consumer
        (lambda op, x: _quantized(op, _moved(op, op.Sin(x))), False),  # it is not an output
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, y)], True),
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, op.Relu(y), 0)], True),
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, op.Reshape(y, [2, -1]))], True),
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, op.Relu(y))], False),
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, op.Exp(y))], False),
        (lambda op, x: [_moved(op, y := _sum(op, x)), _quantized(op, y), op.Neg(y)], False),  # another consumer
        (lambda op, x: [op.Exp(_moved(op, y := _sum(op, x))), _quantized(op, y)], False),  # it is not an output
    ],
)
def test_conditions(emit: Any, copied: bool) -> None:
    plain, model = (graph(emit, floats("x", 2, 3, 4)) for _ in range(2))
    names = [value.name for value in model.graph.outputs]
    assert CopyMovedOutputs()(model).modified is copied
    added = list((Counter(operators(model)) - Counter(operators(plain))).elements())
    assert added in ([["Identity"], ["Max"]] if copied else [[]])
    assert [value.name for value in model.graph.outputs] == names
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(ir.to_proto(plain).SerializeToString(), options)
    for got, expected in zip(run(model, x), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got, expected, atol=0.005)


def test_a_long_chain() -> None:
    def emit(op: Builder, x: Value) -> list[Value]:
        first = op.Sin(x)
        moved = _moved(op, first)
        for _ in range(2000):
            moved = op.Flatten(moved)
        return [first, _quantized(op, moved)]

    assert CopyMovedOutputs()(graph(emit, floats("x", 2, 3, 4))).modified
