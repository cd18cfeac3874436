"""ArgMax instead of TopK for the index of the largest element, and near misses."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(
    ("k", "largest", "output", "found"),
    [(1, 1, 1, "ArgMax"), (1, 0, 1, "ArgMin"), (2, 1, 1, "TopK"), (1, 1, 0, "TopK"), (1, 1, slice(2), "TopK")],
)
def test_arg_max(k: int, largest: int, output: Any, found: str) -> None:
    """The index is that of the first of equal elements. A TopK whose values are used stays."""

    def emit(op, x):
        results = op.TopK(op.Cast(op.Greater(x, 0.0), to=ir.DataType.INT32), [k], axis=1, largest=largest, outputs=2)[output]
        return list(results) if isinstance(output, slice) else results

    assert found in operators(spelled("ArgMax", emit))


def test_the_place_of_nan_may_differ() -> None:
    """The fixture of the tests compares the results for many elements, some of which are NaN."""
    model = spelled("ArgMax", lambda op, x: op.TopK(op.Reshape(x, [1, 6]), [1], axis=1, outputs=2)[1])
    assert "ArgMax" in operators(model)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.ReduceMean(x, [0, 1], keepdims=0), ["ReduceMean", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceSum(x, keepdims=0), ["ReduceSum", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceL2(x, keepdims=0), ["ReduceL2", "Reshape", "Reshape"]),
        (lambda op, x: op.ArgMax(op.Reshape(x, [6]), axis=0, keepdims=0), ["ArgMax", "Reshape", "Reshape"]),
        (lambda op, x: op.ReduceMean(x, [1], keepdims=0), ["ReduceMean"]),
        (lambda op, x: op.ReduceMean(x, [0, 1]), ["ReduceMean"]),
        (
            lambda op, x: op.ReduceMean(op.ReduceSum(x, keepdims=0), keepdims=0),
            ["ReduceMean", "ReduceSum", *["Reshape"] * 2],
        ),
    ],
)
def test_reductions_to_scalars(emit: Any, found: list[str]) -> None:
    assert operators(spelled("Reshape for scalars", emit)) == found
