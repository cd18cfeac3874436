"""Casts to unsigned integers, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run


@pytest.mark.parametrize(
    ("source", "to", "found"),
    [
        (ir.DataType.FLOAT, ir.DataType.UINT8, ["Cast", "Cast", "Max"]),
        (ir.DataType.FLOAT16, ir.DataType.UINT16, ["Cast", "Cast", "Max"]),
        (ir.DataType.DOUBLE, ir.DataType.UINT32, ["Cast", "Cast", "Max"]),
        (ir.DataType.FLOAT, ir.DataType.INT8, ["Cast"]),
        (ir.DataType.FLOAT, ir.DataType.INT32, ["Cast"]),
        (ir.DataType.FLOAT, ir.DataType.UINT64, ["Cast"]),
        (ir.DataType.INT32, ir.DataType.UINT8, ["Cast"]),
        (ir.DataType.BOOL, ir.DataType.UINT8, ["Cast"]),
    ],
)
def test_casts_to_unsigned_integers(source: ir.DataType, to: ir.DataType, found: list[str]) -> None:
    array = np.array([0, 1, 3, 100], source.numpy())
    model = graph(lambda op, x: (op.Cast(x, to=to),), new_value(source, [4], "x"))
    SPELLINGS["Cast through integers"]()(model)
    assert operators(model) == found
    np.testing.assert_array_equal(run(model, array)[0], array.astype(to.numpy()), strict=True)


@pytest.mark.parametrize("through", [None, ir.DataType.INT32])
def test_casts_keep_the_low_bits(through: ir.DataType | None) -> None:
    def emit(op, x):
        return (op.Cast(x if through is None else op.Cast(x, to=through), to=ir.DataType.UINT8),)

    model = graph(emit, floats("x", 4))
    SPELLINGS["Cast through integers"]()(model)
    assert operators(model) == ["Cast", "Cast", "Max"]
    np.testing.assert_array_equal(
        run(model, np.float32([-1, 256, 300.7, -130]))[0], np.uint8([255, 0, 44, 126]), strict=True
    )


INT32, INT64, UINT32 = ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32


@pytest.mark.parametrize(
    ("source", "through", "to", "changed"),
    [
        (INT32, UINT32, INT64, True),
        (INT64, UINT32, INT64, False),
        (INT32, UINT32, ir.DataType.UINT64, False),
        (INT32, ir.DataType.UINT16, INT64, False),
        (INT32, INT64, INT64, False),
    ],
)
def test_integers_that_wrap(source: ir.DataType, through: ir.DataType, to: ir.DataType, changed: bool) -> None:
    array = np.array([0, 1, -1, 2**31 - 1, -(2**31)], source.numpy())
    model = graph(lambda op, x: (op.Cast(op.Cast(x, to=through), to=to),), new_value(source, [5], "x"))
    SPELLINGS["wrapped integers"]()(model)
    assert ("Where" in operators(model)) == changed
    np.testing.assert_array_equal(run(model, array)[0], array.astype(through.numpy()).astype(to.numpy()), strict=True)
