"""SearchSorted: insertion positions of values in sorted sequences."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import NUMERIC, operator


@operator(
    inputs={"sorted_sequence": "T", "values": "T"},
    outputs={"output": "tensor(int64)"},
    types={"T": NUMERIC},
)
def SearchSorted(sorted_sequence, values, *, right_mode: int = 0):
    """Finds the position at which each value must be inserted into a sorted sequence to keep its order.

    Inputs:
        sorted_sequence: ``[..., n]``, ascending along the last dimension.
        values: any shape if ``sorted_sequence`` has rank 1, and otherwise ``[..., m]`` with the same leading dimensions.

    Attributes:
        right_mode: whether a value is inserted after equal elements, at the first position whose element is greater. If not,
            it is inserted before equal elements, at the first position whose element is not less.

    Output: int64, of the shape of ``values``, in ``[0, n]``. The result for NaN is 0.

    Source: OpenVINO specification, SearchSorted-15.
    """
    name = "SearchSorted"
    if sorted_sequence.ndim == 0:
        raise ValueError(f"{name}: sorted_sequence is a scalar; expected at least one dimension")
    leading, count = sorted_sequence.shape[:-1], sorted_sequence.shape[-1]
    if leading and values.shape[:-1] != leading:
        raise ValueError(
            f"{name}: values has the shape {list(values.shape)}; expected the leading dimensions of sorted_sequence, "
            f"{list(sorted_sequence.shape)}"
        )
    flat = sorted_sequence.reshape(-1)
    rows = np.arange(int(np.prod(leading, dtype=np.int64))).reshape(*leading, 1) * count if leading else 0
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, count)
    with np.errstate(invalid="ignore"):
        while (active := low < high).any():
            middle = (low + high) // 2
            element = flat[np.minimum(middle, count - 1) + rows]
            before = (element <= values) if right_mode else (element < values)
            low = np.where(active & before, middle + 1, low)
            high = np.where(active & ~before, middle, high)
    return low


@SearchSorted.infer_shapes
def _(node):
    return [node.shape(1)]


@SearchSorted.body
def _(op, sorted_sequence, values, *, right_mode):
    return search(op, sorted_sequence, values, bool(right_mode))


def search(op, sorted_sequence, values, right):
    """Emit a binary search. The number of steps is the number of bits of the sequence's length; each handles all values."""
    sorted_sequence, values = _signed(op, sorted_sequence), _signed(op, values)
    count = op.Squeeze(op.Shape(sorted_sequence, start=-1), [0])
    flat = op.Reshape(sorted_sequence, [-1])
    rows = None
    if sorted_sequence.rank != 1:
        sequences = op.Div(op.Size(flat), op.Max(count, 1))
        leading = op.Concat(op.Shape(sorted_sequence, end=-1), [1], axis=0)
        differ = op.Not(op.Equal(op.Shape(sorted_sequence, end=-1), op.Shape(values, end=-1)))
        count = required(op, "SearchSorted: sorted_sequence and values must have the same leading dimensions", differ, count)
        rows = op.Mul(op.Reshape(op.Range(0, sequences, 1), leading, allowzero=1), count)
    zeros = op.Expand(op.const(0), op.Shape(values))

    def step(op, _step, _condition, low, high, size):
        middle = op.Div(op.Add(low, high), 2)
        at = op.Min(middle, op.Sub(count, 1))
        element = op.Gather(flat, at if rows is None else op.Add(at, rows), axis=0)
        before = op.LessOrEqual(element, values) if right else op.Less(element, values)
        active = op.Less(low, high)
        low = op.Where(op.And(active, before), op.Add(middle, 1), low)
        high = op.Where(op.And(active, op.Not(before)), middle, high)
        size = op.Div(size, 2)
        return op.Greater(size, 0), low, high, size

    low, _, _ = op.loop(None, op.Greater(count, 0), step, zeros, op.Add(zeros, count), count)
    return low


def _signed(op, x):
    """Map uint64 to int64 with the same order, because ONNX Runtime does not compare unsigned integers."""
    return op.Add(op.Cast(x, to=Type.INT64), np.iinfo(np.int64).min) if x.dtype == Type.UINT64 else x
