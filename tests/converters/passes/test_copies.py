"""Slices and pads without effect are removed; others remain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.passes.copies import DropCopies
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted, operators
from tests.converters.passes.graphs import floats, rewritten

X = np.arange(24, dtype=np.float32).reshape(1, 4, 6)


def _slice(starts: list[int], stops: list[int], steps: list[int]):
    def emit(ops, x):
        return ops.slice(x, *(ops.constant(np.array(part)) for part in (starts, stops, steps, [1, 2])))

    return emit


def _pad(begins: list[int], ends: list[int]):
    return lambda ops, x: ops.pad(x, ops.constant(begins), ops.constant(ends), "constant", ops.constant(np.float32(9)))


@pytest.mark.parametrize(
    ("emit", "shape", "left"),
    [
        (_slice([0, 0], [4, 6], [1, 1]), [1, 4, 6], []),
        (_slice([-9, 0], [99, 2**31 - 1], [1, 1]), [1, 4, 6], []),
        (_slice([0, 0], [4, 5], [1, 1]), [1, 4, 6], ["Slice"]),
        (_slice([-1, 0], [-9, 6], [-1, 1]), [1, 4, 6], ["Slice"]),
        (_slice([0, 0], [4, 6], [1, 1]), [1, -1, -1], ["Slice"]),
        (_pad([0, 0, 0], [0, 0, 0]), [1, -1, 6], []),
        (_pad([0, 0, 0], [0, 1, 0]), [1, 4, 6], ["Pad"]),
    ],
    ids=["all", "more-than-all", "part", "backwards", "unknown", "nothing", "something"],
)
def test_copies(emit, shape: list[int], left: list[str], oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter(shape, np.float32)
    model = ov.Model([ops.relu(emit(ops, ops.abs(x)))], [x])
    assert operators(converted(model, [X], oracle, tmp_path)) == sorted(["Abs", *left, "Relu"])


def test_separated_pads(oracle: Oracle, tmp_path: Path) -> None:
    """Splits of constants are constants."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([1, 4, 6], np.float32)
    odd = ops.constant(np.array([[0, 0], [1, 0], [0, 2]]))
    begins, ends = (ops.squeeze(part, ops.constant([1])) for part in ops.split(odd, ops.constant(1), 2).outputs())
    model = ov.Model([ops.pad(x, begins, ends, "constant", ops.constant(np.float32(9)))], [x])
    assert operators(converted(model, [X], oracle, tmp_path)) == ["Pad"]


MANY = 2**40


def _count(op, x):
    """Count the nonzero elements, all 24 here, which is unknown until the model runs."""
    return op.Shape(op.NonZero(x), start=1)


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (lambda op, x: op.Slice(x, [0, 0], [4, 6]), ["Abs", "Relu"]),
        (lambda op, x: op.Slice(x, [0, -9], [MANY, MANY], [0, 1], [1, 1]), ["Abs", "Relu"]),
        (lambda op, x: op.Slice(x, [0], [4], [0], [1]), ["Abs", "Relu"]),
        (lambda op, x: op.Slice(x, [0], [3], [0]), ["Abs", "Relu", "Slice"]),
        (lambda op, x: op.Slice(x, [-1], [-MANY], [0], [-1]), ["Abs", "Relu", "Slice"]),  # same size, reversed
        (lambda op, x: op.Slice(x, [0], [4], [0], op.Div(_count(op, x), 24)), None),
        (lambda op, x: op.Pad(x, [0, 0, 0, 0]), ["Abs", "Relu"]),
        (lambda op, x: op.Pad(x, [0, 0, 0, 0], mode="reflect"), ["Abs", "Relu"]),
        (lambda op, x: op.Pad(x, [0, 0], None, [1]), ["Abs", "Relu"]),
        (lambda op, x: op.Pad(x, [0, 1, 0, -1]), ["Abs", "Pad", "Relu"]),  # same size, shifted
        (lambda op, x: op.Pad(x, op.Mul(op.Sub(_count(op, x), 24), [1, 1, 1, 1])), None),
    ],
)
def test_conditions(emit, left: list[str] | None) -> None:
    """Equal sizes do not imply equal values; run-time steps and pads are not known to be 1 and 0."""
    found = rewritten(lambda op, x: op.Relu(emit(op, op.Abs(x))), floats("x", 4, 6), by=[DropCopies()])
    assert found == left or (left is None and {"Pad", "Slice"} & {*found})


@pytest.mark.parametrize("dims", [(None, 6), (4, 6)])
def test_a_slice_of_unknown_size_is_unchanged(dims: tuple[int | None, ...]) -> None:
    found = rewritten(
        lambda op, x: op.Relu(op.Slice(x, [0], [5], [0])),
        floats("x", *dims),
        by=[DropCopies()],
        numbers=[np.ones((4, 6), np.float32)],
    )
    assert ("Slice" in found) is (None in dims)
