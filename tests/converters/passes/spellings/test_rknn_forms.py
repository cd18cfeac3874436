"""Forms for RKNN, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.rknn_forms import SelectedInt64, SlicedProducts
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

D = ir.DataType


@pytest.mark.parametrize("dtype", [D.INT32, D.UINT8])
def test_selected_integers(dtype: ir.DataType) -> None:
    def emit(op, x):
        other = op.Cast(op.Floor(x), to=dtype)
        return op.Where(op.Less(x, np.float32(0)), op.Cast(x, to=dtype), other)

    found = rewritten(emit, floats("x", 2, 3), by=[SelectedInt64()])
    assert found == sorted(["Cast", "Cast", "Cast", "Cast", "Cast", "Floor", "Less", "Where"])


@pytest.mark.parametrize("dtype", [D.INT64, D.FLOAT, D.DOUBLE])
def test_others_stay(dtype: ir.DataType) -> None:
    def emit(op, x):
        return op.Where(op.Less(x, op.const(0, dtype)), x, op.const(np.full((2, 3), 2.5), dtype))

    numbers = [np.array([[1, -2, 3], [-4, 5, 6]], dtype.numpy())]
    assert rewritten(emit, new_value(dtype, [2, 3], "x"), by=[SelectedInt64()], numbers=numbers) == ["Less", "Where"]


def product(op, x):
    return op.MatMul(x, np.arange(18, dtype=np.float32).reshape(3, 6))


def gemm(op, x):
    return op.Reshape(op.Gemm(x, np.ones((3, 6), np.float32), np.arange(6, dtype=np.float32)), [1, 2, 6])


def flat(op, x):
    return op.Reshape(product(op, x), [12])


def biased(op, x):
    return op.Add(product(op, x), np.arange(6, dtype=np.float32))


@pytest.mark.parametrize(
    ("before", "sizes", "found"),
    [
        (product, [2, 2, 2], ["MatMul", "Slice", "Slice", "Slice"]),
        (product, [1, 5], ["MatMul", "Slice", "Slice"]),
        (gemm, [2, 2, 2], ["Gemm", "Reshape", "Slice", "Slice", "Slice"]),
        (flat, [4, 8], ["MatMul", "Reshape", "Slice", "Slice"]),
        (biased, [2, 2, 2], ["Add", "MatMul", "Split"]),
    ],
)
def test_sliced_products(before, sizes, found) -> None:
    def emit(op, x):
        return op.Split(before(op, x), sizes, axis=-1, outputs=len(sizes))

    assert rewritten(emit, floats("x", 2, 3), by=[SlicedProducts()]) == found


def test_splits_of_unknown_sizes_stay() -> None:
    def emit(op, x):
        return op.Split(op.MatMul(x, x), None, axis=0, outputs=2)

    numbers = [np.arange(16, dtype=np.float32).reshape(4, 4)]
    assert rewritten(emit, floats("x", None, None), by=[SlicedProducts()], numbers=numbers) == ["MatMul", "Split"]
