"""Padding."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.openvino.rule import Unsupported, rule
from converters.openvino.rules._indices import (
    FIRST,
    dim,
    integers,
    length,
    one_element,
    scalar,
    vector,
)
from onnx_specops.building import Builder, Value

Mode = Literal["constant", "edge", "reflect", "symmetric"]


@rule("Pad")
def pad_1(op: Builder, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None, *, pad_mode: Mode):
    """Pad-1: as Pad-12 (whose negative pads it does not have)."""
    return pad(op, data, pads_begin, pads_end, pad_value, pad_mode=pad_mode)


@rule("Pad", since="opset12")
def pad(op: Builder, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None, *, pad_mode: Mode):
    """Pad-12: negative pads crop; what edge, reflect and symmetric repeat they take from the data before the cropping."""
    begin, end = vector(op, pads_begin), vector(op, pads_end)
    if data.dtype == ir.DataType.STRING:
        return _padded_strings(op, data, begin, end, pad_value, pad_mode)
    if pad_mode == "constant":
        value = None if pad_value is None else one_element(op, pad_value)
        return op.Pad(data, op.Concat(begin, end, axis=0), value)
    begins, ends = integers(begin), integers(end)
    known = None if begins is None or ends is None else list(zip(begins, ends, strict=True))
    if known is not None and all(pad >= 0 for pads in known for pad in pads):
        if pad_mode != "symmetric":
            return op.Pad(data, op.Concat(begin, end, axis=0), mode=pad_mode)
        for axis, (before, after) in enumerate(known):
            data = _mirrored(op, data, axis, before, after)
        return data
    rank = next((n for n in (data.rank, length(begin), length(end)) if n is not None), None)
    if rank is None:
        raise Unsupported(f"it pads a tensor of unknown rank in the mode {pad_mode}")
    for axis in range(rank):
        if known is None or known[axis] != (0, 0):
            data = _padded(op, data, axis, op.Slice(begin, [axis], [axis + 1]), op.Slice(end, [axis], [axis + 1]), pad_mode)
    return data


def _padded_strings(op: Builder, data: Value, begin: Value, end: Value, pad_value: Value | None, pad_mode: Mode) -> Value:
    """ONNX Runtime pads no strings: along each axis the data are cropped and stand between blanks."""
    if pad_mode != "constant" or data.rank is None:
        raise Unsupported(f"it pads strings in the mode {pad_mode}, or of unknown rank")
    blank = op.const(np.array("", dtype=object)) if pad_value is None else one_element(op, pad_value)
    for axis in range(data.rank):
        sizes = [op.Slice(pads, [axis], [axis + 1]) for pads in (begin, end)]
        cropped = op.Sub(dim(op, data, axis), op.Max(op.Neg(sizes[1]), 0))
        data = op.Slice(data, op.Max(op.Neg(sizes[0]), 0), cropped, [axis])
        shapes = [op.Concat(op.Shape(data, end=axis), op.Max(n, 0), op.Shape(data, start=axis + 1), axis=0) for n in sizes]
        before, after = (op.Expand(blank, shape) for shape in shapes)
        data = op.Concat(before, data, after, axis=axis)
    return data


def _mirrored(op: Builder, data: Value, axis: int, before: int, after: int) -> Value:
    """``data`` with so many elements of its ends repeated backwards."""
    parts = [data]
    if before:
        parts.insert(0, op.Slice(data, [before - 1], [FIRST], [axis], [-1]))
    if after:
        parts.append(op.Slice(data, [-1], [-1 - after], [axis], [-1]))
    return data if len(parts) == 1 else op.Concat(*parts, axis=axis)


def _padded(op: Builder, data: Value, axis: int, begin: Value, end: Value, mode: Mode) -> Value:
    """``data`` padded along one axis: each position of the result fetched from where its coordinate falls in the data."""
    size = dim(op, data, axis)
    count = op.Add(size, op.Add(begin, end))
    at = op.Sub(op.Range(op.const(0), scalar(op, count), op.const(1)), begin)
    last = op.Sub(size, 1)
    if mode == "edge":
        at = op.Min(op.Max(at, 0), last)
    elif mode == "reflect":
        at = op.Sub(last, op.Abs(op.Sub(last, op.Abs(at))))
    else:
        at = op.Where(op.Less(at, 0), op.Sub(-1, at), at)
        at = op.Where(op.Less(at, size), at, op.Sub(op.Sub(op.Add(size, size), 1), at))
    return op.Gather(data, at, axis=axis)
