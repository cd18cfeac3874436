"""What is recognised as decompressed weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.compressed_weights.finding import find_weights
from tests.converters.passes.graphs import floats, graph

D = ir.DataType


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ([D.FLOAT16, D.FLOAT], True),
        ([D.BFLOAT16, D.FLOAT], True),
        ([D.UINT8, D.FLOAT16, D.FLOAT], True),
        ([D.INT8, D.BFLOAT16, D.FLOAT], True),
        ([D.FLOAT16, D.BFLOAT16, D.FLOAT], False),
        ([D.BFLOAT16, D.FLOAT16, D.FLOAT], False),
        ([D.FLOAT16, D.FLOAT, D.BFLOAT16, D.FLOAT], False),
    ],
    ids=lambda types: "-".join(str(type_) for type_ in types) if isinstance(types, list) else None,
)
def test_casts_that_round(types: list[ir.DataType], found: bool) -> None:
    """Of float16 and bfloat16, each rounds the other's numbers."""
    stored, *casts = types
    weights = ir.tensor(np.ones((64, 512), stored.numpy()))

    def emit(op, x):
        value = op.const(weights)
        for type_ in casts:
            value = op.node("Cast", value, to=type_)
        return op.MatMul(x, value)

    product = next(node for node in graph(emit, floats("x", 1, 64)).graph if node.op_type == "MatMul")
    assert product.inputs[1] is not None
    assert (find_weights(product.inputs[1]) is not None) is found
