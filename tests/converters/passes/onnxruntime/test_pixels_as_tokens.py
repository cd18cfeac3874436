"""Transposes between a convolution and the Reshape of its pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import PixelsAsTokens, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

WEIGHTS = np.random.default_rng(0).standard_normal((6, 4, 1, 1)).astype(np.float32)


def convolution(op: Builder, x: Value) -> Value:
    result: Value = op.Conv(x, WEIGHTS)
    return result


def tokens(op: Builder, x: Value, *shape: int, perm: Any = (0, 2, 1)) -> Value:
    result: Value = op.Transpose(op.Reshape(x, list(shape)), perm=list(perm))
    return result


def moved(emit: Any, *dims: int | None) -> bool:
    """Return whether the Transpose is moved."""
    rewritten(emit, floats("x", *dims), by=[PixelsAsTokens()])
    return PixelsAsTokens()(graph(emit, floats("x", *dims))).modified


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: tokens(op, convolution(op, x), 2, 6, 35), True),
        (lambda op, x: tokens(op, convolution(op, x), 2, 6, -1), True),
        (lambda op, x: tokens(op, op.Relu(convolution(op, x)), 2, 6, 35), False),  # another node
        (lambda op, x: tokens(op, convolution(op, x), 2, 35, 6), False),
        (lambda op, x: tokens(op, convolution(op, x), 2, 3, 70), False),
        (lambda op, x: tokens(op, convolution(op, x), 1, 12, 35), False),
        (lambda op, x: tokens(op, convolution(op, x), 2, 6, 35, perm=(1, 2, 0)), False),
        (lambda op, x: tokens(op, convolution(op, x), 2, 6, 5, 7, perm=(0, 2, 3, 1)), False),
        (lambda op, x: [(y := op.Reshape(convolution(op, x), [2, 6, 35])), op.Transpose(y, perm=[0, 2, 1])], False),
    ],
)
def test_conditions(emit: Any, found: bool) -> None:
    assert moved(emit, 2, 4, 5, 7) is found


@pytest.mark.parametrize(
    ("dims", "found"),
    [([None, 4, 5, 7], True), ([2, 4, None, 7], False), ([0, 4, 5, 7], True)],
)  # fmt: skip
def test_unknown_and_empty_dimensions(dims: list[int | None], found: bool) -> None:
    assert moved(lambda op, x: tokens(op, convolution(op, x), 0, 6, 35), *dims) is found


def test_lines_and_16_bits_stay() -> None:
    assert not moved(lambda op, x: tokens(op, op.Conv(x, WEIGHTS[..., 0]), 2, 6, 35), 2, 4, 35)
    halves = graph(
        lambda op, x: tokens(op, op.Conv(x, WEIGHTS.astype(np.float16)), 2, 6, 35),
        new_value(ir.DataType.FLOAT16, [2, 4, 5, 7], "x"),
    )
    assert not PixelsAsTokens()(halves).modified


def test_the_last_passes() -> None:
    assert any(isinstance(step, PixelsAsTokens) for step in fusion_guards(21))
