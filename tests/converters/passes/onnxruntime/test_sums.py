"""A sum before a LayerNormalization, which ONNX Runtime would fuse into one slow node."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import SumBeforeNormalization
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

SCALE = np.linspace(1, 2, 6, dtype=np.float32)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, a, b: op.LayerNormalization(op.Add(a, b), SCALE), True),
        (lambda op, a, b: op.LayerNormalization(op.Add(a, b), SCALE, SCALE), True),
        (lambda op, a, b: op.LayerNormalization(op.Add(a, b), SCALE, epsilon=0.5), True),
        (lambda op, a, b: op.LayerNormalization(op.Transpose(op.Add(a, b), perm=[1, 0, 2]), SCALE), True),
        (
            lambda op, a, b: op.LayerNormalization(op.Transpose(op.Add(a, SCALE.reshape(1, 6)), perm=[1, 0, 2]), SCALE),
            False,
        ),
        (
            lambda op, a, b: [op.LayerNormalization(op.Transpose(y := op.Add(a, b), perm=[1, 0, 2]), SCALE), op.Relu(y)],
            False,
        ),
        (lambda op, a, b: op.LayerNormalization(op.Add(a, SCALE), SCALE), False),  # the bias of a product
        (lambda op, a, b: op.LayerNormalization(op.Add(SCALE.reshape(1, 1, 6), a), SCALE), False),
        (lambda op, a, b: op.LayerNormalization(op.Mul(a, b), SCALE), False),
        (lambda op, a, b: [op.LayerNormalization(total := op.Add(a, b), SCALE), op.Relu(total)], False),
    ],
)
def test_conditions(emit, found: bool) -> None:
    got = rewritten(emit, floats("a", 2, 5, 6), floats("b", 2, 5, 6), by=[SumBeforeNormalization()], optimized=True)
    assert ("Sum" in got) is found


def test_float16_is_unchanged() -> None:
    """GPUs compute them with a fast kernel."""
    halves = [new_value(ir.DataType.FLOAT16, [2, 6], name) for name in "ab"]
    model = graph(lambda op, a, b: op.LayerNormalization(op.Add(a, b), SCALE.astype(np.float16)), *halves)
    assert not SumBeforeNormalization()(model).modified
