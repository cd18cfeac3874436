"""What a model says about itself: run-time information, layouts, friendly names, bounds of dimensions, in the ONNX model.

Run-time information becomes the model's ``metadata_props`` under the same names; nested ones are joined by a blank
(``model_info model_type``), as Model API writes and reads them. What concerns one input or output stands in its own
``metadata_props``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from converters.openvino.reader import ir10
from converters.openvino.reader.graph import Layer, Model, OutputPort
from converters.openvino.reader.shapes import PartialShape
from converters.openvino.reader.tensor_names import friendly_name

LAYOUT = "layout"
"""The key of an input's or output's layout, as OpenVINO writes it: ``[N,C,H,W]``."""

FRIENDLY_NAME = "openvino.friendly_name"
"""The key of the friendly name of the layer, where the value is known by another."""

SHAPE = "openvino.shape"
"""The key of an input's shape where its dimensions have bounds that ONNX cannot say: ``[1..8,3,224,224]``."""


def describe(model: ir.Model, source: Model) -> None:
    """Let the model say of itself what the IR says."""
    model.metadata_props.update(flat(ir10.run_time_information(source)))
    for value, layer in zip(model.graph.inputs, source.parameters, strict=False):
        port = layer.outputs[0]
        _describe(value, port, layer.name)
        shape = PartialShape.parse(layer.attributes.get("shape", "..."))
        if any(low > 0 or high is not None for low, high in shape.intervals or () if low != high):
            value.metadata_props[SHAPE] = str(shape)
    for value, layer in zip(model.graph.outputs, source.results, strict=False):
        port = layer.inputs[0].source
        _describe(value, port, friendly_name(port), layer)


def _describe(value: ir.Value, port: OutputPort, friendly: str, result: Layer | None = None) -> None:
    layout = port.rt_info.get(LAYOUT)
    if result is not None and result.inputs[0].rt_info.get(LAYOUT):
        layout = result.inputs[0].rt_info[LAYOUT]
    if isinstance(layout, dict) and isinstance(layout.get(LAYOUT), str):
        value.metadata_props[LAYOUT] = layout[LAYOUT]
    if value.name != friendly:
        value.metadata_props[FRIENDLY_NAME] = friendly


def flat(information: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Run-time information as names and texts, nested names joined by a blank."""
    for name, value in information.items():
        key = f"{path} {name}" if path else name
        if isinstance(value, Mapping):
            yield from flat(value, key)
        elif isinstance(value, list):  # the same name several times
            yield from flat({str(place): item for place, item in enumerate(value)}, key)
        else:
            yield key, str(value)
