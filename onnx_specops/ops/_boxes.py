"""Shared code of box operators: overlaps and greedy suppression, in NumPy and in bodies.

In bodies, boxes are four tensors of coordinates ``(x1, y1, x2, y2)`` with the shape ``[groups, boxes]``. A group is, for
example, a class of an image. All groups are suppressed independently and at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto as Type
from onnx.helper import tensor_dtype_to_np_dtype

from onnx_specops.attributes import Limits

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value

Corners = tuple[Any, Any, Any, Any]

MostOrAll = Annotated[int, Limits(-1)]
"""The maximum number of kept boxes; -1 for all."""

Most = Annotated[int, Limits(0)]
"""The maximum number of kept boxes. No value means all."""

Rows = Annotated[int, Limits(0, 2**20)]
"""The number of boxes per image in the output, padded if there are fewer. No network has more."""

"""Like `Rows`; -1 for all possible boxes."""


def wide(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert ``array`` to the type for box arithmetic: float64 is unchanged, other types become float32."""
    return array if array.dtype == np.float64 else array.astype(np.float32)


def corners(boxes: npt.NDArray[Any]) -> Corners:
    """Return the columns of ``[..., 4]``."""
    return boxes[..., 0], boxes[..., 1], boxes[..., 2], boxes[..., 3]


def areas(box: Corners, offset: float = 0.0) -> Any:
    """Return width times height; ``offset`` is 1 if the corners are pixels that belong to the box."""
    x1, y1, x2, y2 = box
    return (x2 - x1 + offset) * (y2 - y1 + offset)


def intersections(a: Corners, b: Corners, offset: float = 0.0) -> Any:
    """Return the intersection areas of boxes."""
    width = np.minimum(a[2], b[2]) - np.maximum(a[0], b[0]) + offset
    height = np.minimum(a[3], b[3]) - np.maximum(a[1], b[1]) + offset
    zero = np.zeros((), width.dtype)
    return np.maximum(width, zero) * np.maximum(height, zero)


def greedy(
    count: int, suppressed: Callable[[int, npt.NDArray[np.intp]], npt.NDArray[np.bool_]], limit: int | None = None
) -> list[int]:
    """Return which of ``count`` boxes, best first, are kept; every kept box removes those that it suppresses.

    Args:
        count: the number of boxes.
        suppressed: ``suppressed(box, others)`` returns which of the lower-scored boxes ``others`` are removed by ``box``.
        limit: the maximum number of kept boxes.
    """
    kept: list[int] = []
    alive = np.arange(count)
    while alive.size and (limit is None or len(kept) < limit):
        first, alive = int(alive[0]), alive[1:]
        kept.append(first)
        alive = alive[~suppressed(first, alive)]
    return kept


def suppress(
    boxes: npt.NDArray[Any],
    threshold: float,
    offset: float,
    limit: int | None = None,
    area: npt.NDArray[Any] | None = None,
    dead: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.intp]:
    """Return which of ``boxes`` ``[n, 4]``, best first, are kept: those whose overlap with kept better boxes is low enough.

    Args:
        boxes: two corners each. Boxes that do not touch have no overlap, even if the offset gives them one.
        threshold: the maximum overlap.
        offset: 1 if the corners are pixels that belong to the box, else 0.
        limit: the maximum number of kept boxes.
        area: the areas of the boxes, if they differ from those of the corners and the offset.
        dead: boxes that are not kept and do not remove others.
    """
    columns = corners(boxes)
    offset, threshold = boxes.dtype.type(offset), boxes.dtype.type(threshold)
    area = areas(columns, offset) if area is None else area

    def suppressed(first: int, others: npt.NDArray[np.intp]) -> Any:
        one, more = tuple(c[first] for c in columns), tuple(c[others] for c in columns)
        touching = (one[0] <= more[2]) & (one[1] <= more[3]) & (more[0] <= one[2]) & (more[1] <= one[3])
        shared = intersections(one, more, offset)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(touching, shared / (area[first] + area[others] - shared), 0) > threshold

    alive = np.arange(len(boxes)) if dead is None else np.flatnonzero(~dead)
    return alive[greedy(len(alive), lambda first, others: suppressed(alive[first], alive[others]), limit)]


# -- in bodies ---------------------------------------------------------------------------------------------------------


def number_type(x: Value) -> Any:
    """Return NumPy's scalar type of the elements of ``x``."""
    return tensor_dtype_to_np_dtype(int(x.dtype or 0)).type


def emit_wide(op: Builder, x: Value) -> Any:
    """Cast ``x`` to the type for box arithmetic."""
    return x if x.dtype in (Type.FLOAT, Type.DOUBLE) else op.Cast(x, to=Type.FLOAT)


def emit_scalar(op: Builder, x: Value, to: int) -> Value:
    """Convert a scalar or ``[1]`` to a scalar of type ``to``."""
    return op.Reshape(op.Cast(x, to=to), np.zeros(0, np.int64))


def emit_columns(op: Builder, boxes: Value, count: int = 4) -> Any:
    """Return the columns of ``[..., count]``."""
    return [op.Gather(boxes, np.array(i), axis=-1) for i in range(count)]


def emit_areas(op: Builder, box: Sequence[Value], offset: float = 0.0) -> Value:
    """Compute width times height."""
    x1, y1, x2, y2 = box
    sides = op.Sub(x2, x1), op.Sub(y2, y1)
    return op.Mul(*(op.Add(side, offset) if offset else side for side in sides))


def emit_intersections(op: Builder, a: Sequence[Value], b: Sequence[Value], offset: float = 0.0) -> Value:
    """Compute the intersection areas of boxes."""
    sides = [op.Sub(op.Min(a[i + 2], b[i + 2]), op.Max(a[i], b[i])) for i in (0, 1)]
    return op.Mul(*(op.Max(op.Add(side, offset) if offset else side, 0.0) for side in sides))


def emit_range(op: Builder, x: Value, axis: int) -> Value:
    """Return 0, 1, ... along the dimension ``axis`` of ``x``."""
    size = op.Shape(x, start=axis, end=None if axis == -1 else axis + 1)
    return op.Range(0, op.Squeeze(size, [0]), 1)


def emit_any(op: Builder, flags: Value) -> Value:
    """Return a scalar: whether any element is true. It is false for empty tensors."""
    return op.Greater(op.ReduceSum(op.Cast(flags, to=Type.INT64), keepdims=0), 0)


def emit_greedy(
    op: Builder, alive: Value, suppressed: Callable[[Builder, Value], Value], limit: Value | None = None
) -> Value:
    """Suppress all groups at once. The number of steps is the largest number of kept boxes in a group.

    Args:
        op: the graph builder.
        alive: bool ``[groups, boxes]``, the candidates of each group, best first.
        suppressed: ``suppressed(op, first)`` emits which boxes the boxes at ``first`` (int64 ``[groups, 1]``) remove: bool
            ``[groups, boxes]``.
        limit: the maximum number of kept boxes per group, a scalar.

    Returns:
        bool ``[groups, boxes]``: the boxes kept.
    """
    positions = emit_range(op, alive, 1)

    def step(op: Builder, _iteration: Value, _condition: Value, alive: Value, kept: Value):
        first = op.ArgMax(op.Cast(alive, to=Type.INT32), axis=1, keepdims=1)
        chosen = op.And(op.Equal(positions, first), alive)
        kept = op.Or(kept, chosen)
        alive = op.And(alive, op.Not(op.Or(chosen, suppressed(op, first))))
        return emit_any(op, alive), alive, kept

    none = op.And(alive, op.Not(alive))
    _, kept = op.loop(limit, emit_any(op, alive), step, alive, none)
    return kept


def emit_at(op: Builder, columns: Sequence[Value], index: Value) -> list[Value]:
    """Return the coordinates ``[groups, 1]`` of the boxes at ``index`` in each group."""
    return [op.GatherElements(column, index, axis=1) for column in columns]


def emit_touching_suppressed(
    op: Builder, box: Sequence[Value], threshold: Any, offset: float, area: Value | None = None
) -> Callable[[Builder, Value], Value]:
    """For `emit_greedy`: return which boxes touch a chosen box and overlap it by more than ``threshold``, like
    `suppress`.
    """
    area = emit_areas(op, box, offset) if area is None else area

    def suppressed(op: Builder, first: Value) -> Value:
        one = emit_at(op, box, first)
        meets = [op.LessOrEqual(one[i], box[i + 2]) for i in (0, 1)]
        meets += [op.LessOrEqual(box[i], one[i + 2]) for i in (0, 1)]
        shared = emit_intersections(op, one, box, offset)
        union = op.Sub(op.Add(op.GatherElements(area, first, axis=1), area), shared)
        touching = op.And(op.And(meets[0], meets[1]), op.And(meets[2], meets[3]))
        return op.Greater(op.Where(touching, op.Div(shared, union), op.CastLike(0.0, shared)), threshold)

    return suppressed


def emit_first(op: Builder, kept: Value, most: int) -> tuple[Value, Value, Value]:
    """Find the positions of the first ``most`` kept boxes of each group.

    Args:
        op: the graph builder.
        kept: bool ``[groups, boxes]``.
        most: the maximum number of positions.

    Returns:
        int64 ``[groups, n]``, positions, followed by those of other boxes; bool ``[groups, n]``, whether the box is kept;
        int64 ``[groups, 1]``, the number of kept boxes. ``n`` is the minimum of ``most`` and the number of boxes.
    """
    size = op.Min(op.Shape(kept, start=1), most)
    counts = op.Min(op.ReduceSum(op.Cast(kept, to=Type.INT64), [1], keepdims=1), most)
    _, at = op.TopK(op.Cast(kept, to=Type.FLOAT), size, axis=1, outputs=2)
    return at, op.Less(emit_range(op, at, 1), counts), counts


def emit_padded(op: Builder, x: Value, size: int) -> Value:
    """Pad ``[groups, n]`` with zeros to ``[groups, size]``."""
    missing = op.Sub(size, op.Shape(x, start=1))
    return op.Pad(x, op.Concat([0, 0, 0], missing, axis=0))
