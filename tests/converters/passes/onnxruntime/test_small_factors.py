"""Products with several small factors, of which one is a constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import SmallFactorsFirst
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

SCALES = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(1, 6, 1, 1)
X, GATE = (1, 6, 8, 8), (1, 6, 1, 1)


def _dims(model: ir.Model) -> list[Sequence[int]]:
    """Return the shapes of products and quotients."""
    return [list(node.outputs[0].shape or ()) for node in model.graph if node.op_type in ("Mul", "Div")]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES), GATE, True),
        (lambda op, x, y: op.Mul(SCALES, op.Mul(y, x)), GATE, True),
        (lambda op, x, y: op.Div(op.Mul(x, y), SCALES), GATE, True),
        (lambda op, x, y: op.Mul(op.Mul(x, y), np.float32(3)), GATE, True),
        (lambda op, x, y: op.Mul(op.Mul(x, y), np.float32(0)), GATE, True),
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES), (1, 1, 1, 1), True),
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES), (1, 1, 8, 1), False),  # a larger product of factors
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES), X, False),
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES), (4, 6, 1, 1), False),  # more results than numbers
        (lambda op, x, y: op.Div(SCALES, op.Mul(x, y)), GATE, False),
        (lambda op, x, y: op.Div(op.Mul(x, y), np.float32(0)), GATE, False),
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES * np.float32(1e-7)), GATE, False),  # might be subnormal
        (lambda op, x, y: op.Mul(op.Mul(x, y), SCALES * np.float32(1e7)), GATE, False),
        (lambda op, x, y: op.Mul(op.Mul(x, y), np.float32(np.nan)), GATE, False),
        (lambda op, x, y: op.Mul(op.Add(x, y), SCALES), GATE, False),
        (lambda op, x, y: [op.Mul(inner := op.Mul(x, y), SCALES), op.Neg(inner)], GATE, False),
        (lambda op, x, y: op.Mul(op.Mul(x, y), op.Neg(y)), GATE, False),  # not a constant
    ],
)
def test_conditions(emit, dims: Sequence[int], found: bool) -> None:
    model = graph(emit, floats("x", *X), floats("y", *dims))
    assert SmallFactorsFirst()(model).modified is found
    assert (sorted(_dims(model), key=np.prod)[0] != list(X)) is found or dims == (4, 6, 1, 1)
    rewritten(emit, floats("x", *X), floats("y", *dims), by=[SmallFactorsFirst()])  # the results agree


@pytest.mark.parametrize(("dims", "dtype"), [((None, 6, 8, 8), ir.DataType.FLOAT), (X, ir.DataType.FLOAT16)])
def test_unknown_sizes_and_other_types_stay(dims: Sequence[int | None], dtype: ir.DataType) -> None:
    def emit(op: Builder, x: Value, y: Value) -> Value:
        return op.Mul(op.Mul(x, y), SCALES.astype(dtype.numpy()))

    x, y = (new_value(dtype, sizes, name) for name, sizes in (("x", dims), ("y", GATE)))
    assert not SmallFactorsFirst()(graph(emit, x, y)).modified
