"""What a graph says of a value, and the types that casts of weights may have."""

from __future__ import annotations

import onnx_ir as ir

D = ir.DataType

FLOATS = (D.FLOAT, D.FLOAT16, D.BFLOAT16)
CAST_TO = (*FLOATS, D.DOUBLE)
"""What casts of weights, zero points and scales give: all of these hold the values of 8 bits exactly."""


def static(value: ir.Value) -> tuple[int, ...] | None:
    """The dimensions where all are known."""
    if value.shape is None:
        return None
    dims = tuple(dim for dim in value.shape if isinstance(dim, int))
    return dims if len(dims) == len(value.shape) else None


def standard(value: ir.Value) -> ir.Node | None:
    node = value.producer()
    return None if node is None or node.domain else node


def source(node: ir.Node) -> ir.Value:
    assert node.inputs[0] is not None
    return node.inputs[0]
