"""Small networks with random weights for each of Model API's wrappers, and images for them."""

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
SIZES = [
    (64, 64), (48, 131), (150, 97), (96, 128), (33, 33), (17, 23), (200, 40), (40, 220), (128, 96), (180, 240),
    (101, 103), (12, 16), (64, 200), (256, 192), (75, 75), (160, 160), (31, 90), (90, 31), (240, 320), (113, 57),
]  # fmt: skip
SHOWN = 3
"""The number of images that the tests run; ``python -m tests.converters.model_api`` runs them all."""

NETWORKS: dict[str, Callable[[], ov.Model]] = {}
"""A function for each network, by its name."""


def images() -> Iterator[np.ndarray]:
    """Images in blue, green and red: blocks with noise, gradients, stripes and discs, of small, large and odd sizes."""
    rng = np.random.default_rng(7)
    for number, (height, width) in enumerate(SIZES):
        rows, columns = np.arange(height), np.arange(width)
        noise = rng.integers(-20, 20, (height, width, 3))
        if number < SHOWN or number % 4 == 3:
            coarse = rng.integers(0, 256, (height // 17 + 1, width // 13 + 1, 3))
            picture = coarse[rows // 17][:, columns // 13]
        elif number % 4 == 0:
            ends = rng.integers(0, 256, (2, 2, 3))
            down, across = rows[:, None, None] / height, columns[None, :, None] / width
            picture = (1 - down) * (ends[0, 0] * (1 - across) + ends[0, 1] * across) + down * ends[1, 0]
        elif number % 4 == 1:
            waves = rng.uniform(0.05, 0.6, (3, 2))
            angle = rows[:, None, None] * waves[:, 0] + columns[None, :, None] * waves[:, 1]
            picture = 127 + 100 * np.sin(angle)
        else:
            picture = np.full((height, width, 3), rng.integers(0, 256, 3))
            for y, x, size in rng.uniform(0, 1, (6, 3)):
                disc = (rows[:, None] - y * height) ** 2 + (columns[None] - x * width) ** 2 < (
                    size * min(height, width) / 3
                ) ** 2
                picture[disc] = rng.integers(0, 256, 3)
        yield np.clip(picture + noise, 0, 255).astype(np.uint8)


def inputs_of(name: str, image: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs of a converted network for an image."""
    height, width = image.shape[:2]
    if name == "action":
        return {"video": np.stack([np.roll(image, 3 * shift, 1) for shift in range(4)])}
    if name == "sam_decoder":
        return {
            "boxes": np.array([[0.1, 0.2, 0.6, 0.9], [0.3, 0.1, 0.9, 0.5]], np.float32) * np.float32([width, height] * 2),
            "points": np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]], np.float32) * np.float32([width, height]),
            "image_size": np.array([height, width]),
        }
    return {"image": image}


class _Network:
    """The parts of networks. Weights are generated in order."""

    def __init__(self, seed: int, height: int = 64, width: int = 64, layout: str = "NCHW") -> None:
        self.rng = np.random.default_rng(seed)
        shape = [1, 3, height or -1, width or -1] if layout == "NCHW" else [1, height, width, 3]
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
        """``[1, count]`` that depend on the image."""
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
    """Convert numbers to x1, y1, x2, y2."""
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

_classifier(
    "probabilistic", 12, outputs=8, labels="a b c d e f g h", hierarchical="True", hierarchical_postproc="probabilistic",
    hierarchical_config=json.dumps(HIERARCHY), confidence_threshold="0.4",
)  # fmt: skip
_classifier("other_label", 13, outputs=11, topk="2")

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
    """Convert numbers to centers and sizes of boxes in an image of 128 x 96."""
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
    """A second input with the size of the image."""
    information = o.parameter([1, 3], np.float32, name="im_info")
    information.output(0).get_tensor().set_names({"im_info"})
    net.others.append(information)
    return information


@_network
def mask_rcnn_of_two_inputs() -> ov.Model:
    """The size of the image scales the boxes, and there is a mask for each class."""
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


def _resized(x, height: int, width: int):
    attributes = ("linear", "sizes", [0, 0, 0, 0], [0, 0, 0, 0], "half_pixel")
    return o.interpolate(x, o.constant([height, width]), *attributes, axes=o.constant([2, 3]))


def _heat(net: _Network, *size: int):
    """A map with few large regions."""
    coarse = net.conv(net.conv(net.features, 16, 8, stride=4, scale=0.2), 8, 1, stride=1, kernel=1)
    return o.sigmoid(o.multiply(_resized(coarse, *size), o.constant(np.float32(3))))


_ANOMALY = {"model_type": "AnomalyDetection", "labels": "Normal Anomaly", "image_threshold": "0.6", "pixel_threshold": "0.5"}


@_network
def anomaly_boxes() -> ov.Model:
    net = _Network(40)
    return net.model({"anomaly_map": _heat(net, 64, 64)}, **_ANOMALY, task="detection", normalization_scale="0.8")


@_network
def anomaly_predicted() -> ov.Model:
    """All predictions of Anomalib."""
    net = _Network(41)
    heat = _heat(net, 64, 64)
    outputs = {
        "pred_score": o.reduce_max(heat, o.constant([1, 2, 3]), False),
        "pred_label": o.greater(o.reduce_max(heat, o.constant([1, 2, 3]), False), o.constant(np.float32(0.7))),
        "anomaly_map": heat,
        "pred_mask": o.greater(heat, o.constant(np.float32(0.5))),
    }
    return net.model(outputs, **_ANOMALY, task="detection")


@_network
def anomaly_of_any_size() -> ov.Model:
    """An image of dynamic size: pixels are from 0 to 1, whatever the other settings."""
    net = _Network(42, 0, 0)
    bright = o.multiply(net.input, o.constant(np.float32(1)))
    heat = o.reduce_mean(bright, o.constant([1]), True)
    return net.model(
        {"anomaly_map": heat}, **_ANOMALY, task="segmentation", reverse_input_channels="True", mean_values="9 9 9"
    )


@_network
def hierarchy_explained() -> ov.Model:
    net = _Network(43)
    maps = net.conv(net.features, 16, 8, stride=4)
    heads = HIERARCHY["cls_heads_info"] | {"class_to_group_idx": {label: [0, 0] for label in "hgfedcba"}}
    stated = {"labels": "a b c d e f g h", "hierarchical_config": json.dumps(HIERARCHY | {"cls_heads_info": heads})}
    outputs = {"logits": net.numbers(8, scale=3), "saliency_map": maps, "feature_vector": net.numbers(4)}
    return net.model(outputs, model_type="Classification", hierarchical="True", output_raw_scores="True", **stated)


@_network
def segmentation_explained() -> ov.Model:
    net = _Network(44, 64, 96)
    scores = o.softmax(net.conv(net.features, 16, 5, stride=1), 1)
    return net.model({"maps": scores, "feature_vector": net.numbers(6)}, model_type="Segmentation", labels=LABELS)


@_network
def mask_rcnn_explained() -> ov.Model:
    model = _instances(45, False, model_type="MaskRCNN", nms_execute="True")
    mean = o.reduce_mean(model.get_parameters()[0], o.constant([1, 2, 3]), False)
    mean.output(0).get_tensor().set_names({"feature_vector"})
    model.add_results([o.result(mean)])
    return model


@_network
def rotated() -> ov.Model:
    return _instances(46, False, model_type="MaskRCNN", nms_execute="True", task_type="rotated_detection")


_TILES = {"tile_size": "90", "tiles_overlap": "0.4"}


@_network
def tiled_ssd() -> ov.Model:
    net = _Network(47, 96, 128)
    rows = net.rows(30, 6)
    flat = o.constant([1, 30])
    labels = o.convert(o.reshape(_label(rows, 5), flat, False), "i64")
    outputs = {"bboxes": _corners(rows), "scores": o.reshape(_score(rows, 4), flat, False), "labels": labels}
    outputs["feature_vector"] = net.numbers(6)
    return net.model(outputs, **_SSD, **_TILES, iou_threshold="0.3", max_pred_number="40")


def _tiled_and_explained(seed: int, bytes: bool) -> ov.Model:
    """Tiles with saliency maps."""
    net = _Network(seed, 96, 128)
    rows = net.rows(30, 6)
    flat = o.constant([1, 30])
    labels = o.convert(o.reshape(_label(rows, 5), flat, False), "i64")
    maps = o.sigmoid(net.conv(net.features, 16, 10, stride=2, scale=0.3))
    if bytes:
        maps = o.convert(o.floor(o.multiply(maps, o.constant(np.float32(255)))), "u8")
    outputs = {"bboxes": _corners(rows), "scores": o.reshape(_score(rows, 4), flat, False), "labels": labels}
    return net.model(outputs | {"saliency_map": maps, "feature_vector": net.numbers(6)}, **_SSD, **_TILES)


@_network
def tiled_ssd_explained() -> ov.Model:
    return _tiled_and_explained(55, False)


@_network
def tiled_ssd_explained_in_bytes() -> ov.Model:
    return _tiled_and_explained(56, True)


@_network
def tiled_mask_rcnn_explained() -> ov.Model:
    model = _instances(57, False, model_type="MaskRCNN", resize_type="fit_to_window", **_TILES)
    mean = o.reduce_mean(model.get_parameters()[0], o.constant([1, 2, 3]), False)
    mean.output(0).get_tensor().set_names({"feature_vector"})
    model.add_results([o.result(mean)])
    return model


@_network
def tiled_yolo_v8() -> ov.Model:
    net = _Network(48, 96, 128)
    rows = net.rows(40, 14)
    likely = o.sigmoid(o.subtract(_part(rows, 4, 14), o.constant(np.float32(1))))
    prediction = o.transpose(o.concat([_centers(rows), likely], 2), o.constant([0, 2, 1]))
    return net.model({"output0": prediction}, model_type="YOLOv8", labels=LABELS, tile_with_full_img="False", **_TILES)


@_network
def tiled_mask_rcnn() -> ov.Model:
    return _instances(49, False, model_type="MaskRCNN", resize_type="fit_to_window", **_TILES)


@_network
def tiled_segmentation() -> ov.Model:
    net = _Network(50, 64, 96)
    scores = o.softmax(net.conv(net.features, 16, 5, stride=1), 1)
    return net.model({"maps": scores}, model_type="Segmentation", labels="a b c d e", **_TILES)


@_network
def yolo_v3() -> ov.Model:
    """Two outputs of RegionYolo layers."""
    net = _Network(51, 96, 96)
    outputs = {}
    for place, mask in enumerate(([3, 4, 5], [0, 1, 2])):
        grid = net.conv(net.conv(net.features, 16, 8, stride=2 * (2 - place)), 8, 27, stride=1, kernel=1, scale=0.4)
        anchors = [20, 34, 43, 47, 57, 68, 61, 42, 55, 79, 64, 39]
        outputs[f"region{place}"] = o.region_yolo(grid, 4, 4, 6, False, mask, 1, 3, [float(a) for a in anchors])
        outputs[f"region{place}"].set_friendly_name(f"region{place}")
    return net.model(outputs, model_type="YOLO", labels="a b c d", confidence_threshold="0.7")


@_network
def sam_encoder() -> ov.Model:
    net = _Network(52, 128, 128)
    embeddings = net.conv(net.conv(net.features, 16, 8, scale=0.15), 8, 8, scale=0.1)
    return net.model({"image_embeddings": embeddings}, model_type="sam_image_encoder", resize_type="fit_to_window")


@_network
def sam_decoder() -> ov.Model:
    net = _Network(53)
    shapes = {
        "image_embeddings": [1, 8, 8, 8],
        "point_coords": [1, -1, 2],
        "point_labels": [1, -1],
        "mask_input": [1, 1, 256, 256],
        "has_mask_input": [1, 1],
        "orig_size": [1, 2],
    }
    inputs = {name: o.parameter(dims, np.int64 if name == "orig_size" else np.float32) for name, dims in shapes.items()}
    for name, value in inputs.items():
        value.set_friendly_name(name)
        value.output(0).get_tensor().set_names({name})
    labels = o.unsqueeze(inputs["point_labels"], o.constant([2]))
    known = o.concat([o.divide(inputs["point_coords"], o.constant(np.float32(128))), labels], 2)
    tokens = o.reduce_sum(o.sin(o.matmul(known, o.constant(net.weights(3, 32)), False, False)), o.constant([1]), False)
    tokens = o.reshape(tokens, o.constant([1, 4, 8]), False)
    flat = o.reshape(inputs["image_embeddings"], o.constant([1, 8, 64]), False)
    low = o.reshape(o.matmul(tokens, flat, False, False), o.constant([1, 4, 8, 8]), False)
    unused = o.add(
        o.reduce_sum(inputs["mask_input"], o.constant([0, 1, 2, 3]), False),
        o.squeeze(inputs["has_mask_input"], o.constant([0, 1])),
    )
    low = o.add(low, unused)
    attributes = ("linear", "sizes", [0, 0, 0, 0], [0, 0, 0, 0], "half_pixel")
    large = o.interpolate(low, o.squeeze(inputs["orig_size"], o.constant([0])), *attributes, axes=o.constant([2, 3]))
    iou = o.sigmoid(o.reduce_mean(low, o.constant([2, 3]), False))
    outputs = {"upscaled_masks": large, "iou_predictions": iou, "low_res_masks": low}
    for name, node in outputs.items():
        node.output(0).get_tensor().set_names({name})
    model = ov.Model([o.result(node) for node in outputs.values()], list(inputs.values()))
    for name, text in {"model_type": "sam_decoder", "image_size": "128", "mask_threshold": "0.1"}.items():
        model.set_rt_info(text, ["model_info", name])
    return model


@_network
def action() -> ov.Model:
    rng = np.random.default_rng(54)
    video = o.parameter([1, 1, 3, 4, 40, 56], np.float32, name="video")
    video.output(0).get_tensor().set_names({"video"})
    scaled = o.multiply(video, o.constant(np.float32(0.02)))
    mean = o.reduce_mean(o.sin(scaled), o.constant([0, 1, 4]), False)
    flat = o.reshape(mean, o.constant([1, 3 * 4 * 56]), False)
    scores = o.matmul(flat, o.constant(rng.standard_normal((3 * 4 * 56, 10)).astype(np.float32)), False, False)
    scores.output(0).get_tensor().set_names({"scores"})
    model = ov.Model([o.result(scores)], [video])
    stated = {"model_type": "Action Classification", "labels": LABELS, "reverse_input_channels": "True"}
    stated |= {"mean_values": "100 110 120", "scale_values": "50 55 60", "resize_type": "fit_to_window_letterbox"}
    for name, text in stated.items():
        model.set_rt_info(text, ["model_info", name])
    return model
