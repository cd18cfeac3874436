"""``<pre-process>`` of version 10, which subtracts a mean from an input, as layers of the graph.

The mean is one number per channel (``<mean value="...">``), or one image per channel in the .bin (``<mean offset="..."
size="...">``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lxml import etree

from converters.errors import Problems, short
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, Layer, Model, OutputPort
from converters.openvino.reader.xml import integer


def subtract_mean(model: Model, element: etree._Element, problems: Problems) -> None:
    """Insert the layers that subtract the mean after the input that the element names."""
    parameter = _input(model, element)
    dims = None if parameter is None else parameter.outputs[0].dims
    if parameter is None or not model.parameters:
        named = short(element.get("reference-layer-name", ""))
        problems.add(f'<pre-process> names the input "{named}", which does not exist', line=element.sourceline)
        return
    if dims is None or None in dims or not 2 <= len(dims) <= 5:
        problems.add("<pre-process> requires an input of two to five known dimensions", line=element.sourceline)
        return
    sizes = [dim for dim in dims if dim is not None]
    # The batch comes first unless there are three dimensions: channels, height, width.
    channels, *image = sizes if len(sizes) == 3 else sizes[1:]
    means = [channel.find("mean") for channel in element.iterchildren("channel")]
    present = [mean for mean in means if mean is not None]
    if not present:
        return
    if len(present) != channels:
        problems.add(f"<pre-process> has {len(present)} means for {channels} channels", line=element.sourceline)
        return
    layers = _Layers(model, parameter)
    early = model.version < 10  # the Inference Engine prefers images, and subtracts floats
    if early:
        layers.element_type = ElementType.F32
        if _places(element) != set(range(channels)):
            problems.add("<pre-process> has a channel more than once, or one that does not exist", line=element.sourceline)
            return
    images = all("offset" in mean.attrib and "size" in mean.attrib for mean in present) and len(image) == 2
    if all("value" in mean.attrib for mean in present) and not (early and images):
        numbers = [_number(mean.get("value", "")) for mean in present]
        if None in numbers:
            problems.add("a mean of <pre-process> is not a number", line=element.sourceline)
            return
        values = _in_order(element, numbers)
        dtype = layers.element_type.dtype
        assert dtype is not None
        data = np.array(values, np.float64).astype(dtype).tobytes()
        mean = layers.constant((channels, *[1] * len(image)), None, memoryview(data))
    elif images:
        planes = [_plane(layers, mean, (1, *image)) for mean in _in_order(element, present)]
        if None in planes:
            problems.add("a mean of <pre-process> has an invalid offset or size", line=element.sourceline)
            return
        mean = layers.add("Concat", [plane for plane in planes if plane is not None], (channels, *image), axis="0")
    else:
        problems.add("<pre-process> has means of different kinds", line=element.sourceline)
        return
    layers.subtract(mean)


def _input(model: Model, element: etree._Element) -> Layer | None:
    name = element.get("reference-layer-name", "").strip()
    if name:
        return next((layer for layer in model.parameters if layer.name == name), None)
    # The oldest files do not name the input. It is the first image.
    images = (layer for layer in model.parameters if len(layer.outputs[0].dims or ()) == 4)
    return next(images, model.parameters[0] if model.parameters else None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _places(element: etree._Element) -> set[int]:
    """Return the channels' ids. By default, an id is one more than the previous one."""
    places, last = set(), -1
    for channel in element.iterchildren("channel"):
        number = integer(channel.get("id"))
        last = last + 1 if number is None else number
        places.add(last)
    return places


def _in_order(element: etree._Element, values: list[Any]) -> list[Any]:
    """Sort the channels' values by the channels' ids, which count from 0 by default."""
    channels = list(element.iterchildren("channel"))
    ids = [integer(channel.get("id")) for channel in channels]
    places = [place if number is None else number for place, number in enumerate(ids)]
    return [value for _, value in sorted(zip(places, values, strict=False), key=lambda pair: pair[0])]


def _plane(layers: _Layers, mean: etree._Element, shape: tuple[int, ...]) -> OutputPort | None:
    offset, size = integer(mean.get("offset")), integer(mean.get("size"))
    weights = layers.model.weights
    if offset is None or size != layers.element_type.byte_size(math.prod(shape)) or not 0 <= offset <= len(weights) - size:
        return None
    return layers.constant(shape, offset, weights[offset : offset + size])


class _Layers:
    """New layers before all consumers of an input."""

    def __init__(self, model: Model, parameter: Layer) -> None:
        self.model, self.parameter = model, parameter
        self.element_type: ElementType = parameter.outputs[0].element_type
        self._next_id = max(layer.id for layer in model.layers) + 1
        self._place = model.layers.index(parameter) + 1

    def constant(self, shape: tuple[int, ...], offset: int | None, raw: memoryview) -> OutputPort:
        """Add a Const layer and return its value."""
        port = self.add("Const", [], shape)
        port.layer.constant = Constant(self.element_type, shape, offset, len(raw), raw)
        return port

    def add(self, kind: str, sources: list[OutputPort], shape: tuple[int, ...], **attributes: str) -> OutputPort:
        """Add a layer and return its output."""
        name = f"{self.parameter.name}/mean_{self._next_id}"
        layer = Layer(self._next_id, name, kind, "opset1", attributes, [], [], {}, self.parameter.line)
        for index, source in enumerate(sources):
            layer.inputs.append(InputPort(layer, index, index, source))
            source.consumers.append(layer.inputs[-1])
        port = OutputPort(layer, len(sources), 0, self.element_type, shape)
        layer.outputs.append(port)
        self.model.layers.insert(self._place, layer)
        self._place, self._next_id = self._place + 1, self._next_id + 1
        return port

    def subtract(self, mean: OutputPort) -> None:
        """Subtract the mean from the input for all its consumers."""
        value = self.parameter.outputs[0]
        consumers, value.consumers = value.consumers, []
        dims = tuple(dim for dim in value.dims or () if dim is not None)
        if value.element_type is not self.element_type:
            value = self.add("Convert", [value], dims, destination_type="f32")
        difference = self.add("Subtract", [value, mean], dims)
        for port in consumers:
            port.source = difference
        difference.consumers = consumers
