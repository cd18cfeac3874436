"""Integers and booleans for Qualcomm's HTP, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.qnn_integers import (
    BytesThroughIntegers,
    ConcatenatedPads,
    ExactQuotients,
    SumsOfParts,
    UnequalTo0,
    WrappedBytes,
)
from onnx_specops.building import new_value
from onnx_specops.graphs import mark_full_range
from tests.converters.passes.graphs import floats, rewritten

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


def _summed(axes: list[int], *, marked: bool = True, **attributes: Any) -> Any:
    def emit(op, x):
        total = op.ReduceSum(x, axes, **attributes)
        if marked:
            mark_full_range(total)
        return total

    return emit


@pytest.mark.parametrize(
    ("emit", "parts"),
    [
        (_summed([1]), 3),
        (_summed([0, 2], keepdims=0), 3),
        (_summed([0, 1, 2], keepdims=0), 3),
        (_summed([1], marked=False), 0),
    ],
)
@pytest.mark.parametrize("dtype", [INT32, INT64])
def test_sums(emit: Any, parts: int, dtype: ir.DataType) -> None:
    numbers = np.random.default_rng(0).integers(-(2**24), 2**24, (2, 3, 5)).astype(dtype.numpy())
    found = rewritten(emit, new_value(dtype, (2, 3, 5), "x"), by=[SumsOfParts()], numbers=[numbers])
    assert found.count("ReduceSum") == (parts or 1) and ("Div" in found) == (parts > 0)


@pytest.mark.parametrize(("count", "parts"), [(8192, 3), (8193, 4), (2**20, 8), (2**20 + 1, 1)])
def test_sums_of_many_integers(count: int, parts: int) -> None:
    numbers = np.random.default_rng(0).integers(-(2**31), 2**31, count)
    found = rewritten(_summed([0]), new_value(INT64, (count,), "x"), by=[SumsOfParts()], numbers=[numbers])
    assert found.count("ReduceSum") == parts


@pytest.mark.parametrize(
    ("emit", "value"),
    [
        (lambda op, x: _summed([0])(op, op.Cast(x, to=INT64)), new_value(BOOL, (4,), "x")),
        (_summed([0]), floats("x", 4)),
        (_summed([0]), new_value(INT64, (None,), "x")),
    ],
)
def test_other_sums(emit: Any, value: Any) -> None:
    numbers = [np.array([1, 0, 1, 1]).astype(value.dtype.numpy())]
    assert "Div" not in rewritten(emit, value, by=[SumsOfParts()], numbers=numbers)


def _padded(pads: list[int], *number: Any, **attributes: Any) -> Any:
    return lambda op, x: op.Pad(x, pads, *number, **attributes)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (_padded([0, 0, 0, 1]), ["Concat"]),
        (_padded([0, 2, 0, 1], np.int64(-7)), ["Concat"]),
        (_padded([1, 2, 3, 1], np.int64(-7)), ["Concat", "Concat"]),
        (_padded([0, -1, 0, 1]), ["Pad"]),
        (_padded([0, 0, 0, 1], mode="edge"), ["Pad"]),
        (_padded([1, 1], np.int64(3), np.array([1])), ["Pad"]),
        (lambda op, x: op.Pad(x, [0, 0, 0, 1], op.ReduceMax(x, [0, 1], keepdims=0)), ["Pad", "ReduceMax"]),
    ],
)
def test_pads_of_integers(emit: Any, found: list[str]) -> None:
    numbers = [np.array([[5, -6, 7], [8, 9, 10]])]
    assert rewritten(emit, new_value(INT64, (2, 3), "x"), by=[ConcatenatedPads()], numbers=numbers) == found


@pytest.mark.parametrize(
    ("dtype", "dims", "number", "found"),
    [
        (INT32, (2, 3), np.int32(4), ["Concat"]),
        (BOOL, (2, 3), np.bool_(True), ["Concat"]),
        (INT64, (1, 1, 2, 3), np.int64(4), ["Concat"]),
        (INT64, (1, 1, 1, 2, 3), np.int64(4), ["Pad"]),
        (FLOAT, (2, 3), np.float32(4), ["Pad"]),
        (ir.DataType.INT8, (2, 3), np.int8(4), ["Pad"]),
        (INT64, (None, 3), np.int64(4), ["Pad"]),
        (INT64, (2, 0), np.int64(4), ["Pad"]),
    ],
)
def test_pads_of_types(dtype: ir.DataType, dims: tuple[int | None, ...], number: Any, found: list[str]) -> None:
    numbers = [np.ones([2 if size is None else size for size in dims], dtype.numpy())]
    pads = [0] * (2 * len(dims) - 1) + [2]
    assert rewritten(_padded(pads, number), new_value(dtype, dims, "x"), by=[ConcatenatedPads()], numbers=numbers) == found
