"""Sizes of dimensions and integers that depend on the iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.sizes import is_same_size, is_size, name_sizes, offset, size_read
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph


def emitted(emit: Callable[..., Any], *dims: int | str | None) -> tuple[ir.Value, Any]:
    """Return an input with the given dimensions, and the value that is computed from it."""
    x = floats("x")
    x.shape = ir.Shape(list(dims))
    found: list[Any] = []
    graph(lambda op, x: [found.append(emit(op, x)), op.Relu(x)][1:], x)
    return x, found[0]


@pytest.mark.parametrize(
    ("emit", "axis"),
    [
        (lambda op, x: op.Shape(x, start=1, end=2), 1),
        (lambda op, x: op.Shape(x, start=-1), 2),
        (lambda op, x: op.Shape(x, start=1), None),
        (lambda op, x: op.Gather(op.Shape(x), op.const(-1)), 2),
        (lambda op, x: op.Gather(op.Shape(x, start=1), op.const([0])), 1),
        (lambda op, x: op.Gather(op.Shape(x), op.const([0, 1])), None),
        (lambda op, x: op.Gather(op.Shape(x), op.Cast(op.ReduceMax(x, keepdims=0), to=7)), None),
        (lambda op, x: op.Gather(op.Cast(op.Shape(x), to=6), op.const(1)), 1),
        (lambda op, x: op.Gather(op.Cast(op.Shape(x), to=2), op.const(1)), None),  # 8 bits
        (lambda op, x: op.Squeeze(op.Cast(op.Shape(x, end=1), to=6), [0]), 0),
        (lambda op, x: op.Add(op.Shape(x, end=1), 1), None),
        (lambda op, x: op.Gather(op.Reshape(op.Shape(x), [3, 1]), op.const(1)), None),
        (lambda op, x: op.Cast(op.ReduceMax(x, keepdims=0), to=7), None),
    ],
)
def test_sizes(emit: Callable[..., Any], axis: int | None) -> None:
    x, value = emitted(emit, None, None, None)
    assert size_read(value) == (None if axis is None else (x, axis))


@pytest.mark.parametrize(
    ("emit", "axis", "is_same"),
    [
        (lambda op, x: x, 0, True),
        (lambda op, x: x, 1, False),
        (lambda op, x: op.Transpose(x, perm=[1, 0, 2]), 1, True),
        (lambda op, x: op.Transpose(x, perm=[1, 0, 2]), 0, False),
        (lambda op, x: op.Cast(x, to=10), 0, True),
        (lambda op, x: op.Concat(x, x, axis=0), 0, False),
        (lambda op, x: op.Expand(0.0, op.Concat(op.Shape(x, end=1), [4], axis=0)), 0, True),
        (lambda op, x: op.Expand(0.0, op.Concat(op.Cast(op.Shape(x, end=1), to=7), [4], axis=0)), 1, False),
        (lambda op, x: op.Expand(0.0, op.Concat(op.Shape(x, start=1, end=2), [4], axis=0)), 0, False),
        (lambda op, x: op.Expand(np.zeros((1, 1, 4), np.float32), op.Concat(op.Shape(x, end=1), [1], axis=0)), 0, False),
        (lambda op, x: op.Expand(0.0, op.Shape(x, end=1)), 0, True),
        (lambda op, x: op.Concat(x, x, axis=2), 0, True),
        (lambda op, x: op.Concat(x, x, axis=-3), 0, False),
        (lambda op, x: op.Slice(x, [0], [1], [-1]), 0, True),
        (lambda op, x: op.Slice(x, [0], [1], [-3]), 0, False),
        (lambda op, x: op.Slice(x, [0, 0, 0], [1, 1, 1]), 0, False),
        (lambda op, x: op.Unsqueeze(x, [0, -1]), 1, True),
        (lambda op, x: op.Unsqueeze(x, [0, -1]), 0, False),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [0, 2]), [-3, 0]), 0, True),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [0, 2]), [-3, 0]), 1, False),
        (lambda op, x: op.ReverseSequence(x, op.Expand(1, op.Shape(x, start=1, end=2)), batch_axis=1, time_axis=0), 0, True),
        (lambda op, x: op.Reshape(x, [3, -1, 1]), 1, False),
    ],
)
def test_same_sizes(emit: Callable[..., Any], axis: int, is_same: bool) -> None:
    x, value = emitted(emit, None, None, 3)
    assert is_same_size((x, 0), (value, axis)) == is_same


def test_names_of_sizes() -> None:
    one, other, third = (new_value(ir.DataType.FLOAT, [name, 2]) for name in ("rows", "rows", None))
    assert is_same_size((one, 0), (other, 0)) and not is_same_size((one, 0), (third, 0))
    assert is_same_size((one, 1), (third, 1)) and not is_same_size((one, 0), None)


def test_names_from_other_tensors() -> None:
    _x, value = emitted(lambda op, x: op.Concat(op.Transpose(x, perm=[1, 0]), op.Transpose(x, perm=[1, 0]), axis=0), "n", 3)
    value.shape = ir.Shape([6, None])
    name_sizes(value)
    assert value.shape == ir.Shape([6, "n"])


def test_constant_sizes() -> None:
    x, five = emitted(lambda op, x: op.place(op.const(5)), 5, None, 3)
    assert is_size(five, x, 0) and not is_size(five, x, 1) and not is_size(five, x, 2) and not is_size(None, x, 0)


@pytest.mark.parametrize(
    ("emit", "added"),
    [
        (lambda op, i: i, 0),
        (lambda op, i: op.Add(i, 2), 2),
        (lambda op, i: op.Add(3, op.Reshape(op.Add(i, -1), [1])), 2),
        (lambda op, i: op.Add(op.Cast(i, to=6), np.int32(1)), 1),
        (lambda op, i: op.Cast(i, to=3), None),  # 8 bits
        (lambda op, i: op.Add(i, i), None),
        (lambda op, i: op.Mul(i, 1), None),
        (lambda op, i: op.Add(i, [1, 2]), None),
    ],
)
def test_offsets(emit: Callable[..., Any], added: int | None) -> None:
    iteration = new_value(ir.DataType.INT64, [], "i")
    found: list[Any] = []
    graph(lambda op, i: [found.append(emit(op, i)), op.Neg(i)][1:], iteration)
    assert offset(found[0], iteration) == added
