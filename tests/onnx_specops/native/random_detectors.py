"""Random nodes of detector postprocessing. Scores have ties; boxes may be empty or reversed."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from tests.onnx_specops.native.nodes import Node, element_type
from tests.onnx_specops.native.test_random_nodes import FLOATS, pick

INT64 = TensorProto.INT64


def scores(rng: np.random.Generator, shape: Any, type_: Any) -> np.ndarray:
    return (np.round(rng.random(shape) * 16) / 16).astype(type_)


def corners(rng: np.random.Generator, shape: Any, type_: Any, extent: int = 12) -> np.ndarray:
    """Return boxes on a grid."""
    boxes = rng.integers(0, extent, (*shape, 4))
    upright = np.concatenate([boxes[..., :2], boxes[..., :2] + boxes[..., 2:] // 2], axis=-1)
    return np.where(rng.random((*shape, 1)) < 0.8, upright, boxes).astype(type_)


def flags(rng: np.random.Generator, *names: str) -> dict[str, int]:
    return {name: int(rng.integers(2)) for name in names}


def _order(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "sort_result_type": pick(rng, ("none", "classid", "score")),
        "nms_top_k": pick(rng, (-1, 1, 9)),
        "keep_top_k": pick(rng, (-1, 0, 7)),
        "background_class": pick(rng, (-1, 0, 2)),
        "score_threshold": pick(rng, (-1.0, 0.0, 0.25)),
        **flags(rng, "sort_result_across_batch", "normalized"),
    }


def multiclass_nms(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, classes, count = rng.integers(0, 3), rng.integers(0, 4), rng.integers(0, 30)
    boxes, values, numbers = corners(rng, (images, count), type_), scores(rng, (images, classes, count), type_), None
    if rng.random() < 0.4:
        numbers = rng.multinomial(count, [1 / 3] * 3).astype(np.int64)
        boxes, values = corners(rng, (classes, count), type_), scores(rng, (classes, count), type_)
    attributes = {"iou_threshold": pick(rng, (0.0, 0.25, 0.5)), "nms_eta": pick(rng, (0.7, 1.0)), **_order(rng)}
    return "MulticlassNms", [boxes, values, numbers], [element_type(boxes), INT64, INT64], attributes


def matrix_nms(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, classes, count = rng.integers(0, 3), rng.integers(0, 4), rng.integers(0, pick(rng, (30, 200)))
    boxes, values = corners(rng, (images, count), type_), scores(rng, (images, classes, count), type_)
    attributes = {
        "decay_function": pick(rng, ("linear", "gaussian")),
        "gaussian_sigma": pick(rng, (-0.5, 0.5, 2.0)),
        "post_threshold": pick(rng, (0.0, 0.27)),
        **_order(rng),
    }
    return "MatrixNms", [boxes, values], [element_type(boxes), INT64, INT64], attributes


def detection_output(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, priors, classes = rng.integers(0, 3), rng.integers(1, pick(rng, (9, 90))), rng.integers(1, 6)
    attributes = {
        "keep_top_k": pick(rng, (-1, 0, 5, 40)),
        "top_k": pick(rng, (-1, 0, 3, 20)),
        "nms_threshold": pick(rng, (-0.5, 0.0, 0.45)),
        "confidence_threshold": pick(rng, (-1.0, 0.0, 0.5)),
        "objectness_score": 0.4,
        "background_label_id": pick(rng, (-1, 0, 1, 9)),
        "code_type": "caffe.PriorBoxParameter." + pick(rng, ("CENTER_SIZE", "CORNER")),
        "input_width": 12,
        "input_height": 8,
        **flags(rng, "share_location", "variance_encoded_in_target", "clip_before_nms", "clip_after_nms"),
        **flags(rng, "decrease_label_id", "normalized"),
    }
    prior = corners(rng, (pick(rng, (1, images)), priors), np.float64)
    if attributes["normalized"]:
        prior /= 12
    else:
        prior = np.concatenate([np.where(rng.random((*prior.shape[:2], 1)) < 0.02, -1, 0), prior], axis=2)
    rows = [prior.reshape(len(prior), 1, priors * prior.shape[2])]
    if not attributes["variance_encoded_in_target"] or rng.random() < 0.2:
        rows.append(np.round(rng.random(rows[0].shape) * 4) / 8)
    offsets = images, priors * 4 * (1 if attributes["share_location"] else classes)
    arrays = [
        rng.integers(-2, 3, offsets) / 4,
        scores(rng, (images, priors * classes), np.float64),
        np.concatenate(rows, axis=1),
        scores(rng, (images, priors * 2), np.float64),
        rng.integers(-2, 3, offsets) / 8,
    ]
    arrays = [array.astype(type_) for array in arrays]
    if rng.random() < 0.6:
        arrays[3:] = [None, None]
    return "DetectionOutput", arrays, [element_type(arrays[0])], attributes


def experimental_detectron_detection_output(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    count, classes = rng.integers(0, pick(rng, (6, 70))), rng.integers(1, 6)
    arrays = [
        corners(rng, (count,), type_, 60),
        (rng.integers(-4, 5, (count, classes * 4)) / 2).astype(type_),
        scores(rng, (count, classes), type_),
        np.array([[10, 10, 5, 4]], type_),
    ]
    attributes = {
        "score_threshold": pick(rng, (-1.0, 0.0, 0.25)),
        "nms_threshold": pick(rng, (0.0, 0.4, 0.5)),
        "post_nms_count": pick(rng, (-1, 0, 6)),
        "max_detections_per_image": pick(rng, (0, 7, 100)),
        "max_delta_log_wh": pick(rng, (0.1, 1.5)),
    }
    type_id = element_type(arrays[0])
    return "ExperimentalDetectronDetectionOutput", arrays, [type_id, INT64, type_id], attributes


def _maps(rng: np.random.Generator) -> tuple[Any, ...]:
    return (*rng.integers(0, 4, 4), {"nms_threshold": pick(rng, (0.1, 0.7)), "min_size": pick(rng, (0.0, 5.0))})


def generate_proposals(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, anchors, rows, columns, attributes = _maps(rng)
    info = np.concatenate([np.full((images, 2), 50), rng.integers(1, 3, (images, rng.integers(0, 3)))], axis=1)
    arrays = [
        info.astype(type_),
        corners(rng, (rows, columns, anchors), type_, 60),
        (rng.integers(-2, 3, (images, anchors * 4, rows, columns)) / 4).astype(type_),
        scores(rng, (images, anchors, rows, columns), type_),
    ]
    attributes |= {"pre_nms_count": pick(rng, (0, 9, 99)), "post_nms_count": pick(rng, (0, 5)), **flags(rng, "normalized")}
    type_id = element_type(arrays[0])
    return "GenerateProposals", arrays, [type_id, type_id, INT64], attributes


def single_image(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    _, anchors, rows, columns, attributes = _maps(rng)
    arrays = [
        np.array([50, 60, 1], type_),
        corners(rng, (rows * columns * anchors,), type_, 60),
        (rng.integers(-2, 3, (anchors * 4, rows, columns)) / 4).astype(type_),
        scores(rng, (anchors, rows, columns), type_),
    ]
    attributes |= {"pre_nms_count": pick(rng, (0, 9, 99)), "post_nms_count": pick(rng, (0, 5))}
    return "ExperimentalDetectronGenerateProposalsSingleImage", arrays, [element_type(arrays[0])] * 2, attributes


def proposal(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, anchors, rows, columns, _ = _maps(rng)
    arrays = [
        scores(rng, (images, 2 * anchors, rows, columns), type_),
        (rng.integers(-2, 3, (images, anchors * 4, rows, columns)) / 4).astype(type_),
        np.array([50, 60, *pick(rng, ([1], [0.5, 2]))], type_),
        corners(rng, (anchors,), type_, 30),
    ]
    attributes = {
        "feat_stride": 8, "min_size": pick(rng, (0, 6)), "pre_nms_topn": pick(rng, (0, 9, 99)),
        "post_nms_topn": pick(rng, (0, 5)), "nms_thresh": pick(rng, (0.1, 0.7)), "box_size_scale": 2.0,
        "framework": pick(rng, ("", "tensorflow")), **flags(rng, "normalize", "clip_before_nms", "clip_after_nms"),
    }  # fmt: skip
    return "Proposal", arrays, [element_type(arrays[0])] * 2, attributes


MAKERS = (
    detection_output,
    experimental_detectron_detection_output,
    generate_proposals,
    matrix_nms,
    multiclass_nms,
    proposal,
    single_image,
)
