"""Masks without booleans, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.masks import LookedUpMasks
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph, rewritten, run

D = ir.DataType
ZERO, LOWEST = np.float32(0), np.float32(np.finfo(np.float32).min)
CAUSAL = np.tri(3, dtype=bool)
MASK = np.array([[1, 0, 3]], np.int64)


def _mask(dtype: ir.DataType = D.INT64):
    return new_value(dtype, (1, 3), "x")


def _scores(op, condition, one: Any = ZERO, zero: Any = LOWEST):
    return op.Where(condition, one, zero)


def _both(op, x, causal: Any = CAUSAL):
    return op.And(causal, op.Reshape(op.Cast(x, to=D.BOOL), [1, 1, 3]))


def _repeated(op, condition, count: int):
    """Return the same booleans, computed by nodes that each use a result twice."""
    for _ in range(count):
        condition = op.And(condition, condition)
    return condition


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: _scores(op, _both(op, x)),
        lambda op, x: _scores(op, op.Cast(x, to=D.BOOL)),
        lambda op, x: _scores(op, op.Not(op.Or(CAUSAL, op.Unsqueeze(op.Cast(x, to=D.BOOL), [2])))),
        lambda op, x: _scores(op, op.And(op.Cast(x, to=D.BOOL), op.Transpose(op.Cast(x, to=D.BOOL), perm=[1, 0])), 1.0, 2.0),
        lambda op, x: _scores(op, op.Gather(op.Cast(x, to=D.BOOL), np.array([2, 0, 0]), axis=1)),
        lambda op, x: op.Where(_both(op, x), np.zeros((1, 1), np.float32), np.full((1, 1), -10000, np.float32)),
        lambda op, x: _scores(op, _repeated(op, op.Cast(x, to=D.BOOL), 60)),
    ],
)
def test_masks(emit: Any) -> None:
    model = graph(emit, _mask())
    (expected,) = run(model, MASK)
    masks = LookedUpMasks()
    masks(model)
    assert masks.assumptions == {"x": "no element of the mask is negative, or more than 255"}
    np.testing.assert_array_equal(run(model, MASK)[0], expected, strict=True)
    assert not {"Where", "And", "Or", "Not", "Cast"} & set(rewritten(emit, _mask(), by=[LookedUpMasks()], numbers=[MASK]))


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: _scores(op, _both(op, x), zero=np.float32(-np.inf)),
        lambda op, x: _scores(op, _both(op, x), one=np.float32(1)),  # 1 + the lowest number is the lowest number
        lambda op, x: _scores(op, _both(op, x), one=np.array([1, 2, 3], np.float32)),
        lambda op, x: op.Where(_both(op, x), op.const(1), op.const(0)),
        lambda op, x: _scores(op, op.Greater(x, op.const(0))),
        lambda op, x: _scores(op, op.Cast(op.Cast(x, to=D.FLOAT), to=D.BOOL)),
        lambda op, x: _scores(op, op.Xor(CAUSAL, op.Cast(x, to=D.BOOL))),
        lambda op, x: op.Where(_both(op, x), op.Cast(x, to=D.FLOAT), LOWEST),
    ],
)
def test_other_conditions(emit: Any) -> None:
    assert "Where" in rewritten(emit, _mask(), by=[LookedUpMasks()], numbers=[MASK])
