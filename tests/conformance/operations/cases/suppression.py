"""Suppression of overlapping boxes."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import dynamic, layer_case, shaped, static, statics


def boxes_and_scores(batches, classes, count, *, seed=0, ties=False, center=False, dtype=np.float32):
    """Return overlapping boxes (corners or centers) with scores; ``ties`` puts both on a coarse grid."""
    rng = np.random.default_rng(seed)
    corner, size = rng.random((batches, count, 2)) * 4, rng.random((batches, count, 2)) * 2 + 0.1
    if ties:
        corner, size = np.round(corner * 2) / 2, np.ceil(size * 2) / 2
    boxes = np.concatenate([corner, size if center else corner + size], axis=2)
    scores = rng.random((batches, classes, count))
    if ties:
        scores = np.round(scores * 8) / 8
    return boxes.astype(dtype), scores.astype(dtype)


def nms(version, name, inputs, limits=(3, 0.5, 0.0), **attributes):
    """A case of one NonMaxSuppression; its limits, as far as they are given, are numbers for constants, or inputs."""
    kinds = (np.int32, np.float32, np.float32, np.float32)
    limits = [kind(limit) if isinstance(limit, (int, float)) else limit for kind, limit in zip(kinds, limits, strict=False)]
    make = "non_max_suppression"
    return layer_case("NonMaxSuppression", f"opset{version}", make, name, [*inputs, *limits], attributes)


def _versions():
    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 2, 30, seed=1, ties=True)
    center = boxes_and_scores(1, 2, 25, seed=2, center=True)
    dynamic = partial(shaped, [[-1, -1, 4], [-1, -1, -1]])
    for version in (1, 3, 4, 5, 9):
        yield nms(version, "ties-sorted", statics(ties), (20, 0.25, 0.125))
        yield nms(version, "unsorted", statics(plain), (3, 0.3, 0.2), sort_result_descending=False)
        yield nms(version, "center", statics(center), (3, 0.4, 0.0), box_encoding="center")
        runs = plain, boxes_and_scores(1, 1, 7, seed=3), (plain[0][:, :0], plain[1][:, :0, :0])
        yield nms(version, "dynamic", dynamic(*runs))
        limits = [(4, 0.3, 0.1), (0, 0.3, 0.1), (50, 0, 0.5), (9, 1.5, -1)]
        shape = () if version < 5 else (1,)
        runs = [(*plain, np.int64(n), np.full(shape, iou, "f"), np.full(shape, score, "f")) for n, iou, score in limits]
        yield nms(version, "limits-at-run-time", statics(*runs), ())
        if version > 1:
            yield nms(version, "i32", statics(plain), (3, 0.6, 0.0), output_type="i32")
    yield nms(1, "no-limits", statics(plain), (0, 0.0))
    for version in (5, 9):
        yield nms(version, "soft", dynamic(plain, ties), (12, 0.5, 0.05, 0.4))
        unsorted = {"sort_result_descending": False, "box_encoding": "center"}
        yield nms(version, "soft-center", statics(center), (40, 0.5, 0.1, 0.1), **unsorted)
        sigmas = static(*(np.float32([sigma]) for sigma in (0.5, 0, -1)))
        yield nms(version, "sigma-at-run-time", statics(plain, plain, plain), (30, 0.5, 0.0, sigmas))
        yield nms(version, "threshold-0", statics(ties), (9, 0.0, 0.0))
        yield nms(version, "f16", statics([a.astype(np.float16) for a in ties]), (9, 0.5, 0.0, 0.3))
    yield nms(9, "no-thresholds", statics(plain), (5, 0.0))


def _boxes_of_selected():
    """Layers after a NonMaxSuppression whose file declares more rows than there are."""

    def make(ops, boxes, scores, *limits):
        from openvino import opset8

        chosen = opset8.gather(ops.non_max_suppression(boxes, scores, *limits), opset8.constant([2]), opset8.constant(1))
        flat = opset8.reshape(chosen, opset8.constant([-1]), False)
        found = opset8.gather(opset8.squeeze(boxes, opset8.constant([0])), flat, opset8.constant(0))
        return [opset8.multiply(found, found), opset8.reduce_sum(found, opset8.constant([0]))]

    inputs = [*statics(boxes_and_scores(1, 2, 12, seed=4)), np.int32(9), np.float32(0.3), np.float32(0.5)]
    for version in (1, 3, 4):
        yield layer_case("NonMaxSuppression", f"opset{version}", make, "boxes-of-selected", inputs)


def _multiclass_nms(version, name, inputs, **given):
    return layer_case("MulticlassNms", version, "multiclass_nms", name, inputs, {"iou_threshold": 0.3} | given)


def _multiclass():
    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 3, 30, seed=1, ties=True)
    one = boxes_and_scores(1, 2, 7, seed=3)
    for version in ("opset8", "opset9"):
        case = partial(_multiclass_nms, version)
        yield case("plain", statics(plain))
        for sort in ("none", "score", "classid"):
            yield case(f"ties-{sort}", statics(ties), sort_result_type=sort, score_threshold=0.25, keep_top_k=9)
            across = {"sort_result_type": sort, "sort_result_across_batch": True, "nms_top_k": 12}
            yield case(f"across-{sort}", statics(ties), **across)
        yield case("pixels", statics(plain), normalized=False, background_class=0, output_type="i32")
        yield case("eta", statics(plain), nms_eta=0.8, iou_threshold=0.9, nms_top_k=15)
        eta = {"nms_eta": 0.6, "iou_threshold": 0.8, "score_threshold": 0.5, "background_class": 1}
        yield case("eta-ties", statics(ties), **eta)
        yield case("threshold-0", statics(plain), iou_threshold=0.0)
        inputs = shaped([[-1, -1, 4], [-1, -1, -1]], plain, one)
        yield case("dynamic", inputs, sort_result_type="score", keep_top_k=5)
        yield case("f16", statics([a.astype(np.float16) for a in plain]), score_threshold=0.5)

    def own(numbers, classes, seed=0):
        boxes, scores = boxes_and_scores(classes, 1, sum(numbers), seed=seed)
        return boxes, scores[:, 0], np.array(numbers, np.int64)

    inputs = shaped([[-1, -1, 4], [-1, -1], [-1]], own([9, 0, 12], 3), own([2, 5, 1], 3, 1))
    yield case("own-boxes", inputs, keep_top_k=7)
    inputs = statics(own([9, 12], 2))
    yield case("own-boxes-classid", inputs, sort_result_type="classid", sort_result_across_batch=True)
    eta = {"sort_result_type": "score", "nms_eta": 0.7, "iou_threshold": 0.7, "background_class": 2}
    yield case("own-boxes-eta", statics(own([9, 12], 4)), **eta)


def _matrix():
    case = partial(layer_case, "MatrixNms", "opset8", "matrix_nms")
    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 3, 30, seed=1, ties=True)
    for function in ("linear", "gaussian"):
        attributes = {"decay_function": function, "gaussian_sigma": 1.5, "post_threshold": 0.1}
        yield case(function, statics(plain), attributes)
    for sort in ("none", "score", "classid"):
        attributes = {"sort_result_type": sort, "score_threshold": 0.2, "keep_top_k": 9, "nms_top_k": 8}
        yield case(sort, statics(plain), attributes)
        attributes = {"sort_result_type": sort, "sort_result_across_batch": True, "nms_top_k": 12, "output_type": "i32"}
        yield case(f"across-{sort}", statics(plain), attributes)
    yield case("pixels", statics(plain), {"normalized": False, "background_class": 0})
    # For equal scores, OpenVINO's sorting determines the better box.
    attributes = {"post_threshold": 0.1, "keep_top_k": 9, "nms_top_k": 25}
    yield case("ties", statics(ties), attributes, seeded_body=False)
    attributes = {"decay_function": "gaussian", "keep_top_k": 9}
    yield case("ties-gaussian", statics(ties), attributes, seeded_body=False)
    equal = ties[0], np.random.default_rng(5).random(ties[1].shape).astype(np.float32)
    yield case("equal-boxes", statics(equal), {"post_threshold": 0.3, "score_threshold": 0.1})
    inputs = shaped([[-1, -1, 4], [-1, -1, -1]], plain, boxes_and_scores(1, 2, 7, seed=3))
    yield case("dynamic", inputs, {"sort_result_type": "score", "keep_top_k": 5})


def _rotated():
    case = partial(layer_case, "NMSRotated", "opset13", "nms_rotated")

    def data(batches, classes, count, seed=0, ties=False):
        boxes, scores = boxes_and_scores(batches, classes, count, seed=seed, ties=ties, center=True)
        rng = np.random.default_rng(seed)
        angles = rng.integers(-4, 5, (batches, count, 1)) * np.pi / 8 if ties else rng.random((batches, count, 1)) * 6 - 3
        return np.concatenate([boxes, angles.astype(np.float32)], axis=2), scores

    def limits(most=20, iou=0.4, score=0.1):
        return np.int64(most), np.float32(iou), np.float32(score)

    plain, ties = data(2, 2, 40), data(1, 2, 60, seed=1, ties=True)
    yield case("clockwise", [*statics(plain), *limits()])
    yield case("counterclockwise", [*statics(plain), *limits()], {"clockwise": False})
    inputs = [*statics(data(2, 3, 25)), *limits(4, 0.25)]
    yield case("unsorted", inputs, {"sort_result_descending": False, "output_type": "i32"})
    yield case("ties", [dynamic(ties[0], dims=[-1, -1, 5]), dynamic(ties[1]), *limits()])
    yield case("ties-counterclockwise", [*statics(ties), *limits()], {"clockwise": False})
    yield case("limits-at-run-time", statics((*plain, *limits(3, 0.2, 0.5)), (*plain, *limits(90, 0.8, -1))))
    yield case("f16", [*statics([a.astype(np.float16) for a in plain]), *limits()])


CASES = [*_versions(), *_boxes_of_selected(), *_rotated(), *_multiclass(), *_matrix()]
