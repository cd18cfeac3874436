"""The difference between the results of a converted network and Model API's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from tests.converters.model_api.networks import NETWORKS, images, inputs_of
from tests.converters.model_api.stored import Answers, sampled

ANSWERS = Answers(Path(__file__).with_name("answers.npz"))
Tensors = Mapping[str, np.ndarray]
Run = Callable[[onnx.ModelProto, Sequence[Tensors]], list[dict[str, Any]]]

LEAST = 0.999
"""The minimum of the mean intersection over union for an image's boxes, rectangles and masks."""
_LABELS = ("labels", "label_names", "pred_label")
_REGIONS = ("mask", "pred_mask", "masks", "hard_predictions")
_OBJECTS = ("boxes", "labels", "scores", "label_names", "masks", "rotated_rects")
_TOLERANCE = {"anomaly_map": 1.01, "saliency_map": 1.01}
"""Maps are rounded to bytes, and their networks are computed in another order than OpenVINO's."""


@dataclass
class Compared:
    """The results of a network's images.

    Attributes:
        images: the number of images.
        labels: whether all labels and the numbers of objects are equal.
        iou: for each image the mean intersection over union of boxes, rectangles and masks; empty if there are none.
        wrong: the fields of images that differ by more than rounding, or in their shapes.
    """

    images: int = 0
    labels: bool = True
    iou: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def in_onnxruntime(model: onnx.ModelProto, inputs: Sequence[Tensors]) -> list[dict[str, Any]]:
    """Return the outputs for each of several inputs."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(None, dict(one)), strict=True)) for one in inputs]


def compared(name: str, model: onnx.ModelProto, run: Run, count: int | None = None) -> Compared:
    """Compare the first images of a network, by default all."""
    assert name in NETWORKS
    feeds = []
    for number, image in zip(range(count or 10**9), images(), strict=False):
        given = inputs_of(name, image)
        if name == "sam_decoder":
            given["image_embeddings"] = ANSWERS.of(name, number)["image_embeddings"][0]
        feeds.append(given)
    result = Compared(len(feeds))
    for number, found in enumerate(run(model, feeds)):
        expected = {key: value for key, value in ANSWERS.of(name, number).items() if key not in feeds[number]}
        ious: list[float] = []
        if "boxes" in expected:
            _objects(result, number, found, {key: expected[key][0] for key in expected if key in _OBJECTS}, ious)
            expected = {key: value for key, value in expected.items() if key not in _OBJECTS}
        for key, (value, shape) in expected.items():
            _field(result, f"{number}/{key}", np.asarray(found[key]), value, shape, ious)
        result.iou += [float(np.mean(ious))] if ious else []
    return result


def _field(
    result: Compared, key: str, found: np.ndarray, expected: np.ndarray, shape: tuple[int, ...] | None, ious: list[float]
) -> None:
    name = key.partition("/")[2]
    if name in _LABELS:
        same = found.tolist() == expected.tolist() or str(found) == str(expected)
        result.labels &= same
    elif found.shape != (shape or expected.shape) and found.size + expected.size:
        result.wrong.append(f"{key}: shape {found.shape}, not {shape or expected.shape}")
    elif name in _REGIONS:
        classes = np.union1d(found, expected)
        parts = [value for value in classes if value or name == "mask"]
        ious += [_overlap(found == value, expected == value) for value in parts]
    elif name == "pred_boxes":
        ious += [box_iou(a, b) for a, b in zip(found, expected, strict=True)]
    else:
        found = found if shape is None else sampled(found)
        apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        if np.any(apart > _TOLERANCE.get(name, 1e-3) + 1e-4 * np.abs(expected.astype(np.float64))):
            result.wrong.append(f"{key}: {apart.max():.3g}")


def _objects(result: Compared, number: int, found: Tensors, expected: Tensors, ious: list[float]) -> None:
    """Match each expected object with the nearest found one; equal scores have no order."""
    count = len(expected["boxes"])
    if len(found["boxes"]) != count:
        result.labels = False
        result.wrong.append(f"{number}: {len(found['boxes'])} objects, not {count}")
        return
    labels = np.atleast_1d(expected["labels"])
    scores = np.atleast_1d(expected["scores"])
    left = list(range(count))
    for place in range(count):
        apart = [
            np.abs(found["boxes"][i] - expected["boxes"][place]).max()
            + 100 * abs(found["scores"][i] - scores[place])
            + 1000 * (found["labels"][i] != labels[place])
            for i in left
        ]
        nearest = left.pop(int(np.argmin(apart)))
        result.labels &= bool(found["labels"][nearest] == labels[place])
        names = np.atleast_1d(expected.get("label_names", np.array(["#"])))
        if "label_names" in found and names.size and names[0] != "#":
            result.labels &= bool(found["label_names"][nearest] == names[place])
        if abs(found["scores"][nearest] - scores[place]) > 1e-3:
            result.wrong.append(f"{number}: score {found['scores'][nearest]}, not {scores[place]}")
        ious.append(box_iou(found["boxes"][nearest], expected["boxes"][place]))
        if "masks" in expected:
            mask = expected["masks"][place].astype(bool)
            if found["masks"][nearest].shape != mask.shape:
                result.wrong.append(f"{number}: mask of the shape {found['masks'][nearest].shape}, not {mask.shape}")
                return
            ious.append(_overlap(found["masks"][nearest].astype(bool), mask))
        if "rotated_rects" in expected:
            ious.append(rectangle_iou(found["rotated_rects"][nearest], expected["rotated_rects"][place]))


def _overlap(found: np.ndarray, expected: np.ndarray) -> float:
    union = np.sum(found | expected)
    return float(np.sum(found & expected) / union) if union else 1.0


def box_iou(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the IoU of boxes x1, y1, x2, y2; 1 for boxes of less than a pixel at an edge."""
    if np.allclose(found, expected, rtol=0, atol=1e-3):  # boxes without an area, too
        return 1.0
    width, height = np.minimum(found[2:], expected[2:]) - np.maximum(found[:2], expected[:2])
    shared = max(float(width), 0) * max(float(height), 0)
    areas = [float(np.prod((box[2:] - box[:2]).astype(np.float64))) for box in (found, expected)]
    if min(areas) < 1 and np.abs(found - expected).max() <= 0.5:  # clipped at the edge of the image
        return 1.0
    return shared / (sum(areas) - shared) if sum(areas) > shared else 0.0


def rectangle_iou(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the IoU of rectangles x, y, width, height, angle in degrees."""
    if np.allclose(found, expected, atol=1e-3):
        return 1.0
    one, other = _corners(found), _corners(expected)
    for begin, end in zip(other, np.roll(other, -1, 0), strict=True):
        one = _cut(one, begin, end)
    shared, areas = _area(one), [float(rectangle[2] * rectangle[3]) for rectangle in (found, expected)]
    return shared / (sum(areas) - shared) if sum(areas) > shared else 0.0


def _corners(rectangle: np.ndarray) -> np.ndarray:
    x, y, width, height, angle = (float(number) for number in rectangle)
    turn = np.deg2rad(angle)
    along, up = np.array([np.cos(turn), np.sin(turn)]) * width / 2, np.array([-np.sin(turn), np.cos(turn)]) * height / 2
    return np.array([x, y]) + np.array([-along - up, along - up, along + up, up - along])


def _cut(polygon: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the part of a convex polygon on the left of a line."""
    side = [(end[0] - begin[0]) * (p[1] - begin[1]) - (end[1] - begin[1]) * (p[0] - begin[0]) for p in polygon]
    kept = []
    for i, point in enumerate(polygon):
        j = (i + 1) % len(polygon)
        if side[i] >= 0:
            kept.append(point)
        if side[i] * side[j] < 0:
            kept.append(point + (polygon[j] - point) * side[i] / (side[i] - side[j]))
    return np.array(kept).reshape(-1, 2)


def _area(polygon: np.ndarray) -> float:
    x, y = polygon[:, 0], polygon[:, 1]
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2 if len(polygon) else 0.0
