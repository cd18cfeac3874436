"""Constants of arithmetic without leading dimensions of 1, and near misses."""

from __future__ import annotations

import numpy as np

from tests.converters.passes.spellings.spelled import spelled


def test_constants_of_leading_ones() -> None:
    def emit(op, x):
        two = op.Reshape(x, [1, 2, 3])
        return op.Add(two, op.const(np.ones((1, 1, 3), np.float32))), op.Mul(x, op.const(np.ones((1, 1, 3), np.float32)))

    first, second = (node for node in spelled("no leading 1s", emit).graph if node.op_type in ("Add", "Mul"))
    assert first.inputs[1] is not None and len(first.inputs[1].shape or ()) == 1
    assert second.inputs[1] is not None and len(second.inputs[1].shape or ()) == 3  # it gives the result its dimensions
