"""Recognition of dequantization in any form: ``(Cast(stored) - zero) * scale``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

D = ir.DataType

FLOATS = (D.FLOAT, D.FLOAT16, D.BFLOAT16)
CAST_TO = (*FLOATS, D.DOUBLE)
"""The types to which weights, zero points and scales are cast. All of them represent 8-bit values exactly."""


@dataclass(frozen=True)
class Dequantization:
    """The arithmetic from the stored to the computed value.

    Attributes:
        stored: the first value.
        zero, scale: broadcast to the others; ``None`` if there are none.
        casts: the results of Cast, last first.
        before: the casts before any arithmetic.
    """

    stored: ir.Value
    zero: ir.Value | None
    scale: ir.Value | None
    casts: Sequence[ir.Value]
    before: Sequence[ir.Value]


def dequantization(value: ir.Value, is_stored: Callable[[ir.Value], bool]) -> Dequantization | None:
    """Return the arithmetic that computes a value of static shape; ``None`` if it has another form.

    All values have the same shape, except the input of a Reshape. This is a syntactic match. Callers compare the numbers.

    Args:
        value: the value.
        is_stored: whether a value is the stored one.
    """
    shape, current = static(value), value
    if shape is None:
        return None
    zero: ir.Value | None = None
    scale: ir.Value | None = None
    casts, before = list[ir.Value](), list[ir.Value]()
    while not is_stored(current):
        node = standard(current)
        if node is None:
            return None
        if node.op_type in ("Mul", "Sub") and zero is None:
            a, b = node.inputs
            if a is None or b is None or (node.op_type == "Mul" and scale is not None):
                return None
            if node.op_type == "Mul":
                current, scale = (a, b) if static(a) == shape and not _is_constant(a) else (b, a)
            else:
                current, zero = a, b
            before = []
        elif node.op_type == "Cast" and current.dtype in CAST_TO:
            casts.append(current)
            before.append(current)
            current = source(node)
        elif node.op_type == "Reshape":
            current = source(node)
            continue
        else:
            return None
        if static(current) != shape:
            return None
    return Dequantization(current, zero, scale, casts, before)


def _is_constant(value: ir.Value) -> bool:
    return value.const_value is not None and value.producer() is None and not value.is_graph_input()


def static(value: ir.Value) -> tuple[int, ...] | None:
    """Return the dimensions if all are known."""
    if value.shape is None:
        return None
    dims = tuple(dim for dim in value.shape if isinstance(dim, int))
    return dims if len(dims) == len(value.shape) else None


def standard(value: ir.Value) -> ir.Node | None:
    """Return the node that computes a value if its operator is standard."""
    node = value.producer()
    return None if node is None or node.domain else node


def source(node: ir.Node) -> ir.Value:
    """Return the first input of a node."""
    assert node.inputs[0] is not None
    return node.inputs[0]
