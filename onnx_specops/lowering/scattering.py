"""Scatter operators with reductions. Below opset 16, updates only replace elements. Below opset 18, max and min do not
exist.

The updates are applied in rounds. The first round has the first update of every element, the second one the second updates,
and so on, so that no round updates an element twice. Each round gathers the elements, combines them and writes them back.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, along, below, need_rank

_COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _stays(reduction: str, opset: int) -> bool:
    return reduction == "none" or (opset >= 16 and reduction in ("add", "mul"))


@below(18, "ScatterElements")
def scatter_elements(op: LoweringBuilder, data, indices, updates, *, axis=0, reduction="none"):
    if _stays(reduction, op.opset):
        return SAME if op.opset >= 16 else op.old.ScatterElements(data, indices, updates, axis=axis)
    rank = next((x.rank for x in (data, indices, updates) if x.rank is not None), None)
    if rank is None:
        raise NotRepresentableError("ScatterElements with a reduction in a tensor of unknown rank")
    (place,) = along([axis], rank)
    indices = op.Cast(indices, to=ir.DataType.INT64)
    size = op.Shape(data, start=place, end=place + 1)
    rows = op.Where(op.Less(indices, 0), op.Add(indices, size), indices)
    # The index of each element in a flat list.
    if rank == 1:
        flat = rows
    else:
        numbers = op.Reshape(op.Range(0, op.Size(data), 1), op.Shape(data), allowzero=1)
        ends = op.Concat(op.Shape(updates, end=place), [1], op.Shape(updates, start=place + 1), axis=0)
        first = op.Slice(numbers, [0] * rank, ends, list(range(rank)))
        stride = op.ReduceProd(op.Shape(data, start=place + 1), keepdims=0) if place < rank - 1 else op.const(1)
        flat = op.Reshape(op.Add(first, op.Mul(rows, stride)), [-1])
    combined = _in_rounds(op, op.Reshape(data, [-1]), flat, op.Reshape(updates, [-1]), reduction)
    return op.Reshape(combined, op.Shape(data), allowzero=1)


@below(18, "ScatterND")
def scatter_nd(op: LoweringBuilder, data, indices, updates, *, reduction="none"):
    if _stays(reduction, op.opset):
        return SAME if op.opset >= 16 else op.old.ScatterND(data, indices, updates)
    depth = (indices.dims or [None])[-1]
    if depth is None:
        depth = need_rank(data, "ScatterND with a reduction") - (need_rank(updates, "it") - need_rank(indices, "it") + 1)
    sizes = op.Shape(data, end=depth)
    places = op.Where(op.Less(indices, 0), op.Add(indices, sizes), indices)
    flat: Value | None = None
    for i in range(depth):
        index = op.Reshape(op.Gather(places, i, axis=-1), [-1])
        flat = index if flat is None else op.Add(op.Mul(flat, op.Slice(sizes, [i], [i + 1], [0])), index)
    assert flat is not None
    row = op.Shape(data, start=depth)
    rows = op.Concat(op.ReduceProd(sizes, keepdims=1), row, axis=0)
    values = op.Reshape(updates, op.Concat(op.Shape(flat), row, axis=0), allowzero=1)
    combined = _in_rounds(op, op.Reshape(data, rows, allowzero=1), flat, values, reduction)
    return op.Reshape(combined, op.Shape(data), allowzero=1)


def _in_rounds(op: Builder, data: Value, places: Value, updates: Value, reduction: str) -> Value:
    """Return ``data`` with the rows at ``places`` combined with ``updates``."""
    turn, most = _rounds(op, places)

    def one(op: Builder, round_: Value, condition: Value, carried: Value) -> tuple[Value, Value]:
        mine = op.Equal(turn, round_)
        at, new = (op.Compress(x, mine, axis=0) for x in (places, updates))
        return condition, _combined(op, carried, at, new, reduction)

    if (number := constant_array(most)) is not None and number <= 1:
        return _combined(op, data, places, updates, reduction)
    return op.loop(most, True, one, data)


def _rounds(op: Builder, places: Value) -> tuple[Value, Value]:
    """Return the number of earlier updates of the same element for each update, and the maximum number of updates of one
    element.
    """
    if (fixed := constant_array(places)) is not None:
        seen: Counter[int] = Counter()
        before = np.zeros(fixed.size, np.int64)
        for index, place in enumerate(fixed.tolist()):
            before[index] = seen[place]
            seen[place] += 1
        return op.const(before), op.const(np.array(max(seen.values(), default=0), np.int64))
    _, _, group, counts = op.Unique(places, outputs=4)
    size = op.Reshape(op.Size(places), [1])
    _, order = op.TopK(group, size, outputs=2, largest=0)
    starts = op.CumSum(counts, 0, exclusive=1)
    since = op.Sub(op.Range(0, op.Size(places), 1), op.Gather(starts, op.Gather(group, order)))
    return op.ScatterElements(since, order, since), op.ReduceMax(op.Concat(counts, [0], axis=0), keepdims=0)


def _combined(op: Builder, data: Value, places: Value, updates: Value, reduction: str) -> Value:
    """Combine at most one update for each element."""
    old = op.Gather(data, places, axis=0)
    return op.ScatterND(data, op.Unsqueeze(places, [1]), op.node(_COMBINED[reduction], old, updates))
