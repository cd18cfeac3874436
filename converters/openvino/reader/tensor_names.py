"""OpenVINO's names of a model's inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from converters.openvino.reader import ir10
from converters.openvino.reader.graph import Layer, Model, OutputPort

_SEPARATOR = re.compile(r"(?<!\\),")


def parse_names(text: str) -> tuple[str, ...]:
    """Parse the tensor names in a ``names`` or ``output_names`` attribute, separated by commas.

    A comma in a name is written "\\,". Any other backslash is literal.
    """
    if "," not in text:
        return (text,) if text else ()
    return tuple(name.replace("\\,", ",") for name in _SEPARATOR.split(text) if name)


def friendly_name(port: OutputPort, omitted: Mapping[Layer, int] | None = None) -> str:
    """Return the name of the value's layer, with ".0", ".1", ... if the layer has several outputs.

    ``omitted`` has the number of outputs that the file omits.
    """
    layer = port.layer
    count = len(layer.outputs) + (omitted or {}).get(layer, 0)
    return layer.name if count == 1 else f"{layer.name}.{port.index}"


def input_aliases(parameter: Layer) -> tuple[str, ...]:
    """Return all names of an input: its tensor names and its friendly name."""
    return (*parameter.outputs[0].names, parameter.name)


def set_names(model: Model) -> None:
    """Set the model's `input_names` and `output_names`.

    The user's name comes first, then the tensor names. The friendly name is used if there is no other.
    """
    model.input_names = [_names(model, layer, layer.outputs[0].names, layer.name) for layer in model.parameters]
    model.output_names = output_names(model)


def output_names(model: Model, omitted: Mapping[Layer, int] | None = None) -> list[tuple[str, ...]]:
    """Return the names of the model's outputs, with the number of outputs that the file omits of some layers."""
    return [
        _names(model, layer, _result_names(model, layer), friendly_name(layer.inputs[0].source, omitted))
        for layer in model.results
    ]


def _names(model: Model, layer: Layer, names: tuple[str, ...], friendly: str) -> tuple[str, ...]:
    missing = not names or (ir10.is_early(model) and friendly not in names)
    # A layer without a name gets OpenVINO's default name, because an ONNX value needs a name.
    settled = (*names, friendly or f"{layer.type}_{layer.id}") if missing else names
    given = model.renamed.get(layer)
    return settled if given is None else (given, *(name for name in settled if name != given))


def _result_names(model: Model, result: Layer) -> tuple[str, ...]:
    stated = result.output_names
    return result.inputs[0].source.names if stated is None or ir10.is_early(model) else stated
