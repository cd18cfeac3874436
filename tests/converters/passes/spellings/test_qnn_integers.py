"""Integers and booleans for Qualcomm's HTP, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.qnn_integers import BytesThroughIntegers, ExactQuotients, UnequalTo0, WrappedBytes
from onnx_specops.building import new_value
from tests.converters.passes.graphs import rewritten

FLOAT, FLOAT16, BOOL = ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BOOL
INT32, INT64, UINT8, UINT32 = ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.UINT32


@pytest.mark.parametrize(
    ("dtype", "to", "casts"),
    [
        (UINT8, FLOAT, 2),
        (UINT8, FLOAT16, 2),
        (UINT8, INT64, 1),
        (ir.DataType.INT8, FLOAT, 1),
        (BOOL, FLOAT, 1),
    ],
)
def test_bytes(dtype: ir.DataType, to: ir.DataType, casts: int) -> None:
    numbers = [np.array([0, 1, 127, 255]).astype(dtype.numpy())]
    found = rewritten(
        lambda op, x: op.Cast(x, to=to), new_value(dtype, (4,), "x"), by=[BytesThroughIntegers()], numbers=numbers
    )
    assert found == ["Cast"] * casts


@pytest.mark.parametrize(
    ("emit", "dtype", "wrapped"),
    [
        (lambda op, x: op.Cast(x, to=UINT8), INT32, True),
        (lambda op, x: op.Cast(x, to=UINT8), INT64, True),
        (lambda op, x: op.Cast(x, to=UINT8), UINT32, True),
        (lambda op, x: op.Cast(x, to=UINT8), FLOAT, True),
        (lambda op, x: op.Cast(x, to=UINT8), BOOL, False),
        (lambda op, x: op.Cast(x, to=ir.DataType.INT8), INT32, False),
        (lambda op, x: op.Cast(op.Clip(x, 0.0, 255.0), to=UINT8), FLOAT, False),
        (lambda op, x: op.Cast(op.Cast(op.Clip(x, 0.0, 255.0), to=INT32), to=UINT8), FLOAT, False),
        (lambda op, x: op.Cast(op.Clip(x, 0.0, 256.0), to=UINT8), FLOAT, True),
        (lambda op, x: op.Cast(op.Clip(x, -1.0, 255.0), to=UINT8), FLOAT, True),
        (lambda op, x: op.Cast(op.Clip(x, 0.0), to=UINT8), FLOAT, True),
        (lambda op, x: op.Cast(op.Cast(x, to=INT32), to=UINT8), BOOL, False),
        (lambda op, x: op.Cast(op.Cast(x, to=INT32), to=UINT8), FLOAT, True),
    ],
)
def test_low_bytes(emit: Any, dtype: ir.DataType, wrapped: bool) -> None:
    numbers = np.array([0, 1, 127, 255, 256, 511, 70000, -1, -2, -256, -257]).astype(dtype.numpy())
    found = rewritten(emit, new_value(dtype, (11,), "x"), by=[WrappedBytes()], numbers=[numbers])
    assert ("Where" in found) == wrapped


@pytest.mark.parametrize(
    ("dtype", "to", "found"),
    [
        (INT32, BOOL, ["Equal", "Not"]),
        (INT64, BOOL, ["Equal", "Not"]),
        (FLOAT, BOOL, ["Cast"]),
        (INT32, INT64, ["Cast"]),
    ],
)
def test_integers_as_booleans(dtype: ir.DataType, to: ir.DataType, found: list[str]) -> None:
    numbers = [np.array([0, 1, -1, -7], dtype.numpy())]
    assert (
        rewritten(lambda op, x: op.Cast(x, to=to), new_value(dtype, (4,), "x"), by=[UnequalTo0()], numbers=numbers) == found
    )


def _divided(by: Any, operator: str = "Div", dtype: ir.DataType = INT32, **attributes: Any):
    return lambda op, x: op.node(operator, x, op.const(by, dtype), **attributes)


_REMAINDER = ["Add", "Div", "Less", "Mul", "Sub", "Where"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (_divided(256), ["Div", "Sub"]),
        (_divided([2]), ["Div", "Sub"]),
        (_divided(1), ["Div"]),
        (_divided(-256), ["Div"]),
        (_divided(6), ["Div"]),
        (_divided([2] * 12), ["Div"]),
        (_divided(6, "Mod"), _REMAINDER),
        (_divided(8, "Mod"), sorted([*_REMAINDER, "Sub"])),
        (_divided(-6, "Mod"), ["Add", "And", "Div", "Equal", "Less", "Mul", "Not", "Sub", "Where", "Xor"]),
        (_divided(6, "Mod", fmod=1), ["Div", "Mul", "Sub"]),
        (_divided(-8, "Mod", fmod=1), ["Div", "Mul", "Sub"]),
    ],
)
def test_quotients(emit: Any, found: list[str]) -> None:
    numbers = [np.array([0, 1, -1, 5, -5, 6, -6, 255, -255, -257, 2**31 - 1, -(2**31)], np.int32)]
    assert rewritten(emit, new_value(INT32, (12,), "x"), by=[ExactQuotients()], numbers=numbers) == found


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_quotients_by_computed_numbers(operator: str) -> None:
    numbers = [np.array([7, -7, 7, -7, 6, 0], np.int64), np.array([4, 4, -4, -4, -3, 5], np.int64)]
    values = new_value(INT64, (6,), "a"), new_value(INT64, (6,), "b")
    emit = lambda op, a, b: op.node(operator, a, b)  # noqa: E731
    found = rewritten(emit, *values, by=[ExactQuotients()], numbers=numbers)
    assert "Div" in found and "Mod" not in found
    assert (found == ["Div"]) == (operator == "Div")


def test_quotients_of_floats_stay() -> None:
    emit = lambda op, x: op.Div(x, 256.0)  # noqa: E731
    numbers = [np.float32([-1, 300])]
    assert rewritten(emit, new_value(FLOAT, (2,), "x"), by=[ExactQuotients()], numbers=numbers) == ["Div"]
