"""NonMaxSuppression and RoiAlign with operators that every program supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array

_MOST_NODES = 10_000
"""The largest number of nodes that replace a NonMaxSuppression."""

_NODES_OF_STEP = 3


class SuppressionBySteps(Workaround):
    """Convert NonMaxSuppression to a fixed number of steps, each a matrix multiplication.

    The boxes are sorted by their scores. In each step, a box is kept unless it overlaps too much with a better box that the
    previous step kept. The number of steps is the number of boxes, after which nothing changes. Conditions: known numbers of
    boxes and classes, constant thresholds, and a result of at most 10,000 nodes.
    """

    operators = frozenset(("NonMaxSuppression",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        boxes, scores = (cast(Value, value) for value in node.inputs[:2])
        limits = [None if value is None else constant_array(value) for value in (*node.inputs, None, None, None)[2:5]]
        given = [value is not None for value in (*node.inputs, None, None, None)[2:5]]
        if any(one and limit is None for one, limit in zip(given, limits, strict=True)):
            return None
        if scores.dims is None or len(scores.dims) != 3 or None in scores.dims or boxes.dtype != ir.DataType.FLOAT:
            return None
        batches, classes, count = (size or 0 for size in scores.dims)
        most, iou, least = (None if limit is None else limit.reshape(-1)[0] for limit in limits)
        most = 0 if most is None else min(int(most), count)
        if not batches * classes * count or most <= 0 or batches * classes * count * _NODES_OF_STEP > _MOST_NODES:
            return None
        center = bool(attributes_of(node).get("center_point_box", 0))
        rows = []
        for batch in range(batches):
            corners = _corners(op, op.Squeeze(op.Slice(boxes, [batch], [batch + 1], [0]), [0]), center)
            for each in range(classes):
                own = op.Reshape(op.Slice(scores, [batch, each], [batch + 1, each + 1], [0, 1]), [count])
                selected, number = _selected(op, corners, own, count, most, float(iou or 0), least)
                place = op.Expand(op.const([[batch, each]]), op.Concat(number, [2], axis=0))
                rows.append(op.Concat(place, op.Unsqueeze(selected, [1]), axis=1))
        return [rows[0] if len(rows) == 1 else op.Concat(*rows, axis=0)]


def _corners(op: Builder, boxes: Value, center: bool) -> Value:
    """Return the least and greatest corners ``[boxes, 4]``; the two of a box may be in any order."""
    first, second = op.Slice(boxes, [0], [2], [1]), op.Slice(boxes, [2], [4], [1])
    if center:
        half = op.Mul(second, np.float32(0.5))
        first, second = op.Sub(first, half), op.Add(first, half)
    return cast(Value, op.Concat(op.Min(first, second), op.Max(first, second), axis=1))


def _selected(
    op: Builder, corners: Value, scores: Value, count: int, most: int, iou: float, least: np.generic | None
) -> tuple[Value, Value]:
    """Return the indices of the selected boxes in the order of their scores, and their number."""
    best, order = op.TopK(scores, [count], axis=0, outputs=2)
    sides = op.Split(op.Gather(corners, order, axis=0), axis=1, num_outputs=4, outputs=4)
    rows = [op.Transpose(side, perm=[1, 0]) for side in sides]
    lengths = [
        op.Max(op.Sub(op.Min(sides[axis + 2], rows[axis + 2]), op.Max(sides[axis], rows[axis])), np.float32(0))
        for axis in (0, 1)
    ]
    areas = op.Mul(op.Sub(sides[2], sides[0]), op.Sub(sides[3], sides[1]))
    common = op.Mul(*lengths)
    whole = op.Sub(op.Add(areas, op.Transpose(areas, perm=[1, 0])), common)
    later = np.triu(np.ones((count, count), np.float32), 1)
    overlaps = op.Mul(op.Cast(op.Greater(op.Div(common, whole), np.float32(iou)), to=ir.DataType.FLOAT), later)
    candidates: Value | None = None
    if least is not None:
        candidates = op.Cast(op.Greater(best, np.float32(least)), to=ir.DataType.FLOAT)
        overlaps = op.Mul(overlaps, op.Unsqueeze(candidates, [1]))
    kept = op.const(np.ones((1, count), np.float32))
    for _ in range(count - 1):
        kept = op.Cast(op.Less(op.MatMul(kept, overlaps), np.float32(0.5)), to=ir.DataType.FLOAT)
    kept = op.Reshape(kept, [count])
    kept = kept if candidates is None else op.Mul(kept, candidates)
    number = op.Cast(op.ReduceSum(kept, [0], keepdims=1), to=ir.DataType.INT64)
    if most < count:
        number = op.Min(number, [most])
    places = op.TopK(op.Mul(kept, np.arange(count, 0, -1).astype(np.float32)), number, axis=0, outputs=2)[1]
    return op.Gather(order, places, axis=0), number


class RegionsByMatMul(Workaround):
    """Convert RoiAlign to matrix multiplications with the weights of the rows and columns of each region.

    An infinite pixel makes all regions of its image NaN. Conditions: a known number of samples per bin, a known image size,
    and the mode ``avg``.
    """

    operators = frozenset(("RoiAlign",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, regions, images = (cast(Value, value) for value in node.inputs[:3])
        attributes = attributes_of(node)
        samples, scale = int(attributes.get("sampling_ratio", 0)), float(attributes.get("spatial_scale", 1.0))
        mode = attributes.get("coordinate_transformation_mode", "half_pixel")
        if attributes.get("mode", "avg") != "avg" or samples <= 0 or x.dtype != ir.DataType.FLOAT or x.dims is None:
            return None
        sizes = x.dims[2:]
        if len(sizes) != 2 or not all(sizes):
            return None
        scaled = op.Mul(regions, np.float32(scale))
        if mode == "half_pixel":
            scaled = op.Sub(scaled, np.float32(0.5))
        weights = []
        for axis, size in enumerate(sizes):
            bins = int(attributes.get(("output_height", "output_width")[axis], 1))
            begin, end = (op.Slice(scaled, [k], [k + 1], [1]) for k in (1 - axis, 3 - axis))
            length = op.Sub(end, begin)
            if mode != "half_pixel":
                length = op.Max(length, np.float32(1))
            weights.append(_weights(op, begin, op.Div(length, np.float32(bins)), bins, samples, size or 0))
        pictures = x if x.dims[0] == 1 else op.Gather(x, images, axis=0)
        rows, columns = (op.Unsqueeze(one, [1]) for one in weights)
        return [op.MatMul(op.MatMul(rows, pictures), op.Transpose(columns, perm=[0, 1, 3, 2]))]


class ScaledRegions(Workaround):
    """Multiply the regions of RoiAlign by ``spatial_scale`` if the mode is ``avg`` and the coordinates are ``half_pixel``.

    TVM (0.27) subtracts half a pixel before it multiplies by the scale.
    """

    operators = frozenset(("RoiAlign",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, regions, images = node.inputs[:3]
        attributes = attributes_of(node)
        scale = attributes.pop("spatial_scale", 1.0)
        if attributes.get("mode", "avg") != "avg" or scale == 1 or not isinstance(regions, Value) or regions.dtype is None:
            return None
        if attributes.get("coordinate_transformation_mode", "half_pixel") != "half_pixel":
            return None
        scaled = op.Mul(regions, op.const(np.float32(scale), regions.dtype))
        return [op.RoiAlign(x, scaled, images, **attributes)]


def _weights(op: Builder, begin: Value, step: Value, bins: int, samples: int, size: int) -> Value:
    """Return the weights of pixels along an axis, ``[regions, bins, size]``."""
    places = (np.arange(bins)[:, None] + (np.arange(samples) + 0.5) / samples).astype(np.float32)
    at = op.Add(op.Unsqueeze(begin, [1]), op.Mul(op.Unsqueeze(step, [1]), places[None]))
    at = op.Unsqueeze(at, [3])
    inside = op.And(op.GreaterOrEqual(at, np.float32(-1)), op.LessOrEqual(at, np.float32(size)))
    within = op.Min(op.Max(at, np.float32(0)), np.float32(size - 1))
    distances = op.Abs(op.Sub(within, np.arange(size).astype(np.float32)))
    near = op.Max(op.Sub(np.float32(1), distances), np.float32(0))
    return cast(Value, op.ReduceMean(op.Mul(near, op.Cast(inside, to=ir.DataType.FLOAT)), [2], keepdims=0))
