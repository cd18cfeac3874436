"""ReduceSum and ReduceProd of integers, ReduceMax and ReduceMin of booleans. ONNX Runtime (1.31):

- adds and multiplies integers in doubles, which represent integers up to 2**53;
- rejects the maximum and the minimum of booleans along axes without elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, has_full_range

D = ir.DataType

_WIDE = frozenset((D.INT64, D.UINT64))

_FEW = 1 << 21
"""Doubles represent the sums of this many integers of 32 bits."""


class ExactSums(KernelWorkaround):
    """Convert ReduceSum of integers in the full range of their type to sums in int64 of 32 bits each.

    If more than `_FEW` elements may be added, the sums are of 16 bits each.
    """

    operators = frozenset(("ReduceSum",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *axes = (cast(Value, value) for value in node.inputs)
        if not has_full_range(node) or x.dtype not in _WIDE | {D.INT32, D.UINT32}:
            return None

        def total(x: Value) -> Value:
            return cast(Value, op.ReduceSum(x, *axes, **attributes_of(node)))

        width = 32 if _are_few(x, axes[0] if axes else None) else 16
        rest = x if x.dtype == D.INT64 else op.Cast(x, to=D.INT64)
        parts = []
        for _ in range((64 if x.dtype in _WIDE else 32) // width - 1):
            part = op.BitwiseAnd(rest, (1 << width) - 1)
            rest = op.Div(op.Sub(rest, part), 1 << width)
            parts.append(total(part))
        whole = total(rest)
        for part in reversed(parts):
            whole = op.Add(op.Mul(whole, 1 << width), part)
        return [whole if x.dtype == D.INT64 else op.Cast(whole, to=x.dtype)]


class ExactProducts(KernelWorkaround):
    """Convert ReduceProd of integers in the full range of their type to ScatterElements, which multiplies in that type."""

    operators = frozenset(("ReduceProd",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if not has_full_range(node) or len(node.inputs) != 2:
            return None
        x, axes = (cast(Value, value) for value in node.inputs)
        if x.dtype not in _WIDE | {D.INT32}:
            return None
        shape = op.Shape(x)
        if x.rank is not None and axes.constant is not None:
            kept = op.Where(np.isin(np.arange(x.rank), axes.constant % max(x.rank, 1)), 1, shape)
        else:
            kept = op.ScatterElements(shape, axes, op.Expand(op.const(1), op.Shape(axes)), axis=0)
        # Each element is scattered to its position in the result.
        count = op.ReduceProd(kept, keepdims=0)
        places = op.Expand(op.Reshape(op.Range(0, count, 1), kept, allowzero=1), shape)
        ones = op.Expand(op.const(1, x.dtype), op.Reshape(count, [1]))
        product = op.ScatterElements(ones, op.Reshape(places, [-1]), op.Reshape(x, [-1]), axis=0, reduction="mul")
        product = op.Reshape(product, kept, allowzero=1)
        attributes = attributes_of(node)
        # The maximum of single elements removes the axes; there may be none.
        return [product if attributes.get("keepdims", 1) else op.ReduceMax(product, axes, **attributes)]


class ExtremesOfNoBooleans(KernelWorkaround):
    """Convert ReduceMax and ReduceMin of booleans to uint8 if an axis may have no elements."""

    operators = frozenset(("ReduceMax", "ReduceMin"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *axes = (cast(Value, value) for value in node.inputs)
        if x.dtype != D.BOOL or _has_elements(x, axes[0] if axes else None):
            return None
        attributes: dict[str, Any] = attributes_of(node)
        return [op.Cast(op.node(node.op_type, op.Cast(x, to=D.UINT8), *axes, **attributes), to=D.BOOL)]


def _has_elements(x: Value, axes: Value | None) -> bool:
    """Return whether all reduced axes are known to have elements."""
    sizes = _reduced_sizes(x, axes)
    return sizes is not None and all(sizes)


def _are_few(x: Value, axes: Value | None) -> bool:
    """Return whether at most `_FEW` elements are known to be added."""
    sizes = _reduced_sizes(x, axes)
    if sizes is None or None in sizes:
        sizes = x.dims  # all elements
    return sizes is not None and None not in sizes and math.prod(size or 0 for size in sizes) <= _FEW


def _reduced_sizes(x: Value, axes: Value | None) -> list[int | None] | None:
    """Return the sizes of the reduced axes, ``None`` for an unknown one; ``None`` if the axes or the rank are unknown.

    An empty list of axes may mean all axes.
    """
    if x.dims is None or (axes is not None and axes.constant is None):
        return None
    if axes is None or axes.constant is None or not axes.constant.size:
        return x.dims
    return [x.dims[axis] for axis in axes.constant.reshape(-1).tolist()]
