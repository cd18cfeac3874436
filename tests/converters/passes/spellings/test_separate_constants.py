"""Constants with several kinds of uses, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.booleans import RemoveBooleanConstants
from converters.passes.spellings.separate_constants import SeparateConstants
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

ONE = np.array([1], np.int64)
ROW = np.ones((1, 3), np.float32)


@pytest.mark.parametrize(
    ("emit", "copies"),
    [
        (lambda op, x, one, row: (op.Unsqueeze(x, one), op.Add(op.Cast(x, to=7), one)), 1),
        (lambda op, x, one, row: (op.Slice(x, one, [2], one), op.Unsqueeze(x, one)), 0),
        (lambda op, x, one, row: (op.Add(x, row), op.Mul(x, row)), 0),
        (lambda op, x, one, row: (op.Concat(x, row, axis=0), op.Concat(row, x, axis=0)), 1),
        (lambda op, x, one, row: (op.Concat(x, row, row, axis=0),), 1),
        (lambda op, x, one, row: (op.Concat(x, row, axis=0), op.Add(x, row)), 1),
        (lambda op, x, one, row: (op.MatMul(row, op.Transpose(x)), op.Add(x, row)), 1),
        (lambda op, x, one, row: (op.Gather(x, one, axis=1), op.Unsqueeze(x, one), op.Add(op.Cast(x, to=7), one)), 2),
        (lambda op, x, one, row: (op.Gather(x, one, axis=1), op.Gather(x, one, axis=0)), 0),
    ],
)
def test_copies(emit: Any, copies: int) -> None:
    def given(op, x):
        return emit(op, x, op.const(ONE), op.const(ROW))

    model = graph(given, floats("x", 2, 3))
    before = len(model.graph.initializers)
    SeparateConstants()(model)
    assert len(model.graph.initializers) - before == copies
    rewritten(given, floats("x", 2, 3), by=[SeparateConstants()])


@pytest.mark.parametrize(
    ("emit", "casts"),
    [
        (lambda op, x, flags: op.Concat(flags, x, flags, axis=0), 2),
        (lambda op, x, flags: (op.Concat(flags, x, axis=0), op.And(x, flags)), 2),
        (lambda op, x, flags: (op.And(x, flags), op.Or(x, flags)), 1),
    ],
)
def test_casts_of_constants(emit: Any, casts: int) -> None:
    def given(op, x):
        return emit(op, x, op.const(np.array([True, False])))

    x = new_value(ir.DataType.BOOL, (2,), "x")
    numbers = [np.array([True, False])]
    steps = [RemoveBooleanConstants(), SeparateConstants()]
    assert rewritten(given, x, by=steps, numbers=numbers).count("Cast") == casts


def _of_images(op: Any, x: Any, scale: Any) -> Any:
    return op.InstanceNormalization(op.Reshape(x, op.const(np.array([1, 3, 2]))), scale, op.const(np.zeros(3, np.float32)))


def _of_rows(op: Any, x: Any, scale: Any) -> Any:
    return op.LayerNormalization(x, scale, axis=-1)


@pytest.mark.parametrize(
    ("kinds", "copies"),
    [((_of_images, _of_rows), 1), ((_of_images, _of_images), 0), ((_of_rows, _of_rows), 0)],
)
def test_scales_of_normalizations(kinds: tuple[Any, ...], copies: int) -> None:
    def given(op: Any, x: Any) -> Any:
        scale = op.const(np.array([1, 2, 3], np.float32))
        return [emit(op, x, scale) for emit in kinds]

    model = graph(given, floats("x", 2, 3))
    before = len(model.graph.initializers)
    SeparateConstants()(model)
    assert len(model.graph.initializers) - before == copies
    rewritten(given, floats("x", 2, 3), by=[SeparateConstants()])
