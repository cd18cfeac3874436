"""Record Model API's results for the networks' images in answers.npz, which the tests compare with.

In an environment with openvino-model-api: ``python -m tests.converters.model_api.record``
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from tests.converters.model_api.networks import NETWORKS, images

ANSWERS = Path(__file__).with_name("answers.npz")
_FIELDS = {
    "bboxes": "boxes", "labels": "labels", "scores": "scores", "label_names": "label_names", "masks": "masks",
    "raw_scores": "raw_scores", "resultImage": "mask", "soft_prediction": "soft_prediction", "keypoints": "keypoints",
    "anomaly_map": "anomaly_map", "pred_mask": "pred_mask", "pred_score": "pred_score", "pred_label": "pred_label",
}  # fmt: skip


def answers_of(name: str) -> dict[str, np.ndarray]:
    """Return ``NAME/IMAGE/FIELD`` of one network, from a separate process because wrappers change each other's defaults."""
    from model_api.adapters import OpenvinoAdapter, create_core
    from model_api.models import Model
    from model_api.models.yolo import YOLO, YOLOX, YoloV4

    # Release 0.4.7 lacks these attributes and the fields that its suppression reads.
    YoloV4.anchors = YoloV4.masks = None
    YOLO._filter = staticmethod(_suppressed)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.xml"
        ov.save_model(NETWORKS[name](), path, compress_to_fp16=False)
        exact = {"INFERENCE_PRECISION_HINT": "f32"}
        model = Model.create_model(OpenvinoAdapter(create_core(), path, device="CPU", plugin_config=exact), preload=True)
        for number, image in enumerate(images()):
            result = _yolox(model, path, image) if isinstance(model, YOLOX) else model(image.copy())
            for field, value in _values(result).items():
                found[f"{name}/{number}/{field}"] = value
    return found


def _values(result: Any) -> dict[str, np.ndarray]:
    if hasattr(result, "top_labels"):
        labels = result.top_labels
        return {
            "labels": np.array([int(label.id) for label in labels], np.int64),
            "scores": np.array([label.confidence for label in labels], np.float32),
            "label_names": np.array([label.name for label in labels], str),
            "raw_scores": np.array(result.raw_scores),
        }
    values = {ours: getattr(result, theirs, None) for theirs, ours in _FIELDS.items()}
    return {name: np.array(value) for name, value in values.items() if value is not None}


def _yolox(model: Any, path: str, image: np.ndarray) -> Any:
    """Run YOLOX as release 0.4.7 intends: embedding the preprocessing loses YOLOX's own."""
    network = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    model.h, model.w = network.inputs[0].shape[2:]
    prepared, meta = model._resize_image(image)
    (output,) = network([prepared.transpose(2, 0, 1)[None].astype(np.float32)]).values()
    return model.postprocess({model.output_blob_name: np.array(output)}, meta)


def _suppressed(detections: Any, threshold: float) -> Any:
    """Suppress like Model API's ``_filter``, with corners by position."""
    order = np.argsort(detections.scores)[::-1]
    boxes, scores, labels = detections.bboxes[order], detections.scores[order].copy(), detections.labels[order]
    for better in range(len(scores)):
        for worse in range(better + 1, len(scores)) if scores[better] else ():
            if labels[better] == labels[worse] and _overlap(boxes[better], boxes[worse]) > threshold:
                scores[worse] = 0
    kept = scores > 0
    detections.bboxes, detections.scores, detections.labels = boxes[kept], scores[kept], labels[kept]
    return detections


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    width, height = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = 0 if width < 0 or height < 0 else width * height
    whole = np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - shared
    return float(shared / whole) if whole else 0.0


def main() -> None:
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        found = pool.map(answers_of, NETWORKS, chunksize=1)
    np.savez_compressed(ANSWERS, **{key: value for one in found for key, value in one.items()})


if __name__ == "__main__":
    main()
