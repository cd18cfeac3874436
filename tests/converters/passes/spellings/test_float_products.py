"""Products of float64 as float32, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.float_products import FloatProducts
from onnx_specops.building import new_value
from tests.converters.passes.graphs import rewritten

DOUBLE, FLOAT = ir.DataType.DOUBLE, ir.DataType.FLOAT


def _matrix(op: Any, dtype: ir.DataType) -> Any:
    return op.const(np.arange(12).reshape(4, 3) / 7, dtype)


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@pytest.mark.parametrize(
    ("emit", "dims", "operator"),
    [
        (lambda op, x: op.MatMul(x, _matrix(op, x.dtype)), (2, 4), "MatMul"),
        (lambda op, x: op.Gemm(x, _matrix(op, x.dtype), None, alpha=0.5), (2, 4), "Gemm"),
        (lambda op, x: op.MaxPool(x, kernel_shape=[2, 2]), (1, 2, 3, 3), "MaxPool"),
        (lambda op, x: op.Softmax(x, axis=0), (2, 4), "Softmax"),
    ],
)
def test_products(emit: Any, dims: tuple[int, ...], operator: str, dtype: ir.DataType) -> None:
    found = set(rewritten(emit, new_value(dtype, dims, "x"), by=[FloatProducts()], atol=1e-6))
    assert found == ({"Cast", operator} if dtype == DOUBLE else {operator})


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Mul(x, x), ["Mul"]),
        (lambda op, x: list(op.MaxPool(x, kernel_shape=[2, 2], outputs=2)), ["MaxPool"]),
    ],
)
def test_other_operators_and_indices_stay(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, new_value(DOUBLE, (1, 2, 3, 3), "x"), by=[FloatProducts()]) == found
