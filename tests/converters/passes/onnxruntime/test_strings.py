"""Gather and Pad of strings."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.strings import GatherOfStrings, PadOfStrings
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import graph, operators, run

D = ir.DataType

_WORDS = np.array([["one", "two", "three"], ["four", "", "six"]], dtype=object)


@pytest.mark.parametrize(
    ("dtype", "dims", "found"),
    [
        (D.STRING, [2, 3], True),
        (D.STRING, None, True),
        (D.STRING, [2], False),  # ONNX Runtime is correct for a vector
        (D.FLOAT, [2, 3], False),
    ],
)
def test_gather_conditions(dtype: ir.DataType, dims: list[int] | None, found: bool) -> None:
    model = graph(lambda op, x: op.Gather(x, [1, 0], axis=0), new_value(dtype, dims, "x"))
    assert GatherOfStrings()(model).modified is found


@pytest.mark.parametrize(("axis", "indices"), [(0, [1, 0, 1]), (1, [2]), (1, [[0, 2], [1, 1]]), (-1, 1)])
def test_gather(axis: int, indices: object) -> None:
    model = graph(lambda op, x: op.Gather(x, np.array(indices), axis=axis), new_value(D.STRING, [None, None], "x"))
    GatherOfStrings()(model)
    np.testing.assert_array_equal(run(model, _WORDS)[0], np.take(_WORDS, np.array(indices), axis=axis), strict=True)


@pytest.mark.parametrize("blank", [None, "-"])
def test_pad(blank: str | None) -> None:
    def emit(op: Builder, x: Value) -> Value:
        padded: Value = op.Pad(x, [1, 0, 0, 2], None if blank is None else op.const(np.array(blank, dtype=object)))
        return padded

    model = graph(emit, new_value(D.STRING, [2, None], "x"))
    assert PadOfStrings()(model).modified and operators(model).count("Pad") == 1
    got = run(model, _WORDS)[0]
    np.testing.assert_array_equal(got, np.pad(_WORDS, [(1, 0), (0, 2)], constant_values=blank or ""), strict=True)


def test_cropped() -> None:
    model = graph(lambda op, x: op.Pad(x, [0, -1, -1, 0]), new_value(D.STRING, [None, None], "x"))
    PadOfStrings()(model)
    np.testing.assert_array_equal(run(model, _WORDS)[0], _WORDS[:1, 1:], strict=True)


def test_numbers_stay() -> None:
    assert not PadOfStrings()(graph(lambda op, x: op.Pad(x, [1, 1]), new_value(D.INT64, [3], "x"))).modified
