"""Padding."""

from __future__ import annotations

from typing import Literal

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import (
    INT64_MIN,
    coordinates,
    dim,
    flat_range,
    gather_at,
    integers,
    length,
    one_element,
    strides,
    vector,
)
from onnx_specops.building import Builder, Value

Mode = Literal["constant", "edge", "reflect", "symmetric"]


_RUN_TIME_VALUE = Departure(
    where="a `pad_value` that is not constant, with constant pads and known dimensions",
    cpu="uses 0",
    specification="pads with it",
    follows="specification",
)


@rule("Pad", departs=[_RUN_TIME_VALUE])
def pad_1(op: Builder, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None, *, pad_mode: Mode):
    """Pad-1: like Pad-12."""
    return pad(op, data, pads_begin, pads_end, pad_value, pad_mode=pad_mode)


@rule("Pad", since="opset12", departs=[_RUN_TIME_VALUE])
def pad(op: Builder, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None, *, pad_mode: Mode):
    """Pad-12: negative pads crop. The modes edge, reflect and symmetric use the data before the cropping."""
    begin, end = vector(op, pads_begin), vector(op, pads_end)
    if data.dtype == ir.DataType.STRING and pad_mode != "constant":
        raise Malformed(f"it pads strings in the mode {pad_mode}", "OpenVINO pads strings with a constant only")
    if pad_mode == "constant":
        value = None if pad_value is None else one_element(op, pad_value)
        return op.Pad(data, op.Concat(begin, end, axis=0), value)
    return _repeated(op, data, begin, end, pad_mode)


def _repeated(op: Builder, data: Value, begin: Value, end: Value, mode: Mode) -> Value:
    """Pad ``data`` with its own elements, with ONNX's Pad if it supports the mode, and axis by axis otherwise."""
    begins, ends = integers(begin), integers(end)
    known = None if begins is None or ends is None else list(zip(begins, ends, strict=True))
    if known is not None and data.dims is not None:
        _check_reflected(data.dims, known, mode)
    if known is not None and all(pad >= 0 for pads in known for pad in pads):
        if mode != "symmetric":
            return op.Pad(data, op.Concat(begin, end, axis=0), mode=mode)
        for axis, (before, after) in enumerate(known):
            data = _mirrored(op, data, axis, before, after)
        return data
    rank = next((n for n in (data.rank, length(begin), length(end)) if n is not None), None)
    if rank is None:
        return _padded_flat(op, data, begin, end, mode)
    for axis in range(rank):
        if known is None or known[axis] != (0, 0):
            before, after = (op.Slice(pads, [axis], [axis + 1]) for pads in (begin, end))
            size = dim(op, data, axis)
            at = op.Sub(flat_range(op, op.Add(size, op.Add(before, after))), before)
            data = op.Gather(data, _sources(op, at, size, mode), axis=axis)
    return data


def _check_reflected(dims: list[int | None], pads: list[tuple[int, int]], mode: Mode) -> None:
    """Reject pads larger than the available data."""
    for size, (before, after) in zip(dims, pads, strict=True):
        max_pad = None if size is None or mode == "edge" else size - (mode == "reflect")
        if max_pad is not None and max(before, after) > max(max_pad, 0):
            raise Malformed(f"it pads {size} elements by {max(before, after)} in the mode {mode}")


def _padded_flat(op: Builder, data: Value, begin: Value, end: Value, mode: Mode) -> Value:
    """Pad ``data`` of any rank with its own elements along all axes at once.

    Each element of the result is gathered from the position in the data to which its coordinates refer.
    """
    dims = op.Shape(data)
    shape = op.Add(dims, op.Add(begin, end))
    at = op.Sub(coordinates(op, shape), begin)
    sources = op.ReduceSum(op.Mul(_sources(op, at, dims, mode), strides(op, dims)), [1], keepdims=0)
    return gather_at(op, data, sources, shape)


def _mirrored(op: Builder, data: Value, axis: int, before: int, after: int) -> Value:
    """Extend ``data`` with mirrored elements of both ends."""
    parts = [data]
    if before:
        parts.insert(0, op.Slice(data, [before - 1], [INT64_MIN], [axis], [-1]))
    if after:
        parts.append(op.Slice(data, [-1], [-1 - after], [axis], [-1]))
    return data if len(parts) == 1 else op.Concat(*parts, axis=axis)


def _sources(op: Builder, at: Value, size: Value, mode: Mode) -> Value:
    """Return which of ``size`` elements are at the positions ``at``, some of which are outside."""
    last = op.Sub(size, 1)
    if mode == "reflect":
        return op.Sub(last, op.Abs(op.Sub(last, op.Abs(at))))
    if mode == "symmetric":
        at = op.Where(op.Less(at, 0), op.Sub(-1, at), at)
        return op.Where(op.Less(at, size), at, op.Sub(op.Sub(op.Add(size, size), 1), at))
    return op.Min(op.Max(at, 0), last)
