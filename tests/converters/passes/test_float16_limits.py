"""Computations that stay in float32 because float16 lacks the range, with near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from converters.passes.float16_limits import near_zero, positions
from onnx_specops.building import new_value
from onnx_specops.graphs import all_nodes, all_values
from tests.converters.passes.graphs import floats, graph

D = ir.DataType
FREQUENCIES = (10000.0 ** (-np.arange(0, 32, 2) / 32)).astype(np.float32).reshape(1, 16)


def parts(emit: Callable[..., Any], *inputs: ir.Value) -> tuple[list[ir.Node], set[ir.Value]]:
    model = graph(emit, *inputs)
    return list(all_nodes(model.graph)), {value for value in all_values(model.graph) if value.dtype == D.FLOAT}


def angles(op: Any, p: Any) -> Any:
    return op.Cos(op.MatMul(op.Cast(p, to=D.FLOAT), op.const(FREQUENCIES)))


def expanded(op: Any, p: Any) -> Any:
    """As exporters write it: the frequencies are repeated for each batch."""
    whole = op.Expand(op.const(FREQUENCIES), op.Concat(op.Shape(p, start=0, end=1), [16], axis=0))
    return op.Mul(op.Cast(p, to=D.FLOAT), whole)


def after_cos(op: Any, p: Any) -> Any:
    return op.Mul(angles(op, p), 2.0)


def weighted(op: Any, p: Any) -> Any:
    return op.MatMul(op.Cast(p, to=D.FLOAT), op.const(np.ones((1, 5000), np.float32)))


def embedded(op: Any, p: Any) -> Any:
    return op.Mul(op.Gather(op.const(np.ones((8, 4), np.float32)), p), 2.0)


@pytest.mark.parametrize(
    ("emit", "type_", "operators"),
    [
        (angles, D.INT64, ["Cast", "Cos", "MatMul"]),
        (angles, D.INT16, ["Cast", "Cos", "MatMul"]),
        (angles, D.UINT8, []),
        (expanded, D.INT64, ["Cast", "Expand", "Mul"]),
        (after_cos, D.INT64, ["Cast", "Cos", "MatMul"]),
        (weighted, D.INT64, ["Cast"]),
        (embedded, D.INT64, []),
    ],
    ids=lambda x: x.__name__ if callable(x) else str(x),
)
def test_positions(emit: Callable[..., Any], type_: ir.DataType, operators: list[str]) -> None:
    found = positions(*parts(emit, new_value(type_, [None, 1], "p")))
    assert sorted(node.op_type for node in found) == operators


def test_positions_end_at_other_values() -> None:
    def emit(op, p, x):
        return op.Neg(op.Add(op.Cast(p, to=D.FLOAT), x))

    found = positions(*parts(emit, new_value(D.INT64, [None], "p"), floats("x")))
    assert [node.op_type for node in found] == ["Cast"]


EPS = np.float32(1e-10)


@pytest.mark.parametrize(
    ("emit", "operators", "large"),
    [
        (lambda op, x: op.Div(x, op.Add(op.Abs(x), EPS)), ["Add", "Div"], 1),
        (lambda op, x: op.Div(x, op.Sqrt(op.Max(op.Abs(x), EPS))), ["Div", "Max", "Sqrt"], 1),
        (lambda op, x: op.Log(op.Clip(x, EPS)), ["Clip", "Log"], 0),
        (lambda op, x: op.Mul(op.Mul(x, EPS), np.float32(1e9)), ["Mul", "Mul"], 0),
        (lambda op, x: op.Div(op.Mul(x, EPS), op.Abs(x)), ["Div", "Mul"], 0),
        (lambda op, x: op.Div(x, op.const(np.float32([1, 1e-10]))), ["Div"], 1),
        (lambda op, x: op.Add(x, op.Mul(x, EPS)), ["Mul"], 0),
        (lambda op, x: op.Div(x, op.Add(op.Abs(x), np.float32(1e-3))), [], 0),
        (lambda op, x: op.Mul(x, op.const(np.float32([1, 1e-10]))), [], 0),
        (lambda op, x: op.Mul(x, op.const(np.float32([0, 1]))), [], 0),
    ],
)
def test_near_zero(emit: Callable[..., Any], operators: list[str], large: int) -> None:
    found, beyond = near_zero(*parts(emit, floats("x", 2)))
    assert sorted(node.op_type for node in found) == operators
    assert len(beyond) == large


def _layer_norm(x: Any) -> Any:
    centred = ops.subtract(x, ops.reduce_mean(x, ops.constant([1]), True))
    variance = ops.reduce_mean(ops.multiply(centred, centred), ops.constant([1]), True)
    return ops.divide(centred, ops.sqrt(ops.add(variance, ops.constant(np.float32(1e-12)))))


@pytest.mark.parametrize(
    "layers",
    [
        lambda x: ops.divide(x, ops.add(ops.reduce_sum(ops.abs(x), ops.constant([1]), True), ops.constant(EPS))),
        lambda x: ops.log(ops.add(ops.relu(x), ops.constant(np.float32(1e-9)))),
        lambda x: ops.normalize_l2(x, ops.constant([1]), 1e-12, "max"),
        lambda x: ops.multiply(ops.multiply(x, ops.constant(np.float32(1e-9))), ops.constant(np.float32(1e9))),
        _layer_norm,
    ],
    ids=["sum", "log", "l2", "scale", "layer-norm"],
)
def test_results(layers: Callable[[Any], Any]) -> None:
    """Zeros, tiny and ordinary numbers give OpenVINO's results."""
    x = ops.parameter([4, 8], np.float32, name="x")
    model = ov.Model([layers(x)], [x])
    given = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32) * np.float32([[0], [1], [1e-3], [100]])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = onnx_specops.InferenceSession(convert(model, precision="float16").model)
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("at", [10, 1000, 100_000])
@pytest.mark.parametrize("by", [ops.multiply, lambda a, b: ops.matmul(a, b, False, False)], ids=["Multiply", "MatMul"])
def test_angles(at: int, by: Callable[[Any, Any], Any]) -> None:
    p = ops.parameter([-1, 1], np.int64, name="p")
    model = ov.Model([ops.cos(by(ops.convert(p, "f32"), ops.constant(FREQUENCIES)))], [p])
    given = np.arange(at, at + 8).reshape(-1, 1)
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = onnx_specops.InferenceSession(convert(model, precision="float16").model)
    np.testing.assert_allclose(session.run(None, {"p": given})[0], expected, atol=0.01)
