"""Small networks with random weights and the metadata of each Model API wrapper, and images for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import openvino as ov
from openvino import opset13 as o

LABELS = " ".join(f"label{number}" for number in range(10))
HIERARCHY = {
    "cls_heads_info": {
        "num_multiclass_heads": 2,
        "num_multilabel_classes": 3,
        "num_single_label_classes": 5,
        "head_idx_to_logits_range": {"0": [0, 2], "1": [2, 5]},
        "all_groups": [["a", "b"], ["c", "d", "e"], ["f"], ["g"], ["h"]],
        "label_to_idx": {label: place for place, label in enumerate("abcdefgh")},
        "class_to_group_idx": {},
    },
    "label_tree_edges": [["c", "a"], ["d", "b"], ["f", "c"], ["g", "d"], ["h", "a"]],
}
SIZES = [(64, 64), (48, 131), (150, 97)]

NETWORKS: dict[str, Callable[[], ov.Model]] = {}
"""A function for each network, by name."""


def images() -> Iterator[np.ndarray]:
    """Generate BGR images, smooth with some noise."""
    rng = np.random.default_rng(7)
    for height, width in SIZES:
        coarse = rng.integers(0, 256, (height // 17 + 1, width // 13 + 1, 3))
        rows, columns = np.arange(height) // 17, np.arange(width) // 13
        noise = rng.integers(-20, 20, (height, width, 3))
        yield np.clip(coarse[rows][:, columns] + noise, 0, 255).astype(np.uint8)


class _Network:
    """The building blocks of networks; weights are drawn in order."""

    def __init__(self, seed: int, height: int = 64, width: int = 64, layout: str = "NCHW") -> None:
        self.rng = np.random.default_rng(seed)
        shape = [1, 3, height, width] if layout == "NCHW" else [1, height, width, 3]
        self.input = o.parameter(shape, np.float32, name="input")
        self.input.output(0).get_tensor().set_names({"input"})
        self.height, self.width = height, width
        self.others: list = []
        planes = self.input if layout == "NCHW" else o.transpose(self.input, o.constant([0, 3, 1, 2]))
        scaled = o.multiply(planes, o.constant(np.float32(1 / 128)))
        self.features = o.tanh(self.conv(o.relu(self.conv(scaled, 3, 16)), 16, 16, scale=0.15))

    def weights(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def conv(self, x, inputs: int, outputs: int, stride: int = 2, kernel: int = 3, scale: float = 0.3):
        pads = [kernel // 2] * 2
        weights = o.constant(self.weights(outputs, inputs, kernel, kernel) * np.float32(scale))
        return o.convolution(x, weights, [stride] * 2, pads, pads, [1, 1])

    def numbers(self, count: int, scale: float = 0.5):
        """Return ``[1, count]`` numbers that depend on the image."""
        mean = o.reduce_mean(self.features, o.constant([2, 3]), False)
        product = o.matmul(mean, o.constant(self.weights(16, count) * np.float32(scale)), False, False)
        return o.add(product, o.constant(self.weights(1, count)))

    def rows(self, count: int, size: int):
        return o.reshape(self.numbers(count * size), o.constant([1, count, size]), False)

    def model(self, outputs: dict, **info: str) -> ov.Model:
        for name, node in outputs.items():
            node.output(0).get_tensor().set_names({name})
        model = ov.Model([o.result(node) for node in outputs.values()], [self.input, *self.others])
        for name, text in info.items():
            model.set_rt_info(text, ["model_info", name])
        return model


def _part(x, begin: int, end: int):
    return o.slice(x, o.constant([begin]), o.constant([end]), o.constant([1]), o.constant([2]))


def _corners(rows, scale: Sequence[float] = (1, 1)):
    """Return numbers as x1, y1, x2, y2."""
    positive = o.sigmoid(_part(rows, 0, 4))
    first, size = _part(positive, 0, 2), o.multiply(_part(positive, 2, 4), o.constant(np.float32(0.5)))
    return o.multiply(o.concat([first, o.add(first, size)], 2), o.constant(np.array([*scale, *scale], np.float32)))


def _score(rows, place: int):
    return o.sigmoid(_part(rows, place, place + 1))


def _label(rows, place: int, classes: int = 10):
    return o.floor(o.multiply(_score(rows, place), o.constant(np.float32(classes - 0.1))))


def _network(function: Callable[[], ov.Model]) -> Callable[[], ov.Model]:
    NETWORKS[function.__name__] = function
    return function


def _classifier(name: str, seed: int, softmax: bool = False, layout: str = "NCHW", outputs: int = 10, **info: str) -> None:
    def build() -> ov.Model:
        net = _Network(seed, width=80, layout=layout)
        scores = net.numbers(outputs, scale=3)
        stated = {"model_type": "Classification", "labels": LABELS, "output_raw_scores": "True", **info}
        return net.model({"logits": o.softmax(scores, 1) if softmax else scores}, **stated)

    NETWORKS[name] = build


_NORMALIZED = {"mean_values": "123.675 116.28 103.53", "scale_values": "58.395 57.12 57.375"}
_classifier("standard", 1, topk="3", reverse_input_channels="True", **_NORMALIZED)
_classifier("fit_to_window", 2, softmax=True, resize_type="fit_to_window", pad_value="40", scale_values="255")
_classifier("letterbox", 3, resize_type="fit_to_window_letterbox", reverse_input_channels="True", pad_value="114")
_classifier("crop", 4, resize_type="crop", layout="NHWC")
_classifier("cubic", 5, interpolation_mode="CUBIC", resize_type="fit_to_window")
_classifier("nearest", 6, interpolation_mode="NEAREST")
_classifier("unit", 7, intensity_mode="scale_to_unit")
_classifier("range", 8, intensity_mode="range_scale", intensity_scale_factor="0.5", intensity_max_value="100")
_classifier("window", 9, intensity_mode="window", intensity_window_center="100", intensity_window_width="150")
_classifier("multilabel", 10, multilabel="True", confidence_threshold="0.3")
_classifier(
    "hierarchical", 11, outputs=8, labels="a b c d e f g h", hierarchical="True",
    hierarchical_config=json.dumps(HIERARCHY), confidence_threshold="0.4",
)  # fmt: skip

_SSD = {"model_type": "SSD", "labels": LABELS, "confidence_threshold": "0.4", "reverse_input_channels": "True"}


@_network
def ssd_one_output() -> ov.Model:
    net = _Network(20, 96, 128)
    rows = net.rows(60, 6)
    score = _score(rows, 4)
    joined = o.concat([o.multiply(score, o.constant(np.float32(0))), _label(rows, 5), score, _corners(rows)], 2)
    return net.model({"detection_out": o.reshape(joined, o.constant([1, 1, 60, 7]), False)}, **_SSD)


def _three(seed: int, **info: str) -> ov.Model:
    net = _Network(seed, 96, 128)
    rows = net.rows(60, 6)
    flat = o.constant([1, 60])
    labels = o.convert(o.reshape(_label(rows, 5), flat, False), "i64")
    outputs = {"bboxes": _corners(rows), "scores": o.reshape(_score(rows, 4), flat, False), "labels": labels}
    return net.model(outputs, **_SSD, nms_execute="True", iou_threshold="0.4", **info)


@_network
def ssd_three_outputs() -> ov.Model:
    return _three(21, resize_type="fit_to_window", nms_max_predictions="20")


@_network
def ssd_agnostic() -> ov.Model:
    return _three(22, agnostic_nms="True", nms_max_predictions="30")


@_network
def ssd_boxes_and_labels() -> ov.Model:
    net = _Network(23, 96, 128)
    rows = net.rows(60, 6)
    labels = o.convert(o.reshape(_label(rows, 5), o.constant([1, 60]), False), "i64")
    boxes = o.concat([_corners(rows, (128, 96)), _score(rows, 4)], 2)
    return net.model({"boxes": boxes, "labels": labels}, **_SSD, resize_type="fit_to_window_letterbox")


def _centers(rows):
    """Return numbers as the center and size of boxes in an image of 128 x 96."""
    return o.multiply(o.sigmoid(_part(rows, 0, 4)), o.constant(np.array([128, 96, 60, 50], np.float32)))


@_network
def yolo_v8() -> ov.Model:
    net = _Network(24, 96, 128)
    rows = net.rows(80, 14)
    likely = o.sigmoid(o.subtract(_part(rows, 4, 14), o.constant(np.float32(1))))
    prediction = o.transpose(o.concat([_centers(rows), likely], 2), o.constant([0, 2, 1]))
    return net.model({"output0": prediction}, model_type="YOLOv8", labels=LABELS)


@_network
def yolo_x() -> ov.Model:
    net = _Network(25, 96, 128)
    rows = net.rows(sum((96 // s) * (128 // s) for s in (8, 16, 32)), 8)
    prediction = o.concat([_part(rows, 0, 4), o.sigmoid(_part(rows, 4, 8))], 2)
    return net.model({"output": prediction}, model_type="YOLOX", labels="x y z")


@_network
def yolo_v4() -> ov.Model:
    net = _Network(26, 96, 96)
    maps = [net.conv(net.conv(net.features, 16, 8, stride=2 * s), 8, 27, stride=1, kernel=1, scale=0.4) for s in (1, 2, 4)]
    outputs = {f"map{place}": value for place, value in enumerate(maps)}
    return net.model(outputs, model_type="YOLOV4", labels=LABELS, confidence_threshold="0.55")


@_network
def yolo_f() -> ov.Model:
    net = _Network(27, 64, 96)
    grid = net.conv(net.conv(net.features, 16, 8, stride=8), 8, 48, stride=1, kernel=1, scale=0.5)
    return net.model({"map": grid}, model_type="YOLOF", labels=LABELS, confidence_threshold="0.55")


@_network
def segmentation() -> ov.Model:
    net = _Network(28, 64, 96)
    scores = o.softmax(net.conv(net.features, 16, 5, stride=1), 1)
    return net.model({"maps": scores}, model_type="Segmentation", labels=LABELS)


@_network
def segmentation_blurred() -> ov.Model:
    net = _Network(29, 64, 96)
    scores = o.softmax(net.conv(net.features, 16, 5, stride=1), 1)
    stated = {"model_type": "Segmentation", "labels": LABELS, "blur_strength": "3", "soft_threshold": "0.3"}
    return net.model({"maps": scores}, **stated)


def _instances(seed: int, batched: bool, **info: str) -> ov.Model:
    net = _Network(seed, 96, 128)
    rows = net.rows(20, 6)
    labels = o.convert(o.reshape(_label(rows, 5, 8), o.constant([1, 20] if batched else [20]), False), "i64")
    boxes = o.concat([_corners(rows, (128, 96)), _score(rows, 4)], 2)
    coarse = np.repeat(np.repeat(net.weights(1, 20, 7, 7), 4, 2), 4, 3) * 2
    masks = o.sigmoid(o.add(o.constant(coarse), o.reshape(net.numbers(1), o.constant([1, 1, 1, 1]), False)))
    if not batched:
        boxes = o.reshape(boxes, o.constant([20, 5]), False)
        masks = o.reshape(masks, o.constant([20, 28, 28]), False)
    outputs = {"boxes": boxes, "labels": labels, "masks": masks}
    return net.model(outputs, labels=LABELS, confidence_threshold="0.4", **info)


@_network
def mask_rcnn() -> ov.Model:
    return _instances(30, False, model_type="MaskRCNN", resize_type="fit_to_window", nms_execute="True")


def _image_information(net: _Network):
    """Add a second input with the size of the image."""
    information = o.parameter([1, 3], np.float32, name="im_info")
    information.output(0).get_tensor().set_names({"im_info"})
    net.others.append(information)
    return information


@_network
def mask_rcnn_of_two_inputs() -> ov.Model:
    """The size of its image scales its boxes, and each class has a mask."""
    net = _Network(35, 96, 128)
    size = o.slice(_image_information(net), o.constant([0]), o.constant([2]), o.constant([1]), o.constant([1]))
    rows = net.rows(20, 6)
    scaled = o.multiply(_corners(rows), o.concat([size, size], 1))
    outputs = {
        "boxes": o.reshape(scaled, o.constant([20, 4]), False),
        "classes": o.convert(o.reshape(_label(rows, 5, 3), o.constant([20]), False), "i64"),
        "scores": o.reshape(_score(rows, 4), o.constant([20]), False),
        "raw_masks": o.sigmoid(
            o.add(o.constant(net.weights(20, 3, 7, 7) * 2), o.reshape(net.numbers(1), o.constant([1, 1, 1, 1]), False))
        ),
    }
    return net.model(outputs, model_type="MaskRCNN", labels=LABELS, confidence_threshold="0.4")


@_network
def ssd_of_two_inputs() -> ov.Model:
    net = _Network(36, 96, 128)
    height = o.slice(_image_information(net), o.constant([0]), o.constant([1]), o.constant([1]), o.constant([1]))
    rows = net.rows(60, 6)
    share = o.reshape(o.divide(height, o.constant(np.float32(96))), o.constant([1, 1, 1]), False)
    score = _score(rows, 4)
    corners = o.multiply(_corners(rows), share)
    joined = o.concat([o.multiply(score, o.constant(np.float32(0))), _label(rows, 5), score, corners], 2)
    return net.model({"detection_out": o.reshape(joined, o.constant([1, 1, 60, 7]), False)}, **_SSD)


@_network
def detr() -> ov.Model:
    return _instances(31, True, model_type="DETRInstSeg")


@_network
def yolo_seg() -> ov.Model:
    net = _Network(32, 96, 128)
    rows = net.rows(40, 18)
    likely = o.sigmoid(o.subtract(_part(rows, 4, 10), o.constant(np.float32(1))))
    numbers = o.concat([_centers(rows), likely, _part(rows, 10, 18)], 2)
    outputs = {
        "output0": o.transpose(numbers, o.constant([0, 2, 1])),
        "output1": net.conv(net.features, 16, 8, stride=1, scale=0.5),
    }
    return net.model(outputs, model_type="YOLO-seg", labels=LABELS, nms_execute="True")


@_network
def keypoints() -> ov.Model:
    net = _Network(33, 96, 64)
    x, y = net.rows(7, 128), net.rows(7, 192)
    return net.model({"x": x, "y": y}, model_type="keypoint_detection", labels=LABELS, resize_type="fit_to_window_letterbox")


@_network
def anomaly() -> ov.Model:
    net = _Network(34)
    heat = o.sigmoid(net.conv(net.features, 16, 1, stride=1, scale=0.2))
    stated = {"model_type": "AnomalyDetection", "labels": "Normal Anomaly", "task": "segmentation"}
    stated |= {"image_threshold": "0.6", "pixel_threshold": "0.5", "normalization_scale": "0.8"}
    return net.model({"anomaly_map": heat}, **stated)
