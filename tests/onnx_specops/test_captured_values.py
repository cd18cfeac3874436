"""Copies of captured values in function bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops.bodies import attach_bodies
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph


def _dequantized(op: Builder, x: Value) -> Value:
    scale, zero = op.const(np.float32(0.02)), op.const(np.uint8(0))
    result: Value = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
    return result


def _searched(op: Builder, sorted_values: Value) -> Value:
    """Emit a SearchSorted, whose body has nested graphs that use the inputs."""
    result: Value = op.node("SearchSorted", sorted_values, np.array([[0.5, 1.0]], np.float32), domain="onnx_specops")
    return result


@pytest.mark.parametrize(
    ("emit", "copies", "expected"),
    [
        (lambda op, x: _searched(op, op.Reshape(_dequantized(op, x), [1, -1])), True, [2, 4]),
        (lambda op, x: _searched(op, op.Flatten(op.MaxPool(_dequantized(op, x), kernel_shape=[1]))), True, [2, 4]),
        (lambda op, x: [_searched(op, op.Flatten(_dequantized(op, x))), _searched(op, op.Flatten(op.Exp(x)))], True, [2, 4]),
        (lambda op, x: _searched(op, op.Flatten(op.Exp(_dequantized(op, x)))), False, [0, 0]),
        (lambda op, x: _searched(op, op.Flatten(x)), False, [2, 4]),
    ],
)
def test_bodies(emit: Any, copies: bool, expected: list[int]) -> None:
    model = graph(emit, floats("x", 1, 2, 4))
    attach_bodies(model)
    names = [node.name or "" for function in model.functions.values() for node in function.graph]
    assert any(name.endswith("_captured") for name in names) is copies
    x = np.linspace(0, 2, 8, dtype=np.float32).reshape(1, 2, 4)
    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        got = ort.InferenceSession(ir.to_proto(model).SerializeToString(), options).run(None, {"x": x})
        assert got[0].tolist() == [expected]
