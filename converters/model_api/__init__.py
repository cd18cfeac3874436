"""Model API's wrappers as part of the graph: from an image to objects.

Vision models of Geti, Anomalib, OTX and the Open Model Zoo state in ``model_info`` how Model API prepares their image and
interprets their outputs. `embed` adds both to the graph in standard ONNX. The reference is ``openvino-model-api`` 0.4.7 from
PyPI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import LayerError, Malformed, Unsupported
from converters.model_api.anomaly import anomaly
from converters.model_api.classification import classification
from converters.model_api.configuration import Configuration
from converters.model_api.detection import ssd
from converters.model_api.image import Image, image_layout, prepare
from converters.model_api.instances import detr, mask_rcnn, yolo_seg
from converters.model_api.keypoints import keypoints
from converters.model_api.segmentation import segmentation
from converters.model_api.wrapper import Results, Wrapped
from converters.model_api.yolo import ultralytics, yolo_v4, yolof, yolox
from converters.options import Channels
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_values

__all__ = ["ModelApiError", "embed", "model_types"]

ModelApiError = LayerError
"""The error of `embed`: the model's parameters are invalid or not supported."""


@dataclass(frozen=True)
class _Wrapper:
    """A wrapper of Model API.

    Attributes:
        run: emits its results.
        defaults: the defaults of parameters that differ from those of other image models.
        width_first: whether a second input takes the width of the network's image before its height.
    """

    run: Callable[[Wrapped], Results]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    width_first: bool = False


_ULTRALYTICS = _Wrapper(
    ultralytics,
    {
        "pad_value": 114, "resize_type": "fit_to_window_letterbox", "reverse_input_channels": True, "scale_values": [255.0],
        "confidence_threshold": 0.25, "nms_execute": True, "iou_threshold": 0.7, "nms_max_predictions": 30000,
    },
)  # fmt: skip
_WRAPPERS = {
    "AnomalyDetection": _Wrapper(anomaly),
    "Classification": _Wrapper(classification),
    "DETRInstSeg": _Wrapper(detr, width_first=True),
    "MaskRCNN": _Wrapper(mask_rcnn, width_first=True),
    "SSD": _Wrapper(ssd),
    "Segmentation": _Wrapper(segmentation),
    "YOLO-seg": _Wrapper(
        yolo_seg,
        {
            "pad_value": 114, "resize_type": "fit_to_window_letterbox", "scale_values": [255.0],
            "confidence_threshold": 0.25, "iou_threshold": 0.5,
        },
    ),
    "YOLO11": _ULTRALYTICS,
    "YOLOF": _Wrapper(yolof, {"resize_type": "standard"}),
    "YOLOV4": _Wrapper(yolo_v4, {"resize_type": "fit_to_window_letterbox"}),
    "YOLOX": _Wrapper(
        yolox,
        {
            "pad_value": 114, "resize_type": "fit_to_window", "nms_execute": True, "agnostic_nms": True,
            "iou_threshold": 0.65,
        },
    ),
    "YOLOv5": _ULTRALYTICS,
    "YOLOv8": _ULTRALYTICS,
    "keypoint_detection": _Wrapper(keypoints),
}  # fmt: skip
_BY_NAME = {name.lower(): wrapper for name, wrapper in _WRAPPERS.items()}


def model_types() -> list[str]:
    """Return the values of ``model_info/model_type`` that `embed` supports."""
    return sorted(_WRAPPERS, key=str.lower)


def embed(model: ir.Model, information: Mapping[str, str], channels: Channels = "rgb", layout: str = "") -> None:
    """Add the model's wrapper to its graph.

    The graph then takes ``image``, ``[height, width, channels]`` of any size, and returns the results of the wrapper.

    Args:
        model: the model that the rules emitted; changed in place.
        information: its run-time information; nested names are joined by a blank (``model_info model_type``).
        channels: the channel order of the caller's image.
        layout: the model's layout of its image input, such as ``[N,C,H,W]``, or empty.

    Raises:
        LayerError: the model's parameters contradict each other, or cannot be represented in ONNX.
    """
    stated = Configuration.of(information)
    name = stated.text("model_type")
    if not name:
        raise Unsupported("it states no model_info/model_type: it was not made for Model API")
    wrapper = _BY_NAME.get(name.lower())
    if wrapper is None:
        raise Unsupported(f"its model_type {name!r} is not supported: supported are {', '.join(model_types())}")
    config = stated.with_defaults(**wrapper.defaults)
    graph = model.graph
    images = [value for value in graph.inputs if value.shape is not None and len(value.shape) == 4]
    if len(images) != 1:
        raise Unsupported(f"it has {len(images)} inputs of four dimensions: expected one, the image")
    network = images[0]
    assert isinstance(network, Value)
    first = next(iter(graph), None)
    if first is None:
        raise Malformed("it has no layers")
    before = Builder.of_existing(graph, before=first)
    image = prepare(before, network, image_layout(network, layout), config, channels)
    others = {v: _image_information(before, v, image, wrapper.width_first) for v in graph.inputs if v is not network}
    outputs = {value.name or "": value for value in graph.outputs}
    ir.convenience.replace_all_uses_with(network, image.prepared, replace_graph_outputs=True)
    for value, given in others.items():
        ir.convenience.replace_all_uses_with(value, before.place(given))
    graph.inputs[:] = [image.input]
    graph.outputs.clear()
    after = Builder.of_existing(graph)
    results = wrapper.run(Wrapped(after, outputs, image, config))  # type: ignore[arg-type]
    _name(after, graph, image, results)


def _image_information(op: Builder, value: ir.Value, image: Image, width_first: bool) -> Value:
    """Return a detector's second input: the height and width of the network's image, and a scale of 1."""
    if value.shape is None or len(value.shape) != 2:
        raise Unsupported(f"its input {value.name} is not an image, nor what Model API tells of one")
    size = list(image.size())
    return op.const(np.array([[*(size[::-1] if width_first else size), 1]]), value.dtype)


def _name(op: Builder, graph: ir.Graph, image: Image, results: Results) -> None:
    """Name the graph's input and outputs, and rename other values with the same names."""
    given = {name: value for name, value in results.items() if value is not None}
    taken = {"image", *given}
    for value in all_values(graph):
        if value.name in taken and value is not image.input:
            value.name = op.unique(value.name)
    image.input.name = "image"
    for name, value in given.items():
        result = op.result(op.Identity(value) if value.producer() is None or value.is_graph_output() else value)
        result.name = name
        graph.outputs.append(result)
