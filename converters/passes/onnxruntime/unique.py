"""Unique of empty slices, which crashes ONNX Runtime (1.31), and of uint64, for which it has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.onnxruntime.unsigned import signed, unsigned
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class UniqueOfEmptySlices(Workaround):
    """Convert Unique along an axis whose slices may have no elements: an If selects the first slice. Compute uint64 in
    int64.
    """

    operators = frozenset(("Unique",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        axis, wide = attributes.get("axis"), x.dtype == ir.DataType.UINT64
        guarded = axis is not None and not _has_elements(x, axis)
        if not wide and not guarded:
            return None
        keys, count = signed(op, x) if wide else x, len(node.outputs)

        def plain(op: Builder) -> Sequence[Value]:
            return op.node("Unique", keys, outputs=count, **attributes)

        if axis is not None and guarded:
            values, *others = op.if_(op.Equal(op.Size(x), 0), lambda op: _of_nothing(op, keys, int(axis))[:count], plain)
        else:
            values, *others = plain(op)
        return [unsigned(op, values) if wide else values, *others]


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
