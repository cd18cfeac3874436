"""Outputs of detectors: boxes decoded from a network's predictions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.openvino.rule import Unsupported, rule
from onnx_specops.building import Builder, Value

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"]


@rule("DetectionOutput")
def detection_output(
    op: Builder,
    box_logits: Value,
    class_preds: Value,
    proposals: Value,
    aux_class_preds: Value | None = None,
    aux_box_preds: Value | None = None,
    *,
    num_classes: int | None = None,
    background_label_id: int = 0,
    top_k: int = -1,
    variance_encoded_in_target: bool = False,
    keep_top_k: tuple[int, ...],
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER",
    share_location: bool = True,
    nms_threshold: float,
    confidence_threshold: float = 0.0,
    clip_after_nms: bool = False,
    clip_before_nms: bool = False,
    decrease_label_id: bool = False,
    normalized: bool = False,
    input_height: int = 1,
    input_width: int = 1,
    objectness_score: float = 0.0,
):
    """DetectionOutput-1 and -8, whose number of classes follows from the shapes, as that of -1 does for the CPU plugin."""
    if not keep_top_k:
        raise Unsupported("its keep_top_k is empty")
    if (aux_class_preds is None) != (aux_box_preds is None):
        raise Unsupported("it has one of the two additional inputs only")
    if decrease_label_id and background_label_id != 0:
        raise Unsupported("with decrease_label_id its background_label_id must be 0")
    return op.specops.DetectionOutput(
        box_logits,
        class_preds,
        proposals,
        aux_class_preds or left_out(op, box_logits),
        aux_box_preds or left_out(op, box_logits),
        keep_top_k=keep_top_k[0],
        nms_threshold=nms_threshold,
        background_label_id=background_label_id,
        top_k=top_k,
        variance_encoded_in_target=variance_encoded_in_target,
        code_type=code_type,
        share_location=share_location,
        confidence_threshold=confidence_threshold,
        clip_after_nms=clip_after_nms,
        clip_before_nms=clip_before_nms,
        decrease_label_id=decrease_label_id,
        normalized=normalized,
        input_height=input_height,
        input_width=input_width,
        objectness_score=objectness_score,
    )


def left_out(op: Builder, like: Value) -> Value:
    """The empty tensor that stands for an optional input, of the element type of ``like``."""
    return op.const(np.zeros(0), like.dtype)
