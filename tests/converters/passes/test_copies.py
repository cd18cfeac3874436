"""Slices of everything and pads by nothing go; others stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted, operators

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


def test_pads_that_are_split_off(oracle: Oracle, tmp_path: Path) -> None:
    """Splits of constants are constants."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([1, 4, 6], np.float32)
    odd = ops.constant(np.array([[0, 0], [1, 0], [0, 2]]))
    begins, ends = (ops.squeeze(part, ops.constant([1])) for part in ops.split(odd, ops.constant(1), 2).outputs())
    model = ov.Model([ops.pad(x, begins, ends, "constant", ops.constant(np.float32(9)))], [x])
    assert operators(converted(model, [X], oracle, tmp_path)) == ["Pad"]
