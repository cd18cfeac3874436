"""Inverses whose 1 has more dimensions than the divisor, which ONNX Runtime would lose."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.finish import finish, finish_for
from converters.passes.onnxruntime import InversesOfMoreDimensions
from converters.targets import TARGETS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run


def _ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Mul(op.Div(_ones(1, 1), x), _ones(4)), (3, 1), ["Div", "Mul"]),
        (lambda op, x: op.Mul(op.Div(_ones(1, 1, 1), x), _ones(4)), (3, 1), ["Div", "Mul", "Unsqueeze"]),
        (lambda op, x: op.Mul(_ones(4), op.Div(_ones(1, 1, 1, 1), x)), (None, 1), ["Div", "Mul", "Unsqueeze"]),
        (lambda op, x: op.Mul(op.Div(2 * _ones(1, 1, 1), x), _ones(4)), (3, 1), ["Div", "Mul"]),
        (lambda op, x: op.Mul(op.Div(_ones(1, 1, 4), x), _ones(4)), (3, 1), ["Div", "Mul"]),
        (lambda op, x: op.Mul(op.Div(x, _ones(1, 1, 1)), _ones(4)), (3, 1), ["Div", "Mul"]),
    ],
)
def test_conditions(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[InversesOfMoreDimensions()], optimized=True) == found


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
