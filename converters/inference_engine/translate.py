"""Rewriting of the XML tree of an IR of versions 2 to 7 into the form of version 10.

The reader checks the result. Malformed content stays malformed, with its line.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from converters.errors import Problems, Remarks, short
from converters.openvino.reader import xml
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.xml import integer

VERSIONS = range(2, 8)

_BLOBS = ("weights", "biases", "blobs")
_NAMES = ("weights", "biases")
_CROP = ("axis", "offset", "dim")
_ATTRIBUTES = {
    "fullyconnected": ("fc", "fc_data", "data"),
    "innerproduct": ("fc", "fc_data", "data"),
    "norm": ("lrn", "norm", "norm_data", "data"),
    "lrn": ("lrn", "norm", "norm_data", "data"),
    "crop": ("crop", "crop-data", "data"),
    "batchnormalization": ("batch_norm", "batch_norm_data", "data"),
    "eltwise": ("elementwise", "elementwise_data", "data"),
}
"""The elements that can contain the attributes, by layer type in lower case. The first one that exists applies."""
_MAX_NESTED_BODIES = 32


def version_name(version: int) -> str:
    """Return the version of the layers in a file of this version."""
    return f"ir{version}"


def translate(root: etree._Element, version: int, problems: Problems, remarks: Remarks) -> None:
    """Rewrite the tree under ``<net>`` in place."""
    _Graph(root, version_name(version), root.get("precision", ""), problems, remarks).net()
    for scale in root.iterfind("pre-process/channel/scale"):
        if scale.get("value", "1").strip() not in ("1", "1.0"):
            remarks.add("the <scale> of <pre-process>", line=scale.sourceline)
    statistics = root.find("statistics")
    if statistics is not None:
        what = "the <statistics> of an 8-bit calibration: layers compute in floats"
        remarks.add(what, line=statistics.sourceline)


class _Graph:
    """A net or the body of a TensorIterator."""

    def __init__(
        self, parent: etree._Element, version: str, precision: str, problems: Problems, remarks: Remarks, depth: int = 0
    ) -> None:
        self.parent, self.version, self.precision = parent, version, precision
        self.problems, self.remarks, self.depth = problems, remarks, depth
        layers, edges = parent.find("layers"), parent.find("edges")
        if layers is not None and edges is None:
            edges = etree.SubElement(parent, "edges")
        self.layers, self.edges = layers, edges
        self.by_id: dict[int, etree._Element] = {}
        self.next_id = 0
        # (layer, port) -> the source of an input port, and whether an output port is taken
        self.sources: dict[tuple[int, int], tuple[int, int]] = {}
        self.parameters: dict[tuple[int, int], int] = {}
        self.results: dict[tuple[int, int], int] = {}

    def net(self) -> None:
        """Rewrite a net, whose unused values are outputs."""
        if self.layers is None:
            return
        self.rewrite()
        taken = set(self.sources.values())
        for layer in list(self.by_id.values()):
            self.feed(layer)
            if layer.get("type") in ("Const", "Parameter"):
                continue
            for port in _ports(layer, "output"):
                end = _end(layer, port)
                if end is not None and end not in taken:
                    self.result(end)

    def body(self, iterator: etree._Element) -> None:
        """Rewrite the body of a TensorIterator, and its port maps."""
        if self.layers is None:
            return
        self.rewrite()
        inputs = [integer(port.get("id")) for port in _ports(iterator, "input")]
        for entry in _entries(iterator, "port_map", ("input", "output")):
            inner = integer(entry.get("internal_layer_id")), integer(entry.attrib.pop("internal_port_id", None))
            external = integer(entry.get("external_port_id"))
            if entry.get("axis") == "-1":
                del entry.attrib["axis"]
            if entry.tag == "input" and external in inputs:
                entry.set("external_port_id", str(inputs.index(external)))
            self.redirect(entry, "internal_layer_id", inner, is_input=entry.tag == "input")
        for edge in _entries(iterator, "back_edges", ("edge",)):
            start = integer(edge.get("from-layer")), integer(edge.get("from-port"))
            self.redirect(edge, "from-layer", start, is_input=False)
            end = integer(edge.get("to-layer")), integer(edge.get("to-port"))
            self.redirect(edge, "to-layer", end, is_input=True)

    def redirect(self, entry: etree._Element, name: str, end: tuple[int | None, int | None], *, is_input: bool) -> None:
        """Set the Parameter or Result of a port of the body in an entry of a port map."""
        layer, port = end
        if layer is None or port is None:
            self.problems.add(f"<{entry.tag}> names no layer and port of the body", line=entry.sourceline)
            return
        found = self.parameter((layer, port)) if is_input else self.result(self.sources.get((layer, port), (layer, port)))
        entry.set(name, str(found))

    def rewrite(self) -> None:
        """Rewrite the common content of nets and bodies: the layers' own elements, and their blobs."""
        for layer in self.layers.iterchildren("layer"):
            number = integer(layer.get("id"))
            if number is not None and number >= 0:
                self.by_id.setdefault(number, layer)
        self.next_id = max(self.by_id, default=0) + 1
        for edge in self.edges.iterchildren("edge"):
            ends = [integer(edge.get(name)) for name in ("from-layer", "from-port", "to-layer", "to-port")]
            if None not in ends:
                a, b, c, d = (end for end in ends if end is not None)
                self.sources[c, d] = a, b
                if c not in self.by_id:
                    self.problems.add(f"the edge ends at layer {c}, which does not exist", line=edge.sourceline)
        for layer in list(self.layers.iterchildren("layer")):
            self.layer(layer)

    def layer(self, layer: etree._Element) -> None:
        """Rewrite one layer: its data, precisions, ports and blobs."""
        kind = layer.get("type", "")
        layer.set("version", self.version)
        if layer.get("name") == "":
            layer.set("name", f"{kind}{layer.get('id', '')}")
        self.attributes(layer)
        self.crops(layer)
        for side in ("output", "input"):
            self.sort_ports(layer, side)
        ports = [port.get("precision") for port in _ports(layer, "output")]
        precision = layer.get("precision") or self.precision or next(filter(None, ports), "FP32")
        const = kind.lower() == "const"
        for port in _ports(layer, "output"):
            stated = port.get("precision") or precision
            port.set("precision", stated if const or stated not in ("FP16", "Q78", "MIXED") else "FP32")
            for dim in port.iterchildren("dim"):
                size = integer((dim.text or "").strip())
                if size is None or size < 1:
                    self.problems.add(f'"{short(dim.text or "")}" is not a valid dimension', line=port.sourceline)
        if kind.lower() == "input":
            self.input(layer)
        elif const:
            self.const(layer, precision)
        else:
            if kind.lower() == "memory":
                self.memory(layer)
            if kind.lower() in ("split", "slice"):
                self.split(layer)
            if kind.lower() == "convert":
                data = layer.find("data")
                _data(layer, destination_type="" if data is None else data.get("precision", ""))
            self.blobs(layer, precision)
            body = layer.find("body")
            if body is not None and self.depth < _MAX_NESTED_BODIES:
                inner = _Graph(body, self.version, precision, self.problems, self.remarks, self.depth + 1)
                inner.body(layer)

    def attributes(self, layer: etree._Element) -> None:
        """Rename the element that contains the attributes to ``<data>``."""
        kind = layer.get("type", "").lower()
        names = _ATTRIBUTES.get(kind, ("data", f"{kind}_data", kind))
        found = next((child for name in names for child in layer if child.tag == name), None)  # a type may be no path
        for child in list(layer):
            if child is not found and (child.tag == "data" or str(child.tag).endswith(("_data", "-data"))):
                self.remarks.add(f"<{short(str(child.tag))}> of {short(kind)}", line=child.sourceline)
                layer.remove(child)
        if found is not None:
            found.tag = "data"

    def crops(self, layer: etree._Element) -> None:
        """Convert ``<crop axis= offset= dim=>`` elements to attributes."""
        data = layer.find("data")
        crops = [] if data is None else data.findall("crop")
        for name in _CROP if data is not None and crops else ():
            values = [crop.get(name) for crop in crops]
            if any(value is not None for value in values):
                data.set(name, ",".join(value or "0" for value in values))
        for crop in crops:
            data.remove(crop)

    def sort_ports(self, layer: etree._Element, side: str) -> None:
        """Sort the ports of a layer by number, as the Inference Engine does."""
        ports = _ports(layer, side)
        numbers = [integer(port.get("id")) for port in ports]
        known = [number for number in numbers if number is not None]
        if len(known) == len(ports) and known != sorted(known):
            parent = ports[0].getparent()
            for _, port in sorted(zip(known, ports, strict=True), key=lambda pair: pair[0]):
                parent.append(port)

    def input(self, layer: etree._Element) -> None:
        layer.set("type", "Parameter")
        layer.set("version", "opset1")
        ports = _ports(layer, "output")
        dims = "" if not ports else _shape(ports[0])
        precision = "FP32" if not ports else ports[0].get("precision", "FP32")
        _data(layer, element_type=precision, shape=dims)

    def const(self, layer: etree._Element, precision: str) -> None:
        layer.set("type", "Const")
        layer.set("version", "opset1")
        found = list(_blobs(layer))
        ports = _ports(layer, "output")
        if not found or len(ports) != 1:
            self.problems.add(f'the Const layer "{short(layer.get("name", ""))}" has no blob', line=layer.sourceline)
            return
        kind = found[0].get("precision") or ports[0].get("precision") or precision
        ports[0].set("precision", kind)
        _data(
            layer,
            element_type=kind,
            shape=_shape(ports[0]),
            offset=found[0].get("offset", "0"),
            size=found[0].get("size", "0"),
        )
        _remove(layer, _BLOBS)

    def split(self, layer: etree._Element) -> None:
        """Keep the sizes of the outputs along the axis, which also apply to inputs of other shapes."""
        data = layer.find("data")
        axis = 1 if data is None else integer(data.get("axis", "1"))
        shapes = [_shape(port).split(",") for port in _ports(layer, "output")]
        if axis is None or not all(0 <= axis < len(shape) for shape in shapes):
            return  # an error of the rule
        kept = {} if data is None else {name: str(value) for name, value in data.attrib.items()}
        _data(layer, **{**kept, "out_sizes": ",".join(shape[axis] for shape in shapes)})

    def memory(self, layer: etree._Element) -> None:
        """Convert a Memory layer that reads to a ReadValue, and one that writes to an Assign.

        The memory has the shape in the file, also for inputs of other shapes.
        """
        data, ports = layer.find("data"), _ports(layer, "output")
        layer.set("type", "ReadValue" if ports else "Assign")
        shape = {"variable_shape": _shape(ports[0])} if ports else {}
        _data(layer, variable_id="" if data is None else data.get("id", ""), **shape)

    def blobs(self, layer: etree._Element, precision: str) -> None:
        """Convert the blobs of a layer to Const layers that feed further inputs."""
        ports = layer.find("input")
        blobs = {str(blob.tag): blob for blob in _blobs(layer)}
        _remove(layer, _BLOBS)
        for name in [name for name in blobs if name not in _NAMES]:
            what = f"the blob <{short(name)}> of {short(layer.get('type', ''))}"
            self.remarks.add(what, line=blobs.pop(name).sourceline)
        found = [blobs[name] for name in _NAMES if name in blobs]
        if not found:
            return
        if str(found[0].tag) == "biases":
            self.problems.add(
                f'the layer "{short(layer.get("name", ""))}" has biases without weights', line=layer.sourceline
            )
        if ports is None:
            ports = etree.Element("input")
            layer.insert(0, ports)
        numbers = [integer(port.get("id")) for side in ("input", "output") for port in _ports(layer, side)]
        port_id = max((number for number in numbers if number is not None), default=-1) + 1
        for blob in found:
            name = f"{layer.get('name', '')}/{blob.tag}"
            kind = blob.get("precision") or precision
            if layer.get("type") == "BinaryConvolution" and blob.tag == "weights":
                kind = "BIN"
            bits = (ElementType.from_name(kind) or ElementType.F32).bits or 8
            size = integer(blob.get("size")) or 0
            shape = str(max(size * 8 // bits, 0))
            const = self.add(name, "Const", shape, kind, blob.sourceline)
            _data(const, element_type=kind, shape=shape, offset=blob.get("offset", "0"), size=blob.get("size", "0"))
            port = etree.SubElement(ports, "port", id=str(port_id))
            xml.state_line(port, blob.sourceline)
            etree.SubElement(port, "dim").text = shape
            self.connect(_end(const, _ports(const, "output")[0]), (integer(layer.get("id")), port_id), blob.sourceline)
            port_id += 1

    def feed(self, layer: etree._Element) -> None:
        """Add Parameters for the input ports of a layer without an edge."""
        for port in _ports(layer, "input"):
            end = _end(layer, port)
            if end is not None and end not in self.sources:
                self.parameter(end)

    def parameter(self, end: tuple[int, int]) -> int:
        """Return the Parameter that feeds an input port, or is the layer itself. Create it if necessary."""
        source = self.sources.get(end, end)
        layer = self.by_id.get(source[0])
        if layer is None or layer.get("type") == "Parameter":
            return source[0]
        if end in self.sources:  # a port with an edge in the body
            return end[0]
        if end not in self.parameters:
            ports = _ports(layer, "input")
            port = next((port for port in ports if integer(port.get("id")) == end[1]), None)
            if port is None:
                return end[0]
            name = layer.get("name", "")
            name = name if len(ports) == 1 else f"{name}.{ports.index(port)}"
            shape, kind = _shape(port), port.get("precision") or self.precision or "FP32"
            kind = "FP32" if kind in ("FP16", "Q78", "MIXED") else kind
            made = self.add(name, "Parameter", shape, kind, port.sourceline)
            _data(made, element_type=kind, shape=shape)
            self.connect(_end(made, _ports(made, "output")[0]), end, port.sourceline)
            self.parameters[end] = integer(made.get("id")) or 0
        return self.parameters[end]

    def result(self, end: tuple[int, int]) -> int:
        """Return the Result of an output port. Create it if necessary."""
        if end not in self.results:
            layer = self.by_id.get(end[0])
            name = "" if layer is None else layer.get("name", "")
            line = self.parent.sourceline if layer is None else layer.sourceline
            made = self.add(f"{name}/sink_port_{end[1]}", "Result", None, "", line)
            self.connect(end, (integer(made.get("id")), 0), line)
            self.results[end] = integer(made.get("id")) or 0
        return self.results[end]

    def add(self, name: str, kind: str, shape: str | None, precision: str, line: int | None) -> etree._Element:
        """Create a layer of an opset, with an output or, if ``shape`` is None, an input."""
        layer = etree.SubElement(self.layers, "layer", id=str(self.next_id), name=name, type=kind, version="opset1")
        side = etree.SubElement(layer, "input" if shape is None else "output")
        port = etree.SubElement(side, "port", id="0")
        if shape is not None:
            port.set("precision", precision)
            for dim in shape.split(",") if shape else ():
                etree.SubElement(port, "dim").text = dim
        for element in layer.iter():
            xml.state_line(element, line)
        self.by_id[self.next_id] = layer
        self.next_id += 1
        return layer

    def connect(self, start: tuple[int, int] | None, end: tuple[int | None, int], line: int | None) -> None:
        if start is None or end[0] is None:
            return
        names = {"from-layer": start[0], "from-port": start[1], "to-layer": end[0], "to-port": end[1]}
        edge = etree.SubElement(self.edges, "edge", {name: str(number) for name, number in names.items()})
        xml.state_line(edge, line)
        self.sources[end[0], end[1]] = start


def _ports(layer: etree._Element, side: str) -> list[etree._Element]:
    element = layer.find(side)
    return [] if element is None else list(element.iterchildren("port"))


def _end(layer: etree._Element, port: etree._Element) -> tuple[int, int] | None:
    ends = integer(layer.get("id")), integer(port.get("id"))
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _entries(layer: etree._Element, name: str, tags: tuple[str, ...]) -> Iterator[etree._Element]:
    element = layer.find(name)
    return iter(()) if element is None else element.iterchildren(*tags)


def _blobs(layer: etree._Element) -> Iterator[etree._Element]:
    """Yield the elements that refer to a part of the .bin."""
    for child in layer:
        if child.tag == "blobs":
            yield from (blob for blob in child if blob.get("size", "0") != "0")
        elif child.tag in _BLOBS and child.get("size", "0") != "0":
            yield child


def _remove(layer: etree._Element, tags: tuple[str, ...]) -> None:
    for child in [child for child in layer if child.tag in tags]:
        layer.remove(child)


def _shape(port: etree._Element) -> str:
    return ",".join((dim.text or "").strip() for dim in port.iterchildren("dim"))


def _data(layer: etree._Element, **attributes: str) -> None:
    """Replace the attributes of a layer."""
    data = layer.find("data")
    if data is None:
        data = etree.Element("data")
        xml.state_line(data, layer.sourceline)
        layer.insert(0, data)
    for name in xml.attributes(data):
        del data.attrib[name]
    for child in list(data):
        data.remove(child)
    for name, value in attributes.items():
        data.set(name, value)
