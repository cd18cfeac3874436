"""Constants with more dimensions than the other operand, which ONNX Runtime's fusions would lose."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.finish import finish, finish_for
from converters.passes.onnxruntime import ConstantsOfMoreDimensions
from converters.targets import TARGETS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run


def _ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


def _normalized(op: Any, x: Any, exponent: np.ndarray, epsilon: np.ndarray) -> Any:
    centered = op.Sub(x, op.ReduceMean(x, [-1], keepdims=1))
    squares = op.ReduceMean(op.Pow(centered, exponent), [-1], keepdims=1)
    return op.Div(centered, op.Sqrt(op.Add(squares, epsilon)))


@pytest.mark.parametrize(
    ("emit", "dims", "count"),
    [
        (lambda op, x: op.Mul(op.Div(_ones(1, 1), x), _ones(4)), (3, 1), 0),
        (lambda op, x: op.Mul(op.Div(_ones(1, 1, 1), x), _ones(4)), (3, 1), 1),
        (lambda op, x: op.Mul(_ones(4), op.Div(_ones(1, 1, 1, 1), x)), (None, 1), 1),
        (lambda op, x: op.Mul(op.Div(2 * _ones(1, 1, 4), x), _ones(4)), (3, 1), 1),
        (lambda op, x: op.Mul(op.Div(x, x), _ones(1, 3, 4)), (3, 1), 1),
        (lambda op, x: op.Max(x, _ones(1, 1, 1)), (3, 1), 0),  # no fusion begins there
        (lambda op, x: op.Add(op.Mul(_normalized(op, x, 2 * _ones(), _ones()), _ones(8)), _ones(8)), (3, 8), 0),
        (lambda op, x: op.Add(op.Mul(_normalized(op, x, 2 * _ones(1, 1, 1), _ones()), _ones(8)), _ones(8)), (3, 8), 1),
        (lambda op, x: op.Add(op.Mul(_normalized(op, x, 2 * _ones(), _ones(1, 1, 1)), _ones(8)), _ones(8)), (3, 8), 1),
        (lambda op, x: op.Relu(op.Add(op.Mul(_normalized(op, x, 2 * _ones(), _ones()), _ones(8)), _ones(1, 8))), (8,), 1),
    ],
)
def test_conditions(emit: Any, dims: tuple[int | None, ...], count: int) -> None:
    found = rewritten(emit, floats("x", *dims), by=[ConstantsOfMoreDimensions()], optimized=True)
    assert found.count("Unsqueeze") == count


def test_integers_stay() -> None:
    """Shapes are computed in this way."""
    model = graph(lambda op, x: op.Add(op.Size(x), [1]), floats("x", None, 3))
    assert not ConstantsOfMoreDimensions()(model).modified


def _inverse_of_a_scalar(op: Any, x: Any) -> Any:
    return op.Neg(op.Mul(op.Div(_ones(1), x), x))


@pytest.mark.parametrize("opset", [11, 13, 21, 23, "standard", "webgpu"])
def test_models(opset: int | str) -> None:
    x = new_value(ir.DataType.FLOAT, [], "x")
    model = graph(_inverse_of_a_scalar, x)
    if isinstance(opset, int):
        finish(model, fold=True, opset=opset)
    else:
        finish_for(model, TARGETS[opset])
    assert "Unsqueeze" in operators(model)
    assert run(model, np.array(2, np.float32))[0].shape == (1,)
