"""Gather and Pad of strings: ONNX Runtime (1.31) gathers only the first string of each slice, and has no kernel for the Pad.

Both become a Gather of a vector. The same operator, applied to the positions of the strings, computes the indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class GatherOfStrings(KernelWorkaround):
    """Gather strings of any rank other than 1 from a vector."""

    operators = frozenset(("Gather",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, indices = (cast(Value, value) for value in node.inputs)
        if x.dtype != ir.DataType.STRING or x.rank == 1:
            return None
        return [op.Gather(op.Reshape(x, [-1]), op.Gather(_positions(op, x), indices, **attributes_of(node)))]


class PadOfStrings(KernelWorkaround):
    """Replace Pad of strings by a Gather from a vector."""

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads, blank, axes = (cast(Value | None, value) for value in (*node.inputs, None, None)[:4])
        if x is None or x.dtype != ir.DataType.STRING:
            return None
        mode = attributes_of(node)
        if mode.get("mode", "constant") != "constant":
            return [op.Gather(op.Reshape(x, [-1]), op.Pad(_positions(op, x), pads, None, axes, **mode))]
        blank = op.const(np.array("", dtype=object)) if blank is None else blank
        at = op.Pad(_positions(op, x), pads, op.const(-1), axes, **mode)
        strings = op.Concat(op.Reshape(x, [-1]), op.Reshape(blank, [1]), axis=0)
        return [op.Gather(strings, op.Where(op.Less(at, 0), op.Size(x), at))]


def _positions(op: Builder, x: Value) -> Value:
    return cast(Value, op.Reshape(op.Range(0, op.Size(x), 1), op.Shape(x), allowzero=1))
