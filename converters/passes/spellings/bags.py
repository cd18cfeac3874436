"""Sums of bags of embeddings as matrix multiplications, or along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import constant_array, constant_list, producer_of

_ELEMENTS = 1 << 22
"""The largest number of pairs of a bag and an index."""

_LARGE = 1e18
"""Products of two numbers below this are finite in float32."""


class BagsByMatMul(Workaround):
    """Convert EmbeddingBagOffsetsSum to a multiplication by a matrix of zeros and ones, which selects the rows of each bag.

    The operator's function contains a Loop, which most programs other than ONNX Runtime lack. Conditions: known numbers
    of indices and bags, whose product is at most 4 million, a table of floats, and a constant default index. Offsets and
    indices are not checked. Constant offsets with equal distances need no matrix: the rows of each bag are summed along an
    axis. If the table may contain infinities or NaN, they are counted separately, because 0 times
    infinity would make all bags NaN.
    """

    operators: ClassVar[frozenset[str]] = frozenset({"EmbeddingBagOffsetsSum"})
    domain: ClassVar[str] = DOMAIN

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        sums = _sums(op, *node.inputs)
        return None if sums is None else [sums]


def _sums(
    op: Builder,
    table: ir.Value | None,
    indices: ir.Value | None,
    offsets: ir.Value | None,
    default_index: ir.Value | None = None,
    weights: ir.Value | None = None,
) -> Value | None:
    """Return the sums of bags; ``None``, before anything is emitted, if they have another form."""
    if not all(isinstance(value, Value) for value in (table, indices, offsets)):
        return None
    assert isinstance(table, Value) and isinstance(indices, Value) and isinstance(offsets, Value)
    default = [] if default_index is None else constant_list(default_index)
    sizes, dims = [value.dims for value in (indices, offsets)], table.dims
    if default is None or dims is None or None in dims[1:] or table.dtype is None or not table.dtype.is_floating_point():
        return None
    if any(size is None or not size[0] for size in sizes):
        return None
    (count,), (bags,) = ([dim or 0 for dim in size or ()] for size in sizes)
    kind = ir.DataType.DOUBLE if table.dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
    weighted = weights if isinstance(weights, Value) and weights.dims != [0] else None
    if constant_list(offsets) == list(range(0, count, count // bags or count)) and count % bags == 0:
        return _sums_of_equal_bags(op, table, indices, weighted, [bags, count // bags], kind)
    if count * bags > _ELEMENTS:
        return None
    row = [dim or 0 for dim in dims[1:]]
    starts = op.Reshape(op.Cast(offsets, to=ir.DataType.INT64), [bags, 1])
    ends = op.Concat(op.Slice(starts, [1], [bags], [0]), op.const([[count]]), axis=0)
    places = op.const(np.arange(count).reshape(1, -1))
    # Each place before the end of a bag, but not before its start.
    members = op.Sub(op.Cast(op.Less(places, ends), to=kind), op.Cast(op.Less(places, starts), to=kind))
    rows = op.Reshape(op.Cast(op.Gather(table, indices, axis=0), to=kind), [count, int(np.prod(row))])
    is_finite = _is_finite(table)
    if weighted is not None:
        rows = op.Mul(rows, op.Reshape(op.Cast(weighted, to=kind), [count, 1]))
        is_finite = is_finite and _is_finite(weighted)
    sums = op.MatMul(members, rows) if is_finite else _guarded_product(op, members, rows, kind)
    if default and default[0] != -1:
        other = op.Cast(op.Gather(table, op.const(default[:1]), axis=0), to=kind)
        other = op.Reshape(other, [1, int(np.prod(row))])
        if is_finite:
            empty = op.Sub(op.const([[1.0]], kind), op.Cast(op.Less(starts, ends), to=kind))
            sums = op.Add(sums, op.Mul(empty, other))
        else:
            sums = op.Where(op.Less(starts, ends), sums, other)
    return op.Cast(op.Reshape(sums, [bags, *row]), to=table.dtype)


def _sums_of_equal_bags(
    op: Builder, table: Value, indices: Value, weights: Value | None, sizes: list[int], kind: ir.DataType
) -> Value:
    """Return the sums of consecutive bags; ``sizes``: their number and the number of indices in each."""
    before = producer_of(indices, "Cast")
    source = None if before is None else before.inputs[0]
    # The Reshape is next to that of the indices of a matrix, so that the two are merged.
    places = op.Cast(op.Reshape(source, sizes), to=indices.dtype) if source is not None else op.Reshape(indices, sizes)
    rows = op.Cast(op.Gather(table, places, axis=0), to=kind)
    if weights is not None:
        ones = [1] * ((table.rank or 1) - 1)
        rows = op.Mul(rows, op.Reshape(op.Cast(weights, to=kind), [*sizes, *ones]))
    return op.Cast(op.ReduceSum(rows, [1], keepdims=0), to=table.dtype)


def _is_finite(value: Value) -> bool:
    """Return whether a value is a constant of finite numbers whose products with each other are finite, too."""
    numbers = constant_array(value)
    return numbers is not None and bool((np.abs(numbers.astype(np.float64)) < _LARGE).all())


def _guarded_product(op: Builder, members: Value, rows: Value, kind: ir.DataType) -> Value:
    """Return the product of a matrix of 0 and 1 and numbers that may be infinite or NaN. These affect only the sums that
    contain them.
    """
    zero, infinity = op.const(0, kind), op.const(np.inf, kind)
    special = [op.Equal(rows, infinity), op.Equal(rows, op.Neg(infinity)), op.Not(op.Equal(rows, rows))]
    finite = op.Where(op.Equal(op.Sub(rows, rows), zero), rows, zero)
    products = op.MatMul(members, op.Concat(finite, *(op.Cast(one, to=kind) for one in special), axis=1))
    sums, *counts = op.Split(products, axis=1, num_outputs=4, outputs=4)
    for found, number in zip(counts, (np.inf, -np.inf, np.nan), strict=True):
        sums = op.Add(sums, op.Where(op.Greater(found, zero), op.const(number, kind), zero))
    return cast(Value, sums)
