"""Unique in ONNX Runtime: empty slices crash it (1.31), it has no kernel for uint64, and NaN gives wrong results (1.32).

ONNX Runtime compares elements by "less than", which is false for NaN, so NaN can be equal to any number. For NaN, 1, NaN, 1
and 0, it returns one NaN with a count of 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.onnxruntime.unsigned import signed, unsigned
from converters.passes.workaround import KernelWorkaround
from onnx_specops.assertions import required
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class UniqueOfEmptySlices(KernelWorkaround):
    """Convert Unique along an axis whose slices may have no elements: an If selects the first slice. Compute uint64 in
    int64. Reject NaN at run time.
    """

    operators = frozenset(("Unique",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        axis, wide = attributes.get("axis"), x.dtype == ir.DataType.UINT64
        guarded = axis is not None and not _has_elements(x, axis)
        has_nan = x.dtype is not None and x.dtype.is_floating_point()
        if not wide and not guarded and not has_nan:
            return None
        keys, count = signed(op, x) if wide else _of_numbers(op, x) if has_nan else x, len(node.outputs)

        def plain(op: Builder) -> Sequence[Value]:
            return op.node("Unique", keys, outputs=count, **attributes)

        if axis is not None and guarded:
            values, *others = op.if_(op.Equal(op.Size(x), 0), lambda op: _of_nothing(op, keys, int(axis))[:count], plain)
        else:
            values, *others = plain(op)
        return [unsigned(op, values) if wide else values, *others]


def _of_numbers(op: Builder, x: Value) -> Value:
    """Return ``x``; its computation fails if it has a NaN."""
    checked: Value = op.Reshape(x, required(op, "nan_in_Unique", op.IsNaN(x), op.Shape(x)), allowzero=1)
    checked.shape = x.shape
    return checked


def _has_elements(x: Value, axis: int) -> bool:
    """Return whether slices along an axis are known to have elements."""
    if axis == -1:
        return True
    return x.dims is not None and all(x.dims[axis % len(x.dims) + 1 :])


def _of_nothing(op: Builder, keys: Value, axis: int) -> list[Value]:
    """Return the outputs of Unique for slices without elements, which are all equal: the first slice, if there is one."""
    count = op.Shape(keys, start=axis, end=axis + 1)
    first = op.Slice(op.const([0]), [0], count)
    return [op.Slice(keys, [0], [1], [axis]), first, op.Expand(op.const(0), count), op.Slice(count, [0], count)]
