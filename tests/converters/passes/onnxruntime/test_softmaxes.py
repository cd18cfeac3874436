"""Softmax of short columns, in operators that ONNX Runtime computes more quickly."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import SoftmaxByReductions, fusion_guards
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten, run

FOUND = ["Div", "Exp", "ReduceMax", "ReduceSum", "Sub"]


@pytest.mark.parametrize(
    ("dims", "axis", "found"),
    [
        ((2, 4, 16, 16), 1, FOUND),
        ((2, 4, 16, 16), -3, FOUND),
        ((None, 4, 16, 16), 1, FOUND),
        ((32, 256), 0, FOUND),
        ((2, 4, 15, 17), 1, ["Softmax"]),  # few neighbors
        ((2, 33, 16, 16), 1, ["Softmax"]),  # a long column
        ((2, 4, 16, 16), 3, ["Softmax"]),
        ((2, 4, 8, 256), -1, ["Softmax"]),
        ((2, 4, None, 256), 1, ["Softmax"]),
        ((2, None, 16, 16), 1, ["Softmax"]),  # the axis may have no elements
        ((2, 0, 16, 16), 1, ["Softmax"]),
    ],
    ids=str,
)
def test_conditions(dims: tuple[int | None, ...], axis: int, found: list[str]) -> None:
    got = rewritten(lambda op, x: op.Softmax(x, axis=axis), floats("x", *dims), by=[SoftmaxByReductions()])
    assert sorted(got) == found


def test_unknown_ranks_and_16_bits_stay() -> None:
    """An axis that may be the last one, and numbers for GPUs."""
    unknown = new_value(ir.DataType.FLOAT, None, "x")
    halves = new_value(ir.DataType.FLOAT16, [2, 4, 256], "x")
    for x in (unknown, halves):
        assert not SoftmaxByReductions()(graph(lambda op, x: op.Softmax(x, axis=1), x)).modified


@pytest.mark.parametrize("opset", [13, 17])
def test_older_opsets_stay(opset: int) -> None:
    """Their reductions have other signatures."""
    assert not any(isinstance(step, SoftmaxByReductions) for step in fusion_guards(opset))


def test_numbers_without_a_finite_sum() -> None:
    """Rows with NaN or infinity, and large numbers, as Softmax computes them; a batch without elements."""
    x = np.random.default_rng(0).standard_normal((6, 4, 256)).astype(np.float32)
    x[:5, 1] = np.array([[np.nan], [np.inf], [-np.inf], [3.4e38], [-3.4e38]], np.float32)
    x[5] = -np.inf
    model = graph(lambda op, x: op.Softmax(x, axis=1), floats("x", None, 4, 256))
    before = run(model, x)
    assert SoftmaxByReductions()(model).modified
    np.testing.assert_allclose(run(model, x)[0], before[0], rtol=1e-6, atol=1e-7, strict=True)
    assert run(model, x[:0])[0].shape == (0, 4, 256)
