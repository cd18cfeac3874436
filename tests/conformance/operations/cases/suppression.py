"""Suppression of overlapping boxes."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case


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


def _boxes_of_selected():
    """Layers behind a NonMaxSuppression whose file states more rows than there are."""

    def build(version):
        import openvino as ov
        from openvino import opset8

        opset = __import__(f"openvino.opset{version}", fromlist=["opset"])
        boxes, scores = opset.parameter(data[0].shape, np.float32), opset.parameter(data[1].shape, np.float32)
        limits = opset.constant(9, np.int32), opset.constant(0.3, np.float32), opset.constant(0.5, np.float32)
        chosen = opset8.gather(opset.non_max_suppression(boxes, scores, *limits), opset8.constant([2]), opset8.constant(1))
        flat = opset8.reshape(chosen, opset8.constant([-1]), False)
        found = opset8.gather(opset8.squeeze(boxes, opset8.constant([0])), flat, opset8.constant(0))
        return ov.Model([opset8.multiply(found, found), opset8.reduce_sum(found, opset8.constant([0]))], [boxes, scores])

    data = boxes_and_scores(1, 2, 12, seed=4)
    for version in (1, 3, 4):
        build_it = functools.partial(build, version)
        yield Case("NonMaxSuppression", f"opset{version}", "boxes-of-selected", build_it, [data])


def _multiclass():
    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 3, 30, seed=1, ties=True)
    one, dynamic = boxes_and_scores(1, 2, 7, seed=3), [[-1, -1, 4], [-1, -1, -1]]
    for version in ("opset8", "opset9"):

        def make(name, *runs, make=f"{version}.multiclass_nms", version=version, **given):
            return case("MulticlassNms", version, name, make, *runs, **{"iou_threshold": 0.3} | given)

        yield make("plain", plain)
        for sort in ("none", "score", "classid"):
            yield make(f"ties-{sort}", ties, sort_result_type=sort, score_threshold=0.25, keep_top_k=9)
            yield make(f"across-{sort}", ties, sort_result_type=sort, sort_result_across_batch=True, nms_top_k=12)
        yield make("pixels", plain, normalized=False, background_class=0, output_type="i32")
        yield make("eta", plain, nms_eta=0.8, iou_threshold=0.9, nms_top_k=15)
        yield make("eta-ties", ties, nms_eta=0.6, iou_threshold=0.8, score_threshold=0.5, background_class=1)
        yield make("threshold-0", plain, iou_threshold=0.0)
        yield make("dynamic", plain, one, shapes=dynamic, sort_result_type="score", keep_top_k=5)
        yield make("f16", tuple(a.astype(np.float16) for a in plain), score_threshold=0.5)

    def own(numbers, classes, seed=0):
        boxes, scores = boxes_and_scores(classes, 1, sum(numbers), seed=seed)
        return boxes, scores[:, 0], np.array(numbers, np.int64)

    yield make("own-boxes", own([9, 0, 12], 3), own([2, 5, 1], 3, 1), shapes=[[-1, -1, 4], [-1, -1], [-1]], keep_top_k=7)
    yield make("own-boxes-classid", own([9, 12], 2), sort_result_type="classid", sort_result_across_batch=True)
    yield make(
        "own-boxes-eta", own([9, 12], 4), sort_result_type="score", nms_eta=0.7, iou_threshold=0.7, background_class=2
    )


def _matrix():
    def make(name, *runs, **given):
        return case("MatrixNms", "opset8", name, "opset8.matrix_nms", *runs, **given)

    plain, ties = boxes_and_scores(2, 3, 20), boxes_and_scores(2, 3, 30, seed=1, ties=True)
    for function in ("linear", "gaussian"):
        yield make(function, plain, decay_function=function, gaussian_sigma=1.5, post_threshold=0.1)
    for sort in ("none", "score", "classid"):
        yield make(sort, plain, sort_result_type=sort, score_threshold=0.2, keep_top_k=9, nms_top_k=8)
        yield make(
            f"across-{sort}", plain, sort_result_type=sort, sort_result_across_batch=True, nms_top_k=12, output_type="i32"
        )
    yield make("pixels", plain, normalized=False, background_class=0)
    # Of equal scores OpenVINO's sorting decides which box is better.
    yield make("ties", ties, post_threshold=0.1, keep_top_k=9, nms_top_k=25, options={"seeded_body": False})
    yield make("ties-gaussian", ties, decay_function="gaussian", keep_top_k=9, options={"seeded_body": False})
    equal = ties[0], np.random.default_rng(5).random(ties[1].shape).astype(np.float32)
    yield make("equal-boxes", equal, post_threshold=0.3, score_threshold=0.1)
    shapes = [[-1, -1, 4], [-1, -1, -1]]
    yield make("dynamic", plain, boxes_and_scores(1, 2, 7, seed=3), shapes=shapes, sort_result_type="score", keep_top_k=5)


def _rotated():
    def make(name, *runs, **given):
        return case("NMSRotated", "opset13", name, "opset13.nms_rotated", *runs, **{"constants": (2, 3, 4)} | given)

    def data(batches, classes, count, most=20, iou=0.4, score=0.1, seed=0, ties=False):
        boxes, scores = boxes_and_scores(batches, classes, count, seed=seed, ties=ties, center=True)
        rng = np.random.default_rng(seed)
        angles = rng.integers(-4, 5, (batches, count, 1)) * np.pi / 8 if ties else rng.random((batches, count, 1)) * 6 - 3
        limits = np.int64(most), np.float32(iou), np.float32(score)
        return (np.concatenate([boxes, angles.astype(np.float32)], axis=2), scores, *limits)

    plain, ties = data(2, 2, 40), data(1, 2, 60, seed=1, ties=True)
    yield make("clockwise", plain)
    yield make("counterclockwise", plain, clockwise=False)
    yield make("unsorted", data(2, 3, 25, iou=0.25, most=4), sort_result_descending=False, output_type="i32")
    yield make("ties", ties, shapes=[[-1, -1, 5], [-1, -1, -1], [], [], []])
    yield make("ties-counterclockwise", ties, clockwise=False)
    runs = [
        (*plain[:2], np.array(n), np.float32(iou), np.float32(score)) for n, iou, score in ((3, 0.2, 0.5), (90, 0.8, -1))
    ]
    yield make("limits-at-run-time", *runs, constants=())
    yield make("f16", tuple(a.astype(np.float16) if a.ndim else a for a in plain))


CASES = [*_versions(), *_boxes_of_selected(), *_rotated(), *_multiclass(), *_matrix()]
