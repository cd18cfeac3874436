"""The last states of recurrent layers as outputs, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, run


@pytest.mark.parametrize(("operator", "gates", "states"), [("GRU", 3, 1), ("LSTM", 4, 2), ("RNN", 1, 1)])
@pytest.mark.parametrize("used", [0, 1])
def test_last_states(operator: str, gates: int, states: int, used: int) -> None:
    """Each recurrent node names all outputs. Those that are named already keep their names."""

    def emit(op, x):
        weights = [np.full((1, gates * 2, n), 0.1, np.float32) for n in (3, 2)]
        outputs = [(ir.DataType.FLOAT, [4, 1, 1, 2]), *[(ir.DataType.FLOAT, [1, 1, 2])] * states]
        return op.node(operator, x, *weights, hidden_size=2, types=outputs)[used]

    numbers = np.arange(12, dtype=np.float32).reshape(4, 1, 3) - 6
    model = graph(emit, floats("x", 4, 1, 3))
    RemoveUnusedNodesPass()(model)
    before = [value.name for value in model.graph[0].outputs if value.name]
    expected = run(model, numbers)
    assert len(before) == 1 and SPELLINGS["last states"]()(model).modified
    after = [value.name for value in model.graph[0].outputs]
    assert len(after) == len(set(after)) == states + 1 and all(after) and before[0] == after[used]
    np.testing.assert_array_equal(run(model, numbers)[0], expected[0], strict=True)
    assert not SPELLINGS["last states"]()(model).modified
