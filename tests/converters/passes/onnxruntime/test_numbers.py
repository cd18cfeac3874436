"""Slice, Mod and Cast for numbers that ONNX Runtime's kernels handle incorrectly."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.float8 import CastToFloat8
from converters.passes.onnxruntime.remainders import ExactRemainders
from converters.passes.onnxruntime.slices import EndsOfBackwardSlices
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run

D = ir.DataType

_MOST32, _MOST64 = 2**31 - 1, 2**63 - 1


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
    ("dtype", "fmod", "found"),
    [
        (D.INT64, 1, ["Add", "Div", "Mul", "Neg"]),
        (D.INT64, 0, ["Mod"]),
        (D.UINT64, 1, ["Mod"]),
        (D.INT32, 1, ["Mod"]),  # doubles represent them
        (D.FLOAT, 1, ["Mod"]),
    ],
)
def test_remainders(dtype: ir.DataType, fmod: int, found: list[str]) -> None:
    """Of int64 and uint64, also above 2**53, with the sign of the dividend."""
    model = graph(lambda op, a, b: op.Mod(a, b, fmod=fmod), new_value(dtype, [4], "a"), new_value(dtype, [4], "b"))
    assert ExactRemainders()(model).modified is (fmod == 1 and dtype in (D.INT64, D.UINT64))
    assert operators(model) == found
    if dtype in (D.INT64, D.UINT64) and fmod:
        a = np.array([2**62 + 1, 7, 2**53 + 1, 5], dtype.numpy())
        if dtype == D.INT64:
            a[2:] *= -1
        b = np.array([10, 7, 1000, 3], dtype.numpy())
        np.testing.assert_array_equal(run(model, a, b)[0], np.fmod(a, b), strict=True)


def test_a_one_by_each_number() -> None:
    """ONNX Runtime would otherwise fuse ``1 / x * x``."""
    emit = lambda op, x: op.Mod(op.const(1), x, fmod=1)  # noqa: E731
    assert "Mod" not in rewritten(
        emit, new_value(D.INT64, [3], "x"), by=[ExactRemainders()], numbers=[np.array([3, 1, -7])], optimized=True
    )


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
        np.testing.assert_array_equal(run(model, x)[0], x.astype(numpy).astype(np.float32), strict=True)
