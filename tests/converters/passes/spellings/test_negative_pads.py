"""Negative pads, and near misses."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

from converters.passes.spellings.negative_pads import NonnegativePads
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Pad(x, [0, 1, 0, -1]), ["Pad", "Slice"]),
        (lambda op, x: op.Pad(x, [-1, 0, -1, -3], 5.0), ["Slice"]),
        (lambda op, x: op.Pad(x, [-2, -1, 0, 2], 5.0), ["Pad", "Slice"]),
        (lambda op, x: op.Pad(x, [-1, 1], None, [-1]), ["Pad", "Slice"]),
        (lambda op, x: op.Pad(x, [-4, 0, 0, 0]), ["Slice"]),  # nothing is left
        (lambda op, x: op.Pad(x, [0, 1, 0, 1]), ["Pad"]),
        (lambda op, x: op.Pad(x, [2, 0, -5, 0]), ["Pad"]),  # it would remove an element that it adds
        (lambda op, x: op.Pad(x, [0, -1, 0, 1], mode="edge"), ["Pad"]),
    ],
)
def test_negative_pads(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 4, 6), by=[NonnegativePads()]) == found


def test_sizes_must_be_known() -> None:
    assert rewritten(lambda op, x: op.Pad(x, [0, -1, 0, 1]), floats("x", 4, None), by=[NonnegativePads()]) == ["Pad"]


def test_computed_pads_stay() -> None:
    def emit(op, x, pads):
        return op.Pad(x, op.Neg(pads))

    pads = new_value(ir.DataType.INT64, (4,), "pads")
    assert rewritten(emit, floats("x", 4, 6), pads, by=[NonnegativePads()]) == ["Neg", "Pad"]
