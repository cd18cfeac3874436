"""Pow of 32-bit integers with one exponent: ONNX Runtime (1.31) multiplies for the exponents 2 and 3, and the result wraps.

For other exponents, and for several exponents, it computes in doubles, as OpenVINO does. A result out of range becomes the
    lowest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import has_full_range

D = ir.DataType


class PowersInDoubles(KernelWorkaround):
    """Compute Pow of integers in the full range of int32 in doubles, which represent all results in this range."""

    operators = frozenset(("Pow",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        base, exponent = (cast(Value, value) for value in node.inputs)
        if base.dtype != D.INT32 or exponent.dtype != D.INT32 or not has_full_range(node) or not _multiplies(exponent):
            return None
        power = op.Pow(op.Cast(base, to=D.DOUBLE), op.Cast(exponent, to=D.DOUBLE))
        return [op.Cast(power, to=D.INT32)]


def _multiplies(exponent: Value) -> bool:
    """Return whether the exponent may be a single 2 or 3."""
    if exponent.constant is not None:
        return exponent.constant.size == 1 and int(exponent.constant.reshape(-1)[0]) in (2, 3)
    return exponent.dims is None or all(dim in (None, 1) for dim in exponent.dims)
