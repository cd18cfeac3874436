"""Model API's preprocessing and postprocessing as part of the graph.

Vision models of Geti, Anomalib, OTX and the Open Model Zoo contain settings for Model API's preprocessing and postprocessing
in ``model_info``. `embed` adds both to the graph in standard ONNX. The reference is ``openvino-model-api`` 0.4.7 from PyPI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import LayerError, Malformed, Unsupported
from converters.model_api.action import action, prepare_video, video_input
from converters.model_api.anomaly import anomaly
from converters.model_api.classification import classification
from converters.model_api.configuration import Configuration
from converters.model_api.detection import ssd
from converters.model_api.image import Image, image_input, image_layout, prepare
from converters.model_api.instances import detr, mask_rcnn, yolo_seg
from converters.model_api.keypoints import keypoints
from converters.model_api.prompting import decoder, encoder
from converters.model_api.segmentation import segmentation
from converters.model_api.tiling import Merge, is_tiled, tiled
from converters.model_api.wrapper import Results, Wrapped
from converters.model_api.yolo import is_of_ultralytics, ultralytics, yolo_regions, yolo_v4, yolof, yolox
from converters.options import Channels, Tiles
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
        width_first: whether a second input contains the width of the network's image before its height.
        in_unit: whether a network with a dynamic image size expects pixels from 0 to 1.
        opencv: whether Model API prepares the image with OpenCV.
        merge: the kind of results that a tiler merges; ``None`` without a tiler.
    """

    run: Callable[[Wrapped], Results]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    width_first: bool = False
    in_unit: bool = False
    opencv: bool = False
    merge: Merge | None = None


_ULTRALYTICS = _Wrapper(
    ultralytics,
    {
        "pad_value": 114, "resize_type": "fit_to_window_letterbox", "reverse_input_channels": True, "scale_values": [255.0],
        "confidence_threshold": 0.25, "nms_execute": True, "iou_threshold": 0.7, "nms_max_predictions": 30000,
    },
    merge="boxes",
)  # fmt: skip
_DECODER = "sam_decoder"
_WRAPPERS = {
    "Action Classification": _Wrapper(action),
    "AnomalyDetection": _Wrapper(anomaly, in_unit=True),
    "Classification": _Wrapper(classification),
    "DETRInstSeg": _Wrapper(detr, width_first=True, merge="instances"),
    "MaskRCNN": _Wrapper(mask_rcnn, width_first=True, merge="instances"),
    "SSD": _Wrapper(ssd, merge="boxes"),
    "Segmentation": _Wrapper(segmentation, merge="maps"),
    "YOLO": _Wrapper(yolo_regions, {"resize_type": "fit_to_window_letterbox"}, merge="boxes"),
    "YOLO-seg": _Wrapper(
        yolo_seg,
        {
            "pad_value": 114, "resize_type": "fit_to_window_letterbox", "scale_values": [255.0],
            "confidence_threshold": 0.25, "iou_threshold": 0.5,
        },
    ),
    "YOLO11": _ULTRALYTICS,
    "YOLOF": _Wrapper(yolof, {"resize_type": "standard"}, merge="boxes"),
    "YOLOV4": _Wrapper(yolo_v4, {"resize_type": "fit_to_window_letterbox"}, merge="boxes"),
    "YOLOX": _Wrapper(
        yolox,
        {
            "pad_value": 114, "resize_type": "fit_to_window", "nms_execute": True, "agnostic_nms": True,
            "iou_threshold": 0.65,
        },
        opencv=True,
        merge="boxes",
    ),
    "YOLOv5": _ULTRALYTICS,
    "YOLOv8": _ULTRALYTICS,
    "keypoint_detection": _Wrapper(keypoints),
    "sam_image_encoder": _Wrapper(encoder),
}  # fmt: skip
_BY_NAME = {name.lower(): wrapper for name, wrapper in _WRAPPERS.items()}


def model_types() -> list[str]:
    """Return the values of ``model_info/model_type`` that `embed` supports."""
    return sorted([*_WRAPPERS, _DECODER], key=str.lower)


def embed(
    model: ir.Model,
    information: Mapping[str, str],
    channels: Channels = "rgb",
    layout: str = "",
    tiles: Tiles = "stated",
) -> None:
    """Add the model's wrapper to its graph.

    The graph's input is then ``image``, ``[height, width, channels]`` of any size, and its outputs are the results of the
    wrapper. A model of videos has the input ``video``, and SAM's decoder has prompts (`decoder`).

    Args:
        model: the model that the rules emitted; changed in place.
        information: its run-time information; nested names are joined by a blank (``model_info model_type``).
        channels: the channel order of the caller's image.
        layout: the model's layout of its image input, such as ``[N,C,H,W]``, or empty.
        tiles: whether the network of a model with a ``tile_size`` runs on tiles of the image.

    Raises:
        LayerError: the model's parameters contradict each other, or cannot be represented in ONNX.
    """
    stated = Configuration.of(information)
    name = stated.text("model_type")
    if not name:
        raise Unsupported("it has no model_info/model_type, which Model API requires")
    graph = model.graph
    if next(iter(graph), None) is None:
        raise Malformed("it has no layers")
    if name.lower() == _DECODER:
        _embed_decoder(graph, stated)
        return
    wrapper = _BY_NAME.get(name.lower())
    if wrapper is None:
        raise Unsupported(f"its model_type {name!r} is not supported; expected one of {', '.join(model_types())}")
    if wrapper.run is yolo_regions and is_of_ultralytics(graph.outputs, stated):
        wrapper = _ULTRALYTICS
    config = stated.with_defaults(**wrapper.defaults)
    rank = 6 if wrapper.run is action else 4
    images = [value for value in graph.inputs if value.shape is not None and len(value.shape) == rank]
    if len(images) != 1:
        raise Unsupported(f"it has {len(images)} inputs of {_RANKS[rank]} dimensions; expected one, the image")
    network = images[0]
    assert isinstance(network, Value)
    tiled_up = tiles == "stated" and is_tiled(config)
    if tiled_up and wrapper.merge is None:
        raise Unsupported(
            f"it has a tile_size, but Model API has no tiler for {name}: use --model-api-tiles none to ignore it"
        )
    moved = _Moved(graph)
    op = Builder.of_existing(graph)
    if rank == 6:
        given, run = video_input(network, layout), _on_video
    else:
        layout = image_layout(network, layout)
        given, run = image_input(network, layout, config), _on_image
    others = [value for value in graph.inputs if value is not network]

    def once(op: Builder, image: Value, config: Configuration) -> Results:
        prepared = run(op, image, network, layout, config, channels, wrapper)
        values = {v: _image_information(op, v, prepared, wrapper.width_first) for v in others}
        outputs = moved.into(op, {network: prepared.prepared, **values})
        return wrapper.run(Wrapped(op, outputs, prepared, config))

    graph.inputs[:] = [given]
    if tiled_up and wrapper.merge is not None:
        results = tiled(op, given, config, wrapper.merge, moved.outputs, once)
    else:
        results = once(op, given, config)
    _name(op, graph, [given], results)


_RANKS = {4: "four", 6: "six"}


class _Moved:
    """A network's nodes, removed from their graph until they are inserted after others, in the same or in a nested graph.

    Attributes:
        outputs: its outputs, by their first name.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self.outputs: dict[str, Value] = {value.name or "": value for value in graph.outputs}  # type: ignore[misc]
        graph.outputs.clear()
        self._graph, self._nodes = graph, list(graph)

    def into(self, op: Builder, inputs: Mapping[ir.Value, Value]) -> dict[str, Value]:
        """Insert the nodes at the position of ``op``, with values for inputs; return the network's outputs."""
        self._graph.remove(self._nodes)
        for old, new in inputs.items():
            placed = op.place(new)
            ir.convenience.replace_all_uses_with(old, placed)
            self.outputs = {name: placed if value is old else value for name, value in self.outputs.items()}
        op.graph.extend(self._nodes)
        return self.outputs


def _on_image(
    op: Builder, given: Value, network: Value, layout: str, config: Configuration, channels: Channels, wrapper: _Wrapper
) -> Image:
    return prepare(op, given, network, layout, config, channels, in_unit=wrapper.in_unit, opencv=wrapper.opencv)


def _on_video(
    op: Builder, given: Value, network: Value, layout: str, config: Configuration, channels: Channels, wrapper: _Wrapper
) -> Image:
    del wrapper  # frames have only one kind of preprocessing
    return prepare_video(op, given, network, layout, config, channels)


def _embed_decoder(graph: ir.Graph, config: Configuration) -> None:
    """Add SAM's decoder, whose inputs are prompts instead of an image."""
    inputs = {value.name or "": value for value in graph.inputs}
    moved = _Moved(graph)
    kept = {value.name: value for value in moved.outputs.values()}
    op = Builder.of_existing(graph)

    def run(op: Builder, given: Mapping[str, Value]) -> Results:
        return dict(moved.into(op, {inputs[name]: value for name, value in given.items()}))

    results = decoder(op, graph, list(kept), config, run)
    _name(op, graph, list(graph.inputs), results)


def _image_information(op: Builder, value: ir.Value, image: Image, width_first: bool) -> Value:
    """Return a detector's second input: the height and width of the network's image, and a scale of 1."""
    if value.shape is None or len(value.shape) != 2:
        raise Unsupported(f"its input {value.name} is neither an image nor the image information of Model API")
    size = list(image.size())
    return op.const(np.array([[*(size[::-1] if width_first else size), 1]]), value.dtype)


def _name(op: Builder, graph: ir.Graph, inputs: Sequence[ir.Value], results: Results) -> None:
    """Name the graph's outputs, and rename other values with the names of inputs and outputs."""
    given = {name: value for name, value in results.items() if value is not None}
    names = [value.name or "" for value in inputs]
    taken = {*names, *given}
    for value in all_values(graph):
        if value.name in taken and value not in inputs:
            value.name = op.unique(value.name)
    for name, value in given.items():
        result = op.result(op.Identity(value) if value.producer() is None or value.is_graph_output() else value)
        result.name = name
        graph.outputs.append(result)
