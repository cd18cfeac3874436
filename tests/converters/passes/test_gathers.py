"""Gathers of consecutive elements and along the last dimension, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import GatherRows
from converters.passes.simplification import MergeGathers
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

WINDOWS = np.arange(60)[:, None] + np.arange(9)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Gather(x, [3, 4, 5], axis=1), (2, 8, 5), ["Slice"]),
        (lambda op, x: op.Gather(x, [-4, -3], axis=-2), (2, 8, 5), ["Slice"]),
        (lambda op, x: op.Gather(x, [4], axis=1), (2, 8, 5), ["Slice"]),
        (lambda op, x: op.Gather(x, np.arange(8).reshape(2, 4), axis=1), (2, 8, 5), ["Reshape"]),
        (lambda op, x: op.Gather(x, [[0]], axis=2), (8, 9, 1), ["Reshape"]),
        (lambda op, x: op.Gather(x, op.const(-1), axis=2), (8, 9, 1), ["Reshape"]),
        # Another order or step, more dimensions, a negative index before others, an unknown size, a shape, or one index.
        (lambda op, x: op.Gather(x, [5, 4, 3], axis=1), (2, 8, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [1, 3, 5], axis=1), (2, 8, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [3, 3], axis=1), (2, 8, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [[3, 4], [5, 6]], axis=1), (2, 8, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [-1, 0], axis=1), (2, 8, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [1, 2], axis=1), (2, None, 5), ["Gather"]),
        (lambda op, x: op.Gather(x, [1, 2], axis=1), (2, 8, 3), ["Gather"]),
        (lambda op, x: op.Gather(x, [1, 2], axis=0), (80,), ["Gather"]),
        (lambda op, x: op.Gather(x, op.const(4), axis=1), (2, 8, 5), ["Gather"]),
    ],
)
def test_consecutive_elements(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[MergeGathers()]) == found


BLOCKS = ["Gather", "Reshape", "Reshape"]
STRIDED = 64 * np.arange(3)[:, None, None] + 16 * np.arange(5)[:, None] + np.arange(32)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Gather(x, STRIDED, axis=1), (4, 224), BLOCKS),
        (lambda op, x: op.Gather(x, STRIDED - 224, axis=-2), (4, 224, 3), BLOCKS),
        (lambda op, x: op.Gather(x, STRIDED.reshape(-1), axis=0), (224, 5), BLOCKS),
        (lambda op, x: op.Gather(x, STRIDED + 4, axis=1), (4, 228), BLOCKS),  # blocks of four
        (lambda op, x: op.Gather(x, STRIDED[..., ::-1].copy(), axis=1), (4, 224), ["Gather"]),
        (lambda op, x: op.Gather(x, STRIDED + 2, axis=1), (4, 226), ["Gather"]),  # blocks of two
        (lambda op, x: op.Gather(x, STRIDED, axis=1), (4, 225), ["Gather"]),  # the axis has no whole blocks
        (lambda op, x: op.Gather(x, STRIDED[..., :-1], axis=1), (4, 224), ["Gather"]),
        (lambda op, x: op.Gather(x, STRIDED, axis=1), (2, 224, 64), ["Gather"]),  # whole rows
        (lambda op, x: op.Gather(x, STRIDED[0, :1], axis=1), (4, 224), ["Gather"]),  # few results
        (lambda op, x: op.Gather(x, STRIDED, axis=1), (None, 224), ["Gather"]),
    ],
)
def test_blocks(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[MergeGathers()]) == found


ROWS = ["Gather", "Reshape", "Reshape", "Transpose", "Transpose"]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Gather(x, WINDOWS, axis=1), (16, 68), ROWS),
        (lambda op, x: op.Gather(x, WINDOWS, axis=-2), (2, 8, 68, 1), ROWS),
        (lambda op, x: op.Gather(x, WINDOWS - 68, axis=2), (4, 4, 68), ROWS),
        (lambda op, x: op.Cast(op.Gather(op.Cast(x, to=2), WINDOWS, axis=1), to=1), (16, 68), ["Cast", "Cast", *ROWS]),
        # Whole rows, few of them, few results, more inputs than results, and an unknown size.
        (lambda op, x: op.Gather(x, WINDOWS, axis=1), (16, 68, 2), ["Gather"]),
        (lambda op, x: op.Gather(x, WINDOWS, axis=1), (15, 68), ["Gather"]),
        (lambda op, x: op.Gather(x, np.arange(68)[::-1].copy(), axis=1), (16, 68), ["Gather"]),
        (lambda op, x: op.Gather(x, WINDOWS[:9], axis=1), (100, 100), ["Gather"]),
        (lambda op, x: op.Gather(x, WINDOWS, axis=1), (None, 68), ["Gather"]),
    ],
)
def test_numbers_of_rows(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    sizes = [20 if size is None else size for size in dims]
    numbers = [np.random.default_rng(0).uniform(0, 255, sizes).astype(np.float32)]
    assert rewritten(emit, floats("x", *dims), by=[GatherRows()], numbers=numbers) == sorted(found)


@pytest.mark.parametrize("step", [MergeGathers(), GatherRows()])
def test_indices_that_a_caller_can_replace(step: Any) -> None:
    indices = new_value(ir.DataType.INT64, (300,), "indices")
    indices.const_value = ir.tensor(np.arange(300))
    model = graph(lambda op, x, indices: op.Gather(x, indices, axis=1), floats("x", 16, 300), indices)
    model.graph.initializers["indices"] = indices
    step(model)
    assert operators(model) == ["Gather"]
