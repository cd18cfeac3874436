"""Shared code of MatrixNms and MulticlassNms: the limit per image, and the order of the selected boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.ops._boxes import emit_range

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value

SortResultType = Literal["none", "classid", "score"]

Selected = tuple[int, int, int, Any]  # batch, class, box, score


def ordered(selected: Sequence[Selected], keep_top_k: int, by_class: bool, by_score: bool, across: bool) -> list[Selected]:
    """Return the ``keep_top_k`` best boxes of each image (all if negative), in the requested order.

    Args:
        selected: the boxes.
        keep_top_k: the number of boxes to keep per image.
        by_class: whether to sort by class, in each image or, with ``across``, over all images.
        by_score: whether, with ``across``, to sort by score over all images.
        across: whether the order spans all images.
    """
    best: list[Selected] = []
    for batch in sorted({s[0] for s in selected}):
        own = sorted((s for s in selected if s[0] == batch), key=lambda s: (-s[3], s[1], s[2]))
        best += own[:keep_top_k] if keep_top_k >= 0 else own
    if by_class:
        best.sort(key=lambda s: (s[1], s[0]) if across else (s[0], s[1]))
    elif by_score and across:
        best.sort(key=lambda s: -s[3])
    return best


def emit_ordered(
    op: Builder, kept: Value, scores: Value, boxes: Value, keep_top_k: int, by_class: bool, by_score: bool, across: bool
) -> tuple[Value, Value, Value, Value, Value]:
    """Emit `ordered` in a body.

    Args:
        op: the graph builder.
        kept: bool ``[batches, classes, n]``, which boxes are selected.
        scores: the scores of the boxes, descending within a class, equal ones by box.
        boxes: int64, the indices of the boxes.
        keep_top_k: the number of boxes to keep per batch; -1 for all.
        by_class: whether to sort by class.
        by_score: whether, with ``across``, to sort by score over all batches.
        across: whether the order spans all batches.

    Returns:
        Batch, class, box and score of each selected box, and the number of boxes of each batch.
    """
    batches, classes = op.Shape(kept, end=1), op.Shape(kept, start=1, end=2)
    flat = op.Concat(batches, op.ReduceProd(op.Shape(kept, start=1)), axis=0)
    class_ = op.Expand(op.Unsqueeze(emit_range(op, kept, 1), [1]), op.Shape(kept))
    kept, scores, boxes, class_ = (op.Reshape(x, flat, allowzero=1) for x in (kept, scores, boxes, class_))
    counts = op.ReduceSum(op.Cast(kept, to=Type.INT64), [1], keepdims=0)
    most = op.Shape(kept, start=1)
    if keep_top_k >= 0:
        counts, most = op.Min(counts, keep_top_k), op.Min(most, keep_top_k)
    scores, order = op.TopK(op.Where(kept, scores, -np.inf), most, axis=1, outputs=2)
    valid = op.Less(emit_range(op, order, 1), op.Unsqueeze(counts, [1]))
    at = op.Transpose(op.NonZero(op.Cast(valid, to=Type.INT64)), perm=[1, 0])
    batch = op.Gather(at, np.array(0), axis=1)
    boxes, class_ = (op.GatherElements(x, order, axis=1) for x in (boxes, class_))
    found = [batch, *(op.GatherND(x, at) for x in (class_, boxes, scores))]
    if by_class or (by_score and across):
        if by_class:
            key = op.Add(op.Mul(found[1], batches), batch) if across else op.Add(op.Mul(batch, classes), found[1])
        else:
            key = found[3]
        _, order = op.TopK(key, op.Shape(batch), axis=0, largest=0 if by_class else 1, outputs=2)
        found = [op.Gather(x, order, axis=0) for x in found]
    return found[0], found[1], found[2], found[3], counts
