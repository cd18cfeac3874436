"""Reads an OpenVINO IR (version 10 or 11: an .xml and a .bin) into a typed graph.

`read` is the whole interface; the graph's classes are re-exported here. Nothing that the files hold can do
more than raise `IRError`: every reference, size and shape is checked before it is used, and all that is wrong
is told at once.
"""

from __future__ import annotations

import heapq
import math
import mmap
import re
from pathlib import Path
from typing import Any

from lxml import etree

from converters.openvino import safe_xml
from converters.openvino.constants import Constant, check_strings
from converters.openvino.element_types import ElementType
from converters.openvino.errors import ConversionError, IRError, Problem
from converters.openvino.graph import (
    BackEdge,
    Body,
    Dims,
    Graph,
    InputPort,
    Layer,
    Model,
    OutputPort,
    PortMapInput,
    PortMapOutput,
)
from converters.openvino.safe_xml import integer
from converters.openvino.shapes import known, parse_partial_shape

__all__ = [
    "BackEdge",
    "Body",
    "Constant",
    "ConversionError",
    "Dims",
    "ElementType",
    "Graph",
    "IRError",
    "InputPort",
    "Layer",
    "Model",
    "OutputPort",
    "PortMapInput",
    "PortMapOutput",
    "Problem",
    "read",
]

_VERSIONS = (10, 11)
_MAX_NESTED_BODIES = 32
_MAX_PROBLEMS = 1000
_MAX_RANK = 32  # NumPy's limit before version 2

# Each body's element and the element that connects it.
_PORT_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
_LAYER_ATTRIBUTES = ("id", "name", "type", "version", "output_names")

_SEPARATOR = re.compile(r"(?<!\\),")
_NO_CONSTANT = memoryview(b"")


def read(xml_path: str | Path, bin_path: str | Path | None = None) -> Model:
    """Reads the IR at `xml_path`.

    Args:
        xml_path: the .xml file.
        bin_path: the .bin file; by default the one of the same name beside the .xml. It may be missing when
            the model has no constants.

    Returns:
        The model. Its constants are views into the .bin file, which stays mapped while one of them lives.

    Raises:
        IRError: a file cannot be read or is not an IR; it lists everything that is wrong, with file and line.
    """
    path = Path(xml_path)
    root = safe_xml.parse(path)
    weights_path, weights = _map_weights(path, None if bin_path is None else Path(bin_path))
    reader = _Reader(str(path), weights_path, weights)
    model = reader.model(root, path)
    if reader.problems or model is None:
        raise IRError(reader.problems)
    return model


def _map_weights(path: Path, bin_path: Path | None) -> tuple[Path | None, memoryview]:
    weights_path = bin_path if bin_path is not None else path.with_suffix(".bin")
    if bin_path is None and not weights_path.exists():
        return None, _NO_CONSTANT
    if safe_xml.regular_file_size(weights_path) == 0:
        return weights_path, _NO_CONSTANT
    try:
        with weights_path.open("rb") as file:
            return weights_path, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise IRError(Problem(f"cannot be read: {error}", file=str(weights_path))) from None


def parse_names(text: str) -> tuple[str, ...]:
    """The tensor names in a ``names`` or ``output_names`` attribute, which commas separate.

    A comma within a name is written "\\,"; any other backslash stands for itself.
    """
    return tuple(name.replace("\\,", ",") for name in _SEPARATOR.split(text) if name)


class _Reader:
    """One reading of one file: collects layers and problems."""

    def __init__(self, file: str, weights_path: Path | None, weights: memoryview) -> None:
        self.file = file
        self.weights_path = weights_path
        self.weights = weights
        self.problems: list[Problem] = []
        self.dims: dict[str | None, int | None] = {"-1": None}

    def problem(
        self, message: str, where: etree._Element | Layer | int | None = None, remedy: str = ""
    ) -> None:
        """Notes that something is wrong; gives up when there is too much of it."""
        if isinstance(where, Layer):
            found = Problem(message, self.file, where.line, where.name, where.type, where.id, remedy)
        elif isinstance(where, int) or where is None:
            found = Problem(message, self.file, where, remedy=remedy)
        else:
            found = Problem(message, self.file, where.sourceline, remedy=remedy)
        self.problems.append(found)
        if len(self.problems) >= _MAX_PROBLEMS:
            raise IRError(self.problems)

    # The net and its graphs

    def model(self, root: etree._Element, path: Path) -> Model | None:
        attributes = dict(root.items())
        if root.tag != "net":
            self.problem(
                f"the root element is <{_short(root.tag)}>, not <net>", root, "name the IR's .xml file"
            )
            return None
        version = integer(attributes.pop("version", None))
        if version not in _VERSIONS:
            found = "no IR version" if version is None else f"IR version {version}"
            self.problem(
                f"{found} is given; versions 10 and 11 can be read",
                root,
                "save the model with OpenVINO again",
            )
            return None
        extra = {"meta_data", "quantization_parameters", "statistics"}
        parts = self._parts(root, {"layers", "edges", "rt_info"} | extra)
        name = attributes.pop("name", "")
        layers, parameters, results = self._layers(parts, root, depth=0)
        if self.problems:
            return None
        return Model(
            name=name,
            layers=layers,
            parameters=parameters,
            results=results,
            rt_info=_info(parts.get("rt_info")),
            version=version,
            meta_data=_info(parts.get("meta_data")),
            quantization_parameters=_info(parts.get("quantization_parameters")),
            attributes=attributes,
            path=path,
            weights_path=self.weights_path,
            weights=self.weights,
        )

    def _parts(self, element: etree._Element, allowed: set[str]) -> dict[str, etree._Element]:
        """The children by tag: each of the allowed ones at most once."""
        parts: dict[str, etree._Element] = {}
        for child in element:
            tag = child.tag
            if tag not in allowed:
                self.problem(f"unknown element <{_short(tag)}> in <{element.tag}>", child)
            elif tag in parts:
                self.problem(f"a second <{tag}> in <{element.tag}>", child)
            else:
                parts[tag] = child
        return parts

    def _layers(
        self, parts: dict[str, etree._Element], parent: etree._Element, depth: int
    ) -> tuple[list[Layer], list[Layer], list[Layer]]:
        """The graph of a net or a body: all layers in topological order, the Parameters, the Results."""
        if "layers" not in parts:
            self.problem(f"no <layers> in <{parent.tag}>", parent)
            return [], [], []
        layers: list[Layer] = []
        by_id: dict[int, Layer] = {}
        inputs: dict[tuple[int, int], InputPort] = {}
        outputs: dict[tuple[int, int], OutputPort] = {}
        for element in parts["layers"]:
            if element.tag != "layer":
                self.problem(f"unknown element <{_short(element.tag)}> in <layers>", element)
                continue
            layer = self._layer(element, inputs, outputs, depth)
            if layer is None:
                continue
            first = by_id.setdefault(layer.id, layer)
            if first is not layer:
                self.problem(f'the id {layer.id} is taken by layer "{_short(first.name)}" already', layer)
                continue
            layers.append(layer)
        if self.problems:  # references into a damaged graph would only be reported as missing
            return [], [], []
        self._edges(parts.get("edges"), inputs, outputs, by_id)
        for layer in layers:
            for port in layer.inputs:
                if port.source is None:
                    self.problem(f"no edge leads to its input {port.index} (port {port.id})", layer)
        if self.problems:
            return [], [], []
        for layer in layers:
            self._check_dims(layer)
        ordered = self._ordered(layers)
        return (
            ordered,
            [x for x in layers if x.type == "Parameter"],
            [x for x in layers if x.type == "Result"],
        )

    def _edges(
        self,
        edges: etree._Element | None,
        inputs: dict[tuple[int, int], InputPort],
        outputs: dict[tuple[int, int], OutputPort],
        by_id: dict[int, Layer],
    ) -> None:
        """Connects the input ports with their sources."""
        for edge in edges if edges is not None else ():
            if edge.tag != "edge":
                self.problem(f"unknown element <{_short(edge.tag)}> in <edges>", edge)
                continue
            get = edge.get
            ends = [integer(get(key)) for key in ("from-layer", "from-port", "to-layer", "to-port")]
            if None in ends:
                self.problem(
                    "the edge lacks a whole number for from-layer, from-port, to-layer or to-port", edge
                )
                continue
            from_layer, from_port, to_layer, to_port = ends
            source = outputs.get((from_layer, from_port))  # type: ignore[arg-type]
            target = inputs.get((to_layer, to_port))  # type: ignore[arg-type]
            if source is None:
                missing = f"output port {from_port}" if from_layer in by_id else "such layer"
                self.problem(
                    f"the edge comes from layer {from_layer}, port {from_port}: there is no {missing}", edge
                )
            if target is None:
                missing = f"input port {to_port}" if to_layer in by_id else "such layer"
                self.problem(
                    f"the edge leads to layer {to_layer}, port {to_port}: there is no {missing}", edge
                )
            if source is None or target is None:
                continue
            if target.source is not None:
                self.problem(
                    f"a second edge leads to its input {target.index} (port {to_port})", target.layer
                )
                continue
            target.source = source
            source.consumers.append(target)

    def _ordered(self, layers: list[Layer]) -> list[Layer]:
        """The layers with each after its sources, otherwise in the file's order."""
        position = {id(layer): index for index, layer in enumerate(layers)}
        waiting = [0] * len(layers)
        in_order = True
        for index, layer in enumerate(layers):
            waiting[index] = len(layer.inputs)
            for port in layer.inputs:
                if position[id(port.source.layer)] >= index:
                    in_order = False
        if in_order:
            return layers
        ready = [index for index, count in enumerate(waiting) if count == 0]
        ordered: list[Layer] = []
        while ready:
            layer = layers[heapq.heappop(ready)]
            ordered.append(layer)
            for output in layer.outputs:
                for port in output.consumers:
                    index = position[id(port.layer)]
                    waiting[index] -= 1
                    if waiting[index] == 0:
                        heapq.heappush(ready, index)
        if len(ordered) < len(layers):
            # Every layer left has a source that is left: going back from one to the next ends in a cycle.
            index = next(index for index, count in enumerate(waiting) if count)
            passed = set()
            while index not in passed:
                passed.add(index)
                sources = (position[id(port.source.layer)] for port in layers[index].inputs)
                index = next(source for source in sources if waiting[source])
            self.problem("it depends on its own result: the graph has a cycle", layers[index])
        return ordered

    # Layers

    def _layer(
        self,
        element: etree._Element,
        inputs: dict[tuple[int, int], InputPort],
        outputs: dict[tuple[int, int], OutputPort],
        depth: int,
    ) -> Layer | None:
        header = dict(element.items())
        layer_id = integer(header.get("id"))
        missing = [key for key in ("name", "type", "version") if key not in header]
        if layer_id is None or layer_id < 0 or missing:
            lacking = "a whole number as id" if not missing else " and ".join(missing)
            self.problem(f"the layer lacks {lacking}", element, "save the model with OpenVINO again")
            return None
        layer = Layer(
            layer_id, header["name"], header["type"], header["version"], {}, [], [], {}, element.sourceline
        )
        if len(header) > 4:
            if "output_names" in header:
                layer.output_names = parse_names(header["output_names"])
            layer.extra = {key: value for key, value in header.items() if key not in _LAYER_ATTRIBUTES}
        bodies: dict[str, etree._Element] | None = None
        seen = set()
        for child in element:
            tag = child.tag
            if tag in seen:
                self.problem(f"a second <{tag}>", layer)
                continue
            seen.add(tag)
            if tag == "output":
                self._outputs(layer, child, outputs)
            elif tag == "input":
                self._inputs(layer, child, inputs)
            elif tag == "data":
                layer.attributes = dict(child.items())
                for grandchild in child:
                    self.problem(f"unknown element <{_short(grandchild.tag)}> in <data>", layer)
            elif tag == "rt_info":
                layer.rt_info = _info(child)
            elif tag in _BODY_TAGS:
                bodies = bodies or {}
                bodies[tag] = child
            else:
                self.problem(f"unknown element <{_short(tag)}>", layer)
        kind = layer.type
        if kind == "Const":
            self._constant(layer)
        elif kind == "Parameter":
            self._parameter(layer)
        elif kind == "Convert":
            self._convert(layer)
        elif kind == "Result" and (len(layer.inputs) != 1 or layer.outputs):
            self.problem("a Result has one input and no output", layer)
        if bodies:
            self._bodies(layer, bodies, depth)
        return layer

    def _inputs(self, layer: Layer, element: etree._Element, ports: dict[tuple[int, int], InputPort]) -> None:
        for child in element:
            port_id = self._port_id(layer, child)
            if port_id is None:
                continue
            dims, rt_info = self._port_content(layer, child)
            source: Any = None  # the edges bring it
            precision = child.get("precision", "")
            port = InputPort(layer, port_id, len(layer.inputs), source, dims, rt_info, precision)
            if ports.setdefault((layer.id, port_id), port) is not port:
                self.problem(f"a second input port {port_id}", layer)
            layer.inputs.append(port)

    def _outputs(
        self, layer: Layer, element: etree._Element, ports: dict[tuple[int, int], OutputPort]
    ) -> None:
        for child in element:
            port_id = self._port_id(layer, child)
            if port_id is None:
                continue
            dims, rt_info = self._port_content(layer, child)
            precision = child.get("precision", "")
            element_type = ElementType.from_name(precision)
            if element_type is None:
                self.problem(f'"{_short(precision)}" of output port {port_id} is no known precision', layer)
                continue
            names = child.get("names")
            port = OutputPort(
                layer,
                port_id,
                len(layer.outputs),
                element_type,
                dims,
                () if names is None else parse_names(names),
                rt_info,
                precision,
            )
            if ports.setdefault((layer.id, port_id), port) is not port:
                self.problem(f"a second output port {port_id}", layer)
            layer.outputs.append(port)

    def _port_id(self, layer: Layer, element: etree._Element) -> int | None:
        if element.tag != "port":
            self.problem(f"unknown element <{_short(element.tag)}> among its ports", layer)
            return None
        port_id = integer(element.get("id"))
        if port_id is None or port_id < 0:
            self.problem("a port lacks a whole number as id", layer)
            return None
        return port_id

    def _port_content(self, layer: Layer, element: etree._Element) -> tuple[Dims, dict[str, Any]]:
        dims = []
        rt_info: dict[str, Any] = {}
        cache = self.dims
        for child in element:
            if child.tag == "dim":
                text = child.text
                if text not in cache:
                    value = integer(text.strip() if text else text)
                    if value is None or value < -1:
                        self.problem(f'"{_short(text or "")}" is no dimension', layer)
                    cache[text] = None if value == -1 else value
                dims.append(cache[text])
            elif child.tag == "rt_info":
                rt_info = _info(child)
            else:
                self.problem(f"unknown element <{_short(child.tag)}> in <port>", layer)
        return tuple(dims), rt_info

    # Layers whose data say more than their ports

    def _element_type(self, layer: Layer, attribute: str) -> ElementType | None:
        name = layer.attributes.get(attribute)
        if name is None:
            self.problem(f"the attribute {attribute} is missing", layer)
            return None
        element_type = ElementType.from_name(name)
        if element_type is None:
            self.problem(f'{attribute} "{_short(name)}" is no known element type', layer)
        return element_type

    def _shape(self, layer: Layer) -> Dims | None:
        text = layer.attributes.get("shape")
        try:
            shape = parse_partial_shape(text) if text is not None else ()
        except ValueError as error:
            self.problem(f"the attribute shape: {error}", layer)
            return ()
        if text is None:
            self.problem("the attribute shape is missing", layer)
        return None if shape is None else tuple(known(interval) for interval in shape)

    def _parameter(self, layer: Layer) -> None:
        element_type = self._element_type(layer, "element_type")
        dims = self._shape(layer)
        if layer.inputs or len(layer.outputs) != 1:
            self.problem("a Parameter has one output and no input", layer)
        elif element_type is not None:
            layer.outputs[0].element_type = element_type
            self._own_dims(layer, dims)

    def _convert(self, layer: Layer) -> None:
        element_type = self._element_type(layer, "destination_type")
        if len(layer.inputs) != 1 or len(layer.outputs) != 1:
            self.problem("a Convert has one input and one output", layer)
        elif element_type is not None:
            # In files with compressed weights the port may say FP16 where the layer gives f32.
            layer.outputs[0].element_type = element_type

    def _own_dims(self, layer: Layer, dims: Dims | None) -> None:
        """Gives the output the dimensions in the layer's data, which tell an unknown rank from a scalar."""
        port = layer.outputs[0]
        if port.dims and port.dims != dims:
            written = "unknown" if dims is None else list(dims)
            self.problem(f"its shape is {written}, its output port says {list(port.dims)}", layer, _STALE)
        port.dims = dims

    def _constant(self, layer: Layer) -> None:
        element_type = self._element_type(layer, "element_type")
        dims = self._shape(layer)
        offset = integer(layer.attributes.get("offset"))
        size = integer(layer.attributes.get("size"))
        if offset is None or size is None or offset < 0 or size < 0:
            self.problem("offset and size have to be whole numbers", layer)
            return
        if layer.inputs or len(layer.outputs) != 1:
            self.problem("a Const has one output and no input", layer)
            return
        if element_type is None:
            return
        if dims is None or None in dims:
            self.problem("the shape of a constant has to be known", layer)
            return
        if element_type is ElementType.DYNAMIC:
            self.problem("a constant cannot be of dynamic type", layer)
            return
        shape: tuple[int, ...] = dims  # type: ignore[assignment]
        if len(shape) > _MAX_RANK or not _fits(shape):
            self.problem("the shape has more dimensions or elements than any tensor", layer)
            return
        count = math.prod(shape)
        if element_type is not ElementType.STRING and size != element_type.byte_size(count):
            need = element_type.byte_size(count)
            self.problem(f"{element_type}{list(shape)} takes {need} bytes, size says {size}", layer)
            return
        if offset + size > len(self.weights) and size:
            if self.weights_path is None:
                remedy = "give the .bin file's path or put it beside the .xml"
                self.problem("its value is in the .bin file, which is missing", layer, remedy)
            else:
                place = f"bytes {offset} to {offset + size} of a .bin file of {len(self.weights)} bytes"
                self.problem(
                    f"its value is at {place}", layer, "is this the .bin that was saved with the .xml?"
                )
            return
        raw = self.weights[offset : offset + size] if size else _NO_CONSTANT
        if element_type is ElementType.STRING:
            wrong = check_strings(raw, count)
            if wrong:
                self.problem(wrong, layer)
                return
        layer.outputs[0].element_type = element_type
        self._own_dims(layer, shape)
        layer.constant = Constant(element_type, shape, offset, size, raw)

    # Bodies

    def _bodies(self, layer: Layer, parts: dict[str, etree._Element], depth: int) -> None:
        if depth >= _MAX_NESTED_BODIES:
            self.problem(f"bodies are nested more than {_MAX_NESTED_BODIES} deep", layer)
            return
        back_edges = parts.get("back_edges")
        for name, map_name in _PORT_MAPS.items():
            if name in parts:
                port_map = parts.get(map_name)
                body = self._body(
                    layer, parts[name], port_map, back_edges if name == "body" else None, depth + 1
                )
                if body is not None:
                    layer.bodies[name] = body
            elif map_name in parts:
                self.problem(f"a <{map_name}> without a <{name}>", layer)
        if back_edges is not None and "body" not in parts:
            self.problem("<back_edges> without a <body>", layer)

    def _body(
        self,
        layer: Layer,
        element: etree._Element,
        port_map: etree._Element | None,
        back_edges: etree._Element | None,
        depth: int,
    ) -> Body | None:
        earlier = len(self.problems)
        parts = self._parts(element, {"layers", "edges", "rt_info"})
        layers, parameters, results = self._layers(parts, element, depth)
        if len(self.problems) > earlier:
            return None
        body = Body(
            name=element.get("name", ""),
            layers=layers,
            parameters=parameters,
            results=results,
            rt_info=_info(parts.get("rt_info")),
            inputs=[],
            outputs=[],
            back_edges=[],
        )
        parameter_by_id = {x.id: x for x in parameters}
        result_by_id = {x.id: x for x in results}
        input_by_id = {port.id: port for port in layer.inputs}
        output_by_id = {port.id: port for port in layer.outputs}
        for entry in port_map if port_map is not None else ():
            if entry.tag == "input":
                fields = self._port_map_entry(layer, entry, input_by_id, parameter_by_id, "Parameter")
                if fields is not None:
                    body.inputs.append(PortMapInput(*fields))
            elif entry.tag == "output":
                fields = self._port_map_entry(layer, entry, output_by_id, result_by_id, "Result")
                if fields is not None:
                    body.outputs.append(PortMapOutput(*fields))
            else:
                self.problem(f"unknown element <{_short(entry.tag)}> in <{port_map.tag}>", entry)  # type: ignore[union-attr]
        for entry in back_edges if back_edges is not None else ():
            if entry.tag != "edge":
                self.problem(f"unknown element <{_short(entry.tag)}> in <back_edges>", entry)
                continue
            result = result_by_id.get(integer(entry.get("from-layer")))  # type: ignore[arg-type]
            parameter = parameter_by_id.get(integer(entry.get("to-layer")))  # type: ignore[arg-type]
            if result is None or parameter is None:
                self.problem(
                    "a back edge has to lead from a Result of the body to a Parameter of the body", entry
                )
                continue
            body.back_edges.append(BackEdge(result, parameter, entry.sourceline))
        if len(self.problems) == earlier:
            self._check_body(layer, body)
        return body

    def _port_map_entry(
        self,
        layer: Layer,
        entry: etree._Element,
        ports: dict[int, Any],
        internal: dict[int, Layer],
        kind: str,
    ) -> tuple[Any, ...] | None:
        """The fields of a PortMapInput or PortMapOutput; None (and a problem) when the entry is wrong."""
        texts = dict(entry.items())
        unknown = texts.keys() - _PORT_MAP_ATTRIBUTES
        if unknown:
            self.problem(f"unknown attributes in the port map: {_short(', '.join(sorted(unknown)))}", entry)
            return None
        numbers = {key: integer(text) for key, text in texts.items() if key != "purpose"}
        wrong = [key for key, value in numbers.items() if value is None]
        wrong += [key for key in ("external_port_id", "internal_layer_id") if key not in numbers]
        if wrong:
            self.problem(f"the port map's {' and '.join(sorted(wrong))} has to be a whole number", entry)
            return None
        external_id, internal_id = numbers["external_port_id"], numbers["internal_layer_id"]
        if internal_id not in internal:
            self.problem(f"the port map names layer {internal_id}, which is no {kind} of the body", entry)
            return None
        external = None
        if external_id >= 0:  # type: ignore[operator]
            external = ports.get(external_id)  # type: ignore[arg-type]
            if external is None:
                self.problem(f"the port map names port {external_id}, which layer {layer.id} has not", entry)
                return None
        return (
            external,
            internal[internal_id],  # type: ignore[index]
            numbers.get("axis"),
            numbers.get("start", 0),
            numbers.get("end", -1),
            numbers.get("stride", 1),
            numbers.get("part_size", 1),
            texts.get("purpose", ""),
            entry.sourceline,
        )

    def _check_body(self, layer: Layer, body: Body) -> None:
        """Every Parameter in use has one first value, every output of the layer comes from one Result."""
        fed = [entry.parameter.id for entry in body.inputs]
        for parameter in body.parameters:
            times = fed.count(parameter.id)
            if times > 1 or (times == 0 and parameter.outputs[0].consumers):
                what = "nothing" if times == 0 else "more than one entry"
                self.problem(f"{what} in the port map of layer {layer.id} gives it a value", parameter)
        given = [entry.external.id for entry in body.outputs if entry.external is not None]
        for port in layer.outputs:
            if given.count(port.id) != 1:
                what = "nothing" if port.id not in given else "more than one entry"
                self.problem(f"{what} in the port map gives its output port {port.id} a value", layer)
        renewed = [edge.parameter.id for edge in body.back_edges]
        for parameter_id in {x for x in renewed if renewed.count(x) > 1}:
            self.problem(f"more than one back edge leads to layer {parameter_id} of the body", layer)

    def _check_dims(self, layer: Layer) -> None:
        """An input port and its source say the same dimensions, unless the file was changed by hand."""
        for port in layer.inputs:
            dims = port.source.dims
            if port.declared_dims and dims is not None and port.declared_dims != dims:
                said, real = list(port.declared_dims), list(dims)
                self.problem(
                    f"its input {port.index} says {said}, the layer that it comes from {real}", layer, _STALE
                )


_BODY_TAGS = {*_PORT_MAPS, *_PORT_MAPS.values(), "back_edges"}
_PORT_MAP_ATTRIBUTES = {
    "external_port_id",
    "internal_layer_id",
    "axis",
    "start",
    "end",
    "stride",
    "part_size",
    "purpose",
}
_STALE = "the file was changed by hand: load and save it with OpenVINO"


def _fits(shape: tuple[int, ...]) -> bool:
    """Whether sizes and strides of such a tensor are 64-bit numbers."""
    return math.prod(dim for dim in shape if dim) < 1 << 56


def _short(text: object) -> str:
    """A text from the file, fit for a message."""
    clipped = str(text)[:100]
    return clipped.encode("unicode_escape").decode("ascii") if not clipped.isprintable() else clipped


def _info(element: etree._Element | None) -> dict[str, Any]:
    """Run-time information and meta data as nested dicts.

    A child is known by its ``name``, else by its tag. It becomes a text when it has nothing but a ``value``
    (or text of its own), else a dict of its other attributes and its children. What comes more than once
    becomes a list.
    """
    result: dict[str, Any] = {}
    for child in element if element is not None else ():
        attributes = dict(child.items())
        name = attributes.pop("name", child.tag)
        value: Any
        text = (child.text or "").strip()
        if len(child) == 0 and attributes.keys() == {"value"}:
            value = attributes["value"]
        elif len(child) == 0 and not attributes:
            value = text if text else {}
        else:
            value = attributes | _info(child)
        if name not in result:
            result[name] = value
        elif isinstance(result[name], list):
            result[name].append(value)
        else:
            result[name] = [result[name], value]
    return result
