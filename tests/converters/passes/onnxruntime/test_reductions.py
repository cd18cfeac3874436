"""Reductions of integers and booleans, and the order of uint64."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes import InPlacePass

from converters.passes.onnxruntime.reductions import ExactProducts, ExactSums, ExtremesOfNoBooleans
from converters.passes.onnxruntime.unsigned import ExtremesOfUnsigned, TopKOfUnsigned
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.graphs import mark_full_range
from onnx_specops.kernel_types import insert_casts
from tests.converters.passes.graphs import graph, operators, run

D = ir.DataType


def _reduced(operator: str, *, marked: bool = True, axes: list[int] | None = None, keepdims: int = 1) -> Any:
    def emit(op: Builder, x: Value) -> Value:
        result: Value = op.node(operator, x, [1] if axes is None else axes, keepdims=keepdims, noop_with_empty_axes=1)
        if marked:
            mark_full_range(result)
        return result

    return emit


@pytest.mark.parametrize(
    ("step", "operator", "dtype", "marked", "found"),
    [
        (ExactSums(), "ReduceSum", D.INT32, True, True),
        (ExactSums(), "ReduceSum", D.UINT32, True, True),
        (ExactSums(), "ReduceSum", D.INT64, True, True),
        (ExactSums(), "ReduceSum", D.UINT64, True, True),
        (ExactSums(), "ReduceSum", D.INT64, False, False),  # dimensions and indices
        (ExactSums(), "ReduceSum", D.FLOAT, True, False),
        (ExactSums(), "ReduceMax", D.INT64, True, False),
        (ExactProducts(), "ReduceProd", D.INT32, True, True),
        (ExactProducts(), "ReduceProd", D.INT64, True, True),
        (ExactProducts(), "ReduceProd", D.INT64, False, False),
        (ExactProducts(), "ReduceProd", D.FLOAT, True, False),
        (ExtremesOfUnsigned(), "ReduceMax", D.UINT64, False, True),
        (ExtremesOfUnsigned(), "ReduceMin", D.UINT64, False, True),
        (ExtremesOfUnsigned(), "ReduceMax", D.INT64, False, False),
        (ExtremesOfUnsigned(), "ReduceMax", D.UINT32, False, False),
        (ExtremesOfUnsigned(), "ReduceSum", D.UINT64, False, False),
    ],
)
def test_conditions(step: InPlacePass, operator: str, dtype: ir.DataType, marked: bool, found: bool) -> None:
    model = graph(_reduced(operator, marked=marked), new_value(dtype, [2, 3], "x"))
    assert step(model).modified is found


LARGE = [[2**62 + 1, 2**62 + 2, -5], [2**53 + 1, 2, 3]]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[0], [1], [-1], [-2, 1], [0, 1], []], ids=str)
@pytest.mark.parametrize("dtype", [D.INT32, D.INT64, D.UINT64])
@pytest.mark.parametrize(("step", "operator"), [(ExactSums(), "ReduceSum"), (ExactProducts(), "ReduceProd")])
def test_large_numbers_wrap(step: InPlacePass, operator: str, dtype: ir.DataType, axes: list[int], keepdims: int) -> None:
    x = np.array(LARGE).astype(dtype.numpy())
    model = graph(_reduced(operator, axes=axes, keepdims=keepdims), new_value(dtype, [2, 3], "x"))
    step(model)
    insert_casts(model.graph)
    function = np.add if operator == "ReduceSum" else np.multiply
    expected = function.reduce(x, axis=tuple(axes), keepdims=bool(keepdims), dtype=x.dtype)
    np.testing.assert_array_equal(run(model, x)[0], expected, strict=True)


@pytest.mark.parametrize(
    ("dtype", "dims", "axes", "count"),
    [
        (D.INT32, [2, 2**20], [0, 1], 1),
        (D.INT64, [2, 2**20], [0, 1], 2),
        (D.INT32, [3, 2**20], [0, 1], 2),  # the sum may exceed 2**53
        (D.INT64, [3, 2**20], [0, 1], 4),
        (D.INT64, [3, 2**20], [1], 2),
        (D.INT64, [None, 2**20], [-1], 2),
        (D.INT64, [None, 2**20], [0], 4),
        (D.INT64, None, [0], 4),
    ],
)
def test_sums_that_doubles_represent(dtype: ir.DataType, dims: list[int | None] | None, axes: list[int], count: int) -> None:
    model = graph(_reduced("ReduceSum", axes=axes), new_value(dtype, dims, "x"))
    ExactSums()(model)
    assert operators(model).count("ReduceSum") == count


@pytest.mark.parametrize("dtype", [D.INT32, D.UINT32, D.INT64, D.UINT64])
def test_sums_of_many_numbers(dtype: ir.DataType) -> None:
    x = (np.random.default_rng(0).integers(2**31 - 10, 2**31, [2**22 + 3]) * 2 + 1).astype(dtype.numpy())
    model = graph(_reduced("ReduceSum", axes=[0]), new_value(dtype, [None], "x"))
    ExactSums()(model)
    insert_casts(model.graph)
    np.testing.assert_array_equal(run(model, x)[0], x.sum(dtype=x.dtype, keepdims=True), strict=True)


@pytest.mark.parametrize(("operator", "function"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
def test_the_order_of_uint64(operator: str, function: Any) -> None:
    x = np.array([[1, 2**63, 2**64 - 1], [0, 2**63 - 1, 5]], np.uint64)
    model = graph(_reduced(operator), new_value(D.UINT64, [2, 3], "x"))
    ExtremesOfUnsigned()(model)
    np.testing.assert_array_equal(run(model, x)[0], function(x, axis=1, keepdims=True), strict=True)


@pytest.mark.parametrize(("largest", "expected"), [(1, [2**64 - 1, 2**63]), (0, [1, 2**63])])
def test_top_k_of_uint64(largest: int, expected: list[int]) -> None:
    x = np.array([1, 2**63, 2**64 - 1], np.uint64)
    model = graph(lambda op, x: op.TopK(x, [2], axis=0, largest=largest, outputs=2), new_value(D.UINT64, [3], "x"))
    TopKOfUnsigned()(model)
    np.testing.assert_array_equal(run(model, x)[0], np.array(expected, np.uint64), strict=True)


def test_top_k_of_int64_is_unchanged() -> None:
    model = graph(lambda op, x: op.TopK(x, [2], axis=0, outputs=2), new_value(D.INT64, [3], "x"))
    assert not TopKOfUnsigned()(model).modified


@pytest.mark.parametrize(
    ("dims", "axes", "found"),
    [
        ([2, 0], [1], True),
        ([2, None], [1], True),
        (None, [1], True),
        ([2, None], [0], False),  # the unknown axis is not reduced
        ([0, 2], [1], False),
        ([2, 3], [0, 1], False),
        ([2, 3], [], False),
        ([2, None], [], True),  # no axes may be all of them
    ],
)
def test_extremes_of_no_booleans(dims: list[int | None] | None, axes: list[int], found: bool) -> None:
    model = graph(_reduced("ReduceMax", axes=axes), new_value(D.BOOL, dims, "x"))
    assert ExtremesOfNoBooleans()(model).modified is found
    assert ("Cast" in operators(model)) is found


@pytest.mark.parametrize(("operator", "expected"), [("ReduceMax", False), ("ReduceMin", True)])
def test_reductions_of_no_booleans(operator: str, expected: bool) -> None:
    model = graph(_reduced(operator), new_value(D.BOOL, [2, None], "x"))
    ExtremesOfNoBooleans()(model)
    np.testing.assert_array_equal(run(model, np.zeros((2, 0), bool))[0], [[expected], [expected]], strict=True)
    np.testing.assert_array_equal(run(model, np.array([[True, False], [False, True]]))[0], [[not expected]] * 2, strict=True)
