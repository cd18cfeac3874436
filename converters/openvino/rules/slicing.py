"""Reading and writing of slices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Context, Departure, rule
from converters.openvino.rules._indices import (
    INT64_MAX,
    INT64_MIN,
    dim,
    flat_range,
    int64,
    integers,
    length,
    product,
    vector,
)
from onnx_specops.building import Builder, Value


@rule("Slice", since="opset8")
def slice_(op: Builder, data: Value, start: Value, stop: Value, step: Value, axes: Value | None = None):
    """Slice-8: ONNX's Slice."""
    lists = [value for value in (start, stop, step, axes) if value is not None]
    if any(value.rank not in (None, 1) for value in lists):
        raise Malformed("one of start, stop, step and axes is not a list")
    if len({length(value) for value in lists} - {None}) > 1:
        raise Malformed("its start, stop, step and axes differ in length")
    if 0 in (integers(step) or []):
        raise Malformed("one of its steps is 0")
    start, stop, step = (int64(op, x) for x in (start, stop, step))
    return op.Slice(data, start, stop, None if axes is None else int64(op, axes), step)


@rule(
    "SliceScatter",
    since="opset15",
    departs=[
        Departure(
            where="data of known dimensions, with `start`, `stop`, `step` or `axes` at run time",
            cpu="ignores them, and reads out of bounds",
            specification="updates the slice",
            follows="specification",
        )
    ],
)
def slice_scatter(
    op: Builder, data: Value, updates: Value, start: Value, stop: Value, step: Value, axes: Value | None = None
):
    """SliceScatter-15: the updates are written to the positions of the slice."""
    shape = op.Shape(data)
    positions = op.Reshape(flat_range(op, product(op, shape)), shape, allowzero=1)
    taken = slice_(op, positions, start, stop, step, axes)
    if taken.dims is not None and updates.dims is not None and not same_dims(updates.dims, taken.dims):
        raise Malformed(f"its updates have the shape {updates.dims} instead of {taken.dims}")
    flat = op.ScatterElements(op.Reshape(data, [-1]), op.Reshape(taken, [-1]), op.Reshape(updates, [-1]), axis=0)
    return op.Reshape(flat, shape, allowzero=1)


@dataclass
class _Plan:
    """The entries of begin, end and strides, as the masks define them.

    Attributes:
        axes: the data's axis of each entry that slices; counted from the end (-1, ...) for those after an ellipsis.
        taken: the index of each such entry.
        shrunk: which of ``axes`` are removed.
        new: the positions of new axes in the output, also counted from the end after an ellipsis.
        ellipsis: whether there is an ellipsis.
    """

    axes: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    shrunk: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    ellipsis: bool = False


@rule(
    "StridedSlice",
    departs=[
        Departure(
            where="a shrunk axis with `begin_mask`",
            cpu="takes the first element",
            reference="ignores the mask",
            follows="cpu",
        ),
        Departure(
            name="ellipsis and axes",
            where="an ellipsis and a new or shrunk axis at the same position",
            cpu="processes the ellipsis first",
            reference="processes the axis first",
            follows="cpu",
        ),
        Departure(
            where="`begin`, `end` or `stride` at run time, if all dimensions of the result are known",
            cpu="fails, or in one thread returns uninitialized memory",
            reference="slices",
            follows="reference",
        ),
        Departure(
            where="a new axis and a shrunk axis",
            cpu="reads out of bounds",
            reference="slices, the new axis before the shrunk one if both are at the same position",
            follows="reference",
        ),
        Departure(
            where="an index of a shrunk axis out of range, of data of unknown sizes, or with `end` or `stride` at run time",
            cpu="takes the nearest element",
            reference="fails",
            follows="cpu",
        ),
        Departure(
            name="ellipsis and axes",
            where="an ellipsis and a new or shrunk axis, with `begin`, `end` or `stride` at run time",
            cpu="fails, or treats the ellipsis as one axis",
            reference="slices",
            follows="reference",
        ),
    ],
)
def strided_slice(
    op: Builder,
    data: Value,
    begin: Value,
    end: Value,
    stride: Value | None = None,
    *,
    begin_mask: tuple[int, ...],
    end_mask: tuple[int, ...],
    new_axis_mask: tuple[int, ...] = (),
    shrink_axis_mask: tuple[int, ...] = (),
    ellipsis_mask: tuple[int, ...] = (),
    context: Context,
):
    """StridedSlice-1: an ellipsis has priority over a new axis, and that over a shrunk one. Missing mask elements are 0.

    A shrunk axis selects one element, regardless of end and stride; on an axis of unknown size, the nearest one. If the
    number of entries is known at run time only, the entries beyond the masks are plain slices that follow the others.
    """
    begin, end = vector(op, begin), vector(op, end)
    stride = op.Expand(op.const([1]), op.Shape(begin)) if stride is None else vector(op, stride)
    masks = (new_axis_mask, shrink_axis_mask, ellipsis_mask)
    lengths = {n for n in map(length, (begin, end, stride)) if n is not None}
    if len(lengths) > 1:
        raise Malformed("its begin, end and stride differ in length")
    known = max(lengths, default=None)
    count = known if known is not None else max((i + 1 for mask in masks for i, bit in enumerate(mask) if bit), default=0)
    plan = _plan(count, *masks)
    given = integers(stride)
    if given is not None and any(given[i] == 0 for i in plan.taken if i < len(given) and not _bit(shrink_axis_mask, i)):
        raise Malformed("one of its strides is 0")
    if data.rank is not None and len(plan.axes) > data.rank:
        raise Malformed(f"it slices {len(plan.axes)} axes, but its data has the rank {data.rank}")
    lenient = data.dims is None or None in data.dims or any(x.constant is None for x in (begin, end, stride))
    # If an ellipsis is also shrunk, OpenVINO uses the sizes of other axes.
    lenient |= any(_bit(ellipsis_mask, i) and _bit(shrink_axis_mask, i) for i in range(count))
    data = _with_single_elements(op, data, begin, begin_mask, plan, lenient)

    # The entries of the masks, then those beyond them.
    taken = op.const(plan.taken)
    begin, end, stride = (op.Gather(x, taken) for x in (begin, end, stride)) if known is not None else (
        op.Concat(op.Gather(x, taken), op.Slice(x, [count], [INT64_MAX]), axis=0) for x in (begin, end, stride)
    )  # fmt: skip
    more = op.const([0]) if known is not None else op.Sub(op.Shape(begin), len(plan.taken))
    beyond = max(len(begin_mask), len(end_mask), count) if known is None else count
    entries = [*plan.taken, *range(count, beyond)]
    shrunk = _flags(op, [axis in plan.shrunk for axis in plan.axes], begin, known)
    axes = _shifted(op, plan.axes, more)
    if known is None:
        first = op.Neg(more) if plan.ellipsis else op.const([len(plan.axes)])
        axes = op.Concat(axes, op.Add(flat_range(op, more), first), axis=0)
    if plan.shrunk and integers(begin) is None:
        sizes = op.Gather(op.Shape(data), axes)
        begin = op.Where(shrunk, op.Max(op.Min(begin, op.Sub(sizes, 1)), op.Neg(sizes)), begin)
    starts, stops, steps = _bounds(
        op, begin, end, stride,
        _flags(op, [_bit(begin_mask, i) for i in entries], begin, known),
        _flags(op, [_bit(end_mask, i) for i in entries], begin, known),
        shrunk,
    )  # fmt: skip
    data = _sliced(op, data, starts, stops, axes, steps)
    if plan.shrunk:
        data = op.Squeeze(data, _shifted(op, plan.shrunk, more))
    if not plan.new:
        return data
    result = op.Unsqueeze(data, _shifted(op, plan.new, more))
    if plan.ellipsis and any(x.constant is None for x in (begin, end, stride)):
        # OpenVINO infers the shape of such a layer as if the ellipsis were one axis.
        return context.ignore_stated_dims(result)
    return result


def _with_single_elements(
    op: Builder, data: Value, begin: Value, begin_mask: tuple[int, ...], plan: _Plan, lenient: bool
) -> Value:
    """Select one element along shrunk axes with a constant index that may be out of range.

    These axes are not sliced any more. OpenVINO checks the range of an axis of known size if it knows all numbers. Otherwise
    it is ``lenient``.
    """
    given = integers(begin)
    for axis, entry in list(zip(plan.axes, plan.taken, strict=True)) if given is not None else []:
        index = 0 if given is None or _bit(begin_mask, entry) else given[entry]
        dimension = None if data.dims is None else data.dims[axis]
        beyond = dimension is None or (lenient and not -dimension <= index < dimension)
        if axis in plan.shrunk and index not in (0, -1) and beyond:
            size = dim(op, data, axis)
            at = op.Min(op.Sub(size, 1), index) if index > 0 else op.Max(op.Neg(size), index)
            data = op.Gather(data, at, axis=axis)
            plan.axes.remove(axis)
            plan.taken.remove(entry)
    return data


def _bit(mask: tuple[int, ...], index: int) -> bool:
    return index < len(mask) and bool(mask[index])


def _plan(count: int, new: tuple[int, ...], shrink: tuple[int, ...], ellipsis: tuple[int, ...]) -> _Plan:
    """Return the axes of the first ``count`` entries."""
    at = [i for i in range(count) if _bit(ellipsis, i)]
    if len(at) > 1:
        raise Malformed(f"its ellipsis_mask {list(ellipsis)} has more than one ellipsis")
    plan = _Plan(ellipsis=bool(at))
    slicing = [i for i in range(count) if i not in at and not _bit(new, i)]
    staying = [i for i in range(count) if i not in at and (_bit(new, i) or not _bit(shrink, i))]

    def place(index: int, among: list[int]) -> int:
        position = among.index(index)
        return position - len(among) if at and index > at[0] else position

    for i in slicing:
        plan.taken.append(i)
        plan.axes.append(place(i, slicing))
        if _bit(shrink, i):
            plan.shrunk.append(plan.axes[-1])
    plan.new = [place(i, staying) for i in staying if _bit(new, i)]
    return plan


def _flags(op: Builder, bits: list[bool], entries: Value, known: int | None) -> Value:
    """Return ``bits`` for each of the ``entries``, and false for those beyond."""
    flags = op.const(np.array(bits, dtype=bool))
    if known is not None:
        return flags
    count = op.Shape(entries)
    return op.Slice(op.Concat(flags, op.Expand(op.const(np.array([False])), count), axis=0), [0], count)


def _shifted(op: Builder, axes: list[int], more: Value) -> Value:
    """Shift those ``axes`` that count from the end by ``more``."""
    constant = op.const(axes)
    return op.Where(op.Less(constant, 0), op.Sub(constant, more), constant)


def _bounds(
    op: Builder, begin: Value, end: Value, stride: Value, begin_mask: Value, end_mask: Value, shrunk: Value
) -> tuple[Value, Value, Value]:
    """Return starts, stops and steps of ONNX's Slice."""
    backward = op.Less(op.Where(shrunk, 1, stride), 0)
    starts = op.Where(begin_mask, op.Where(backward, op.const(INT64_MAX), op.const(0)), begin)
    stops = op.Where(end_mask, op.Where(backward, op.const(INT64_MIN), op.const(INT64_MAX)), end)
    next_ = op.Where(op.Equal(starts, -1), op.const(INT64_MAX), op.Add(starts, 1))
    return starts, op.Where(shrunk, next_, stops), op.Where(shrunk, 1, stride)


def _sliced(op: Builder, data: Value, starts: Value, stops: Value, axes: Value, steps: Value) -> Value:
    """Emit the Slice, without axes that are taken completely."""
    bounds = [starts, stops, axes, steps]
    known = [integers(x) for x in bounds]
    columns = [x for x in known if x is not None]
    if len(columns) == len(known):
        rows = [row for row in zip(*columns, strict=True) if (row[0], row[1], row[3]) != (0, INT64_MAX, 1)]
        if not rows:
            return data
        bounds = [op.const(list(column)) for column in zip(*rows, strict=True)]
    return op.Slice(data, *bounds)
