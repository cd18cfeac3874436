"""Mod of 64-bit integers with the sign of the dividend: ONNX Runtime up to 1.31 computes it in doubles (1.32 does not)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.integer_division import truncated_remainder
from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class ExactRemainders(KernelWorkaround):
    """Compute Mod with ``fmod`` of 64-bit integers: the dividend minus the product of truncated quotient and divisor."""

    operators = frozenset(("Mod",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = (cast(Value, value) for value in node.inputs)
        if not attributes_of(node).get("fmod", 0):
            return None
        if a.dtype == ir.DataType.UINT64:
            return [op.Mod(a, b)]
        if a.dtype != ir.DataType.INT64:
            return None
        return [truncated_remainder(op, a, b)]
