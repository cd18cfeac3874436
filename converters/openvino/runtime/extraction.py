"""Extraction of a model with other outputs, in OpenVINO's own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from converters.openvino.runtime.inference import read_model


@dataclass(frozen=True)
class Output:
    """A value: the friendly name of its layer, its output index, and its position among the model's outputs, if any."""

    layer: str
    index: int
    place: int | None


def extract(
    path: str,
    target: str,
    inputs: Sequence[int],
    outputs: Sequence[Output],
    variables: Sequence[str],
    extensions: Sequence[str] = (),
) -> None:
    """Write the IR with these inputs and outputs.

    Args:
        path: the IR.
        target: the new IR's .xml.
        inputs: the positions of the remaining inputs.
        outputs: the outputs.
        variables: the ids of the assigned variables.
        extensions: see `read_model`.

    Raises:
        ValueError: a layer cannot be found by its name.
    """
    import openvino as ov

    _, model = read_model(path, extensions)
    by_name: dict[str, list[Any]] = {}
    for operation in model.get_ordered_ops():
        by_name.setdefault(operation.get_friendly_name(), []).append(operation)
    ports = []
    for output in outputs:
        if output.place is not None:
            ports.append(model.outputs[output.place].get_node().input_value(0))
            continue
        found = by_name.get(output.layer, [])
        if len(found) != 1 or output.index >= found[0].get_output_size():
            raise ValueError(f"OpenVINO has no output {output.index} of {output.layer}")
        ports.append(found[0].output(output.index))
    sinks = [sink for sink in model.get_sinks() if sink.get_variable_id() in variables]
    parameters = [model.inputs[place].get_node() for place in inputs]
    ov.serialize(ov.Model(ports, sinks, parameters, model.get_friendly_name()), target)
