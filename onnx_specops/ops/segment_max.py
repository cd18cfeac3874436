"""SegmentMax: the maxima of segments of a tensor."""

from __future__ import annotations

from typing import Literal

import ml_dtypes
import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import INDICES, NUMERIC, operator
from onnx_specops.ops._checks import scalar


def lowest(dtype: np.dtype) -> np.generic:
    """Return the lowest finite value of a type."""
    return ml_dtypes.finfo(dtype).min if dtype.kind not in "iu" else dtype.type(np.iinfo(dtype).min)


@operator(
    inputs={"data": "T", "segment_ids": "T_IND", "num_segments": "T_IND"},
    outputs={"output": "T"},
    types={"T": NUMERIC, "T_IND": INDICES},
)
def SegmentMax(data, segment_ids, num_segments=None, *, fill_mode: Literal["ZERO", "LOWEST"]):
    """Computes the maximum of the slices of ``data`` of each segment.

    Inputs:
        data: ``[n, ...]``.
        segment_ids: ``[n]``, the segment of each slice; ascending, not negative.
        num_segments: scalar or ``[1]``, the number of segments. Slices of later segments are ignored. If omitted or empty,
            the last id plus one.

    Attributes:
        fill_mode: the value of an empty segment: ``ZERO``, or ``LOWEST``, the lowest finite value of the type.

    Output: ``[num_segments, ...]``. NaN and minus infinity are ignored, unless they are the only values of a segment,
    whose result is then the lowest finite value.

    Source: OpenVINO specification, SegmentMax-16.
    """
    name = "SegmentMax"
    if segment_ids.shape != data.shape[:1]:
        raise ValueError(f"{name}: segment_ids has the shape {list(segment_ids.shape)}, data {list(data.shape)}")
    if (bad := np.flatnonzero(segment_ids < 0)).size:
        raise IndexError(f"{name}: segment_ids[{bad[0]}] = {segment_ids[bad[0]]} is negative")
    if (bad := np.flatnonzero(np.diff(segment_ids) < 0)).size:
        at = bad[0] + 1
        raise ValueError(
            f"{name}: segment_ids[{at}] = {segment_ids[at]} is less than segment_ids[{at - 1}] = {segment_ids[at - 1]}"
        )
    count = int(segment_ids[-1]) + 1 if len(segment_ids) else 0
    if num_segments is not None:
        count = int(scalar(num_segments, f"{name}: num_segments"))
        if count < 0:
            raise ValueError(f"{name}: num_segments = {count} is negative")
    least = lowest(data.dtype)
    output = np.full((count, *data.shape[1:]), least, data.dtype)
    used = int(np.searchsorted(segment_ids, count))
    starts = np.flatnonzero(np.diff(segment_ids[:used], prepend=-1))
    if used:
        values = data[:used]
        if data.dtype.kind not in "iu":
            values = np.where(values > least, values, least)
        output[segment_ids[starts]] = np.maximum.reduceat(values, starts, axis=0)
    if fill_mode == "ZERO":
        empty = np.ones(count, bool)
        empty[segment_ids[starts]] = False
        output[empty] = 0
    return output


@SegmentMax.infer_shapes
def _(node):
    data, ids, count = node.shape(0), node.constant(1), node.constant(2)
    if data is None:
        return [None]
    if node.has(2):
        segments = int(count.reshape(-1)[0]) if count is not None and count.size else None
    else:
        segments = int(ids.max(initial=-1)) + 1 if ids is not None else None
    return [[segments, *data[1:]]]


@SegmentMax.body
def _(op, data, segment_ids, num_segments=None, *, fill_mode):
    ids = op.Cast(segment_ids, to=Type.INT64)
    before = op.Slice(op.Concat([0], ids, axis=0), [0], [-1])
    ids = required(op, "SegmentMax: segment_ids must ascend from 0", op.Less(ids, before), ids)
    if num_segments is None:
        count = op.Add(op.ReduceMax(op.Concat([-1], ids, axis=0)), 1)
    else:
        count = op.Reshape(op.Cast(num_segments, to=Type.INT64), [1])
    inner = op.Shape(data, start=1)
    # The slices of segments beyond the last go to an extra segment, which is removed.
    places = op.Min(ids, count)
    least, to = op.const(lowest(np.dtype(data.dtype.numpy()))), data.dtype
    if to in (Type.FLOAT16, Type.BFLOAT16):  # ONNX Runtime does not reduce 16-bit floats
        least, data = op.Cast(least, to=Type.FLOAT), op.Cast(data, to=Type.FLOAT)
    slots = op.Expand(least, op.Concat(op.Add(count, 1), inner, axis=0))
    if data.dtype.is_floating_point():
        data = op.Where(op.Greater(data, least), data, least)
    ones = op.Expand(op.const([1]), op.Shape(inner))
    rows = op.Expand(op.Reshape(places, op.Concat([-1], ones, axis=0)), op.Shape(data))
    highest = op.Slice(op.ScatterElements(slots, rows, data, axis=0, reduction="max"), [0], count)
    if fill_mode == "LOWEST":
        return op.Cast(highest, to=to)
    none = op.Expand(op.const(False), op.Add(count, 1))
    filled = op.ScatterElements(none, places, op.Expand(op.const(True), op.Shape(places)), axis=0)
    filled = op.Reshape(op.Slice(filled, [0], count), op.Concat([-1], ones, axis=0))
    return op.Cast(op.Where(filled, highest, op.CastLike(0, highest)), to=to)
