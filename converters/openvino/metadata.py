"""The metadata of a model in ONNX: run-time information, layouts, friendly names, bounds of dimensions.

Run-time information becomes the model's ``metadata_props`` with the same names. Nested names are joined by a blank
(``model_info model_type``), as Model API writes and reads them. The metadata of an input or output is in its own
``metadata_props``.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from converters.metadata_keys import FRIENDLY_NAME, LAYOUT, SHAPE
from converters.openvino.information import information, layout
from converters.openvino.reader.graph import InputPort, Layer, Model, OutputPort
from converters.openvino.reader.shapes import PartialShape
from converters.openvino.reader.tensor_names import friendly_name


def describe(model: ir.Model, source: Model, omitted: Mapping[Layer, int], *, values: bool = True) -> None:
    """Copy the IR's run-time information to the model and, if they are the IR's own, to its inputs and outputs."""
    model.metadata_props.update(information(source))
    if not values:
        return
    for value, layer in zip(model.graph.inputs, source.parameters, strict=False):
        _describe(value, layer.name, layer.outputs[0])
        shape = PartialShape.parse(layer.attributes.get("shape", "..."))
        if any(low > 0 or high is not None for low, high in shape.intervals or () if low != high):
            value.metadata_props[SHAPE] = str(shape)
    for value, layer in zip(model.graph.outputs, source.results, strict=False):
        port = layer.inputs[0].source
        _describe(value, friendly_name(port, omitted), layer.inputs[0], port)


def _describe(value: ir.Value, friendly: str, *ports: InputPort | OutputPort) -> None:
    if stated := layout(*ports):
        value.metadata_props[LAYOUT] = stated
    if value.name != friendly:
        value.metadata_props[FRIENDLY_NAME] = friendly
