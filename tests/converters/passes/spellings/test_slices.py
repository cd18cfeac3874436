"""Slices with negative steps or with gaps as Gather, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings.slices import ReversedSliceToGather, StridedSliceToGather
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, rewritten


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("start", [-9, -5, -1, 0, 2, 9])
@pytest.mark.parametrize("end", [np.iinfo(np.int64).min, -9, -5, -2, 0, 3, 9])
def test_limits(start: int, end: int, step: int) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return op.Slice(x, [start, 1], [end, 4], [1, 0], [step, 1])

    for converter, is_converted in ((ReversedSliceToGather, step < 0), (StridedSliceToGather, step != 1)):
        found = rewritten(emit, floats("x", 4, 5), by=[converter()])
        assert found == (["Gather", "Slice"] if is_converted else ["Slice"])


def test_the_size_must_be_known() -> None:
    def emit(op: Builder, x: Value) -> Value:
        return op.Slice(x, [-1], [-9], [1], [-1])

    assert rewritten(emit, floats("x", 4, None), by=[ReversedSliceToGather()]) == ["Slice"]
