"""Detectron's layers."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, one

_P = "ExperimentalDetectron"
_RNG = np.random.default_rng(3)
_BOXES = (_RNG.uniform(0, 60, (6, 2)).repeat(2, 0).reshape(6, 4) + np.array([0, 0, 20, 30])).astype(np.float32)
_ROIS = np.stack([_BOXES[:, 0], _BOXES[:, 1], _BOXES[:, 0] + 25, _BOXES[:, 1] + 35], 1).astype(np.float32)


def _grid(name, data, h, w, **options) -> Case:
    return one(
        _P + "PriorGridGenerator",
        name,
        [(3, 4), (1, 2, h, w), (1, 3, 64, 96)],
        (3 * h * w, 4),
        {"flatten": 1, "grid_h": 0, "grid_w": 0, "h": 0, "w": 0, "stride_h": 0, "stride_w": 0, **data},
        version=7,
        **options,
    )


def _proposals(name, data=None, **options) -> Case:
    data = {"min_size": 0, "nms_threshold": 0.7, "pre_nms_count": 50, "post_nms_count": 6, **(data or {})}
    count = data["post_nms_count"]
    anchors = np.concatenate([_RNG.uniform(0, 40, (36, 2)), _RNG.uniform(50, 90, (36, 2))], 1).astype(np.float32)
    inputs = [np.array([96, 128, 1], np.float32), anchors, (12, 3, 4), (3, 3, 4)]
    return one(
        _P + "GenerateProposalsSingleImage",
        name,
        inputs,
        [(count, 4), (count,)],
        data,
        feeds={"in2": (-0.3, 0.3), "in3": (0, 1)},
        version=7,
        **options,
    )


def _features(name, data=None, size=3, **options) -> Case:
    data = {
        "output_size": size,
        "pyramid_scales": "4,8",
        "sampling_ratio": 2,
        "image_id": 0,
        "distribute_rois_between_levels": 1,
        "preserve_rois_order": 1,
        **(data or {}),
    }
    return one(
        _P + "ROIFeatureExtractor",
        name,
        [_ROIS, (1, 2, 24, 32), (1, 2, 12, 16)],
        [(6, 2, size, size), (6, 4)],
        data,
        version=7,
        **options,
    )


def _top(name, count, dims=6, **options) -> Case:
    return one(_P + "TopKROIs", name, [(dims, 4), (dims,)], (count, 4), {"max_rois": count}, version=7, **options)


_DETECT = {
    "score_threshold": 0.05,
    "nms_threshold": 0.5,
    "post_nms_count": 20,
    "num_classes": 3,
    "max_detections_per_image": 5,
    "class_agnostic_box_regression": 0,
    "max_delta_log_wh": 4.1,
    "deltas_weights": "10,10,5,5",
}


def _detect(name, data=None, **options) -> Case:
    data = {**_DETECT, **(data or {})}
    most = data["max_detections_per_image"]
    inputs = [_ROIS, (6, 12), (6, 3), np.array([[64, 96, 1]], np.float32)]
    outs, kinds = [(most, 4), (most,), (most,)], ("FP32", "I32", "FP32")
    return one(
        _P + "DetectionOutput",
        name,
        inputs,
        outs,
        data,
        feeds={"in1": (-1, 1), "in2": (0.06, 1)},
        version=7,
        precisions=kinds,
        **options,
    )


CASES = [
    _detect("plain"),
    _detect("strict", {"nms_threshold": 0.1}),
    _detect("threshold", {"score_threshold": 0.4, "max_detections_per_image": 3}),
    _detect("few_of_a_class", {"post_nms_count": 2}),
    _grid("plain", {}, 4, 6),
    _grid("grid", {"grid_h": 4, "grid_w": 6}, 4, 6),
    _grid("strides", {"stride_h": 8, "stride_w": 4}, 4, 6),
    _grid("small", {}, 2, 3),
    _proposals("plain"),
    _proposals("strict", {"nms_threshold": 0.3}),
    _proposals("few", {"pre_nms_count": 8, "post_nms_count": 4}),
    _proposals("least_size", {"min_size": 20}),
    _features("plain"),
    _features("one_sample", {"sampling_ratio": 1}),
    _features("larger", size=5),
    _features("other_scales", {"pyramid_scales": "8,16"}),
    _top("three", 3),
    _top("all", 6),
    _top("one", 1),
    _top("of_ten", 4, 10),
]
