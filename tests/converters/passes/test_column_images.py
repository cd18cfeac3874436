"""Col2Im of types that float32 does not represent."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.column_images import Col2ImByAddition
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph, run

D = ir.DataType


@pytest.mark.parametrize(("dtype", "found"), [(D.INT32, True), (D.DOUBLE, True), (D.FLOAT, False), (D.FLOAT16, False)])
def test_columns(dtype: ir.DataType, found: bool) -> None:
    model = graph(lambda op, x: op.Col2Im(x, [4, 4], [2, 2]), new_value(dtype, [1, 4, 9], "x"))
    assert Col2ImByAddition()(model).modified is found


@pytest.mark.parametrize(
    "attributes", [{}, {"strides": [2, 1], "pads": [1, 0, 0, 1]}, {"dilations": [2, 1]}, {"strides": [1, 2]}], ids=str
)
def test_sums_of_columns(attributes: dict[str, Any]) -> None:
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    count = int(np.prod([(5 + pads[k] + pads[k + 2] - dilations[k] - 1) // strides[k] + 1 for k in range(2)]))
    of_floats, of_integers = (
        graph(lambda op, x: op.Col2Im(x, [5, 5], [2, 2], **attributes), new_value(dtype, [None, 8, count], "x"))
        for dtype in (D.FLOAT, D.INT32)
    )
    Col2ImByAddition()(of_integers)
    x = np.random.default_rng(0).integers(-9, 9, (3, 8, count), dtype=np.int32)
    np.testing.assert_array_equal(
        run(of_integers, x)[0], run(of_floats, x.astype(np.float32))[0].astype(np.int32), strict=True
    )
    assert run(of_integers, x[:0])[0].shape == (0, 2, 5, 5)
