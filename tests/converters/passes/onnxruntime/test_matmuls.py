"""MatMul with vectors, empty matrices and transposed ones, with near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.onnxruntime.matmuls import MatMulOfVectorsAndEmptyMatrices
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import Emit, floats, graph, operators, run

D = ir.DataType

_SWAP = [1, 0]
_PLAIN = ["MatMul"]
_OTHER = ["MatMul", "Squeeze", "Unsqueeze"]


def unranked(name: str) -> Value:
    return new_value(D.FLOAT, None, name)


@pytest.mark.parametrize(
    ("emit", "inputs", "found"),
    [
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 2, 3), floats("b", 3)), _OTHER),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 3), floats("b", 3)), _PLAIN),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 3), floats("b", 3, 2)), _PLAIN),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 2, 0), floats("b", 0, 4)), ["MatMul", "Pad", "Pad"]),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 0, 2), floats("b", 2, 4)), _PLAIN),
        (
            lambda op, a, b: op.MatMul(a, b),
            (floats("a", 0, 2, 3), floats("b", 1, 3, 4)),
            ["Expand", "Expand", "MatMul", "Squeeze"],
        ),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 2, 2, 3), floats("b", 1, 3, 4)), _PLAIN),
        # The number of matrices is unknown: it may be zero where the other operand has one.
        (
            lambda op, a, b: op.MatMul(op.Transpose(a, perm=[0, 2, 1]), b),
            (floats("a", None, 3, 2), floats("b", 3, 4)),
            ["MatMul", "Squeeze", "Transpose", "Unsqueeze"],
        ),
        (
            lambda op, a, b: op.MatMul(op.Transpose(a, perm=[0, 2, 1]), b),
            (floats("a", 5, 3, 2), floats("b", 3, 4)),
            ["MatMul", "Transpose"],
        ),
        (
            lambda op, a, b: op.MatMul(op.Transpose(a, perm=[1, 0, 2]), b),  # other dimensions
            (floats("a", 2, None, 3), floats("b", 3, 4)),
            ["MatMul", "Transpose"],
        ),
        (
            lambda op, a, b: op.MatMul(op.Transpose(a, perm=_SWAP), b),
            (floats("a", 3, 2), unranked("b")),
            ["MatMul", "Squeeze", "Transpose", "Unsqueeze"],
        ),
        (lambda op, a, b: op.MatMul(a, b), (floats("a", 2, 3), unranked("b")), _PLAIN),
    ],
)
def test_conditions(emit: Emit, inputs: tuple[Value, Value], found: list[str]) -> None:
    model = graph(emit, *inputs)
    MatMulOfVectorsAndEmptyMatrices()(model)
    RemoveUnusedNodesPass()(model)
    assert [name for name in operators(model) if name not in ("Shape", "Concat", "Constant")] == sorted(found)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3), (3,)), ((2, 0), (0, 4)), ((0,), (0, 4)), ((3, 2, 0), (0, 4)), ((0, 2, 3), (1, 3, 4)), ((3,), (0, 3, 4))],
)
def test_results(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    model = graph(lambda op, x, y: op.MatMul(x, y), new_value(D.FLOAT, a, "a"), new_value(D.FLOAT, b, "b"))
    assert MatMulOfVectorsAndEmptyMatrices()(model).modified
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in (a, b))
    np.testing.assert_allclose(run(model, x, y)[0], np.matmul(x, y), rtol=1e-5, strict=True)
