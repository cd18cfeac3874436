"""Col2Im, Slice and Cast for numbers that ONNX Runtime's kernels handle incorrectly."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.column_images import Col2ImByAddition
from converters.passes.onnxruntime.float8 import CastToFloat8
from converters.passes.onnxruntime.slices import EndsOfBackwardSlices
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run

D = ir.DataType

_MOST32, _MOST64 = 2**31 - 1, 2**63 - 1


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
    np.testing.assert_array_equal(run(of_integers, x)[0], run(of_floats, x.astype(np.float32))[0])
    assert run(of_integers, x[:0])[0].shape == (0, 2, 5, 5)


@pytest.mark.parametrize(
    ("end", "step", "found"),
    [
        (_MOST64, -1, True),
        (_MOST32, -1, True),
        (_MOST64, 1, False),
        (_MOST64 - 1, -1, False),
        (-(2**63), -1, False),
        (_MOST64, None, True),
        (None, -1, True),
        (None, 1, False),
        (0, None, False),
    ],
)
def test_ends(end: int | None, step: int | None, found: bool) -> None:
    """``None``: at run time. Backwards, the range from the last element to the end is empty."""
    given = [new_value(D.INT64, [1], name) for name, number in (("end", end), ("step", step)) if number is None]

    def emit(op: Any, x: Any, *values: Any) -> Any:
        rest = list(values)
        stop = rest.pop(0) if end is None else [end]
        return op.Slice(x, [3], stop, [0], rest.pop(0) if step is None else [step])

    model = graph(emit, floats("x", 4), *given)
    assert EndsOfBackwardSlices()(model).modified is found
    if found:
        feeds = [np.array([n], np.int64) for n, known in ((_MOST64, end), (-1, step)) if known is None]
        assert run(model, np.arange(4, dtype=np.float32), *feeds)[0].size == 0


def test_a_slice_without_steps_is_unchanged() -> None:
    assert not EndsOfBackwardSlices()(graph(lambda op, x: op.Slice(x, [0], [_MOST64]), floats("x", 4))).modified


@pytest.mark.parametrize(
    ("source", "to", "saturate", "found"),
    [
        (D.FLOAT16, D.FLOAT8E4M3FN, 0, True),
        (D.FLOAT16, D.FLOAT8E5M2, 0, True),
        (D.FLOAT16, D.FLOAT8E4M3FN, 1, False),
        (D.FLOAT, D.FLOAT8E4M3FN, 0, False),
        (D.FLOAT16, D.FLOAT, None, False),
    ],
)
def test_float8(source: ir.DataType, to: ir.DataType, saturate: int | None, found: bool) -> None:
    model = graph(lambda op, x: op.Cast(x, to=to, saturate=saturate), new_value(source, [None], "x"))
    assert CastToFloat8()(model).modified is found
    assert ("Where" in operators(model)) is found


@pytest.mark.parametrize(
    ("to", "numpy"), [(D.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn), (D.FLOAT8E5M2, ml_dtypes.float8_e5m2)], ids=str
)
def test_every_float16(to: ir.DataType, numpy: Any) -> None:
    """ml_dtypes rounds to nearest, and returns infinity or NaN for numbers that are out of range."""
    model = graph(lambda op, x: op.Cast(op.Cast(x, to=to, saturate=0), to=D.FLOAT), new_value(D.FLOAT16, [None], "x"))
    CastToFloat8()(model)
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(model, x)[0], x.astype(numpy).astype(np.float32))
