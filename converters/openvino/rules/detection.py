"""Outputs of detectors: decoding of boxes from predictions."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import AttributeGroup, Departure, omitted, rule
from converters.openvino.rules._indices import normal_axis
from converters.openvino.rules._precision import mixed_in_float32
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

_NONE_KEPT = Departure(
    name="no detections",
    where="a `keep_top_k` of 0",
    cpu="returns uninitialized memory",
    specification="keeps no detection",
    follows="specification",
)

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"]


@dataclass(frozen=True, kw_only=True)
class Detections(AttributeGroup):
    """The attributes of DetectionOutput-1 and -8."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: tuple[int, ...]
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER"
    share_location: bool = True
    nms_threshold: float
    confidence_threshold: float = 0.0
    clip_after_nms: bool = False
    clip_before_nms: bool = False
    decrease_label_id: bool = False
    normalized: bool = False
    input_height: int = 1
    input_width: int = 1
    objectness_score: float = 0.0


@rule("DetectionOutput", departs=[_NONE_KEPT])
def detection_output_1(
    op: Builder,
    box_logits: Value,
    class_preds: Value,
    proposals: Value,
    aux_class_preds: Value | None = None,
    aux_box_preds: Value | None = None,
    *,
    num_classes: int,
    attributes: Detections,
):
    """DetectionOutput-1: the number of classes must match the shapes, which determine it."""
    if num_classes < 1:
        raise Malformed(f"its num_classes is {num_classes}; it must be 1 or more")
    logits, scores = (value.dims[1] if value.rank == 2 and value.dims else None for value in (box_logits, class_preds))
    each = 4 if attributes.share_location else 4 * num_classes
    if logits is not None and (logits % each or scores not in (None, logits // each * num_classes)):
        raise Malformed(f"its {logits} box_logits and {scores} class_preds do not match {num_classes} classes")
    return detection_output(op, box_logits, class_preds, proposals, aux_class_preds, aux_box_preds, attributes=attributes)


@rule("DetectionOutput", since="opset8", departs=[_NONE_KEPT])
def detection_output(
    op: Builder,
    box_logits: Value,
    class_preds: Value,
    proposals: Value,
    aux_class_preds: Value | None = None,
    aux_box_preds: Value | None = None,
    *,
    attributes: Detections,
):
    """DetectionOutput-8: the shapes determine the number of classes."""
    if not attributes.keep_top_k:
        raise Malformed("its keep_top_k is empty")
    if (aux_class_preds is None) != (aux_box_preds is None):
        raise Malformed("it has only one of the two additional inputs")
    if attributes.decrease_label_id and attributes.background_label_id != 0:
        raise Malformed("with decrease_label_id its background_label_id must be 0")
    match_shapes(
        box_logits=(box_logits, "N L"),
        class_preds=(class_preds, "N P"),
        proposals=(proposals, "_ _ B"),
        aux_class_preds=(aux_class_preds, "N A"),
        aux_box_preds=(aux_box_preds, "N L"),
    )
    given = {field.name: getattr(attributes, field.name) for field in fields(attributes)}
    detect = functools.partial(op.specops.DetectionOutput, **given | {"keep_top_k": attributes.keep_top_k[0]})
    if aux_class_preds is not None and aux_box_preds is not None:
        return mixed_in_float32(op, detect, box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)

    def without_more(boxes: Value, *others: Value) -> Value:
        return detect(boxes, *others, empty_input(op, boxes), empty_input(op, boxes))

    return mixed_in_float32(op, without_more, box_logits, class_preds, proposals)


def empty_input(op: Builder, like: Value) -> Value:
    """Return the empty tensor for an omitted optional input, of the element type of ``like``."""
    return op.const(np.zeros(0), like.dtype)


@rule(
    "RegionYolo",
    departs=[
        Departure(
            name="large numbers",
            where="`do_softmax` of numbers above 88",
            cpu="gives NaN at some places, because it subtracts the maximum of another place",
            specification="computes the softmax",
            follows="specification",
        ),
        omitted("do_softmax", "false", "true"),
    ],
)
def region_yolo(
    op: Builder,
    data: Value,
    *,
    anchors: tuple[float, ...] = (),
    axis: int,
    coords: int,
    classes: int,
    end_axis: int,
    num: int,
    do_softmax: bool = False,
    mask: tuple[int, ...] = (),
):
    """RegionYolo-1.

    In each region, the logistic function is applied to the first two coordinates and the objectness. It is also applied to
    the classes, unless ``do_softmax`` selects a softmax. ``anchors`` are used only by consumers of the result.
    """
    entries, regions = coords + 1 + classes, num if do_softmax else len(mask)
    if not 0 <= coords <= 2**12 or classes < 0 or regions < 1 or entries < 2:
        raise Malformed(f"its {regions} regions, {coords} coordinates or {classes} classes are out of range")
    if data.rank not in (None, 4) or (data.dims is not None and data.dims[1] not in (None, regions * entries)):
        raise Malformed(f"its input of the shape {data.dims} does not contain {regions} regions of {entries} entries")
    shape = op.Shape(data)
    grid = op.Concat([0, regions, entries], op.Slice(shape, [2], [4]), axis=0)
    parts = _segments(coords, classes, do_softmax)
    split = op.Split(op.Reshape(data, grid), [size for size, _ in parts], axis=2, outputs=len(parts))
    pieces = []
    for piece, (_, kind) in zip(split if len(parts) > 1 else [split], parts, strict=True):
        if kind == "softmax":
            piece = op.Softmax(piece, axis=2)
        for _ in range(kind if isinstance(kind, int) else 0):
            piece = op.Sigmoid(piece)
        pieces.append(piece)
    result = pieces[0] if len(pieces) == 1 else op.Concat(*pieces, axis=2)
    if not do_softmax:
        return op.Reshape(result, shape)
    first, last = normal_axis(axis, 4), normal_axis(end_axis, 4, "end_axis")
    flat = op.ReduceProd(op.Slice(shape, [first], [last + 1])) if first < last else op.Slice(shape, [first], [first + 1])
    return op.Reshape(result, op.Concat(op.Slice(shape, [0], [first]), flat, op.Slice(shape, [last + 1], [4]), axis=0))


def _segments(coords: int, classes: int, do_softmax: bool) -> list[tuple[int, int | str]]:
    """Return the entries of a region in runs: their number, and how often the logistic function is applied to them."""
    parts: list[tuple[int, int | str]] = [(1, (entry < 2) + (entry >= coords)) for entry in range(coords + 1)]
    if do_softmax:
        parts.append((classes, "softmax"))
    else:  # without coordinates, the first class is one of the first two entries
        parts += [(min(classes, 1), 1 + (coords == 0)), (max(classes - 1, 0), 1)]
    runs: list[tuple[int, int | str]] = []
    for size, kind in parts:
        if not size:
            continue
        if runs and runs[-1][1] == kind:
            runs[-1] = (runs[-1][0] + size, kind)
        else:
            runs.append((size, kind))
    return runs
