"""Zero points of weights that ONNX Runtime converts to uint8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import OwnZeroPoints
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten

WEIGHTS = np.array([[-128, 1, 2], [3, 127, 5]], np.int8)


def _zero_points(model: ir.Model) -> list[ir.Value | None]:
    return [node.inputs[2] for node in model.graph if node.op_type == "DequantizeLinear"]


@pytest.mark.parametrize(
    ("dtype", "second", "copied"),
    [
        (np.int8, lambda op, x: op.const(WEIGHTS + np.int8(1)), True),
        (np.int8, lambda op, x: op.Cast(x, to=ir.DataType.INT8.value), False),  # no constant
        (np.uint8, lambda op, x: op.const(WEIGHTS.astype(np.uint8)), False),  # not converted
        (np.int32, lambda op, x: op.const(WEIGHTS.astype(np.int32)), False),
    ],
)
def test_shared_zero_points(dtype: Any, second: Any, copied: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        scale, zero = (
            op.const(np.array([0.5, 0.25], np.float32)),
            op.const(np.array([0, 1 if dtype != np.int32 else 0], dtype)),
        )
        for weights in (op.const(WEIGHTS.astype(dtype)), second(op, x)):
            x = op.Add(x, op.DequantizeLinear(weights, scale, zero, axis=0))
        return x

    model = graph(emit, floats("x", 2, 3))
    assert OwnZeroPoints()(model).modified is copied
    assert (len(set(_zero_points(model))) == 2) is copied
    assert not OwnZeroPoints()(model).modified
    rewritten(emit, floats("x", 2, 3), by=[OwnZeroPoints()])  # the results agree


def test_the_levels_of_activations_share_theirs() -> None:
    def emit(op: Builder, x: Value) -> Value:
        scale, zero = op.const(np.float32(0.5)), op.const(np.int8(0))
        for _ in range(2):
            x = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
        return x

    assert not OwnZeroPoints()(graph(emit, floats("x", 2, 3))).modified
