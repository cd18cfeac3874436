"""Sums of columns, as products with ones."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import SumsByProducts, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten, run

REDUCTIONS = {
    "ReduceSum": lambda op, x, axes, keepdims: op.ReduceSum(x, axes, keepdims=keepdims),
    "ReduceMean": lambda op, x, axes, keepdims: op.ReduceMean(x, axes, keepdims=keepdims),
    "ReduceL2": lambda op, x, axes, keepdims: op.ReduceL2(x, axes, keepdims=keepdims),
}


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("dims", "axes", "found"),
    [
        ((1, 32, 8, 16), [1], True),
        ((1, 1, 32, 128), [-2], True),
        ((64, 64), [0], True),
        ((1, 16, 16, 16), [1, 2], True),
        ((1, 16, 16, 16), [-2, 1], True),
        ((1, 2, 2048), [0, 1], True),
        ((2, 32, 8, 16), [1], False),  # dimensions before the axes
        ((1, 16, 16, 16), [1, 3], False),  # axes that are not adjacent
        ((1, 64, 64), [2], False),  # rows
        ((1, 16, 256), [1, 2], False),
        ((1, 512, 15), [1], False),  # few columns
        ((1, 15, 16, 16), [1], False),  # few elements
        ((4096, 1, 16), [1], False),  # nothing to add
        ((1, 0, 8, 512), [1], False),
        ((None, 64, 64), [1], False),
        ((1, None, 64), [1], False),
    ],
    ids=str,
)
def test_conditions(operator: str, keepdims: int, dims: tuple[int | None, ...], axes: list[int], found: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return REDUCTIONS[operator](op, x, axes, keepdims)

    got = rewritten(emit, floats("x", *dims), by=[SumsByProducts()])
    assert ("MatMul" in got) is found and (operator in got) is not found


@pytest.mark.parametrize(
    ("dims", "perm", "axes", "found"),
    [
        ((1, 16, 16, 16), [0, 3, 1, 2], [2, 3], True),  # channels last
        ((1, 16, 16, 16), [0, 3, 1, 2], [-1, 2], True),
        ((1, 16, 16, 16), None, [1, 2], True),
        ((64, 4, 16), [1, 0, 2], [1], True),
        ((1, 16, 16, 16), [0, 3, 1, 2], [1], False),  # rows
        ((1, 16, 16, 16), [0, 3, 1, 2], [1, 2], False),
        ((2, 16, 16, 16), [0, 3, 1, 2], [2, 3], False),
        ((64, 4, 16), [2, 0, 1], [1], False),  # the others have another order
        ((64, 1, 64), [2, 0, 1], [1], True),
    ],
    ids=str,
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_transposed(dims: tuple[int, ...], perm: list[int] | None, axes: list[int], found: bool, keepdims: int) -> None:
    attributes = {} if perm is None else {"perm": perm}
    got = rewritten(
        lambda op, x: op.ReduceSum(op.Transpose(x, **attributes), axes, keepdims=keepdims),
        floats("x", *dims),
        by=[SumsByProducts()],
    )
    assert ("MatMul" in got) is found and ("Transpose" in got) is not found


def test_other_signatures_types_and_reductions_stay() -> None:
    axes = new_value(ir.DataType.INT64, [1], "axes")
    halves = new_value(ir.DataType.FLOAT16, [1, 64, 64], "x")
    for model in (
        graph(lambda op, x: op.ReduceSum(x), floats("x", 1, 64, 64)),
        graph(lambda op, x: op.ReduceMax(x, [1]), floats("x", 1, 64, 64)),
        graph(lambda op, x: op.ReduceL1(x, [1]), floats("x", 1, 64, 64)),
        graph(lambda op, x, axes: op.ReduceSum(x, axes), floats("x", 1, 64, 64), axes),
        graph(lambda op, x: op.ReduceSum(x, [1]), halves),
    ):
        assert not SumsByProducts()(model).modified


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_columns_without_a_finite_sum(operator: str) -> None:
    """NaN, infinity and sums that overflow are those of the reduction."""
    x = np.random.default_rng(0).standard_normal((1, 64, 64)).astype(np.float32)
    x[0, 3, :5] = np.nan, np.inf, -np.inf, 3e38, 3e38
    x[0, 5, :5] = 1, -np.inf, -np.inf, 3e38, 3e38
    model = graph(lambda op, x: REDUCTIONS[operator](op, x, [1], 1), floats("x", 1, 64, 64))
    before = run(model, x)[0]
    assert SumsByProducts()(model).modified
    np.testing.assert_allclose(run(model, x)[0], before, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("opset", [13, 17])
def test_older_opsets_stay(opset: int) -> None:
    """Their reductions have other signatures."""
    assert not any(isinstance(step, SumsByProducts) for step in fusion_guards(opset))
