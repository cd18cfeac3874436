"""Masks of attention without booleans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, computed_before, constant_array

_MOVES = frozenset(("Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
_LOGIC = {"And": "Mul", "Or": "Max"}
_ROWS = 256
"""The number of rows of the table. pnnx runs the model with arbitrary numbers, and ncnn uses the last row for larger
numbers.
"""
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


class LookedUpMasks(Workaround):
    """Compute masks by multiplications of 0 and 1. The values of a mask become floats by a table lookup instead of a Cast.

    ncnn (2026) does not support booleans, Cast of integers, or Where.
    """

    operators = frozenset(("Where",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition, chosen, other = node.inputs
        a, b = constant_array(chosen), constant_array(other)
        if a is None or b is None or a.size != 1 or b.size != 1 or a.dtype != np.float32:
            return None
        booleans = None if condition is None else computed_before(condition, _operands)
        masks = [value for value in map(_integers, booleans or ()) if value is not None]
        if not booleans or not masks or not isinstance(node.outputs[0], Value):
            return None
        one, zero = a.reshape(1), b.reshape(1)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = one - zero
            exact = np.isfinite(difference).all() and np.array_equal(difference + zero, one)
        if not exact or max(a.ndim, b.ndim) > len(node.outputs[0].dims or ()):
            return None
        self.assumptions |= {mask.name or "": "no element of the mask is negative, or more than 255" for mask in masks}
        numbers: dict[ir.Value, Value] = {}
        for value in booleans:
            numbers[value] = _numbers(op, value, numbers)
        return [op.Add(op.Mul(numbers[booleans[-1]], op.const(difference)), op.const(zero))]


def _integers(value: ir.Value) -> Value | None:
    """Return the integers that a Cast converts to booleans."""
    node = value.producer()
    if node is None or node.domain or node.op_type != "Cast":
        return None
    integers = node.inputs[0]
    if not isinstance(integers, Value) or integers.dtype not in _INTEGERS or constant_array(integers) is not None:
        return None
    return integers


def _operands(value: ir.Value) -> Sequence[ir.Value] | None:
    """Return the booleans that booleans are computed from: none for constants and integers, ``None`` if they are neither."""
    if not isinstance(value, Value) or value.rank is None:
        return None
    if constant_array(value) is not None:
        return () if value.dtype == ir.DataType.BOOL else None
    node = value.producer()
    if node is None or node.domain:
        return None
    if node.op_type == "Cast":
        return None if _integers(value) is None else ()
    moves = node.op_type in _MOVES and all(constant_array(given) is not None for given in node.inputs[1:])
    if node.op_type not in _LOGIC and node.op_type != "Not" and not moves:
        return None
    operands = node.inputs if node.op_type in _LOGIC else node.inputs[:1]
    return [operand for operand in operands if operand is not None]


def _numbers(op: Builder, value: ir.Value, numbers: Mapping[ir.Value, Value]) -> Value:
    """Return 1 for true and 0 for false as floats; ``numbers`` has those of the booleans before."""
    result: Value
    if (array := constant_array(value)) is not None:
        return op.const(array.astype(np.float32))
    node = value.producer()
    assert node is not None
    if node.op_type == "Cast":
        return op.Gather(op.const(np.minimum(np.arange(_ROWS), 1).astype(np.float32)), node.inputs[0], axis=0)
    operands = [numbers[operand] for operand in _operands(value) or ()]
    if node.op_type in _LOGIC:
        result = op.node(_LOGIC[node.op_type], *operands)
    elif node.op_type == "Not":
        result = op.Sub(op.const(np.ones(1, np.float32)), *operands)
    else:
        result = op.node(node.op_type, *operands, *node.inputs[1:], **attributes_of(node))
    return result
