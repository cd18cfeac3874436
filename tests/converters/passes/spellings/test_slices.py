"""Slices with negative steps or with gaps as Gather, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.slices import BoundedSlices, ReversedSliceToGather, StridedSliceToGather
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("start", [-9, -5, -1, 0, 2, 9])
@pytest.mark.parametrize("end", [np.iinfo(np.int64).min, -9, -5, -2, 0, 3, 9])
def test_limits(start: int, end: int, step: int) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return op.Slice(x, [start, 1], [end, 4], [1, 0], [step, 1])

    for converter, is_converted in ((ReversedSliceToGather, step < 0), (StridedSliceToGather, step != 1)):
        found = rewritten(emit, floats("x", 4, 5), by=[converter()])
        assert found == (["Gather", "Slice"] if is_converted else ["Slice"])


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("start", [-9, -5, -1, 0, 2, 9])
@pytest.mark.parametrize("end", [np.iinfo(np.int64).min, -9, -5, -2, 0, 3, 9, np.iinfo(np.int64).max])
def test_bounds(start: int, end: int, step: int) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return op.Slice(x, [start, 1], [end, 4], [1, -2], *([[step, 1]] if step > 1 else []))

    assert rewritten(emit, floats("x", 4, 5), by=[BoundedSlices()]) == ["Slice"]
    model = graph(emit, floats("x", 4, 5))
    BoundedSlices()(model)
    (node,) = (node for node in model.graph if node.op_type == "Slice")
    starts, ends = (value.const_value.numpy().tolist() for value in node.inputs[1:3])
    assert all(0 <= place <= 5 for place in [*starts, *ends])


@pytest.mark.parametrize(("dims", "step", "bounded"), [((4, 5), 1, True), ((4, None), 1, False), ((4, 5), -1, False)])
def test_bounds_that_stay(dims: tuple[int | None, ...], step: int, bounded: bool) -> None:
    model = graph(lambda op, x: op.Slice(x, [-9], [9], [1], [step]), floats("x", *dims))
    assert BoundedSlices()(model).modified == bounded


def test_the_size_must_be_known() -> None:
    def emit(op: Builder, x: Value) -> Value:
        return op.Slice(x, [-1], [-9], [1], [-1])

    assert rewritten(emit, floats("x", 4, None), by=[ReversedSliceToGather()]) == ["Slice"]


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "found"),
    [
        ([-1], [-(2**31)], [1], [-1], ["Gather"]),
        ([3], [1], [-1], [-2], ["Gather"]),
        ([1, 9], [3, -9], [1, 0], [1, -1], ["Gather", "Slice"]),
        ([4], [-1], [1], [-1], ["Gather"]),  # nothing is before the last element
        ([-9], [-20], [1], [-1], ["Gather"]),  # the first element, because the start is before it
        ([-6], [-5], [1], [-1], ["Gather"]),  # nothing
        ([-9], [-20], [1], [1], ["Slice"]),
        ([1], [9], [1], [2], ["Slice"]),
    ],
)
def test_reversed_slices(starts: list, ends: list, axes: list, steps: list, found: list[str]) -> None:
    by = [SPELLINGS["Gather for reversed Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, starts, ends, axes, steps), floats("x", 3, 5), by=by) == found


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "found"),
    [
        ([1], [9], [1], [2], ["Gather"]),
        ([0, 1], [3, 5], [0, 1], [2, 3], ["Gather", "Gather"]),
        ([1, 0], [3, 4], [0, 1], [1, 2], ["Gather", "Slice"]),
        ([-1], [-(2**31)], [1], [-1], ["Gather"]),
        ([1], [9], [1], [1], ["Slice"]),
    ],
)
def test_strided_slices(starts: list, ends: list, axes: list, steps: list, found: list[str]) -> None:
    by = [SPELLINGS["Gather for strided Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, starts, ends, axes, steps), floats("x", 3, 5), by=by) == found


def test_strided_slices_of_unknown_sizes_stay() -> None:
    by = [SPELLINGS["Gather for strided Slice"]()]
    assert rewritten(lambda op, x: op.Slice(x, [0], [9], [1], [2]), floats("x", 3, None), by=by) == ["Slice"]
