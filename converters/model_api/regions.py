"""Regions of a mask: connected components and their boxes, and the smallest rotated rectangle around a mask.

Sources: Suzuki and Abe, "Topological structural analysis of digitized binary images by border following" (1985), whose
outermost borders ``cv2.findContours`` returns with ``RETR_EXTERNAL``; Toussaint, "Solving geometric problems with the
rotating calipers" (1983), as in ``cv2.minAreaRect``.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value

_FLOAT, _DOUBLE, _INT32, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64
_LAST = 2**31 - 1


def boxes_of_regions(op: Builder, mask: Value) -> Value:
    """Return the boxes of the outermost 8-connected regions of a mask, in the order of OpenCV's contours: from the bottom
    up.

    Args:
        op: the graph builder.
        mask: ``[height, width]``; nonzero pixels belong to regions.

    Returns:
        Int64 ``[n, 4]``: x1, y1, x2, y2; x2 and y2 are exclusive.
    """
    framed = op.Pad(op.Cast(op.Cast(mask, to=ir.DataType.BOOL), to=_INT32), [1, 1, 1, 1])  # the frame is background
    inside = op.Greater(framed, np.int32(0))
    size = op.Shape(framed)
    regions = _components(op, inside, size, diagonal=True)
    background = _components(op, op.Not(inside), size, diagonal=False)
    last = op.Sub(op.ReduceProd(size, keepdims=0), 1)
    around = op.Equal(background, op.Cast(op.Add(last, 1), to=_INT32))  # the region of the last pixel of the frame
    beside = op.Greater(_neighbors(op, op.Cast(around, to=_INT32), diagonal=False), np.int32(0))
    outermost = op.And(inside, beside)  # a pixel of a region next to the background around all regions
    width = op.Slice(size, [1], [2])
    # The number of its last pixel, from 1, identifies a region.
    places = op.NonZero(op.Reshape(regions, [-1]))
    flat = op.Squeeze(places, [0])
    owner = op.Sub(op.Cast(op.Gather(op.Reshape(regions, [-1]), flat, axis=0), to=_INT64), 1)
    count = op.Reshape(op.Add(last, 1), [1])
    none = op.Expand(np.int64(0), count)
    seen = op.ScatterElements(
        none, owner, op.Cast(op.Gather(op.Reshape(outermost, [-1]), flat, axis=0), to=_INT64), axis=0, reduction="max"
    )
    ids = op.Squeeze(op.NonZero(seen), [0])
    y, x = op.Div(flat, width), op.Mod(flat, width)
    ends = []
    for values, reduction, start in ((x, "min", _LAST), (y, "min", _LAST), (x, "max", -1), (y, "max", -1)):
        table = op.ScatterElements(op.Expand(np.int64(start), count), owner, values, axis=0, reduction=reduction)
        ends.append(op.Unsqueeze(op.Gather(table, ids, axis=0), [1]))
    first = op.ScatterElements(op.Expand(np.int64(2**62), count), owner, flat, axis=0, reduction="min")
    _, order = op.TopK(op.Gather(first, ids, axis=0), op.Shape(ids), axis=0, outputs=2)
    boxes = op.Sub(op.Concat(*ends, axis=1), np.array([1, 1, 0, 0], np.int64))  # without the frame, ends exclusive
    return op.Gather(boxes, order, axis=0)


def _components(op: Builder, inside: Value, size: Value, *, diagonal: bool) -> Value:
    """Return the connected regions of a mask: for each pixel the highest number, from 1, of a pixel of its region; 0
    outside.

    Each step selects the highest number among the neighbors, then the number of that pixel, which doubles the distance.
    """
    numbers = op.Reshape(op.Range(1, op.Add(op.ReduceProd(size, keepdims=0), 1), 1), size)
    start = op.Where(inside, op.Cast(numbers, to=_INT32), np.int32(0))

    def step(op: Builder, _number: Value, _condition: Value, labels: Value) -> tuple[Value, Value]:
        greater = op.Where(inside, _neighbors(op, labels, diagonal=diagonal), np.int32(0))
        flat = op.Concat(np.zeros(1, np.int32), op.Reshape(greater, [-1]), axis=0)
        reached = op.Gather(flat, greater, axis=0)
        reached = op.Gather(flat, reached, axis=0)
        changed = op.ReduceMax(op.Cast(op.Not(op.Equal(reached, labels)), to=_INT32), keepdims=0)
        return op.Cast(changed, to=ir.DataType.BOOL), reached

    return op.loop(None, np.array(True), step, start)


def _neighbors(op: Builder, values: Value, *, diagonal: bool) -> Value:
    """Return the maximum of each nonnegative value and its 4 or 8 neighbors."""

    def greatest(values: Value, axis: int) -> Value:
        padded = op.Pad(values, [1 - axis, axis, 1 - axis, axis])
        return op.Max(*(op.Slice(padded, [begin], [end], [axis]) for begin, end in ((0, -2), (1, -1), (2, _LAST))))

    across = greatest(values, 1)
    return greatest(across, 0) if diagonal else op.Max(across, greatest(values, 0))


def rotated_rectangle(op: Builder, mask: Value) -> Value:
    """Return the smallest rotated rectangle around the pixels of a mask.

    Args:
        op: the graph builder.
        mask: ``[height, width]``; nonzero pixels belong to it.

    Returns:
        Float32 ``[5]``: the center's x and y, width, height, and the angle in degrees, above 0 and at most 90; zeros for an
        empty mask.
    """
    solid = op.Cast(op.Cast(mask, to=ir.DataType.BOOL), to=_INT32)
    some = op.Greater(op.ReduceMax(solid, keepdims=0), np.int32(0))
    return op.if_(some, lambda op: _around(op, solid), lambda op: op.Identity(op.const(np.zeros(5, np.float32))))


def _around(op: Builder, solid: Value) -> Value:
    points = _hull(op, solid)
    count = op.Squeeze(op.Shape(points, end=1), [0])
    return op.if_(
        op.Equal(count, np.int64(1)),
        lambda op: op.Concat(op.Cast(op.Reshape(points, [2]), to=_FLOAT), np.array([0, 0, 90], np.float32), axis=0),
        lambda op: _smallest(op, points),
    )


def _hull(op: Builder, solid: Value) -> Value:
    """Return the corners of the convex hull of a mask's pixels, float64 ``[n, 2]``, in order."""
    rows = op.Squeeze(op.NonZero(op.ReduceMax(solid, [1], keepdims=0)), [0])
    filled = op.Gather(solid, rows, axis=0)
    y = op.Cast(rows, to=_DOUBLE)
    left, right = (op.Cast(op.ArgMax(filled, axis=1, keepdims=0, select_last_index=last), to=_DOUBLE) for last in (0, 1))
    numbers = op.Range(np.int64(0), op.Squeeze(op.Shape(rows), [0]), np.int64(1))
    apart = op.Sub(op.Unsqueeze(numbers, [0]), op.Unsqueeze(numbers, [1]))  # [i, j]: j - i
    before, after = op.Less(apart, 0), op.Greater(apart, 0)
    down = op.Sub(op.Unsqueeze(y, [0]), op.Unsqueeze(y, [1]))
    down = op.Where(op.Equal(apart, 0), np.float64(1), down)

    def corner(x: Value) -> Value:
        """Return whether each point is a corner: its slopes to all previous points are below those to all later points."""
        slopes = op.Div(op.Sub(op.Unsqueeze(x, [0]), op.Unsqueeze(x, [1])), down)
        steepest = op.ReduceMax(op.Where(before, slopes, np.float64(-1e30)), [1], keepdims=0)
        flattest = op.ReduceMin(op.Where(after, slopes, np.float64(1e30)), [1], keepdims=0)
        return op.Less(steepest, flattest)

    on_left = corner(left)
    first = op.Squeeze(op.NonZero(on_left), [0])
    same = op.And(on_left, op.Equal(right, left))  # a row of one pixel is one corner
    turned = op.And(corner(op.Neg(right)), op.Not(same))
    second = op.Slice(op.Squeeze(op.NonZero(turned), [0]), [-1], [-_LAST], [0], [-1])

    def pairs(x: Value, places: Value) -> Value:
        return op.Concat(*(op.Unsqueeze(op.Gather(v, places, axis=0), [1]) for v in (x, y)), axis=1)

    return op.Concat(pairs(left, first), pairs(right, second), axis=0)


def _smallest(op: Builder, points: Value) -> Value:
    """Return the smallest of the rectangles along the edges of a convex polygon, by the areas that OpenCV computes.

    Different directions can have equally small rectangles, among which the rounding errors of OpenCV's areas decide, then
    the order of its steps: the later of two equal areas. Its calipers turn from the first row: each step follows the next
    edge by angle, on the side that comes first in the order top, right, bottom, left. A rectangle along the axes is the
    first, and also the last if the first row has several pixels.
    """
    beginnings = op.Concat(op.Slice(points, [1], [_LAST], [0]), op.Slice(points, [0], [1], [0]), axis=0)  # counterclockwise
    edges = op.Sub(points, beginnings)
    length = op.Sqrt(op.ReduceSum(op.Mul(edges, edges), [1], keepdims=1))
    lead = op.Mul(op.Cast(edges, to=_FLOAT), op.Cast(op.Div(1.0, length), to=_FLOAT))
    # Rotated by right angles into the first quadrant, x above 0, y from 0: the number of rotations is the edge's side.
    a, b, cosine, sine = (op.Slice(v, [i], [i + 1], [1]) for v in (edges, lead) for i in (0, 1))
    side = op.Cast(op.Sub(a, a), to=_INT64)
    for _ in range(3):
        turn = op.Not(op.And(op.Greater(a, np.float64(0)), op.GreaterOrEqual(b, np.float64(0))))
        a, b = op.Where(turn, b, a), op.Where(turn, op.Neg(a), b)
        cosine, sine = op.Where(turn, sine, cosine), op.Where(turn, op.Neg(cosine), sine)
        side = op.Add(side, op.Cast(turn, to=_INT64))
    x, y = (op.Transpose(op.Slice(points, [i], [i + 1], [1]), perm=[1, 0]) for i in (0, 1))
    ahead, aside = op.Add(op.Mul(a, x), op.Mul(b, y)), op.Sub(op.Mul(a, y), op.Mul(b, x))  # [edge, point]

    def held(number: int, outward: Value, along: Value) -> Value:
        """Return the point ``[edge, 2]`` that a side touches: the end of an edge that this or an earlier step followed."""
        outermost = op.Equal(outward, op.ReduceMax(outward, [1], keepdims=1))
        ordered = op.Where(op.GreaterOrEqual(side, np.int64(number)), along, op.Neg(along))
        place = op.ArgMax(op.Where(outermost, ordered, np.float64(-1e30)), axis=1, keepdims=0)
        return op.Gather(points, place, axis=0)

    backward, inward = op.Neg(ahead), op.Neg(aside)
    corners = [
        held(number, outward, along)
        for number, (outward, along) in enumerate(((inward, ahead), (ahead, aside), (aside, backward), (backward, inward)))
    ]

    def extent(one: Value, other: Value, first: Value, second: Value) -> Value:
        apart = op.Cast(op.Sub(one, other), to=_FLOAT)
        dx, dy = op.Slice(apart, [0], [1], [1]), op.Slice(apart, [1], [2], [1])
        return op.Add(op.Mul(dx, first), op.Mul(dy, second))

    width = extent(corners[1], corners[3], cosine, sine)
    height = extent(corners[2], corners[0], op.Neg(sine), cosine)
    tangent = op.Div(b, a)
    top = op.Equal(points, op.ReduceMin(points, [0], keepdims=1))
    count = op.ReduceSum(op.Cast(op.Slice(top, [1], [2], [1]), to=_INT64), [0], keepdims=1)
    straight = op.Where(op.Greater(count, np.int64(1)), np.float64(1e30), np.float64(0))
    tangent = op.Where(op.Equal(b, np.float64(0)), straight, tangent)
    # The last step is first: the polygon begins with the edges of the last side, and TopK keeps the order of equal angles.
    _, order = op.TopK(op.Squeeze(tangent, [1]), op.Shape(b, end=1), axis=0, outputs=2)
    areas = op.Gather(op.Reshape(op.Mul(width, height), [-1]), order, axis=0)
    best = op.Gather(order, op.ArgMin(areas, axis=0, keepdims=1), axis=0)

    def chosen(value: Value) -> Value:
        return op.Cast(op.Reshape(op.Gather(value, best, axis=0), [-1]), to=_DOUBLE)

    width, height, a, b = (chosen(v) for v in (width, height, cosine, sine))
    ahead, aside = (chosen(v) for v in (ahead, aside))
    scale = op.Div(1.0, op.Gather(op.Reshape(length, [-1]), best, axis=0))

    def middle(values: Value) -> Value:
        ends = op.Add(op.ReduceMax(values, [0], keepdims=1), op.ReduceMin(values, [0], keepdims=1))
        return op.Mul(op.Mul(ends, 0.5), scale)

    across, up = middle(ahead), middle(aside)
    center = op.Sub(op.Mul(a, across), op.Mul(b, up)), op.Add(op.Mul(b, across), op.Mul(a, up))
    angle = op.Mul(op.Atan(op.Cast(op.Div(b, a), to=_FLOAT)), np.float32(180 / np.pi))
    flat = op.LessOrEqual(angle, np.float32(0))  # an angle of 0 is equal to 90 with width and height exchanged
    sides = op.Where(flat, op.Concat(height, width, axis=0), op.Concat(width, height, axis=0))
    angle = op.Where(flat, np.float32(90), angle)
    return op.Concat(op.Cast(op.Concat(*center, sides, axis=0), to=_FLOAT), angle, axis=0)
