"""Run-time assertions that every kernel of a device checks, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from onnx_specops.assertions import required
from onnx_specops.bodies import attach_bodies
from tests.converters.passes.graphs import floats, graph, operators, run


def test_assertions_by_shapes() -> None:
    """The violations become the number of elements of a Reshape, in the graph and in bodies."""

    def emit(op, x):
        count = op.Cast(op.Squeeze(x, [0]), to=ir.DataType.INT64)
        checked = required(op, "more_than_three", op.Greater(count, 3), count)
        gathered = op.Gather(op.const(np.int64([0, 1])), op.Clip(count, op.const(0), op.const(1)), axis=0)  # no assertion
        return checked, gathered

    model = graph(emit, floats("x", 1))
    SPELLINGS["assertions by Reshape"]()(model)
    assert operators(model).count("Gather") == 1 and operators(model).count("Reshape") == 1
    assert [array.item() for array in run(model, np.float32([3]))] == [3, 1]
    with pytest.raises(Exception, match="more_than_three/Gather/Reshape"):
        run(model, np.float32([4]))


def test_assertions_in_bodies() -> None:
    def emit(op, x):
        indices = op.Cast(x, to=ir.DataType.INT64)
        table = op.const(np.arange(12, dtype=np.float32).reshape(4, 3))
        return (op.specops.EmbeddingBagOffsetsSum(table, indices, op.const(np.int64([0, 2]))),)

    model = graph(emit, floats("x", 3))
    attach_bodies(model)
    before = run(model, np.float32([0, 2, 1]))
    (body,) = model.functions.values()
    count = sum(node.op_type == "Gather" for node in body)
    SPELLINGS["assertions by Reshape"]()(model)
    assert sum(node.op_type == "Gather" for node in body) < count
    np.testing.assert_array_equal(run(model, np.float32([0, 2, 1])), before, strict=True)
    with pytest.raises(Exception, match="indices_are_negative"):
        run(model, np.float32([0, -1, 1]))
