"""Rows of constant tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, constant_list, producer_of

_MATRIX = 2


class UncheckedRows(Workaround):
    """Look up indices beyond the end of a table in a row of zeros, instead of a comparison.

    ncnn (2026) does not support comparisons. It reads the last row for indices beyond the end, and the first row for
    negative indices.
    """

    operators = frozenset(("Where",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        valid, rows, zero = node.inputs
        gather, filler = producer_of(rows, "Gather"), constant_array(zero)
        table = None if gather is None else constant_array(gather.inputs[0])
        if gather is None or table is None or filler is None or filler.size != 1 or filler.any():
            return None
        axis: int = gather.attributes.get_int("axis", 0)
        if not table.ndim or axis:
            return None
        if table.ndim > 1:
            inserted, rank = producer_of(valid, "Unsqueeze"), 0 if rows is None or rows.shape is None else len(rows.shape)
            axes = None if inserted is None else constant_list(inserted.inputs[1])
            if inserted is None or axes is None or not rank:
                return None
            if sorted(axis % rank for axis in axes) != list(range(rank - table.ndim + 1, rank)):
                return None
            valid = inserted.inputs[0]
        safe = producer_of(gather.inputs[1], "Where")
        if safe is None or safe.inputs[0] is not valid:
            return None
        indices = safe.inputs[1]
        if indices is None or not _is_check(valid, indices, len(table)):
            return None
        self.assumptions[node.outputs[0].name or ""] = "no index is negative"
        return [op.Gather(op.const(np.concatenate([table, np.zeros_like(table[:1])])), indices, axis=0)]


class RowsOfMatrices(Workaround):
    """Convert a Gather of computed indices from a constant table to a Gather from a matrix, with one or two dimensions of
    indices.

    pnnx (2026) converts only a Gather without ``axis``, and ignores other dimensions. ncnn does not support Cast of
    integers.
    """

    operators = frozenset(("Gather",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        table, indices, result = constant_array(node.inputs[0]), node.inputs[1], node.outputs[0]
        if table is None or table.dtype != np.float32 or not isinstance(indices, Value) or indices.const_value is not None:
            return None
        axis: int = node.attributes.get_int("axis", 0)
        if not table.ndim or axis % table.ndim or not isinstance(result, Value) or not result.is_static:
            return None
        source = producer_of(indices, "Cast")
        given = indices if source is None else source.inputs[0]
        if isinstance(given, Value) and given.dtype in (ir.DataType.INT32, ir.DataType.INT64):
            indices = given
        if not indices.is_static or indices.dims is None:
            return None
        line = indices if indices.rank in (1, 2) else op.Reshape(indices, [-1])
        matrix = np.ascontiguousarray(table.reshape(len(table), -1))
        rows = op.node("Gather", op.const(matrix), line, types=[(result.dtype, [*(line.dims or ()), matrix.shape[1]])])
        unchanged = line is indices and table.ndim == _MATRIX
        return [rows if unchanged else op.Reshape(rows, [dim or 0 for dim in result.dims or ()])]


def _is_check(valid: ir.Value | None, indices: ir.Value, count: int) -> bool:
    """Return whether a value states which indices are below ``count``, and not below 0 or ``-count``."""
    both = producer_of(valid, "And")
    if both is None:
        return False
    least, below = producer_of(both.inputs[0], "GreaterOrEqual"), producer_of(both.inputs[1], "Less")
    if least is None or below is None or least.inputs[0] is not indices or below.inputs[0] is not indices:
        return False
    return constant_list(below.inputs[1]) == [count] and constant_list(least.inputs[1]) in ([0], [-count])
