"""Operators in the form of an older opset, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings.lowered import LowerCol2Im, LowerDFT
from tests.converters.passes.graphs import floats, graph, rewritten


def test_columns() -> None:
    def emit(op, x):
        return op.Col2Im(x, [5, 6], [2, 3], pads=[0, 1, 1, 0], strides=[1, 2], dilations=[2, 1])

    found = rewritten(emit, floats("x", 2, 12, 12), by=[LowerCol2Im()])
    assert "ConvTranspose" in found and "Col2Im" not in found


def test_columns_of_unknown_rank_stay() -> None:
    def emit(op, x):
        return op.Col2Im(x, op.Cast(op.Cast([5, 6], to=1), to=7), [1, 5], pads=[0, 0, 0, 0])

    assert "Col2Im" not in rewritten(emit, floats("x", 1, 5, 10), by=[LowerCol2Im()])  # the image has a known rank


def test_spectra() -> None:
    found = rewritten(lambda op, x: op.DFT(x, None, -2), floats("x", 2, 5, 1), by=[LowerDFT()])
    assert "MatMul" in found and "DFT" not in found


@pytest.mark.parametrize("parts", [1, 2])
def test_spectra_of_unknown_parts(parts: int) -> None:
    """The numbers may be real or complex."""
    numbers = [np.random.default_rng(0).random((2, 5, parts), np.float32)]
    found = rewritten(lambda op, x: op.DFT(x, None, -2), floats("x", 2, 5, None), by=[LowerDFT()], numbers=numbers)
    assert "MatMul" in found and "DFT" not in found


def test_inverse_spectra_of_one_side_stay() -> None:
    model = graph(lambda op, x: op.DFT(x, None, -2, inverse=1, onesided=1), floats("x", 2, 5, 2))
    assert not LowerDFT()(model).modified
