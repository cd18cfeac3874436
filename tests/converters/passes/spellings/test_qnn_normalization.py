"""RMS normalizations for Qualcomm's HTP, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.finish import finish_for
from converters.passes.spellings.qnn_normalization import NormalizedMatrices
from converters.targets import find_target
from onnx_specops.lowering import Stamp
from tests.converters.passes.graphs import floats, graph, operators, run

SCALE = np.linspace(0.5, 2, 4, dtype=np.float32)


def _normal(op, x, epsilon=1e-5, axis=-1):
    square = op.Add(op.ReduceMean(op.Mul(x, x), [axis], keepdims=1), op.const(epsilon))
    return op.Mul(op.const(SCALE), op.Div(x, op.Sqrt(square)))


def _array(*dims: int) -> np.ndarray:
    array = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    array.reshape(-1, dims[-1])[0] *= 1000  # the square is infinite in float16
    array.reshape(-1, dims[-1])[-1] = 0
    return array


def _changed(emit: Any, newest: int, array: np.ndarray, *dims: int | None) -> list[str]:
    """Return the operators after the pass; the results must be unchanged."""
    before = run(graph(emit, floats("x", *(dims or array.shape))), array)
    model = graph(emit, floats("x", *(dims or array.shape)))
    step = NormalizedMatrices()
    step.newest = newest
    for one in (step, RemoveUnusedNodesPass(), Stamp(max(newest, 21))):
        one(model)
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5, strict=True)
    return operators(model)


@pytest.mark.parametrize(
    ("dims", "found"),
    [
        ((3, 4), ["RMSNormalization"]),
        ((1, 3, 4), ["RMSNormalization"]),
        ((1, 1, 3, 4), ["RMSNormalization"]),
        ((2, 3, 4), ["RMSNormalization", "Reshape", "Reshape"]),
        ((2, 1, 4), ["RMSNormalization", "Reshape", "Reshape"]),
        ((1, 2, 3, 4), ["RMSNormalization", "Reshape", "Reshape"]),
    ],
)
def test_matrices(dims: tuple[int, ...], found: list[str]) -> None:
    assert _changed(_normal, 23, _array(*dims)) == found


@pytest.mark.parametrize(("newest", "found"), [(22, True), (17, True), (16, False)])
def test_rows_and_their_negations(newest: int, found: bool) -> None:
    operators = _changed(_normal, newest, _array(2, 3, 4))
    assert ("LayerNormalization" in operators) == found
    assert ("Sqrt" in operators) != found


@pytest.mark.parametrize(
    ("emit", "dims"),
    [
        (_normal, (None, 3, 4)),
        (lambda op, x: _normal(op, x, axis=1), (2, 3, 4)),
        (lambda op, x: _normal(op, x, epsilon=np.float32([1, 2, 3, 4])), (2, 3, 4)),
    ],
)
def test_other_normalizations(emit: Any, dims: tuple[int | None, ...]) -> None:
    assert "Sqrt" in _changed(emit, 23, _array(2, 3, 4), *dims)


@pytest.mark.parametrize(
    ("opset", "version", "operator"),
    [(None, 23, "RMSNormalization"), (21, 21, "LayerNormalization"), (17, 17, "LayerNormalization"), (16, 16, "Sqrt")],
)
def test_the_opset_of_the_file(opset: int | None, version: int, operator: str) -> None:
    model = graph(_normal, floats("x", 2, 3, 4))
    finished = finish_for(model, find_target("qnn"), opset=opset)
    assert finished.opset == model.opset_imports[""] == version
    assert operator in operators(model)


def test_files_without_normalizations_keep_the_oldest_opset() -> None:
    model = graph(lambda op, x: op.Relu(x), floats("x", 2, 3, 4))
    assert finish_for(model, find_target("qnn")).opset == 13


def test_attention_and_rotations_stay_separate() -> None:
    """QNN has neither Attention nor RotaryEmbedding, which opset 23 has, too."""
    angles = np.linspace(0, 3, 12, dtype=np.float32).reshape(3, 4)

    def emit(op, x):
        x = op.Reshape(_normal(op, x), [1, 2, 3, 4])
        turned = op.Concat(op.Neg(op.Slice(x, [2], [4], [-1])), op.Slice(x, [0], [2], [-1]), axis=-1)
        q = op.Add(op.Mul(x, np.cos(angles)), op.Mul(turned, np.sin(angles)))
        return op.MatMul(op.Softmax(op.MatMul(q, op.Transpose(x, perm=[0, 1, 3, 2])), axis=-1), x)

    model = graph(emit, floats("x", 1, 6, 4))
    assert finish_for(model, find_target("qnn")).opset == 23
    assert not {"Attention", "RotaryEmbedding"} & set(operators(model))
