"""Region proposals."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Context, rule
from converters.openvino.rules._precision import selected_in_float32
from converters.openvino.rules._shapes import match_shapes
from converters.openvino.rules.detectron import UNORDERED
from onnx_specops.building import Builder, Value


@rule("Proposal")
def proposal(
    op: Builder,
    class_probs: Value,
    bbox_deltas: Value,
    image_shape: Value,
    *,
    base_size: int,
    pre_nms_topn: int,
    post_nms_topn: int,
    nms_thresh: float,
    feat_stride: int,
    min_size: int,
    ratio: tuple[float, ...],
    scale: tuple[float, ...],
    clip_before_nms: bool = True,
    clip_after_nms: bool = False,
    normalize: bool = False,
    box_size_scale: float = 1.0,
    box_coordinate_scale: float = 1.0,
    framework: Literal["", "tensorflow"] = "",
    context: Context,
):
    """Proposal-1 and -4. The latter also returns the probabilities."""
    if post_nms_topn <= 0 or pre_nms_topn <= 0:
        raise Malformed(f"its pre_nms_topn {pre_nms_topn} or post_nms_topn {post_nms_topn} is not positive")
    count = len(ratio) * len(scale)
    match_shapes(
        class_probs=(class_probs, f"N {2 * count} H W"),
        bbox_deltas=(bbox_deltas, f"N {4 * count} H W"),
        image_shape=(image_shape, "_"),
    )
    anchors = _anchors(base_size, ratio, scale, framework == "tensorflow")
    propose = functools.partial(
        op.specops.Proposal,
        feat_stride=feat_stride, min_size=min_size, pre_nms_topn=min(pre_nms_topn, 2**31 - 1), post_nms_topn=post_nms_topn,
        nms_thresh=nms_thresh, box_coordinate_scale=box_coordinate_scale, box_size_scale=box_size_scale, normalize=normalize,
        clip_before_nms=clip_before_nms, clip_after_nms=clip_after_nms, framework=framework,
    )  # fmt: skip

    def proposed(probs: Value, deltas: Value, image: Value) -> Sequence[Value]:
        results: Sequence[Value] = propose(probs, deltas, image, op.const(anchors, probs.dtype))
        return results

    results = selected_in_float32(op, proposed, class_probs, bbox_deltas, image_shape)
    return results[: len(context.layer.outputs)]


@rule("GenerateProposals", since="opset9", departs=[UNORDERED])
def generate_proposals(
    op: Builder,
    im_info: Value,
    anchors: Value,
    boxesdeltas: Value,
    scores: Value,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool = True,
    nms_eta: float = 1.0,
    roi_num_type: ElementType = ElementType.I64,
):
    """GenerateProposals-9. OpenVINO supports only an ``nms_eta`` of 1."""
    if nms_eta != 1.0:
        raise Malformed(f"its nms_eta is {nms_eta}; OpenVINO supports only 1")
    match_shapes(
        im_info=(im_info, "N _"),
        anchors=(anchors, "H W A 4"),
        boxesdeltas=(boxesdeltas, "N D H W"),
        scores=(scores, "N A H W"),
    )
    propose = functools.partial(
        op.specops.GenerateProposals,
        min_size=min_size, nms_threshold=nms_threshold, pre_nms_count=pre_nms_count, post_nms_count=post_nms_count,
        normalized=normalized,
    )  # fmt: skip
    rois, roi_scores, numbers = selected_in_float32(op, propose, im_info, anchors, boxesdeltas, scores)
    return rois, roi_scores, op.Cast(numbers, to=data_type(roi_num_type))


def _anchors(base_size: int, ratios: tuple[float, ...], scales: tuple[float, ...], tensorflow: bool) -> np.ndarray:
    """Return the anchors around the first position, ``[ratios * scales, 4]``, of equal area, with a height of ``ratio``
    times the width.
    """
    f = np.float32
    offset = f(0 if tensorflow else 1)
    ratio, scale = np.array(ratios, f)[:, None], np.array(scales, f)
    width = np.sqrt(f(base_size * base_size) / ratio)
    if not tensorflow:
        width = _rounded(width)
    height = width * ratio if tensorflow else _rounded(width * ratio)
    center = f(0.5) * (f(base_size) - offset)
    half = [f(0.5) * (side * scale - offset) for side in (width, height)]
    corners = [center - half[0], center - half[1], center + half[0], center + half[1]]
    shift = f(base_size * 0.5) if tensorflow else f(0)
    return np.stack([(corner - shift).reshape(-1) for corner in corners], axis=1)


def _rounded(x: np.ndarray) -> np.ndarray:
    """Round ties away from zero."""
    return np.trunc(x + np.copysign(np.float32(0.5), x))
