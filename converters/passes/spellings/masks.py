"""Masks of attention without booleans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array

_MOVES = frozenset(("Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
_LOGIC = {"And": "Mul", "Or": "Max"}
_ROWS = 256
"""The rows of the table. pnnx runs the model with arbitrary numbers, and ncnn takes the last row for larger ones."""
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


class LookedUpMasks(Workaround):
    """Compute masks by products of 0 and 1. Numbers of a mask become floats by a table, instead of a Cast.

    ncnn (2026) has neither booleans, nor Cast of integers, nor Where.
    """

    operators = frozenset(("Where",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition, chosen, other = node.inputs
        a, b = constant_array(chosen), constant_array(other)
        if a is None or b is None or a.size != 1 or b.size != 1 or a.dtype != np.float32:
            return None
        masks: list[ir.Value] = []
        if not _is_mask(condition, masks) or not masks or not isinstance(node.outputs[0], Value):
            return None
        one, zero = a.reshape(1), b.reshape(1)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = one - zero
            exact = np.isfinite(difference).all() and np.array_equal(difference + zero, one)
        if not exact or max(a.ndim, b.ndim) > len(node.outputs[0].dims or ()):
            return None
        self.assumptions |= {mask.name or "": "no element of the mask is negative, or more than 255" for mask in masks}
        return [op.Add(op.Mul(_numbers(op, condition), op.const(difference)), op.const(zero))]


def _is_mask(value: ir.Value | None, masks: list[ir.Value]) -> bool:
    """Return whether booleans are computed from constants and integers, which are appended to ``masks``."""
    if not isinstance(value, Value) or value.rank is None:
        return False
    if constant_array(value) is not None:
        return value.dtype == ir.DataType.BOOL
    node = value.producer()
    if node is None or node.domain:
        return False
    if node.op_type == "Cast":
        integers = node.inputs[0]
        if not isinstance(integers, Value) or integers.dtype not in _INTEGERS or constant_array(integers) is not None:
            return False
        masks.append(integers)
        return True
    if node.op_type == "Not" or (
        node.op_type in _MOVES and all(constant_array(given) is not None for given in node.inputs[1:])
    ):
        return _is_mask(node.inputs[0], masks)
    return node.op_type in _LOGIC and all(_is_mask(operand, masks) for operand in node.inputs)


def _numbers(op: Builder, value: ir.Value | None) -> Value:
    """Return 1 for true and 0 for false as floats; see `_is_mask`."""
    assert value is not None
    result: Value
    if (array := constant_array(value)) is not None:
        return op.const(array.astype(np.float32))
    node = value.producer()
    assert node is not None
    if node.op_type == "Cast":
        result = op.Gather(op.const(np.minimum(np.arange(_ROWS), 1).astype(np.float32)), node.inputs[0], axis=0)
    elif node.op_type in _LOGIC:
        result = op.node(_LOGIC[node.op_type], *(_numbers(op, operand) for operand in node.inputs))
    elif node.op_type == "Not":
        result = op.Sub(op.const(np.ones(1, np.float32)), _numbers(op, node.inputs[0]))
    else:
        result = op.node(node.op_type, _numbers(op, node.inputs[0]), *node.inputs[1:], **attributes_of(node))
    return result
