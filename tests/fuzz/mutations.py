"""Changes of IR files: structure, numbers, types, bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from converters.openvino.coverage.operations import operations

NUMBERS = (
    "-1", "0", "1", "2", "3", "7", "255", "65536", "2147483647", "2147483648", "4294967295", "9223372036854775807",
    "-9223372036854775808", "18446744073709551615", "99999999999999999999999", "1000000", "-2", "-2147483648",
)  # fmt: skip
WORDS = (
    "", " ", "nan", "inf", "-inf", "1e30", "-1e30", "1e-30", "true", "false", "?", "...", "1..2", "2..1", "-1..3", "x",
    "x" * 3000, "1,2,3", "0,0,0,0", "-1,-1", ",", "1,", "1e400", "0x10", "\uff11", "é\u2028", "same_upper", "max", "none",
)  # fmt: skip
TYPES = (
    "f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "i4", "u64", "u32", "u16", "u8", "u4", "u1", "u2", "u3", "u6",
    "nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "boolean", "string", "dynamic", "undefined", "FP32", "I64", "BOOL",
)  # fmt: skip
MOST_BYTES = 4 * 2**20


class Mutator:
    """Changes one IR.

    Args:
        xml: the text.
        weights: the .bin.
        rng: the source of all choices.
    """

    def __init__(self, xml: bytes, weights: bytes, rng: np.random.Generator) -> None:
        self.rng, self.weights = rng, bytearray(weights)
        self.root = ElementTree.fromstring(xml)

    def mutated(self, times: int) -> tuple[bytes, bytes]:
        """Return the .xml and the .bin after the given number of changes."""
        for _ in range(times):
            self.pick(*MUTATIONS)(self)
        xml = ElementTree.tostring(self.root)[:MOST_BYTES]
        if self.rng.random() < 0.08:
            xml = self.damaged(xml)
        if self.rng.random() < 0.1:
            self.weights = bytearray(self.damaged(bytes(self.weights)))
        return xml, bytes(self.weights)

    # -- choices -----------------------------------------------------------------------------------------------------------

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def elements(self, *tags: str) -> list[Element]:
        return [element for element in self.root.iter() if not tags or element.tag in tags]

    def element(self, *tags: str) -> Element | None:
        found = self.elements(*tags)
        return self.pick(*found) if found else None

    def text(self) -> str:
        """Return a hostile value, or one from elsewhere in the file."""
        kind = self.rng.random()
        if kind < 0.45:
            return self.pick(*NUMBERS)
        if kind < 0.65:
            return self.pick(*WORDS)
        if kind < 0.75:
            return self.pick(*TYPES)
        if kind < 0.85:
            return ",".join(self.pick(*NUMBERS) for _ in range(self.rng.integers(1, 7)))
        values = [value for element in self.elements() for value in element.attrib.values()]
        return self.pick(*values) if values else ""

    def parent(self, child: Element) -> Element | None:
        return next((element for element in self.root.iter() if child in list(element)), None)

    def damaged(self, data: bytes) -> bytes:
        """Cut, change or duplicate bytes."""
        if not data:
            return self.rng.bytes(self.rng.integers(0, 9))
        at, end = sorted(self.rng.integers(0, len(data) + 1, 2).tolist())
        return self.pick(
            lambda: data[:at],
            lambda: data[:at] + self.rng.bytes(4) + data[at + 4 :],
            lambda: data[:at] + data[end:],
            lambda: data[:end] + data[at:],
            lambda: data + self.rng.bytes(16),
        )()


Mutation = Callable[[Mutator], object]


def attribute(m: Mutator) -> None:
    """Change the value of an attribute."""
    element = m.element("data", "data", "layer", "port", "edge", "input", "output", "port_map", "net")
    if element is not None and element.attrib:
        element.set(m.pick(*element.attrib), m.text())


def new_attribute(m: Mutator) -> None:
    element, source = m.element("data", "layer", "port"), m.element("data", "layer", "port")
    if element is not None and source is not None:
        element.set(m.pick(*source.attrib, "axis", "shape", "version"), m.text())


def no_attribute(m: Mutator) -> None:
    element = m.element()
    if element is not None and element.attrib:
        del element.attrib[m.pick(*element.attrib)]


def dimension(m: Mutator) -> None:
    element = m.element("dim")
    if element is not None:
        element.text = m.pick(*NUMBERS, *WORDS[:14])


def shape(m: Mutator) -> None:
    """Change the shape of a Parameter or a constant, and of its port."""
    layers = [e for e in m.elements("layer") if e.get("type") in ("Parameter", "Const")]
    if not layers:
        return
    layer = m.pick(*layers)
    dims = [m.pick("0", "1", "2", "3", "-1", "100", "4294967296", "1048576") for _ in range(m.rng.integers(0, 6))]
    for data in layer.iter("data"):
        data.set("shape", ",".join(dims).replace("-1", "?"))
    for port in layer.iter("port"):
        for child in port.findall("dim"):
            port.remove(child)
        for dim in dims:
            ElementTree.SubElement(port, "dim").text = dim


def element_type(m: Mutator) -> None:
    element = m.element("data", "port")
    if element is None:
        return
    names = [n for n in element.attrib if n in ("element_type", "precision", "destination_type", "output_type")]
    if names:
        element.set(m.pick(*names), m.pick(*TYPES))


def constant_bytes(m: Mutator) -> None:
    """Write hostile numbers into constants: axes, shapes, counts."""
    if not m.weights:
        return
    places = [e for e in m.elements("data") if e.get("offset", "x").isdigit()]
    at = int(m.pick(*places).get("offset") or 0) if places else int(m.rng.integers(len(m.weights)))
    number = m.pick(-1, 0, 1, 2, 5, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 2**63 - 1, 1000000)
    data = m.pick(
        np.int64(number).tobytes(), np.int64(number).tobytes()[:4], np.float32(m.pick(np.nan, np.inf, 1e30, -1e30)).tobytes()
    )
    if at < len(m.weights):
        m.weights[at : at + len(data)] = data[: len(m.weights) - at]


def offset(m: Mutator) -> None:
    places = [e for e in m.elements("data") if "offset" in e.attrib]
    if places:
        element = m.pick(*places)
        element.set(m.pick("offset", "size"), m.pick(*NUMBERS, str(len(m.weights)), str(int(m.rng.integers(0, 99)))))


def operation(m: Mutator) -> None:
    """Change an operation or its version."""
    element = m.element("layer")
    if element is None:
        return
    chosen = m.pick(*operations())
    if m.rng.random() < 0.6:
        element.set("type", chosen.name)
    if m.rng.random() < 0.7:
        element.set("version", m.pick(chosen.version, f"opset{m.rng.integers(0, 19)}", "extension", "experimental"))


def edge(m: Mutator) -> None:
    """Redirect an edge."""
    one, other = m.element("edge"), m.element("edge")
    if one is not None and other is not None:
        side = m.pick("from", "to")
        for name in (f"{side}-layer", f"{side}-port"):
            one.set(name, other.get(name, ""))


def remove(m: Mutator) -> None:
    element = m.element()
    if element is not None and (parent := m.parent(element)) is not None:
        parent.remove(element)


def double(m: Mutator) -> None:
    """Duplicate an element, possibly very often."""
    element = m.element()
    if element is None or (parent := m.parent(element)) is None:
        return
    size = len(ElementTree.tostring(element))
    for _ in range(min(int(m.pick(1, 1, 1, 2, 50, 1000)), MOST_BYTES // (4 * size))):
        parent.append(copy.deepcopy(element))


def move(m: Mutator) -> None:
    """Move an element within the file."""
    element, place = m.element(), m.element()
    if element is None or place is None or place in list(element.iter()):
        return
    if (parent := m.parent(element)) is not None:
        parent.remove(element)
        place.insert(int(m.rng.integers(0, len(place) + 1)), element)


def nest(m: Mutator) -> None:
    """Nest a body in itself, or the whole graph as a body."""
    place = m.element("body", "then_body", "else_body", "layers", "layer")
    if place is None:
        return
    graph = [copy.deepcopy(e) for e in m.root if e.tag in ("layers", "edges")]
    if sum(len(ElementTree.tostring(e)) for e in graph) > MOST_BYTES // 4:
        return
    if place.tag == "layer":
        body = ElementTree.SubElement(place, m.pick("body", "then_body", "else_body"))
        body.extend(graph)
    else:
        place.extend(graph)


def rename(m: Mutator) -> None:
    element = m.element()
    if element is not None:
        element.tag = m.pick("layer", "layers", "data", "port", "dim", "edge", "body", "rt_info", "net", "unheard-of")


MUTATIONS: tuple[Mutation, ...] = (
    *(attribute,) * 4,
    *(constant_bytes,) * 3,
    *(dimension, shape, element_type, operation, edge) * 2,
    new_attribute,
    no_attribute,
    offset,
    remove,
    double,
    move,
    nest,
    rename,
)
