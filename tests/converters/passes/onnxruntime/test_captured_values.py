"""Values that are dequantized, moved and used in nested graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from converters.passes.onnxruntime.captured_values import CopyCapturedValues
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, operators, run

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}


def _quantized(x: ov.Node) -> ov.Node:
    limits = [ops.constant(np.float32(limit)) for limit in (0, 2.55, 0, 2.55)]
    return ops.fake_quantize(ops.relu(x), *limits, 256)


def _regions() -> ov.Model:
    """Return a network with an operator whose function body has a Loop, after a quantized convolution."""
    x = ops.parameter([1, 2, 4, 4], np.float32, name="x")
    quantized = _quantized(x)
    weights = ops.convert(ops.constant(np.array([[3, -5], [100, 7]], np.int8).reshape(2, 2, 1, 1)), "f32")
    scaled = ops.multiply(weights, ops.constant(np.full((2, 1, 1, 1), 0.01, np.float32)))
    images = ops.convolution(quantized, scaled, [1, 1], [0, 0], [0, 0], [1, 1])
    pooled = ops.max_pool(quantized, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    boxes = ops.constant(np.array([[0, 0, 0, 2, 2], [0, 1, 0, 2, 1]], np.float32))
    return ov.Model([ops.result(ops.roi_pooling(pooled, boxes, [2, 2], 1.0, "max")), ops.result(images)], [x])


def _network() -> ov.Model:
    """Return a network with a loop that uses quantized and pooled numbers."""
    x = ops.parameter([1, 2, 4, 4], np.float32, name="x")
    pooled = ops.max_pool(_quantized(x), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    sum_, inner = ops.parameter([1, 2, 2, 2], np.float32), ops.parameter([1, 2, 2, 2], np.float32)
    added = ops.add(sum_, ops.sigmoid(inner))
    true = ops.constant(np.array(True))
    loop = ops.loop(ops.constant(np.int64(3)), true)
    loop.set_function(ov.Model([added, ops.constant(np.array(True))], [sum_, inner]))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(sum_, ops.constant(np.zeros((1, 2, 2, 2), np.float32)).output(0), added.output(0))
    loop.set_invariant_input(inner, pooled)
    return ov.Model([ops.result(loop.get_iter_value(added.output(0), -1)), ops.result(ops.exp(pooled))], [x])


OPTIONS: list[dict[str, Any]] = [
    {},
    {"contrib": False},
    {"opset": 13},
    {"opset": 17},
    {"precision": "float16"},
    *({"target": target} for target in ("standard", "qnn", "directml", "openvino")),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("session", [ort.InferenceSession, onnx_specops.InferenceSession])
@pytest.mark.parametrize("network", [_network, _regions])
def test_network(network: Callable[[], ov.Model], session: Any, options: dict[str, Any]) -> None:
    model = network()
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 4)).astype(np.float32)
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", EXACT)(x).values())
    converted = convert(model, **options).model
    got = session(converted.SerializeToString()).run(None, {"x": x})
    for result, expected in zip(got, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=5e-3, atol=5e-3)


def _dequantized(op: Builder, x: Value) -> Value:
    scale, zero = op.const(np.float32(0.02)), op.const(np.uint8(128))
    result: Value = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
    return result


def _captured(op: Builder, x: Value, *, depth: int = 1) -> Value:
    """Return a result that a nested graph computes from an outer value."""

    def branch(inner: Builder) -> Value:
        result: Value = inner.Neg(x) if depth == 1 else _captured(inner, x, depth=depth - 1)
        return result

    condition = op.Greater(op.ReduceMax(op.Cast(x, to=ir.DataType.FLOAT), keepdims=0), np.float32(0))
    result: Value = op.If(
        condition,
        then_branch=op.subgraph(branch),
        else_branch=op.subgraph(lambda inner: inner.Identity(x)),
    )
    return result


def _within(op: Builder, x: Value) -> Value:
    """Return a result of a nested graph that dequantizes, moves and captures."""
    condition = op.Greater(op.ReduceMax(x, keepdims=0), np.float32(0))
    result: Value = op.If(
        condition,
        then_branch=op.subgraph(lambda inner: _captured(inner, inner.Flatten(_dequantized(inner, x)))),
        else_branch=op.subgraph(lambda inner: inner.Flatten(x)),
    )
    return result


@pytest.mark.parametrize(
    ("emit", "copied"),
    [
        (lambda op, x: _captured(op, op.Reshape(_dequantized(op, x), [2, -1])), True),
        (lambda op, x: _captured(op, op.Transpose(_dequantized(op, x), perm=[0, 2, 1]), depth=2), True),
        (lambda op, x: _captured(op, op.Slice(op.Identity(_dequantized(op, x)), [0], [2], [1])), True),
        (lambda op, x: _captured(op, op.Identity(op.Squeeze(op.Unsqueeze(_dequantized(op, x), [0]), [0]))), True),
        (lambda op, x: [_captured(op, y := op.MaxPool(_dequantized(op, x), kernel_shape=[2])), op.Exp(y)], True),
        (_within, True),
        (lambda op, x: _captured(op, _dequantized(op, x)), False),  # it is not moved
        (lambda op, x: _captured(op, op.Reshape(x, [2, -1])), False),  # it is not quantized
        (lambda op, x: _captured(op, op.Reshape(op.Relu(_dequantized(op, x)), [2, -1])), False),
        (lambda op, x: _captured(op, op.Relu(op.Reshape(_dequantized(op, x), [2, -1]))), False),
        (lambda op, x: op.Neg(op.Reshape(_dequantized(op, x), [2, -1])), False),  # no nested graph uses it
    ],
)
def test_conditions(emit: Any, copied: bool) -> None:
    plain, model = (graph(emit, floats("x", 2, 3, 4)) for _ in range(2))
    assert CopyCapturedValues()(model).modified is copied
    assert operators(model).count("Max") == copied
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(ir.to_proto(plain).SerializeToString(), options)
    for got, expected in zip(run(model, x), session.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_function_may_dequantize() -> None:
    """The body of an operator of another domain replaces its node before ONNX Runtime moves anything."""
    quantized = graph(
        lambda op, x: _captured(
            op,
            op.Reshape(
                op.node("FakeQuantize", x, *map(np.float32, (0, 1, 0, 1)), domain="onnx_specops", levels=256), [2, -1]
            ),
        ),
        floats("x", 2, 3, 4),
    )
    assert CopyCapturedValues()(quantized).modified


def test_a_long_chain() -> None:
    def emit(op: Builder, x: Value) -> Value:
        moved = _dequantized(op, x)
        for _ in range(2000):
            moved = op.Flatten(moved)
        return _captured(op, moved)

    assert CopyCapturedValues()(graph(emit, floats("x", 2, 3, 4))).modified
