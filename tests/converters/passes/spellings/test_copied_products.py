"""Copies by Gather before and after matrix multiplications, and near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted
from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import spelled


def _matrices(op, x, *order: int):
    """Return 4 products of matrices, [4, 2, 5], transposed."""
    return op.Transpose(op.MatMul(x, np.ones((4, 3, 5), np.float32)), perm=order)


COPIED = ["Gather", "MatMul", "Transpose"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _matrices(op, x, 2, 1, 0), COPIED),
        (lambda op, x: _matrices(op, x, 1, 2, 0), COPIED),
        (lambda op, x: _matrices(op, x, 1, 0, 2), COPIED[1:]),
        (lambda op, x: _matrices(op, x, 0, 2, 1), COPIED[1:]),
        (lambda op, x: op.Transpose(op.Relu(op.Mul(op.MatMul(x, x), 2.0)), perm=[1, 2, 0]), [*COPIED, "Mul", "Relu"]),
        (lambda op, x: op.Transpose(op.Concat(op.MatMul(x, x), x, axis=1), perm=[1, 2, 0]), ["Concat", *COPIED]),
        (lambda op, x: op.Transpose(op.Softmax(op.MatMul(x, x)), perm=[1, 0, 2]), ["MatMul", "Softmax", "Transpose"]),
        (lambda op, x: op.Transpose(op.Unsqueeze(op.MatMul(x, x), [3]), perm=[2, 1, 0, 3]), [*COPIED, "Unsqueeze"]),
        (lambda op, x: op.Transpose(op.Reshape(op.MatMul(x, x), [4, 1, 9]), perm=[2, 1, 0]), [*COPIED[1:], "Reshape"]),
        (lambda op, x: op.Transpose(op.Transpose(op.MatMul(x, x), perm=[1, 0, 2]), perm=[0, 2, 1]), [*COPIED, "Transpose"]),
        (lambda op, x: op.Transpose(op.LayerNormalization(op.MatMul(x, x), np.ones(3, np.float32)), perm=[1, 2, 0]),
            ["LayerNormalization", *COPIED[1:]]),
        (lambda op, x: op.Transpose(op.Relu(x), perm=[1, 2, 0]), ["Relu", "Transpose"]),
        (lambda op, x: op.Einsum(x, x, equation="bmk,bkn->mnb", types=[(x.dtype, [3, 3, 4])]), [*COPIED[::2], "Einsum"]),
        (lambda op, x: op.Einsum(x, x, equation="bmk,bkn->mbn", types=[(x.dtype, [3, 4, 3])]), ["Einsum"]),
        (lambda op, x: op.Einsum(x, equation="bmk->mkb", types=[(x.dtype, [3, 3, 4])]), ["Einsum"]),
    ],
)  # fmt: skip
def test_products_with_the_batch_last(emit: Any, found: list[str]) -> None:
    array = np.random.default_rng(0).standard_normal((4, 3, 3)).astype(np.float32)
    assert operators(spelled("copied products", emit, array)) == sorted(found)


def test_products_of_one_matrix() -> None:
    def emit(op, x):
        return op.Transpose(op.MatMul(x, x), perm=[1, 2, 0])

    one = np.random.default_rng(0).standard_normal((1, 3, 3)).astype(np.float32)
    assert operators(spelled("copied products", emit, one)) == ["MatMul", "Transpose"]
    assert operators(spelled("copied products", emit, one, None, 3, 3)) == COPIED  # a batch of unknown size
    unknown = [*COPIED[:1], "Gather", "MatMul", "Range", "Shape", "Squeeze", "Transpose"]
    assert operators(spelled("copied products", emit, one, None, None, None)) == unknown


def _concatenated(op, x, copied):
    return op.MatMul(op.Concat(copied, np.ones((2, 4, 5), np.float32), axis=2), np.ones((8, 3), np.float32))


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _concatenated(op, x, op.Expand(x, [1, 4, 1])), ["Concat", "Gather", "MatMul"]),
        (lambda op, x: _concatenated(op, x, op.Tile(x, [1, 4, 1])), ["Concat", "Gather", "MatMul"]),
        (lambda op, x: op.MatMul(op.Expand(op.Relu(x), [3, 1, 4, 1]), np.ones((3, 3), np.float32)),
            ["Gather", "Gather", "MatMul", "Relu", "Unsqueeze"]),
        (lambda op, x: op.MatMul(op.Relu(op.Expand(x, [1, 4, 1])), np.ones((3, 3), np.float32)),
            ["Expand", "MatMul", "Relu"]),
        (lambda op, x: op.MatMul(op.Reshape(op.Expand(x, [1, 4, 1]), [2, 2, 6]), np.ones((6, 3), np.float32)),
            ["Expand", "MatMul", "Reshape"]),
        (lambda op, x: op.MatMul(op.Tile(x, [2, 1, 1]), np.ones((3, 3), np.float32)), ["MatMul", "Tile"]),
        (lambda op, x: op.Add(op.Expand(x, [1, 4, 1]), 1.0), ["Add", "Expand"]),
    ],
)  # fmt: skip
def test_expanded_factors(emit: Any, found: list[str]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    assert operators(spelled("Gather for Expand", emit, array)) == found


@pytest.mark.parametrize(
    ("dims", "repeats", "given", "found"),
    [
        ([-1, 1, 4], [1, 3, 1], (2, 1, 4), ["Gather", "MatMul"]),
        ([-1, 1, 4], [2, 3, 1], (2, 1, 4), ["MatMul", "Tile"]),  # the unknown dimension is repeated, too
    ],
)
def test_repeated_unknown_dimensions(
    dims: list[int], repeats: list[int], given: tuple[int, ...], found: list[str], oracle: Oracle, tmp_path: Path
) -> None:
    x = ops.parameter(dims, np.float32, name="x")
    tiled = ops.tile(x, ops.constant(np.array(repeats, np.int64)))
    model = ov.Model([ops.matmul(tiled, ops.constant(np.ones((4, 5), np.float32)), False, False)], [x])
    data = np.random.default_rng(0).standard_normal(given).astype(np.float32)
    made = converted(model, [data], oracle, tmp_path, target="tract")
    assert sorted(node.op_type for node in made.graph.node) == found


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ([-1, 3, 4], ["Expand", "MatMul", "Relu", "Shape"]),  # the unknown dimension may be 1
        ([1, 3, 4], ["Gather", "MatMul", "Relu"]),
    ],
)
def test_unknown_dimensions_that_broadcast(target: list[int], found: list[str], oracle: Oracle, tmp_path: Path) -> None:
    x, y = (ops.parameter(dims, np.float32, name=name) for name, dims in (("x", [-1, 1, 4]), ("y", target)))
    wide = ops.broadcast(x, ops.shape_of(y), broadcast_spec="BIDIRECTIONAL")
    outputs = [ops.matmul(wide, ops.constant(np.ones((4, 5), np.float32)), False, False), ops.relu(y)]
    rows = 2 if target[0] < 0 else 1
    numbers = np.arange(12 * rows, dtype=np.float32).reshape(rows, 3, 4)
    made = converted(ov.Model(outputs, [x, y]), [numbers[:1, :1] - 1, numbers], oracle, tmp_path, target="tract")
    assert sorted(node.op_type for node in made.graph.node) == found
