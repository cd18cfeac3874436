"""Suppression of overlapping boxes."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case


def boxes_and_scores(batches, classes, count, *, seed=0, ties=False, center=False, dtype=np.float32):
    """Overlapping boxes (corners or centres) with scores; ``ties`` puts both on a coarse grid."""
    rng = np.random.default_rng(seed)
    corner, size = rng.random((batches, count, 2)) * 4, rng.random((batches, count, 2)) * 2 + 0.1
    if ties:
        corner, size = np.round(corner * 2) / 2, np.ceil(size * 2) / 2
    boxes = np.concatenate([corner, size if center else corner + size], axis=2)
    scores = rng.random((batches, classes, count))
    if ties:
        scores = np.round(scores * 8) / 8
    return boxes.astype(dtype), scores.astype(dtype)


def _build(opset, shapes, most, iou, score, sigma, dtype, scalars, attributes):
    import openvino as ov

    opset = __import__(f"openvino.{opset}", fromlist=["opset"])
    boxes, scores = (opset.parameter(ov.PartialShape(list(s)), dtype) for s in shapes)
    parameters = [boxes, scores]
    inputs = []
    for value in (most, iou, score, sigma):
        if isinstance(value, type):
            parameters.append(opset.parameter([] if value in scalars else [1], value))
            inputs.append(parameters[-1])
        elif value is not None:
            inputs.append(opset.constant(value, np.int32 if len(inputs) == 0 else np.float32))
    keywords = dict(
        zip(("max_output_boxes_per_class", "iou_threshold", "score_threshold", "soft_nms_sigma"), inputs, strict=False)
    )
    node = opset.non_max_suppression(boxes, scores, **keywords, **attributes)
    return ov.Model(node.outputs(), parameters)


def nms(version, name, inputs, most=3, iou=0.5, score=0.0, sigma=None, shapes=None, dtype=np.float32, **attributes):
    """A model of one NonMaxSuppression; a type in the place of a value makes it an input of the model."""
    opset = f"opset{version}"
    scalars = (np.int64, np.float32) if version < 5 else (np.int64,)
    shapes = shapes or [a.shape for a in inputs[0][:2]]
    build = functools.partial(_build, opset, shapes, most, iou, score, sigma, dtype, scalars, attributes)
    return Case("NonMaxSuppression", opset, name, build, inputs)


def _versions():
    dynamic = [[-1, -1, 4], [-1, -1, -1]]
    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 2, 30, seed=1, ties=True)
    center = boxes_and_scores(1, 2, 25, seed=2, center=True)
    for version in (1, 3, 4, 5, 9):
        yield nms(version, "ties-sorted", [ties], most=20, iou=0.25, score=0.125)
        yield nms(version, "unsorted", [plain], iou=0.3, score=0.2, sort_result_descending=False)
        yield nms(version, "center", [center], box_encoding="center", iou=0.4)
        yield nms(
            version,
            "dynamic",
            [plain, boxes_and_scores(1, 1, 7, seed=3), (plain[0][:, :0], plain[1][:, :0, :0])],
            shapes=dynamic,
        )
        limits = [(4, 0.3, 0.1), (0, 0.3, 0.1), (50, 0, 0.5), (9, 1.5, -1)]
        shape = () if version < 5 else (1,)
        runs = [(*plain, np.int64(n), np.full(shape, iou, "f"), np.full(shape, score, "f")) for n, iou, score in limits]
        yield nms(version, "limits-at-run-time", runs, most=np.int64, iou=np.float32, score=np.float32)
        if version > 1:
            yield nms(version, "i32", [plain], iou=0.6, output_type="i32")
    yield nms(1, "no-limits", [plain], most=None)
    for version in (5, 9):
        yield nms(version, "soft", [plain, ties], sigma=0.4, most=12, score=0.05, shapes=dynamic)
        yield nms(
            version,
            "soft-center",
            [center],
            sigma=0.1,
            most=40,
            score=0.1,
            sort_result_descending=False,
            box_encoding="center",
        )
        runs = [(*plain, np.float32([sigma])) for sigma in (0.5, 0, -1)]
        yield nms(version, "sigma-at-run-time", runs, sigma=np.float32, most=30)
        yield nms(version, "threshold-0", [ties], iou=0.0, most=9)
        yield nms(version, "f16", [[a.astype(np.float16) for a in ties]], sigma=0.3, most=9, dtype=np.float16)
    yield nms(9, "no-thresholds", [plain], most=5, iou=None)


CASES = [*_versions()]
