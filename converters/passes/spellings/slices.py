"""Slices against the order of an axis, or with gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list


class ReversedSliceToGather(Workaround):
    """Convert a Slice with a negative step to Gather, and to a Slice of the other axes.

    MNN (3.6) reads out of bounds for most of these. OpenCV 4.14 computes a negative size.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, numbers = node.inputs[0], [constant_list(value) for value in node.inputs[1:]]
        if not isinstance(x, Value) or x.dims is None or len(numbers) < 4 or any(one is None for one in numbers):
            return None
        starts, ends, axes, steps = (one for one in numbers if one is not None)
        places = [axis % len(x.dims) for axis in axes]
        backward = [k for k, step in enumerate(steps) if self.converted(step)]
        if not backward or any(x.dims[places[k]] is None for k in backward):
            return None
        forward = [k for k in range(len(steps)) if k not in backward]
        result = x
        if forward:
            result = op.Slice(result, *([given[k] for k in forward] for given in (starts, ends, places, steps)))
        for k in backward:
            size = x.dims[places[k]] or 0
            indices = np.arange(size, dtype=np.int64)[_slice(starts[k], ends[k], steps[k], size)]
            result = op.Gather(result, op.const(indices), axis=places[k])
        return [result]

    def converted(self, step: int) -> bool:
        """Return whether Gather replaces a step."""
        return step < 0


class StridedSliceToGather(ReversedSliceToGather):
    """Convert a Slice with steps other than 1 to Gather, and to a Slice of the other axes.

    tract (0.23) fails for some of them after a Reshape.
    """

    def converted(self, step: int) -> bool:
        return step != 1


class BoundedSlices(Workaround):
    """Replace the starts and ends of a Slice by numbers between 0 and the dimension.

    ncnn (2026) reads out of bounds for a start that is more than the dimension before the end. jaxonnxruntime (0.3) takes
    the end 2**63 - 1 as -1.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, numbers = node.inputs[0], [constant_list(value) for value in node.inputs[1:]]
        if not isinstance(x, Value) or x.dims is None or len(numbers) < 3 or any(one is None for one in numbers):
            return None
        starts, ends, axes, *rest = (one for one in numbers if one is not None)
        sizes, steps = [x.dims[axis] for axis in axes], rest[0] if rest else [1] * len(axes)
        if any(size is None for size in sizes) or any(step < 1 for step in steps):
            return None
        places = [[_bounded(place, size or 0) for place, size in zip(given, sizes, strict=True)] for given in (starts, ends)]
        return None if places == [starts, ends] else [op.Slice(x, *places, axes, *rest)]


def _bounded(place: int, size: int) -> int:
    """Return the place from the beginning, within the dimension."""
    return min(max(place + size if place < 0 else place, 0), size)


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """Return Python's equivalent, whose -1 is the last element and not the one before the first.

    ONNX begins at the first element if ``start`` is before it. Python's slice would be empty.
    """
    start, end = (place + size if place < 0 else place for place in (start, end))
    return slice(max(start, 0), None if end < 0 and step < 0 else max(end, 0), step)
