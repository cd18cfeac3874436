"""Sizes of images and maps, and the positions of their parts."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_specops.building import Builder, Value


def size_along(op: Builder, x: Value, axis: int) -> Value:
    """Return a dimension as an int64 scalar."""
    return op.Squeeze(op.Slice(op.Shape(x), [axis], [axis + 1]), [0])


def corners(op: Builder, place: Value) -> tuple[Value, Value, Value, Value]:
    """Return x1, y1, x2 and y2 of a place ``[4]``, each of them ``[1]``."""
    x1, y1, x2, y2 = (op.Slice(place, [at], [at + 1]) for at in range(4))
    return x1, y1, x2, y2


def pads_around(op: Builder, place: Value, size: Sequence[Value], axis: int) -> Value:
    """Return the padding of a part with three dimensions up to the size of its image.

    Args:
        op: the graph builder.
        place: the part's x1, y1, x2 and y2.
        size: the image's height and width.
        axis: the axis of the height, before that of the width: 0 or 1.
    """
    x1, y1, x2, y2 = corners(op, place)
    below, beside = (op.Sub(op.Unsqueeze(side, [0]), end) for side, end in zip(size, (y2, x2), strict=True))
    before, after = ([[0]], []) if axis else ([], [[0]])
    return op.Concat(*before, y1, x1, *after, *before, below, beside, *after, axis=0)
