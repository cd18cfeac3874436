"""Tables of rotary embeddings of graphs without position_ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.attention import rotation
from converters.passes.attention.probe_shapes import Inputs
from converters.passes.attention.probing import Dependence
from converters.passes.attention.rotation import Rotations, Table
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph

HEADS, SIZE, POSITIONS = 2, 4, 600
SHORT, LONG = np.array([1.0, 0.01], np.float32), np.array([1.0, 0.002], np.float32)

Frequencies = Callable[[Any, Value], Value]


def _table(frequencies: Frequencies) -> Table | None:
    """Return the table of queries whose positions are counted in the mask. The frequencies may depend on its length."""
    found: dict[str, Value] = {}

    def emit(op: Any, x: Value, past: Value, mask: Value) -> Value:
        found["q"] = op.Transpose(op.Reshape(x, [0, 0, HEADS, SIZE]), perm=[0, 2, 1, 3])
        counted = op.Sub(op.CumSum(mask, 1), np.array(1, np.int64))
        tokens = op.Shape(x, start=1, end=2)
        positions = op.Cast(op.Slice(counted, op.Neg(tokens), [np.iinfo(np.int64).max], [1]), to=ir.DataType.FLOAT)
        angles = op.Mul(op.Unsqueeze(positions, [1, 3]), frequencies(op, op.Shape(mask, start=1, end=2)))
        angles = op.Concat(angles, angles, axis=-1)
        first, second = (op.Slice(found["q"], [begin], [begin + 2], [3]) for begin in (0, 2))
        turned = op.Concat(op.Neg(second), first, axis=-1)
        found["rotated"] = op.Add(op.Mul(found["q"], op.Cos(angles)), op.Mul(turned, op.Sin(angles)))
        return op.MatMul(found["rotated"], op.Transpose(op.Concat(past, found["rotated"], axis=2), perm=[0, 1, 3, 2]))

    past = floats("past", None, HEADS, None, SIZE)
    x = floats("x", None, None, HEADS * SIZE)
    model = graph(emit, x, past, new_value(ir.DataType.INT64, [None, None], "attention_mask"))
    inputs = Inputs(model.graph, {past: 2})
    rotations = Rotations(inputs, Dependence(model.graph, inputs.sources), POSITIONS)
    return rotations.source(found["rotated"], HEADS, SIZE, rotated=True, padding=True).table


def _constant(op: Any, total: Value) -> Value:
    return op.const(SHORT)


def _by_length(switch: int) -> Frequencies:
    def frequencies(op: Any, total: Value) -> Value:
        return op.Where(op.Greater(total, np.array([switch], np.int64)), op.const(LONG), op.const(SHORT))

    return frequencies


@pytest.mark.parametrize("at_once", [50, POSITIONS])
def test_constant_frequencies(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(rotation, "_PARTS", at_once * HEADS * SIZE)
    table = _table(_constant)
    assert table is not None
    expected = np.arange(POSITIONS)[:, None] * SHORT
    np.testing.assert_allclose(table.cosine, np.cos(expected), atol=1e-4)
    np.testing.assert_allclose(table.sine, np.sin(expected), atol=1e-4)


@pytest.mark.parametrize("at_once", [50, 300, POSITIONS])
@pytest.mark.parametrize("switch", [20, 300, 590])
def test_frequencies_that_depend_on_the_length(monkeypatch: pytest.MonkeyPatch, switch: int, at_once: int) -> None:
    """The positions of a table are computed in parts, whose lengths differ."""
    monkeypatch.setattr(rotation, "_PARTS", at_once * HEADS * SIZE)
    assert _table(_by_length(switch)) is None
