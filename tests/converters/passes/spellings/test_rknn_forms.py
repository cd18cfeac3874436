"""Forms for RKNN, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.rknn_forms import SelectedInt64
from tests.converters.passes.graphs import floats, rewritten

D = ir.DataType


@pytest.mark.parametrize("dtype", [D.INT32, D.UINT8])
def test_selected_integers(dtype: ir.DataType) -> None:
    def emit(op, x):
        other = op.Cast(op.Floor(x), to=dtype)
        return op.Where(op.Less(x, np.float32(0)), op.Cast(x, to=dtype), other)

    found = rewritten(emit, floats("x", 2, 3), by=[SelectedInt64()])
    assert found == sorted(["Cast", "Cast", "Cast", "Cast", "Cast", "Floor", "Less", "Where"])


def test_others_stay() -> None:
    def integers(op, x):
        return op.Where(op.Less(x, np.float32(0)), op.Cast(x, to=D.INT64), np.ones((2, 3), np.int64))

    def numbers(op, x):
        return op.Where(op.Less(x, np.float32(0)), x, np.ones((2, 3), np.float32))

    assert rewritten(integers, floats("x", 2, 3), by=[SelectedInt64()]) == ["Cast", "Less", "Where"]
    assert rewritten(numbers, floats("x", 2, 3), by=[SelectedInt64()]) == ["Less", "Where"]
