"""Angles that are products of integers, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.qnn_angles import WrappedAngles
from converters.targets.assumptions import HALF_ANGLES
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph, rewritten

FLOAT, INT32, INT64 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64
FREQUENCIES = (1 / 10000 ** (np.arange(6) / 6)).astype(np.float32)
TIMES = np.array([0, 1, 7, 255, 256, 432, 999, 5000, -3, -70000])


def _sines(op: Any, angle: Any) -> list[Any]:
    return [op.Sin(angle), op.Cos(angle)]


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: _sines(op, op.Mul(op.Unsqueeze(op.Cast(x, to=FLOAT), [1]), FREQUENCIES)),
        lambda op, x: _sines(op, op.Mul(FREQUENCIES, op.Cast(op.Unsqueeze(x, [1]), to=FLOAT))),
        lambda op, x: _sines(op, op.MatMul(FREQUENCIES[None, :, None], op.Reshape(op.Cast(x, to=FLOAT), [1, 1, 10]))),
        lambda op, x: _sines(op, op.MatMul(op.Reshape(op.Cast(x, to=FLOAT), [10, 1]), FREQUENCIES[None])),
        lambda op, x: op.Sin(op.Transpose(op.Mul(op.Unsqueeze(op.Cast(x, to=FLOAT), [1]), FREQUENCIES), perm=[1, 0])),
        lambda op, x: op.Cos(op.Mul(op.Cast(x, to=FLOAT), np.float32(0.5))),
    ],
)
@pytest.mark.parametrize("dtype", [INT32, INT64])
def test_angles(emit: Any, dtype: ir.DataType) -> None:
    times = TIMES.astype(dtype.numpy())
    found = rewritten(emit, new_value(dtype, (10,), "x"), by=[WrappedAngles()], numbers=[times], atol=1e-2)
    assert found.count("Mod") == 5 and "MatMul" not in found


def test_small_angles_stay_exact() -> None:
    found = rewritten(
        lambda op, x: op.Sin(op.Mul(op.Cast(x, to=FLOAT), np.float32(1e-4))),
        new_value(INT64, (5,), "x"),
        by=[WrappedAngles()],
        numbers=[np.arange(5)],
        atol=2e-6,
    )
    assert "Mod" in found


def test_repeated_angles() -> None:
    def emit(op, x):
        angles = op.Mul(op.Unsqueeze(op.Cast(x, to=FLOAT), [1]), FREQUENCIES)
        return op.Cos(op.Concat(angles, angles, axis=-1))

    assert "Mod" in rewritten(emit, new_value(INT64, (10,), "x"), by=[WrappedAngles()], numbers=[TIMES], atol=1e-2)


@pytest.mark.parametrize(
    ("emit", "dtype"),
    [
        (lambda op, x: op.Sin(op.Mul(x, FREQUENCIES)), FLOAT),
        (lambda op, x: op.Sin(op.Mul(op.Cast(x, to=FLOAT), FREQUENCIES)), ir.DataType.BOOL),
        (lambda op, x: op.Exp(op.Mul(op.Cast(x, to=FLOAT), FREQUENCIES)), INT64),
        (lambda op, x: op.Mul(op.Cast(x, to=FLOAT), FREQUENCIES), INT64),
        (lambda op, x: op.Sin(op.Mul(op.Exp(op.Cast(x, to=FLOAT)), FREQUENCIES)), INT64),
        (lambda op, x: op.Sin(op.MatMul(op.Cast(x, to=FLOAT), np.ones((6, 2), np.float32))), INT64),
    ],
)
def test_other_products(emit: Any, dtype: ir.DataType) -> None:
    numbers = [np.array([0, 1, 1, 2, 3, 4]).astype(dtype.numpy())]
    assert "Mod" not in rewritten(emit, new_value(dtype, (6,), "x"), by=[WrappedAngles()], numbers=numbers)


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, angle: [op.Sin(angle), op.Neg(angle)],
        lambda op, angle: [op.Sin(angle), angle],
        lambda op, angle: op.Sin(op.Concat(angle, op.Exp(angle), axis=0)),
    ],
)
def test_products_with_other_uses(emit: Any) -> None:
    def product(op, x):
        return emit(op, op.Mul(op.Cast(x, to=FLOAT), FREQUENCIES))

    assert "Mod" not in rewritten(product, new_value(INT64, (6,), "x"), by=[WrappedAngles()], numbers=[np.arange(6)])


@pytest.mark.parametrize("wrapped", [True, False])
def test_assumption(wrapped: bool) -> None:
    model = graph(lambda op, x: op.Sin(op.Mul(op.Cast(x, to=FLOAT), FREQUENCIES)), new_value(INT64, (6,), "x"))
    if wrapped:
        WrappedAngles()(model)
    (sine,) = [node for node in model.graph if node.op_type == "Sin"]
    assert HALF_ANGLES.applies(sine) != wrapped
