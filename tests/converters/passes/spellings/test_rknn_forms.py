"""Forms for RKNN, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.rknn_forms import SelectedInt64
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
