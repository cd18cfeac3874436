"""Slice with negative steps, or with steps other than 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list


@dataclass(frozen=True)
class StatedSlice:
    """A Slice of data of known rank whose numbers are constants.

    Attributes:
        x, dims: the data and their dimensions.
        starts, ends, axes: its numbers.
        steps: the step of each axis, 1 if it is not stated.
    """

    x: Value
    dims: Sequence[int | None]
    starts: list[int]
    ends: list[int]
    axes: list[int]
    steps: list[int]

    @classmethod
    def of(cls, node: ir.Node) -> StatedSlice | None:
        """Return the numbers of a Slice; ``None`` if one is not a constant, there are no axes, or the rank is unknown."""
        x, numbers = node.inputs[0], [constant_list(value) for value in node.inputs[1:]]
        if not isinstance(x, Value) or x.dims is None or len(numbers) < 3 or any(one is None for one in numbers):
            return None
        starts, ends, axes, *steps = (one for one in numbers if one is not None)
        return cls(x, x.dims, starts, ends, axes, steps[0] if steps else [1] * len(axes))


class ReversedSliceToGather(Workaround):
    """Convert a Slice with a negative step to Gather, and to a Slice of the other axes.

    For most of these slices, MNN (3.6) reads out of bounds. OpenCV 4.14 computes a negative size.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if (stated := StatedSlice.of(node)) is None:
            return None
        dims, starts, ends, steps = stated.dims, stated.starts, stated.ends, stated.steps
        places = [axis % len(dims) for axis in stated.axes]
        backward = [k for k, step in enumerate(steps) if self.converted(step)]
        if not backward or any(dims[places[k]] is None for k in backward):
            return None
        forward = [k for k in range(len(steps)) if k not in backward]
        result = stated.x
        if forward:
            result = op.Slice(result, *([given[k] for k in forward] for given in (starts, ends, places, steps)))
        for k in backward:
            size = dims[places[k]] or 0
            indices = np.arange(size, dtype=np.int64)[_slice(starts[k], ends[k], steps[k], size)]
            result = op.Gather(result, op.const(indices), axis=places[k])
        return [result]

    def converted(self, step: int) -> bool:
        """Return whether Gather replaces a step."""
        return step < 0


class StridedSliceToGather(ReversedSliceToGather):
    """Convert a Slice with steps other than 1 to Gather, and to a Slice of the other axes.

    tract (0.23) fails for some of these slices after a Reshape.
    """

    def converted(self, step: int) -> bool:
        return step != 1


class BoundedSlices(Workaround):
    """Replace the starts and ends of a Slice by numbers between 0 and the dimension.

    ncnn (2026) reads out of bounds for a start that is more than the dimension before the end. jaxonnxruntime (0.3)
    interprets the end 2**63 - 1 as -1.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if (stated := StatedSlice.of(node)) is None:
            return None
        sizes, given = [stated.dims[axis] for axis in stated.axes], [stated.starts, stated.ends]
        if any(size is None for size in sizes) or any(step < 1 for step in stated.steps):
            return None
        places = [[_bounded(place, size or 0) for place, size in zip(one, sizes, strict=True)] for one in given]
        return None if places == given else [op.Slice(stated.x, *places, *node.inputs[3:])]


def _bounded(place: int, size: int) -> int:
    """Return the place from the beginning, within the dimension."""
    return min(max(place + size if place < 0 else place, 0), size)


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """Return Python's equivalent, whose -1 is the last element and not the one before the first.

    ONNX begins at the first element if ``start`` is before it. Python's slice would be empty.
    """
    start, end = (place + size if place < 0 else place for place in (start, end))
    return slice(max(start, 0), None if end < 0 and step < 0 else max(end, 0), step)
