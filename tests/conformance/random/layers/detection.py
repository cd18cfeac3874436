"""Layers of detector postprocessing. Scores are distinct, because the order of equal ones depends on OpenVINO's sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.random.graph import Graph, Value, maker


def _scores(g: Graph, *shape: int) -> Value:
    count = int(np.prod(shape))
    return g.leaf(((g.rng.permutation(count) + 1) / (count + 1)).reshape(shape).astype(np.float32), 0.1)


def _corners(g: Graph, *shape: int, extent: float = 4, size: float = 2) -> np.ndarray:
    start = g.rng.random((*shape, 2)) * extent
    return np.concatenate([start, start + 0.1 + g.rng.random((*shape, 2)) * size], axis=-1).astype(np.float32)


def _limit(g: Graph, number: Any, kind: Any) -> Value:
    return g.leaf(np.array(number, kind), 0.8)


@maker(2)
def suppressed(g: Graph) -> None:
    images, classes, count = g.int(1, 2), g.int(1, 3), g.int(1, 8)
    version = g.pick(1, 3, 4, 5, 9)
    limits = [
        _limit(g, g.int(0, 5), np.int64),
        _limit(g, g.float(0, 1), np.float32),
        _limit(g, g.float(0, 0.75), np.float32),
    ]
    if version >= 5 and g.chance(0.3):
        limits.append(_limit(g, g.pick(0.0, 0.5), np.float32))
    boxes = g.leaf(_corners(g, images, count), 0.1)
    given = {} if version == 1 else {"output_type": g.pick("i32", "i64")}
    g.layer("NonMaxSuppression", f"opset{version}", boxes, _scores(g, images, classes, count), *limits, **given)


@maker()
def suppressed_rotated(g: Graph) -> None:
    images, classes, count = g.int(1, 2), g.int(1, 3), g.int(1, 6)
    boxes = np.concatenate([_corners(g, images, count), g.rng.uniform(-3, 3, (images, count, 1))], axis=-1)
    limits = [
        _limit(g, g.int(0, 5), np.int64),
        _limit(g, g.float(0, 1), np.float32),
        _limit(g, g.float(0, 0.75), np.float32),
    ]
    given = {"output_type": g.pick("i32", "i64")}
    scores = _scores(g, images, classes, count)
    g.layer("NMSRotated", "opset13", g.leaf(boxes.astype(np.float32), 0.1), scores, *limits, **given)


@maker()
def suppressed_by_class(g: Graph) -> None:
    images, classes, count = g.int(1, 2), g.int(1, 3), g.int(1, 8)
    given: dict[str, Any] = {
        "output_type": g.pick("i32", "i64"),
        "score_threshold": g.float(0, 0.5),
        "nms_top_k": g.pick(-1, 3, 5),
        "keep_top_k": g.pick(-1, 2, 5),
        "background_class": g.pick(-1, 0),
    }
    boxes = g.leaf(_corners(g, images, count, extent=0.7, size=0.4), 0.1)
    scores = _scores(g, images, classes, count)
    if g.chance(0.5):
        more = {"gaussian_sigma": g.pick(0.5, 2.0), "post_threshold": g.float(0, 0.25)}
        g.layer("MatrixNms", "opset8", boxes, scores, **given, **more)
        return
    more = {"iou_threshold": g.float(0, 0.75), "nms_eta": g.pick(1.0, 1.0, 0.75)}
    if g.chance(0.3):
        numbers = g.leaf(g.rng.multinomial(count, [0.5] * 2).astype(g.pick(np.int32, np.int64)), 0.2)
        boxes = g.leaf(_corners(g, classes, count, extent=0.7, size=0.4), 0.1)
        g.layer("MulticlassNms", "opset9", boxes, _scores(g, classes, count), numbers, **given, **more)
    else:
        g.layer("MulticlassNms", g.pick("opset8", "opset9"), boxes, scores, **given, **more)


@maker()
def detections(g: Graph) -> None:
    images, priors, classes = g.int(1, 2), g.int(1, 6), g.int(2, 4)
    version = g.pick("opset1", "opset8")
    given: dict[str, Any] = {
        "keep_top_k": [g.int(1, 6)],
        "nms_threshold": g.float(0.25, 0.75),
        "top_k": g.pick(-1, 3, 10),
        "background_label_id": g.pick(-1, 0),
        "share_location": g.chance(0.6),
        "variance_encoded_in_target": g.chance(0.4),
        "normalized": True,
        "confidence_threshold": g.float(0, 0.5),
    }
    if version == "opset1":
        given["num_classes"] = classes
    if given["background_label_id"]:
        given["decrease_label_id"] = False
    rows = 1 if given["variance_encoded_in_target"] else 2
    prior = np.full((1, rows, priors * 4), 0.125, np.float32)
    prior[0, 0] = _corners(g, priors, extent=0.6, size=0.3).reshape(-1)
    deltas = g.leaf(g.array("f32", (images, priors * 4 * (1 if given["share_location"] else classes)), -1, 1), 0.1)
    scores = _scores(g, images, priors * classes)
    g.layer("DetectionOutput", version, deltas, scores, g.leaf(prior, 0.3), **given)


@maker()
def yolo(g: Graph) -> None:
    classes, coordinates, regions = g.int(1, 3), 4, g.int(1, 3)
    softmax = g.chance(0.5)
    shape = [g.int(1, 2), regions * (classes + coordinates + 1), g.int(1, 4), g.int(1, 4)]
    given: dict[str, Any] = {"coords": coordinates, "classes": classes, "axis": 1, "end_axis": 3, "do_softmax": softmax}
    given |= {"num": regions, "anchors": [1.0, 2.0], "mask": list(range(regions))}
    g.layer("RegionYolo", "opset1", g.of_shape("f32", shape, 0.1), **given)


def _settings(**attributes: Any) -> dict[str, Any]:
    """Return lists of floats in the form of the factory."""
    return {k: [float(number) for number in v] if isinstance(v, list) else v for k, v in attributes.items()}


@maker()
def priors(g: Graph) -> None:
    grid = g.index([g.int(1, 3), g.int(1, 3)], 0.6, ("i64",))
    image = g.index([g.int(10, 40), g.int(10, 40)], 0.6, ("i64",))
    variance = g.pick([0.5], [0.125, 0.125, 0.25, 0.25])
    if g.chance(0.4):
        sizes = {"width": [4, 9][: g.int(1, 2)], "step_w": g.pick(0.0, 7.0), "step_h": g.pick(0.0, 5.0)}
        sizes["height"] = [5, 3][: len(sizes["width"])]
        g.layer("PriorBoxClustered", "opset1", grid, image, offset=0.5, **_settings(variance=variance, **sizes))
        return
    least = sorted(g.some([4, 7, 12], 1, 2))
    given = {"min_size": least, "step": g.pick(0.0, 7.5), "variance": variance, "aspect_ratio": g.some([2, 3, 0.5])}
    if g.chance(0.5):
        given["max_size"] = [size + 3 for size in least]
    if g.chance(0.2):
        given = {"fixed_size": [5, 8], "density": [2, 3], "variance": variance}
    more = {"scale_all_sizes": True, "min_max_aspect_ratios_order": True}
    version = g.pick("opset1", "opset8")
    if version == "opset1":
        del more["min_max_aspect_ratios_order"]
    g.layer("PriorBox", version, grid, image, offset=0.5, **_settings(**given), **more)


@maker()
def proposals(g: Graph) -> None:
    images, anchors, rows, columns = g.int(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 4)
    given: dict[str, Any] = {"pre_nms_count": g.pick(5, 50), "post_nms_count": g.int(1, 6)}
    given |= {"min_size": g.pick(0.0, 2.0), "nms_threshold": g.float(0.25, 0.75)}
    boxes = _corners(g, rows, columns, anchors, extent=40, size=20)
    if g.chance(0.5):
        info = g.leaf(np.tile(np.array([50, 60, 1], np.float32), (images, 1)), 0.3)
        deltas = g.leaf(g.array("f32", (images, anchors * 4, rows, columns), -1, 1), 0.1)
        scores = _scores(g, images, anchors, rows, columns)
        more = {"roi_num_type": g.pick("i32", "i64")}
        g.layer("GenerateProposals", "opset9", info, g.leaf(boxes, 0.2), deltas, scores, **given, **more)
        return
    info = g.leaf(np.array([50, 60, 1], np.float32), 0.3)
    deltas = g.leaf(g.array("f32", (anchors * 4, rows, columns), -1, 1), 0.1)
    operation = "ExperimentalDetectronGenerateProposalsSingleImage"
    scores = _scores(g, anchors, rows, columns)
    given["post_nms_count"] = 1  # boxes after the last one are undefined
    g.layer(operation, "opset6", info, g.leaf(boxes.reshape(-1, 4), 0.2), deltas, scores, **given)


@maker()
def detectron(g: Graph) -> None:
    match g.pick("grid", "features", "best"):
        case "grid":
            rows, columns = g.int(1, 3), g.int(1, 3)
            maps = [g.leaf(np.zeros((1, 2, r, c), np.float32), 0.1) for r, c in ((rows, columns), (20, 30))]
            given = {"h": 0, "w": 0, "stride_x": g.pick(0.0, 8.0), "stride_y": g.pick(0.0, 4.0)}
            priors_ = g.leaf(g.array("f32", (g.int(1, 3), 4), -9, 9), 0.3)
            g.layer("ExperimentalDetectronPriorGridGenerator", "opset6", priors_, *maps, **given)
        case "features":
            rois = g.leaf(_corners(g, g.int(1, 4), extent=40, size=300), 0.1)
            maps = [g.leaf(g.array("f32", (1, 2, 16 // k, 16 // k)), 0.1) for k in (1, 2)]
            given = {"output_size": g.int(1, 2), "sampling_ratio": g.int(0, 2), "pyramid_scales": [4, 8]}
            g.layer("ExperimentalDetectronROIFeatureExtractor", "opset6", rois, *maps, **given)
        case _:
            count = g.int(1, 6)
            rois = g.leaf(_corners(g, count), 0.1)
            g.layer("ExperimentalDetectronTopKROIs", "opset6", rois, _scores(g, count), max_rois=g.int(1, count))
