"""The names by which OpenVINO knows a model's inputs and outputs."""

from __future__ import annotations

import re

from converters.openvino.reader import ir10
from converters.openvino.reader.graph import Layer, Model, OutputPort

_SEPARATOR = re.compile(r"(?<!\\),")


def parse_names(text: str) -> tuple[str, ...]:
    """The tensor names in a ``names`` or ``output_names`` attribute, which commas separate.

    A comma within a name is written "\\,"; any other backslash stands for itself.
    """
    if "," not in text:
        return (text,) if text else ()
    return tuple(name.replace("\\,", ",") for name in _SEPARATOR.split(text) if name)


def friendly_name(port: OutputPort) -> str:
    """The name of the layer that gives the value, with ".0", ".1" ... where that has several outputs."""
    layer = port.layer
    return layer.name if len(layer.outputs) + layer.left_out == 1 else f"{layer.name}.{port.index}"


def input_aliases(parameter: Layer) -> tuple[str, ...]:
    """All names by which an input may be called: its tensor names and its friendly one."""
    return (*parameter.outputs[0].names, parameter.name)


def settle_names(model: Model) -> None:
    """Sets the model's `input_names` and `output_names`.

    The name that a user gives comes first, then tensor names, and the friendly name for want of any.
    """
    model.input_names = [_names(model, layer, layer.outputs[0].names, layer.name) for layer in model.parameters]
    model.output_names = [
        _names(model, layer, _result_names(model, layer), friendly_name(layer.inputs[0].source)) for layer in model.results
    ]


def _names(model: Model, layer: Layer, names: tuple[str, ...], friendly: str) -> tuple[str, ...]:
    missing = not names or (ir10.is_early(model) and friendly not in names)
    # A layer without a name gets one of OpenVINO's, and an ONNX value needs one too.
    settled = (*names, friendly or f"{layer.type}_{layer.id}") if missing else names
    given = model.renamed.get(layer)
    return settled if given is None else (given, *(name for name in settled if name != given))


def _result_names(model: Model, result: Layer) -> tuple[str, ...]:
    stated = result.output_names
    return result.inputs[0].source.names if stated is None or ir10.is_early(model) else stated
