# ruff: noqa: E501
"""Boxes: priors, proposals, regions, detections."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, one, random

_PRIOR = {
    "min_size": "16",
    "max_size": "32",
    "aspect_ratio": "2",
    "flip": 1,
    "clip": 0,
    "variance": "0.1,0.1,0.2,0.2",
    "step": 0,
    "offset": 0.5,
}
_CLUSTERED = {
    "width": "10,20",
    "height": "15,8",
    "clip": 0,
    "flip": 0,
    "variance": "0.1,0.1,0.2,0.2",
    "step": 16,
    "offset": 0.5,
    "img_h": 0,
    "img_w": 0,
}
_MAPS = [(1, 2, 3, 4), (1, 3, 48, 64)]


def _priors(name, data, count, maps=None, kind="PriorBox", **options) -> Case:
    maps = maps or _MAPS
    cells = maps[0][2] * maps[0][3]
    return one(
        kind, name, maps, (1, 2, cells * count * 4), {**(_PRIOR if kind == "PriorBox" else _CLUSTERED), **data}, **options
    )


_BOXES = np.array(
    [[0.1, 0.1, 0.4, 0.4], [0.12, 0.1, 0.42, 0.4], [0.5, 0.5, 0.9, 0.9], [0.0, 0.6, 0.3, 1.0], [0.5, 0.1, 0.8, 0.3]],
    np.float32,
)
_VARIANCES = np.tile(np.array([0.1, 0.1, 0.2, 0.2], np.float32), 5)
_PRIORS = np.stack([_BOXES.reshape(-1), _VARIANCES])[None]
_DETECT = {
    "num_classes": 3, "background_label_id": 0, "top_k": 10, "keep_top_k": 6, "share_location": 1, "nms_threshold": 0.45,
    "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "confidence_threshold": 0.01, "variance_encoded_in_target": 0,
}  # fmt: skip


def _detections(name, data=None, keep=6, boxes=20, **options) -> Case:
    inputs = [(1, boxes), (1, 15), _PRIORS]
    attributes = {**_DETECT, "keep_top_k": keep, **(data or {})}
    return one(
        "DetectionOutput",
        name,
        inputs,
        (1, 1, keep, 7),
        attributes,
        feeds={"in0": (-0.3, 0.3), "in1": (0.02, 1.0)},
        **options,
    )


_PROPOSAL = {
    "base_size": 16, "feat_stride": 16, "min_size": 4, "pre_nms_topn": 60, "post_nms_topn": 8, "nms_thresh": 0.6, "ratio": "0.5,1,2",
    "scale": "2,4",
}  # fmt: skip
_INFO = np.array([[96, 128, 1.0]], np.float32)


def _proposal(name, data=None, info=_INFO, **options) -> Case:
    inputs = [(1, 12, 6, 8), (1, 24, 6, 8), info]
    return one(
        "Proposal", name, inputs, (8, 5), {**_PROPOSAL, **(data or {})}, feeds={"in0": (0, 1), "in1": (-0.3, 0.3)}, **options
    )


_ROIS = np.array([[0, 0, 0, 5, 5], [0, 2, 1, 7, 6], [0, 3, 3, 4, 4]], np.float32)
_BILINEAR_INPUTS = [(1, 8, 8, 8), np.array([[0, 0.1, 0.1, 0.6, 0.7], [0, 0, 0, 1, 1]], np.float32)]
_BILINEAR = {
    "output_dim": 2,
    "group_size": 3,
    "spatial_scale": 1.0,
    "mode": "bilinear",
    "spatial_bins_x": 2,
    "spatial_bins_y": 2,
}
_AVERAGE = {"output_dim": 2, "group_size": 3, "spatial_scale": 1.0, "mode": "average"}
_ROI = {"pooled_h": 2, "pooled_w": 3, "spatial_scale": 1.0, "method": "max"}
_YOLO = {"coords": 4, "classes": 3, "num": 2, "do_softmax": 1, "axis": 1, "end_axis": 3, "anchors": "1,2,3,4"}
_NMS_SCORES = np.random.default_rng(4).permutation(10).reshape(1, 2, 5) / 10.0 + 0.05


def _nms(name, data, inputs, out, random=False, **options) -> Case:
    return one(
        "NonMaxSuppression",
        name,
        [(1, 5, 4), (1, 2, 5), *inputs],
        out,
        data,
        feeds={"in0": (0, 1), "in1": (0.05, 1)} if random else {"in0": _BOXES, "in1": _NMS_SCORES},
        version=7,
        precisions=("I32",),
        **options,
    )


_SIMPLER = {
    "min_bbox_size": 4,
    "feat_stride": 16,
    "pre_nms_topn": 200,
    "post_nms_topn": 12,
    "iou_threshold": 0.7,
    "scale": "1,2,4",
    "cls_threshold": 0.5,
}


def _simpler(name, data=None, **options) -> Case:
    return one(
        "SimplerNMS",
        name,
        [(1, 18, 5, 6), (1, 36, 5, 6), _INFO],
        ((data or {}).get("post_nms_topn", 12), 5),
        {**_SIMPLER, **(data or {})},
        feeds={"in0": (0.01, 1), "in1": (-0.3, 0.3)},
        **options,
    )


CASES = [
    _nms("no_limits", {}, [], (10, 3)),
    _nms("no_iou_threshold", {}, [np.array([2], np.int32)], (4, 3)),
    _priors("image_height", {"img_h": 96, "step": 0}, 2, kind="PriorBoxClustered"),
    _detections("clip", {"clip": 1}),
    _proposal("framework_by_another_name", {"framework": "TensorFlow"}),
    one(
        "Proposal",
        "batch",
        [(2, 12, 6, 8), (2, 24, 6, 8), np.array([[96, 128, 1.0], [48, 64, 2.0]], np.float32)],
        (16, 5),
        _PROPOSAL,
        feeds={"in0": (0, 1), "in1": (-0.3, 0.3)},
    ),
    one(
        "Proposal",
        "four_dimensions",
        [(1, 12, 6, 8), (1, 24, 6, 8), _INFO],
        (8, 5, 1, 1),
        _PROPOSAL,
        feeds={"in0": (0, 1), "in1": (-0.3, 0.3)},
    ),
    one(
        "PSROIPooling",
        "bilinear_pooled",
        _BILINEAR_INPUTS,
        (2, 2, 5, 5),
        {**_BILINEAR, "pooled_height": 5, "pooled_width": 5},
    ),
    one(
        "PSROIPooling",
        "deformable_pooled",
        [(1, 8, 8, 8), _ROIS, (3, 2, 2, 2)],
        (3, 2, 4, 4),
        {
            "output_dim": 2,
            "group_size": 2,
            "spatial_scale": 0.5,
            "mode": "bilinear_deformable",
            "spatial_bins_x": 3,
            "spatial_bins_y": 3,
            "trans_std": 0.1,
            "part_size": 2,
            "no_trans": 0,
            "pooled_height": 4,
            "pooled_width": 4,
        },
    ),
    one(
        "RegionYolo",
        "no_mask",
        (1, 16, 4, 5),
        (1, 16, 4, 5),
        {"classes": 3, "coords": 4, "num": 2, "do_softmax": 0},
    ),
    _priors(
        "not_all_sizes", {"min_size": "16,24", "max_size": "", "aspect_ratio": "2,0.5", "flip": 0, "scale_all_sizes": 0}, 4
    ),
    _priors(
        "not_all_sizes_step",
        {"min_size": "16", "max_size": "", "aspect_ratio": "2", "flip": 0, "scale_all_sizes": 0, "step": 12},
        2,
    ),
    _priors(
        "not_all_sizes_flip",
        {"min_size": "16,24,30", "max_size": "", "aspect_ratio": "2,3", "flip": 1, "scale_all_sizes": 0},
        7,
    ),
    _priors("one_variance", {"variance": "0.1"}, 4),
    _priors("plain", {}, 2, kind="PriorBoxClustered"),
    _priors("clip", {"clip": 1}, 2, kind="PriorBoxClustered"),
    _priors("steps", {"step": 0, "step_h": 12, "step_w": 10}, 2, kind="PriorBoxClustered"),
    _priors("image", {"img_h": 96, "img_w": 96}, 2, kind="PriorBoxClustered"),
    _priors("no_step", {"step": 0}, 2, kind="PriorBoxClustered"),
    _detections("plain"),
    _detections("corner", {"code_type": "caffe.PriorBoxParameter.CORNER"}),
    _detections("encoded", {"variance_encoded_in_target": 1}),
    _detections("threshold", {"confidence_threshold": 0.4}),
    _detections("own_locations", {"share_location": 0}, boxes=60),
    _detections("few", {"top_k": 2}, keep=3),
    _detections("strict", {"nms_threshold": 0.1}),
    _detections("background", {"background_label_id": 1}),
    _detections("clip_before", {"clip_before_nms": 1}),
    _detections("clip_after", {"clip_after_nms": 1}),
    _proposal("plain"),
    _proposal("no_clip", {"clip_before_nms": 0, "clip_after_nms": 1}),
    _proposal("normalize", {"normalize": 1}),
    _proposal("scales", {"box_size_scale": 2.0, "box_coordinate_scale": 3.0}),
    _proposal("tensorflow", {"framework": "tensorflow"}),
    _proposal("four_of_image", {}, np.array([[96, 128, 1.0, 1.0]], np.float32)),
    _proposal("two_scales", {"min_size": 20}, np.array([[96, 128, 0.5, 2.5]], np.float32)),
    _proposal("six_of_image", {"min_size": 20}, np.array([[96, 128, 1.0, 0.5, 0.7, 0.9]], np.float32)),
    one("ROIPooling", "max", [(1, 3, 8, 8), _ROIS], (3, 3, 2, 3), _ROI),
    one("ROIPooling", "scale", [(1, 3, 8, 8), _ROIS], (3, 3, 2, 3), {**_ROI, "spatial_scale": 0.5}),
    one(
        "ROIPooling",
        "bilinear",
        [(1, 3, 8, 8), np.array([[0, 0.1, 0.1, 0.6, 0.7], [0, 0, 0, 1, 1]], np.float32)],
        (2, 3, 3, 3),
        {"pooled_h": 3, "pooled_w": 3, "spatial_scale": 1.0, "method": "bilinear"},
    ),
    _priors("plain", {}, 4),
    _priors("clip", {"clip": 1}, 4),
    _priors("no_flip", {"flip": 0}, 3),
    _priors("step", {"step": 12.0}, 4),
    _priors("sizes", {"min_size": "16,24", "max_size": "", "aspect_ratio": "2,3"}, 10),
    _priors("max_sizes", {"min_size": "16,24", "max_size": "20,30", "aspect_ratio": "2"}, 8),
    _priors(
        "density",
        {"min_size": "", "max_size": "", "aspect_ratio": "", "fixed_size": "16,32", "fixed_ratio": "1", "density": "2,1"},
        5,
    ),
    one("ROIPooling", "batch", [(2, 2, 8, 8), np.array([[1, 0, 0, 5, 5], [0, 2, 1, 7, 6]], np.float32)], (2, 2, 2, 3), _ROI),
    one(
        "PSROIPooling",
        "average",
        [(1, 8, 8, 8), _ROIS],
        (3, 2, 2, 2),
        {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0, "mode": "average"},
    ),
    one(
        "PSROIPooling",
        "scale",
        [(1, 18, 8, 8), _ROIS],
        (3, 2, 3, 3),
        {"output_dim": 2, "group_size": 3, "spatial_scale": 0.5, "mode": "average"},
    ),
    one(
        "PSROIPooling",
        "bilinear",
        _BILINEAR_INPUTS,
        (2, 2, 3, 3),
        _BILINEAR,
    ),
    one(
        "PSROIPooling",
        "deformable",
        [(1, 8, 8, 8), _ROIS, random(4, 3, 2, 2, 2)],
        (3, 2, 2, 2),
        {
            "output_dim": 2,
            "group_size": 2,
            "spatial_scale": 1.0,
            "mode": "bilinear_deformable",
            "spatial_bins_x": 4,
            "spatial_bins_y": 4,
            "trans_std": 0.1,
            "part_size": 2,
            "no_trans": 0,
            "pooled_height": 2,
            "pooled_width": 2,
        },
    ),
    one(
        "PSROIPooling",
        "deformable_without_offsets",
        [(1, 8, 8, 8), _ROIS],
        (3, 2, 2, 2),
        {
            "output_dim": 2,
            "group_size": 2,
            "spatial_scale": 1.0,
            "mode": "bilinear_deformable",
            "spatial_bins_x": 4,
            "spatial_bins_y": 4,
            "trans_std": 0.1,
            "part_size": 2,
            "no_trans": 1,
            "pooled_height": 2,
            "pooled_width": 2,
        },
    ),
    one("RegionYolo", "softmax", (1, 16, 3, 3), (1, 144), _YOLO),
    one("RegionYolo", "mask", (1, 16, 3, 3), (1, 16, 3, 3), {**_YOLO, "num": 4, "do_softmax": 0, "mask": "0,1"}),
    one(
        "RegionYolo",
        "one_class",
        (1, 12, 3, 3),
        (1, 12, 3, 3),
        {**_YOLO, "classes": 1, "num": 4, "do_softmax": 0, "mask": "0,1"},
    ),
    one("RegionYolo", "batch", (2, 16, 2, 2), (2, 64), _YOLO),
    one("ReorgYolo", "plain", (1, 4, 4, 6), (1, 16, 2, 3), {"stride": 2}),
    one("ReorgYolo", "three", (1, 9, 6, 6), (1, 81, 2, 2), {"stride": 3}),
    one("ReorgYolo", "batch", (2, 4, 4, 4), (2, 16, 2, 2), {"stride": 2}),
    one("ReorgYolo", "one", (1, 4, 4, 4), (1, 4, 4, 4), {"stride": 1}),
    _nms(
        "plain",
        {"center_point_box": 0, "sort_result_descending": 1},
        [np.array(3, np.int32).reshape(1), np.array([0.5], np.float32), np.array([0.1], np.float32)],
        (6, 3),
    ),
    _nms(
        "unsorted",
        {"center_point_box": 0, "sort_result_descending": 0},
        [np.array(3, np.int32).reshape(1), np.array([0.5], np.float32), np.array([0.1], np.float32)],
        (6, 3),
    ),
    _nms(
        "centres",
        {"center_point_box": 1, "sort_result_descending": 1},
        [np.array(3, np.int32).reshape(1), np.array([0.3], np.float32), np.array([0.0], np.float32)],
        (6, 3),
    ),
    _nms(
        "fewer_rows",
        {"center_point_box": 0, "sort_result_descending": 1},
        [np.array(5, np.int32).reshape(1), np.array([0.5], np.float32), np.array([0.2], np.float32)],
        (4, 3),
    ),
    *[
        _nms(f"of_other_shapes_{name}", {}, [np.array([most], np.int32), *limits], (6, 3), random=True, shapes=shapes)
        for limits in ([np.array([0.5], np.float32), np.array([0.1], np.float32)],)
        for name, most, shapes in (
            ("boxes", 3, {"in0": (1, 9, 4), "in1": (1, 2, 9)}),
            ("classes", 20, {"in1": (1, 4, 5)}),
            ("images", 1, {"in0": (3, 5, 4), "in1": (3, 2, 5)}),
        )
    ],
    one(
        "PSROIPooling",
        "fewer_bins_than_groups",
        [(1, 18, 8, 8), _ROIS],
        (3, 2, 2, 2),
        {**_AVERAGE, "pooled_height": 2, "pooled_width": 2},
    ),
    one(
        "PSROIPooling",
        "more_bins_than_groups",
        [(1, 24, 8, 8), _ROIS],
        (3, 2, 4, 4),
        {**_AVERAGE, "pooled_height": 4, "pooled_width": 4},
    ),
    one(
        "PSROIPooling",
        "some_of_the_bins",
        [(1, 18, 8, 8), _ROIS],
        (3, 2, 3, 2),
        {**_AVERAGE, "pooled_height": 6, "pooled_width": 6},
    ),
    one(
        "PSROIPooling",
        "bins_of_other_shapes",
        _BILINEAR_INPUTS,
        (2, 2, 5, 5),
        {**_BILINEAR, "pooled_height": 5, "pooled_width": 5},
        shapes={"in0": (1, 8, 9, 7)},
    ),
    _simpler("plain"),
    _simpler("strict", {"iou_threshold": 0.3}),
    _simpler("few_before", {"pre_nms_topn": 20}),
    _simpler("many_after", {"post_nms_topn": 40}),
]
