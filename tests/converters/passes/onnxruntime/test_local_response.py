"""LRN by sums of shifted squares."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.local_response import LRNByShiftedSums
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run


def _expected(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    """Compute the definition of ONNX in float64."""
    wide = x.astype(np.float64)
    count = x.shape[1]
    windows = [slice(max(0, i - (size - 1) // 2), i + size // 2 + 1) for i in range(count)]
    sums = np.stack([(wide[:, window] ** 2).sum(1) for window in windows], axis=1)
    return (wide / (bias + alpha / size * sums) ** beta).astype(np.float32)


@pytest.mark.parametrize("large", [1e3, 1e6])
@pytest.mark.parametrize(("size", "count"), [(3, 8), (17, 40), (31, 64), (33, 20), (999_999, 20), (5, 2)])
def test_numbers_after_a_large_one(size: int, count: int, large: float) -> None:
    """ONNX Runtime's kernel gives 0.30 instead of 0.42 after 1e4."""
    x = np.full((2, count, 2, 3), 0.5, np.float32)
    x[0, 1] = large
    model = graph(lambda op, x: op.LRN(x, size=size, alpha=1.0, beta=0.75, bias=1.0), floats("x", 2, count, 2, 3))
    assert LRNByShiftedSums()(model).modified
    model.graph.outputs[0].shape = ir.Shape(x.shape)
    np.testing.assert_allclose(run(model, x)[0], _expected(x, size, 1.0, 0.75, 1.0), rtol=1e-5, strict=True)


@pytest.mark.parametrize(("number", "expected"), [(np.inf, [0, np.nan, 0]), (np.nan, [np.nan] * 3)])
def test_numbers_after_infinity_and_nan(number: float, expected: list[float]) -> None:
    x = np.ones((1, 6, 1, 1), np.float32)
    x[0, 1] = number
    model = graph(lambda op, x: op.LRN(x, size=3), floats("x", 1, 6, 1, 1))
    LRNByShiftedSums()(model)
    model.graph.outputs[0].shape = ir.Shape(x.shape)
    got = run(model, x)[0].reshape(-1)
    np.testing.assert_array_equal(got[:3], np.float32(expected), strict=True)
    assert np.isfinite(got[3:]).all()


@pytest.mark.parametrize("beta", [0.75, 0.5, 1.0, 0.6])
@pytest.mark.parametrize("size", [1, 3, 5, 15, 17, 21, 63])
@pytest.mark.parametrize("dims", [(2, 4, 3, 5), (None, None, None, None)])
def test_results(size: int, beta: float, dims: tuple[int | None, ...]) -> None:
    found = rewritten(
        lambda op, x: op.LRN(x, size=size, alpha=0.5, beta=beta, bias=2.0), floats("x", *dims), by=[LRNByShiftedSums()]
    )
    assert "LRN" not in found and ("Pow" in found) is (beta == 0.6)


@pytest.mark.parametrize(("size", "channels", "changes"), [(4095, None, True), (9999, None, False), (9999, 40, True)])
def test_many_channels_are_not_added(size: int, channels: int | None, changes: bool) -> None:
    model = graph(lambda op, x: op.LRN(x, size=size), floats("x", 1, channels, 2, 2))
    assert LRNByShiftedSums()(model).modified is changes


def test_float16_stays() -> None:
    """It is for GPUs."""
    model = graph(lambda op, x: op.LRN(x, size=3), new_value(ir.DataType.FLOAT16, [1, 4, 2, 2], "x"))
    assert not LRNByShiftedSums()(model).modified
    assert operators(model) == ["LRN"]
