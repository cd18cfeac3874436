"""Gathers of consecutive elements."""

from __future__ import annotations

import numpy as np

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

_LEAST_SIZE = 64
"""Smaller tensors are shapes, which other passes know as they are."""


@rewrite("Gather", lambda op, x, indices: op.Gather(x, indices, _outputs=["whole"]), exclusive=False)
def of_consecutive(op: Builder, *, x: Value, indices: Value, whole: Value) -> Value | None:
    """Convert the Gather of consecutive elements by constant indices to Slice, and that of all elements in order to Reshape.

    Conditions: all dimensions are known, there are at least `_LEAST_SIZE` elements, and the indices are a list, or all
    elements are gathered.
    """
    node, given = whole.producer(), constant_array(indices)
    if node is None or given is None or not given.size or x.dims is None or not x.is_static or len(x.dims) < 2:
        return None
    sizes = [size or 0 for size in x.dims]
    if np.prod(sizes) < _LEAST_SIZE:
        return None
    axis = node.attributes.get_int("axis", 0) % len(sizes)
    places = np.where(given < 0, given + sizes[axis], given).reshape(-1)
    first, last = int(places[0]), int(places[-1])
    if first < 0 or last >= sizes[axis] or (np.diff(places) != 1).any():
        return None
    if len(places) == sizes[axis]:
        return op.Reshape(x, [*sizes[:axis], *given.shape, *sizes[axis + 1 :]])
    return op.Slice(x, [first], [last + 1], [axis]) if given.ndim == 1 else None


class MergeGathers(PatternPass):
    """Convert Gathers of consecutive elements to Slice or Reshape."""

    rewrites = (of_consecutive,)
