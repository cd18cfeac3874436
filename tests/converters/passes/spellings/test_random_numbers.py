"""Random numbers without a seed, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.random_numbers import UnseededRandomUniform
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run


def _drawn(low: Any, high: Any, dims: list[int] | None = None, **seeds: Any) -> ir.Model:
    def emit(op, x, shape):
        given = shape if dims is None else op.const(np.array(dims))
        return op.Add(op.Cast(op.specops.RandomUniform(given, op.const(low), op.const(high), **seeds), to=1), x)

    model = graph(emit, floats("x", 1), new_value(ir.DataType.INT64, [1], "shape"))
    UnseededRandomUniform()(model)
    return model


F = np.float32


@pytest.mark.parametrize("bounds", [(F(0), F(1)), (F(-3), F(5)), (np.ones(1, F), np.full(1, 2, F))])
def test_numbers_without_a_seed(bounds: Any) -> None:
    model = _drawn(*bounds, dims=[1000])
    assert "RandomUniform" in operators(model) and all(not node.domain for node in model.graph)
    (found,) = run(model, np.zeros(1, F), np.ones(1, np.int64))
    low, high = (float(np.reshape(bound, -1)[0]) for bound in bounds)
    assert found.shape == (1000,) and found.min() >= low and found.max() <= high
    assert abs(found.mean() - (low + high) / 2) < (high - low) / 10 and found.std() > (high - low) / 5


@pytest.mark.parametrize(
    ("bounds", "options"),
    [
        ((F(0), F(1)), {"dims": [4], "global_seed": 1}),
        ((F(0), F(1)), {"dims": [4], "op_seed": 2}),
        ((F(0), F(1)), {}),  # another shape in each run
        ((np.int64(0), np.int64(9)), {"dims": [4]}),
        ((np.float64(0), np.float64(1)), {"dims": [4]}),
    ],
)
def test_other_numbers_stay(bounds: Any, options: dict[str, Any]) -> None:
    assert any(node.domain for node in _drawn(*bounds, **options).graph)
