"""Reshape to a constant shape, without `allowzero`, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from tests.converters.passes.spellings.spelled import X, spelled


@pytest.mark.parametrize(("dims", "target"), [((2, 3), [3, 2]), ((None, 3), [3, -1]), ((None, None), None)])
def test_targets_of_reshapes(dims: tuple[int | None, ...], target: list[int] | None) -> None:
    def emit(op, x):
        shape = op.node("Shape", x, types=[(ir.DataType.INT64, [2])])
        turned = op.node("Gather", shape, op.const([1, 0]), types=[(ir.DataType.INT64, [2])])
        return op.node("Reshape", x, turned, allowzero=1, types=[(ir.DataType.FLOAT, [dims[1], dims[0]])])

    model = spelled("static Reshape", emit, X, *dims)
    node = next(node for node in model.graph if node.op_type == "Reshape")
    constant = node.inputs[1].const_value if node.inputs[1] is not None else None
    assert (None if constant is None else constant.numpy().tolist()) == target
    assert ("allowzero" in node.attributes) == (target is None)


def test_a_dimension_of_zero_keeps_allowzero() -> None:
    def emit(op, x):
        return op.node("Reshape", x, op.const([0, 5]), allowzero=1, types=[(ir.DataType.FLOAT, [0, 5])])

    empty = np.zeros((3, 0), np.float32)
    (node,) = spelled("static Reshape", emit, empty, 3, 0).graph
    assert node.attributes.get_int("allowzero", 0) == 1
