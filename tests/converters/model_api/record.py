"""Record Model API's results for the networks' images in answers.npz, with which the tests compare.

In an environment with openvino-model-api: ``python -m tests.converters.model_api.record``
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from tests.converters.model_api.networks import NETWORKS, images, inputs_of
from tests.converters.model_api.stored import stored

ANSWERS = Path(__file__).with_name("answers.npz")
_FIELDS = {
    "bboxes": "boxes", "labels": "labels", "scores": "scores", "label_names": "label_names", "masks": "masks",
    "raw_scores": "raw_scores", "resultImage": "mask", "soft_prediction": "soft_prediction", "keypoints": "keypoints",
    "anomaly_map": "anomaly_map", "pred_mask": "pred_mask", "pred_score": "pred_score", "pred_label": "pred_label",
    "pred_boxes": "pred_boxes", "saliency_map": "saliency_map", "feature_vector": "feature_vector",
    "rotated_rects": "rotated_rects",
}  # fmt: skip
_TILERS = {"tiled_ssd": "DetectionTiler", "tiled_yolo_v8": "DetectionTiler", "tiled_mask_rcnn": "InstanceSegmentationTiler"}
_TILERS |= {"tiled_segmentation": "SemanticSegmentationTiler", "tiled_mask_rcnn_explained": "InstanceSegmentationTiler"}
_TILERS |= dict.fromkeys(("tiled_ssd_explained", "tiled_ssd_explained_in_bytes"), "DetectionTiler")


def answers_of(name: str) -> dict[str, np.ndarray]:
    """Return ``NAME/IMAGE/FIELD`` of one network. It runs in a separate process, because wrappers change each other's
    defaults.
    """
    from model_api import tilers
    from model_api.models import add_rotated_rects
    from model_api.models.yolo import YOLO, YOLOX, YoloV4

    # Release 0.4.7 lacks these attributes, and the fields that its suppression reads.
    YoloV4.anchors = YoloV4.masks = None
    YOLO._filter = staticmethod(_suppressed)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if name == "sam_decoder":
            return _prompted(folder)
        model = _model(name, folder)
        # In the mode "sync", tiles of instances end with an error.
        mode = "async" if name.startswith("tiled_mask_rcnn") else "sync"
        run = getattr(tilers, _TILERS[name])(model, {}, execution_mode=mode) if name in _TILERS else model
        for number, image in enumerate(images()):
            (given,) = inputs_of(name, image).values()
            if isinstance(model, YOLOX):
                result = _yolox(model, f"{folder}/{name}.xml", given)
            else:
                result = run(given.copy())
            if name == "rotated":
                result = add_rotated_rects(result)
            for field, value in _values(result).items():
                found |= stored(f"{name}/{number}/{field}", value)
    return found


def _model(name: str, folder: str) -> Any:
    from model_api.adapters import OpenvinoAdapter, create_core
    from model_api.models import Model

    path = f"{folder}/{name}.xml"
    ov.save_model(NETWORKS[name](), path, compress_to_fp16=False)
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    return Model.create_model(OpenvinoAdapter(create_core(), path, device="CPU", plugin_config=exact), preload=True)


def _prompted(folder: str) -> dict[str, np.ndarray]:
    """Return the results of SAM's encoder and decoder for boxes and points."""
    from model_api.models import Prompt, SAMVisualPrompter

    name, encoder = "sam_decoder", _model("sam_encoder", folder)
    prompter, found = SAMVisualPrompter(encoder, _model("sam_decoder", folder)), {}
    for number, image in enumerate(images()):
        given = inputs_of(name, image)
        boxes, points = ([Prompt(one, 0) for one in given[kind]] for kind in ("boxes", "points"))
        result = prompter(image.copy(), boxes, points)
        fields = {
            "image_embeddings": encoder(image.copy()).copy(),
            "masks": np.array(result.processed_mask).astype(np.uint8),
            "best_iou": np.array(result.best_iou, np.float32),
            "upscaled_masks": np.concatenate(result.upscaled_masks),
            "hard_predictions": np.array(result.hard_predictions).astype(np.uint8),
            "soft_predictions": np.array(result.soft_predictions),
            "iou_predictions": np.concatenate(result.iou_predictions),
            "low_res_masks": np.concatenate(result.low_res_masks),
        }
        for field, value in fields.items():
            found |= stored(f"{name}/{number}/{field}", value)
    return found


def _values(result: Any) -> dict[str, np.ndarray]:
    if isinstance(result, np.ndarray):
        return {"image_embeddings": result.copy()}  # its memory is reused
    explained = {
        name: np.array(getattr(result, name))
        for name in ("saliency_map", "feature_vector")
        if isinstance(getattr(result, name, None), np.ndarray) and getattr(result, name).size
    }
    if hasattr(result, "top_labels"):
        labels = result.top_labels
        raw = {"raw_scores": np.array(result.raw_scores)} if result.raw_scores.size else {}
        return (
            explained
            | raw
            | {
                "labels": np.array([int(label.id) for label in labels], np.int64),
                "scores": np.array([label.confidence for label in labels], np.float32),
                "label_names": np.array([label.name for label in labels], str),
            }
        )
    values = {ours: getattr(result, theirs, None) for theirs, ours in _FIELDS.items() if ours not in _EXPLANATIONS}
    if (rects := values.get("rotated_rects")) is not None:
        values["rotated_rects"] = np.array([[*center, *size, angle] for center, size, angle in rects]).reshape(-1, 5)
    maps = getattr(result, "saliency_map", None)
    if isinstance(maps, list) and any(one.size for one in maps):
        shape = next(one.shape for one in maps if one.size)
        explained["saliency_map"] = np.stack([one if one.size else np.zeros(shape, np.uint8) for one in maps])
    return explained | {name: np.array(value) for name, value in values.items() if value is not None}


_EXPLANATIONS = ("saliency_map", "feature_vector")


def _yolox(model: Any, path: str, image: np.ndarray) -> Any:
    """YOLOX as release 0.4.7 intends it: its own preprocessing is lost if preprocessing is added to the graph."""
    network = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    model.h, model.w = network.inputs[0].shape[2:]
    prepared, meta = model._resize_image(image)
    (output,) = network([prepared.transpose(2, 0, 1)[None].astype(np.float32)]).values()
    return model.postprocess({model.output_blob_name: np.array(output)}, meta)


def _suppressed(detections: Any, threshold: float) -> Any:
    """Model API's ``_filter``, with corners by position."""
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


def main(names: Sequence[str]) -> None:
    """Record the networks with these names, or all."""
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        found = pool.map(answers_of, names or list(NETWORKS), chunksize=1)
    kept = dict(np.load(ANSWERS)) if names else {}
    kept = {key: value for key, value in kept.items() if key.partition("/")[0] not in names}
    np.savez_compressed(ANSWERS, **kept, **{key: value for one in found for key, value in one.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
