"""Connections of the bodies of TensorIterator, Loop and If with the outer layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lxml import etree

from converters.errors import Problems, Remarks, short
from converters.openvino.reader import xml
from converters.openvino.reader.graph import BackEdge, Body, Layer, PortMapInput, PortMapOutput
from converters.openvino.reader.xml import integer

PORT_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
"""The element of a body -> the element of its port map."""

TAGS = {*PORT_MAPS, *PORT_MAPS.values(), "back_edges"}
"""All elements for bodies."""

_PURPOSES = {"input": "current_iteration", "output": "execution_condition"}
_NUMBERS = ("external_port_id", "internal_layer_id", "axis", "start", "end", "stride", "part_size")


def connect(
    layer: Layer,
    body: Body,
    port_map: etree._Element | None,
    back_edges: etree._Element | None,
    problems: Problems,
    remarks: Remarks,
) -> None:
    """Set the body's `inputs`, `outputs` and `back_edges` from their elements."""
    earlier = len(problems)
    parameters = {x.id: x for x in body.parameters}
    results = {x.id: x for x in body.results}
    outputs = []
    for element in _children(port_map, ("input", "output"), remarks):
        fields = _fields(element, parameters if element.tag == "input" else results, problems, remarks)
        if fields is None:
            continue
        external_id = fields.pop("external_id")
        if element.tag == "output":
            outputs.append((external_id, fields))
        elif external_id < len(layer.inputs):
            # An external_port_id is the index of an input, which equals the id of its port.
            external = layer.inputs[external_id] if external_id >= 0 else None
            body.inputs.append(PortMapInput(external, parameter=fields.pop("layer"), **fields))
        else:
            problems.add(f"layer {layer.id} has no input {external_id}", line=element.sourceline)
    _connect_outputs(layer, body, outputs, problems)
    for element in _children(back_edges, ("edge",), remarks):
        result = results.get(_number(element, "from-layer"))
        parameter = parameters.get(_number(element, "to-layer"))
        if result is None or parameter is None:
            problems.add("a back edge must connect a Result of the body to a Parameter", line=element.sourceline)
        else:
            body.back_edges.append(BackEdge(result, parameter, element.sourceline))
    if len(problems) == earlier:
        _check(layer, body, problems)


def _connect_outputs(layer: Layer, body: Body, outputs: list[tuple[int, dict[str, Any]]], problems: Problems) -> None:
    """Map the entries, sorted by their external_port_id, to the layer's outputs in order.

    The ids themselves have no meaning. OpenVINO writes the output ports' ids, older files count from 0.
    """
    order = sorted(external_id for external_id, _ in outputs if external_id >= 0)
    if len(order) != len(layer.outputs) or len(set(order)) < len(order):
        names = ", ".join(map(str, order[:20])) or "none"
        wanted = f"{len(layer.outputs)} outputs, but its port map defines these: {names}"
        problems.add(f"it has {wanted}", layer=layer)
        return
    index = {external_id: place for place, external_id in enumerate(order)}
    for external_id, fields in outputs:
        external = layer.outputs[index[external_id]] if external_id >= 0 else None
        body.outputs.append(PortMapOutput(external, result=fields.pop("layer"), **fields))


def _children(element: etree._Element | None, tags: tuple[str, ...], remarks: Remarks) -> Iterable[etree._Element]:
    for child in element if element is not None else ():
        if child.tag in tags:
            yield child
        else:
            remarks.add(f"the element <{short(child.tag)}> in a port map", line=child.sourceline)


def _fields(
    element: etree._Element, layers: dict[int, Layer], problems: Problems, remarks: Remarks
) -> dict[str, Any] | None:
    """Return the values of a port map's entry; ``None`` (and a problem) if it is invalid."""
    texts = xml.attributes(element)
    purpose = texts.pop("purpose", "")
    if purpose not in ("", _PURPOSES[element.tag]):
        problems.add(f'unknown purpose "{short(purpose)}"', line=element.sourceline)
        return None
    for name in texts.keys() - set(_NUMBERS):
        remarks.add(f"the attribute {short(name)} in a port map", line=element.sourceline)
    numbers = {name: integer(text) for name, text in texts.items() if name in _NUMBERS}
    for name in _NUMBERS:
        if numbers.get(name, None if name in _NUMBERS[:2] else 0) is None:
            problems.add(f"{name} must be an integer", line=element.sourceline)
            return None
    layer = layers.get(numbers["internal_layer_id"])  # type: ignore[arg-type]
    if layer is None:
        kind = "Parameter" if element.tag == "input" else "Result"
        internal = numbers["internal_layer_id"]
        problems.add(f"the port map names layer {internal}, which is not a {kind} of the body", line=element.sourceline)
        return None
    return {
        "external_id": numbers["external_port_id"],
        "layer": layer,
        "axis": numbers.get("axis"),
        "start": numbers.get("start", 0),
        "end": numbers.get("end", -1),
        "stride": numbers.get("stride", 1),
        "part_size": numbers.get("part_size", 1),
        "purpose": purpose,
        "line": element.sourceline,
    }


def _number(element: etree._Element, name: str) -> int:
    value = integer(element.get(name))
    return -1 if value is None else value


def _check(layer: Layer, body: Body, problems: Problems) -> None:
    """Check that each used Parameter has exactly one initial value and at most one back edge."""
    entries: dict[int, int] = {}
    for entry in body.inputs:
        entries[entry.parameter.id] = entries.get(entry.parameter.id, 0) + 1
    for parameter in body.parameters:
        times = entries.get(parameter.id, 0)
        if times > 1 or (times == 0 and parameter.outputs[0].consumers):
            what = "more than one value" if times else "no value"
            problems.add(f"the port map of layer {layer.id} gives it {what}", layer=parameter)
    renewed: set[int] = set()
    for edge in body.back_edges:
        if edge.parameter.id in renewed:
            problems.add("a second back edge leads to it", layer=edge.parameter)
        renewed.add(edge.parameter.id)
