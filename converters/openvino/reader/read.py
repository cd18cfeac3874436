"""Reading of an OpenVINO IR (version 10 or 11: an .xml and a .bin) into a typed graph.

Invalid files can only raise `MalformedError`. Every reference, size and shape is checked before it is used, and all problems
are reported at once.
"""

from __future__ import annotations

import heapq
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from converters.errors import MalformedError, Problem, Problems, Remarks, short
from converters.garbage import no_collection
from converters.inference_engine import translate as inference_engine
from converters.openvino.reader import ir10, port_maps, rt_info, xml
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Body, Dims, InputPort, Layer, Model, OutputPort
from converters.openvino.reader.layer_data import LayerData
from converters.openvino.reader.pre_process import subtract_mean
from converters.openvino.reader.ranks import infer_ranks
from converters.openvino.reader.tensor_names import parse_names, set_names
from converters.openvino.reader.xml import integer

_VERSIONS = (10, 11)
_MAX_NESTED_BODIES = 32

_GRAPH = ("layers", "edges", "rt_info")
_SINKS = ("Result", "Assign")
_META = ("meta_data", "quantization_parameters", "framework_meta", "statistics")
_LAYER_ATTRIBUTES = ("id", "name", "type", "version", "output_names")
_RESAVE = "load and save the model with OpenVINO"


def read(
    xml_path: str | Path, bin_path: str | Path | None = None, *, without_weights: bool = False, name: str = ""
) -> Model:
    """Read the IR at `xml_path`.

    Args:
        xml_path: the .xml file.
        bin_path: the .bin file; by default the one of the same name next to the .xml. It may be missing if the model has no
            constants.
        without_weights: whether constants lose their values if the .bin is missing, instead of an error. Such a model can be
            inspected, but not converted: its `Model.weights_path` is None.
        name: the name of the model in problems; by default its path.

    Returns:
        The model. Its constants are views of the .bin file, which stays mapped while one of them exists.

    Raises:
        MalformedError: a file cannot be read or is not an IR. The error lists all problems, with file and line.
    """
    path = Path(xml_path)
    with no_collection():
        root = xml.parse(path)
        check = _unchanged(path.with_suffix(".bin") if bin_path is None else Path(bin_path))
        weights_path, weights = _map_weights(path, None if bin_path is None else Path(bin_path))
        problems, remarks = Problems(name or str(path)), Remarks(name or str(path))
        without_weights = without_weights and weights_path is None
        reader = _Reader(
            problems, remarks, LayerData(problems, remarks, weights, weights_path, without_weights=without_weights)
        )
        model = reader.model(root, Path(name) if name else path, weights_path, weights)
        xml.forget_lines(root)
        if model is None:
            raise problems.error()
        if model.version in _VERSIONS:
            infer_ranks(model)
        set_names(model)
        ir10.forget_sizes(model)
        model.check = check
        return model


def _map_weights(path: Path, bin_path: Path | None) -> tuple[Path | None, memoryview]:
    weights_path = path.with_suffix(".bin") if bin_path is None else bin_path
    if bin_path is None and not weights_path.exists():
        return None, memoryview(b"")
    if xml.regular_file_size(weights_path, "specify the .bin file of the IR") == 0:
        return weights_path, memoryview(b"")
    try:
        with weights_path.open("rb") as file:
            return weights_path, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise MalformedError(Problem(f"the file cannot be read: {error}", file=str(weights_path))) from None


def _unchanged(path: Path | None) -> Callable[[], None]:
    """Return a function that raises `MalformedError` if the file at ``path`` has been replaced or changed."""

    def state() -> tuple[int, ...]:
        if path is None:
            return ()
        try:
            status = path.stat()
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    before = state()

    def check() -> None:
        if state() != before:
            remedy = "convert the file again when no program writes to it"
            raise MalformedError(Problem("the file changed during the conversion", file=str(path), remedy=remedy))

    return check


_Edge = tuple[int, int, int, int, int]
"""The layers and ports that an edge connects, and the line in the .xml."""


class _Integers(dict[str | None, int | None]):
    """`xml.integer` with a cache, because most numbers of a file are repeated."""

    def __missing__(self, text: str | None) -> int | None:
        value = self[text] = integer(text)
        return value


class _Reader:
    """Reads one file."""

    def __init__(self, problems: Problems, remarks: Remarks, layer_data: LayerData) -> None:
        self.problems, self.remarks = problems, remarks
        self.layer_data = layer_data
        self.integers = _Integers()
        self.dims: dict[tuple[str | None, ...], Dims] = {(): ()}

    def wrong(self, message: str, element: etree._Element, remedy: str = "") -> None:
        """Record a problem at an element."""
        self.problems.add(message, remedy, line=element.sourceline)

    # -- graphs
    # ----------------------------------------------------------------------------------------------------------------

    def model(self, root: etree._Element, path: Path, weights_path: Path | None, weights: memoryview) -> Model | None:
        """Read the whole net; ``None`` if there are problems."""
        attributes = xml.attributes(root)
        if root.tag != "net":
            self.wrong(f"the root element is <{short(root.tag)}>, not <net>", root, "specify the .xml file of the IR")
            return None
        version = integer(attributes.pop("version", None))
        if version is not None and version in inference_engine.VERSIONS:
            inference_engine.translate(root, version, self.problems, self.remarks)
        elif version is None or version not in _VERSIONS:
            found = "the IR version is missing" if version is None else f"IR version {version} is not supported"
            self.wrong(f"{found}; expected 2 to 7, 10 or 11", root, _RESAVE)
            return None
        parts = self.parts(root, (*_GRAPH, *_META, "pre-process"))
        graph = self.graph(parts, root, depth=0)
        self.layer_data.finish()
        if graph is None:
            return None
        model = Model(
            name=attributes.pop("name", ""),
            **graph,
            version=version,
            meta={name: rt_info.parse(parts[name]) for name in _META if name in parts},
            attributes=attributes,
            path=path,
            weights_path=weights_path,
            weights=weights,
            remarks=self.remarks,
        )
        if not model.results:
            self.wrong("the model has no Result: nothing is computed", root, "convert a model that has outputs")
        if "pre-process" in parts:
            subtract_mean(model, parts["pre-process"], self.problems)
        return None if len(self.problems) else model

    def parts(self, element: etree._Element, allowed: tuple[str, ...]) -> dict[str, etree._Element]:
        """Return the children by tag. Each allowed tag may occur once."""
        parts: dict[str, etree._Element] = {}
        for child in element:
            if child.tag not in allowed:
                self.unknown(child, element)
            elif parts.setdefault(child.tag, child) is not child:
                self.wrong(f"a second <{child.tag}> in <{element.tag}>", child)
        return parts

    def graph(self, parts: dict[str, etree._Element], parent: etree._Element, depth: int) -> dict[str, Any] | None:
        """Return the Graph fields that nets and bodies share; ``None`` if there are problems."""
        earlier = len(self.problems)
        if "layers" not in parts:
            self.wrong(f"no <layers> in <{parent.tag}>", parent)
            return None
        headers = self.headers(parts["layers"])
        edges = self.edges(parts.get("edges"))
        if len(self.problems) > earlier:
            return None
        needed = _needed_layers(headers, edges)
        layers: list[Layer] = []
        places: dict[int, int] = {}
        inputs: dict[tuple[int, int], InputPort] = {}
        outputs: dict[tuple[int, int], OutputPort] = {}
        for layer, element in headers.values():
            if layer.id in needed:
                places[layer.id] = len(layers)
                layers.append(layer)
                self.layer(layer, element, inputs, outputs, depth)
            else:
                self.remarks.add("layers without effect on a result", layer=layer)
        if len(self.problems) > earlier:  # ports may be missing because of other problems
            return None
        in_order = self.connect(edges, needed, inputs, outputs, places)
        self.check_inputs(layers)
        ordered = layers
        if len(self.problems) == earlier and not in_order:
            ordered = self.ordered(layers, places)
        if len(self.problems) > earlier:
            return None
        return {
            "layers": ordered,
            "parameters": [x for x in layers if x.type == "Parameter"],
            "results": [x for x in layers if x.type == "Result"],
            "rt_info": rt_info.parse(parts.get("rt_info")),
        }

    def headers(self, layers: etree._Element) -> dict[int, tuple[Layer, etree._Element]]:
        """Read the layers by id, with the attributes of ``<layer>`` only."""
        headers: dict[int, tuple[Layer, etree._Element]] = {}
        for element in layers:
            if element.tag != "layer":
                self.unknown(element, layers)
                continue
            header = xml.attributes(element)
            layer_id = self.integers[header.get("id")]
            name, kind, version = header.get("name"), header.get("type"), header.get("version")
            if layer_id is None or layer_id < 0 or name is None or kind is None or version is None:
                self.wrong("a layer must have an integer id, a name, a type and a version", element, _RESAVE)
                continue
            layer = Layer(layer_id, name, kind, version, {}, [], [], {}, element.sourceline)
            if len(header) > 4:
                if "output_names" in header:
                    layer.output_names = parse_names(header["output_names"])
                layer.extra = {key: value for key, value in header.items() if key not in _LAYER_ATTRIBUTES}
            first, _ = headers.setdefault(layer_id, (layer, element))
            if first is not layer:
                self.problems.add(f'layer "{short(first.name)}" has the same id', layer=layer)
        return headers

    def edges(self, edges: etree._Element | None) -> list[_Edge]:
        """Read the edges, whether or not their layers and ports exist."""
        found = []
        number = self.integers
        for edge in edges if edges is not None else ():
            if edge.tag != "edge":
                self.unknown(edge, edges)
                continue
            get = edge.get
            ends = (number[get("from-layer")], number[get("from-port")], number[get("to-layer")], number[get("to-port")])
            if None in ends:
                self.wrong("the ends of an edge must be integers", edge)
            else:
                found.append((*ends, edge.sourceline))
        return found  # type: ignore[return-value]

    def connect(
        self,
        edges: list[_Edge],
        needed: set[int],
        inputs: dict[tuple[int, int], InputPort],
        outputs: dict[tuple[int, int], OutputPort],
        places: dict[int, int],
    ) -> bool:
        """Connect inputs with their sources. Return whether the layers are in topological order."""
        in_order = True
        for from_layer, from_port, to_layer, to_port, line in edges:
            if to_layer not in needed:
                continue
            source, target = outputs.get((from_layer, from_port)), inputs.get((to_layer, to_port))
            if source is None:
                self.problems.add(
                    f"the edge starts at output {from_port} of layer {from_layer}, which does not exist", line=line
                )
            if target is None:
                self.problems.add(f"the edge ends at input {to_port} of layer {to_layer}, which does not exist", line=line)
            if source is None or target is None:
                continue
            if source.layer.type == "Result":
                self.problems.add(
                    f"an edge connects it to layer {to_layer}, but a Result has no outputs", layer=source.layer
                )
                continue
            if target.source is not None:
                self.problems.add(f"its input port has a second edge: port {to_port}", layer=target.layer)
                continue
            target.source = source
            source.consumers.append(target)
            if places[source.layer.id] >= places[target.layer.id]:
                in_order = False
        return in_order

    def check_inputs(self, layers: list[Layer]) -> None:
        """Check that every input has a source, except inputs that are omitted at the end."""
        for layer in layers:
            while layer.inputs and layer.inputs[-1].source is None and layer.type not in _SINKS:
                self.remarks.add(f"an input port of {short(layer.type)} to which no edge leads", layer=layer)
                layer.inputs.pop()
            for port in layer.inputs:
                source = port.source
                if source is None:
                    self.problems.add(f"no edge is connected to its input port {port.id}", layer=layer)
                elif port.declared_dims and port.declared_dims != source.dims and source.dims:
                    self.remarks.add("the dimensions of an input port that differ from those of its source", layer=layer)

    def ordered(self, layers: list[Layer], places: dict[int, int]) -> list[Layer]:
        """Return the layers in topological order, and otherwise in the file's order."""
        waiting = [len(layer.inputs) for layer in layers]
        ready = [place for place, count in enumerate(waiting) if count == 0]
        ordered: list[Layer] = []
        while ready:
            layer = layers[heapq.heappop(ready)]
            ordered.append(layer)
            for output in layer.outputs:
                for port in output.consumers:
                    place = places[port.layer.id]
                    waiting[place] -= 1
                    if waiting[place] == 0:
                        heapq.heappush(ready, place)
        if len(ordered) < len(layers):
            # Every remaining layer has a remaining source, so following the sources leads to a cycle.
            place = next(place for place, count in enumerate(waiting) if count)
            passed = set()
            while place not in passed:
                passed.add(place)
                sources = (places[port.source.layer.id] for port in layers[place].inputs)
                place = next(source for source in sources if waiting[source])
            self.problems.add("it depends on its own result: the graph has a cycle", layer=layers[place])
        return ordered

    # -- layers
    # ----------------------------------------------------------------------------------------------------------------

    def layer(
        self,
        layer: Layer,
        element: etree._Element,
        inputs: dict[tuple[int, int], InputPort],
        outputs: dict[tuple[int, int], OutputPort],
        depth: int,
    ) -> None:
        """Read a layer's ports, attributes, value and bodies."""
        parts: dict[str, etree._Element] = {}
        for child in element:
            tag = child.tag
            if parts.setdefault(tag, child) is not child:
                self.problems.add(f"a second <{short(tag)}>", layer=layer, line=child.sourceline)
            elif tag == "output":
                self.outputs(layer, child, outputs)
            elif tag == "input":
                self.inputs(layer, child, inputs)
            elif tag == "data":
                layer.attributes = xml.attributes(child)
                for grandchild in child:
                    self.unknown(grandchild, child, layer)
            elif tag == "rt_info":
                layer.rt_info = rt_info.parse(child)
            elif tag not in port_maps.TAGS:
                self.unknown(child, element, layer)
        ir10.modernize(layer)
        self.layer_data.complete(layer)
        if not parts.keys().isdisjoint(port_maps.TAGS):
            self.bodies(layer, parts, depth)

    def unknown(self, element: etree._Element, parent: etree._Element, layer: Layer | None = None) -> None:
        """Record an unknown element. OpenVINO ignores unknown elements."""
        message = f"the element <{short(element.tag)}> in <{parent.tag}>"
        self.remarks.add(message, layer=layer, line=element.sourceline)

    def ports(self, layer: Layer, element: etree._Element) -> Iterator[etree._Element]:
        """Yield the ports in an ``<input>`` or ``<output>``."""
        for child in element:
            if child.tag == "port":
                yield child
            else:
                self.unknown(child, element, layer)

    def inputs(self, layer: Layer, element: etree._Element, ports: dict[tuple[int, int], InputPort]) -> None:
        """Read the ports in a layer's ``<input>``."""
        for child in self.ports(layer, element):
            port_id = self.port_id(layer, child)
            dims, info = self.port_content(layer, child)
            source: Any = None  # set by the edges
            port = InputPort(layer, port_id, len(layer.inputs), source, dims, info, child.get("precision", ""))
            if ports.setdefault((layer.id, port_id), port) is not port:
                self.problems.add(f"a second input port {port_id}", layer=layer)
            layer.inputs.append(port)

    def outputs(self, layer: Layer, element: etree._Element, ports: dict[tuple[int, int], OutputPort]) -> None:
        """Read the ports in a layer's ``<output>``."""
        for child in self.ports(layer, element):
            port_id = self.port_id(layer, child)
            dims, info = self.port_content(layer, child)
            precision = child.get("precision", "")
            names = child.get("names")
            element_type = ElementType.from_name(precision)
            if element_type is None:
                said = f'the precision "{short(precision)}" of output port {port_id}'
                self.problems.add(f"{said} is not a known element type", layer=layer)
                element_type = ElementType.DYNAMIC
            port = OutputPort(
                layer,
                port_id,
                len(layer.outputs),
                element_type,
                dims,
                () if names is None else parse_names(names),
                info,
                precision,
            )
            if ports.setdefault((layer.id, port_id), port) is not port:
                self.problems.add(f"a second output port {port_id}", layer=layer)
            layer.outputs.append(port)

    def port_id(self, layer: Layer, element: etree._Element) -> int:
        """Return a port's number; -1 (and a problem) if it has none."""
        port_id = self.integers[element.get("id")]
        if port_id is None or port_id < 0:
            self.problems.add("the id of a port must be an integer", layer=layer, line=element.sourceline)
        return -1 if port_id is None else port_id

    def port_content(self, layer: Layer, element: etree._Element) -> tuple[Dims, dict[str, Any]]:
        """Return a port's dimensions and run-time information."""
        texts = tuple([child.text for child in element.iterchildren("dim")])
        info: dict[str, Any] = {}
        if len(texts) < len(element):
            for child in element:
                if child.tag == "rt_info":
                    info = rt_info.parse(child)
                elif child.tag != "dim":
                    self.unknown(child, element, layer)
        dims = self.dims.get(texts)
        if dims is None:
            numbers = [self.integers[text.strip() if text else None] for text in texts]
            for text, value in zip(texts, numbers, strict=True):
                if value is None or value < -1:
                    self.problems.add(
                        f'"{short(text or "")}" is not a valid dimension', layer=layer, line=element.sourceline
                    )
            dims = self.dims[texts] = tuple(None if value == -1 else value for value in numbers)
        return dims, info

    def bodies(self, layer: Layer, parts: dict[str, etree._Element], depth: int) -> None:
        """Read the sub-graphs of a layer."""
        if depth >= _MAX_NESTED_BODIES:
            self.problems.add(f"bodies are nested more than {_MAX_NESTED_BODIES} deep", layer=layer)
            return
        for name, map_name in port_maps.PORT_MAPS.items():
            if name not in parts:
                if map_name in parts:
                    self.problems.add(f"a <{map_name}> without a <{name}>", layer=layer)
                continue
            body_parts = self.parts(parts[name], _GRAPH)
            graph = self.graph(body_parts, parts[name], depth + 1)
            if graph is not None:
                body_name = parts[name].get("name", "")
                body = Body(name=body_name, **graph, inputs=[], outputs=[], back_edges=[])
                back_edges = parts.get("back_edges") if name == "body" else None
                port_maps.connect(layer, body, parts.get(map_name), back_edges, self.problems, self.remarks)
                layer.bodies[name] = body
        if "back_edges" in parts and "body" not in parts:
            self.problems.add("<back_edges> without a <body>", layer=layer)


def _needed_layers(headers: dict[int, tuple[Layer, etree._Element]], edges: list[_Edge]) -> set[int]:
    """Return the ids of the layers that results and assignments depend on, and of all Parameters. OpenVINO creates no
    others.
    """
    sources: dict[int, list[int]] = {}
    for from_layer, _, to_layer, _, _ in edges:
        sources.setdefault(to_layer, []).append(from_layer)
    pending = [layer.id for layer, _ in headers.values() if layer.type in _SINKS]
    needed = {layer.id for layer, _ in headers.values() if layer.type == "Parameter"}
    while pending:
        layer_id = pending.pop()
        if layer_id not in needed:
            needed.add(layer_id)
            pending += sources.get(layer_id, ())
    return needed
