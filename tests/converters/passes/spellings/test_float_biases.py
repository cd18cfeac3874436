"""Biases of quantized networks, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


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

    assert "DequantizeLinear" not in operators(spelled("float biases", emit))


def test_dequantized_biases_of_float16() -> None:
    """The integer is beyond float16, and its product is not."""

    def emit(op, x):
        floats_ = op.DequantizeLinear(op.const(np.array([200000, 7], np.int32)), op.const(np.float16(0.01)))
        return op.Add(op.ReduceSum(x, keepdims=0), op.Cast(floats_, to=ir.DataType.FLOAT))

    assert "DequantizeLinear" not in operators(spelled("float biases", emit))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_dequantized_constants_of_8_bits_stay(kind: type) -> None:
    def emit(op, x):
        return (op.Add(op.ReduceSum(x, keepdims=0), op.DequantizeLinear(op.const(np.arange(6, dtype=kind)), 0.5)),)

    assert "DequantizeLinear" in operators(spelled("float biases", emit))


def test_dequantized_integers_at_run_time_stay() -> None:
    def emit(op, x):
        return (op.DequantizeLinear(op.Cast(x, to=ir.DataType.INT32), 0.5),)

    assert "DequantizeLinear" in operators(spelled("float biases", emit))
