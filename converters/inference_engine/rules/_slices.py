"""The bounds of StridedSlice, as the Inference Engine reads them.

Entries of begin, end and strides refer to positions of the output, but entries of ``begin_mask`` and ``end_mask`` refer to
axes of the data. An ellipsis covers the remaining positions. Its own entry belongs to the first position after it. An end of
0, or of -1 backwards, is the end of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from converters.errors import Unsupported
from converters.openvino.rules._indices import INT64_MAX, INT64_MIN


class Masks(NamedTuple):
    """The masks of a layer. Entries beyond the end are 1 for ``begin`` and ``end``, and 0 for the others."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    ellipsis: tuple[int, ...]
    new_axis: tuple[int, ...]
    shrink_axis: tuple[int, ...]


@dataclass(frozen=True)
class Slices:
    """A slice of data.

    Attributes:
        starts, stops, steps: the bounds for each axis of the data.
        shrunk: the axes of the data that are removed.
        new: the axes of the result that are added.
    """

    starts: list[int]
    stops: list[int]
    steps: list[int]
    shrunk: list[int]
    new: list[int]


def slices(dims: Sequence[int | None], bounds: Sequence[Sequence[int]], masks: Masks) -> Slices:
    """Return the slice of data with such dimensions.

    Args:
        dims: the dimensions.
        bounds: begin, end and strides.
        masks: the masks of the layer.

    Raises:
        Unsupported: the Inference Engine reads elements beyond the data.
    """
    found = Slices([], [], [], [], [])
    count = len(dims) + sum(masks.new_axis)
    covered = _covered(count, len(bounds[0]), masks.ellipsis)
    entry, staying = 0, 0
    for place in range(count):
        axis, inside = len(found.starts), place in covered
        begin, last, step = (0, -1, 1) if inside else _entry(bounds, entry, axis, masks)
        shrinks = not inside and _bit(masks.shrink_axis, entry)
        entry += not inside
        if _bit(masks.new_axis, place):
            if begin != 0:
                raise Unsupported(f"its begin for a new axis is {begin}; expected 0", _REMEDY)
            found.new.append(staying)
            staying += 1
            continue
        if axis == len(dims):
            raise Unsupported(f"it has more entries than its data has dimensions: {len(dims)}", _REMEDY)
        start, stop = _range(dims[axis], begin, last, step, bool(shrinks))
        for numbers, number in zip((found.starts, found.stops, found.steps), (start, stop, step), strict=True):
            numbers.append(number)
        if shrinks:
            found.shrunk.append(axis)
        staying += not shrinks
    return found


_REMEDY = "convert the original model"


def _covered(count: int, entries: int, ellipsis: tuple[int, ...]) -> range:
    """Return the positions that the ellipsis covers."""
    if 1 not in ellipsis:
        return range(0)
    first = ellipsis.index(1)
    last = count - (entries - first)
    return range(first, last if entries > first and last > first else count)


def _entry(bounds: Sequence[Sequence[int]], entry: int, axis: int, masks: Masks) -> tuple[int, int, int]:
    """Return begin, the last element, and the step. Negative numbers count from the end."""
    begins, ends, steps = bounds
    step = (steps[entry] if entry < len(steps) else 1) or 1
    begin, last = (0, -1) if step > 0 else (-1, 0)
    if entry < len(begins) and _bit(masks.begin, axis, 1):
        begin = begins[entry]
    if entry < len(ends) and _bit(masks.end, axis, 1):
        last = ends[entry] + (-1 if step > 0 else 1)  # for an end of 0, -1: to the end
    return begin, last, step


def _range(size: int | None, begin: int, last: int, step: int, shrinks: bool) -> tuple[int, int]:
    """Return start and stop of ONNX's Slice."""
    if size is not None:
        begin, last = (min(max(n + size if n < 0 else n, 0), size - 1) for n in (begin, last))
        count = 1 if shrinks else -(-(abs(last - begin) + 1) // abs(step))
        last = begin + (count - 1) * step
        if not 0 <= last < size:
            raise Unsupported(f"it reads element {last} of {size}", _REMEDY)
    elif shrinks:
        last = begin
    if step > 0:
        return begin, INT64_MAX if last == -1 else last + 1
    return begin, INT64_MIN if last == 0 else last - 1


def _bit(mask: tuple[int, ...], index: int, default: int = 0) -> int:
    return mask[index] if index < len(mask) else default
