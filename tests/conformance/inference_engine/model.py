"""Create IR files of versions 2 to 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from tests.ir_elements import attributes, edge, graph, port

Dims = Sequence[int]

_PRECISIONS = {"float32": "FP32", "float16": "FP16", "int32": "I32", "int64": "I64", "uint8": "U8", "int8": "I8"}


@dataclass(frozen=True)
class Port:
    """An output of a layer."""

    layer: int
    port: int
    dims: tuple[int, ...]
    precision: str


@dataclass
class Net:
    """An IR under construction.

    Args:
        version: the IR version.
        precision: the precision of layers, and of blobs for floats.
    """

    version: int = 6
    precision: str = "FP32"
    data_element: str = "data"
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)
    inputs: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    extra: str = ""
    count: int = 0

    def input(self, *dims: int, name: str = "", precision: str = "FP32") -> Port:
        """Add an Input layer."""
        name = name or f"in{self.count}"
        self.inputs[name] = (dims, precision)
        return self.layer("Input", [], [dims], name=name, precision=precision)

    def const(self, value: Any, dtype: str = "") -> Port:
        """Add a Const layer."""
        array = np.asarray(value, dtype or None)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype == np.float32 and self.precision == "FP16":
            array = array.astype(np.float16)
        precision = _PRECISIONS[array.dtype.name]
        return self.layer("Const", [], [array.shape], blobs={"custom": array}, precision=precision)

    def layer(
        self,
        kind: str,
        inputs: Sequence[Port],
        outputs: Sequence[Dims],
        data: dict[str, Any] | None = None,
        *,
        blobs: dict[str, Any] | None = None,
        name: str = "",
        precision: str = "",
        precisions: Sequence[str] = (),
        body: str = "",
        ports: Sequence[int] = (),
        legacy_blobs: bool = False,
    ) -> Any:
        """Add a layer; return its output or outputs."""
        number, self.count = self.count, self.count + 1
        precision = precision or self.precision
        name = name or f"{kind}{number}"
        lines = [f'<layer id="{number}" name={quoteattr(name)} precision="{precision}" type="{kind}">']
        if data is not None:
            lines.append(f"<{self.data_element}{attributes(data, _text)}/>")
        if inputs:
            lines.append("<input>" + "".join(port(i, x.dims) for i, x in enumerate(inputs)) + "</input>")
        made = []
        if outputs:
            text = ""
            for i, dims in enumerate(outputs):
                kind_of = precisions[i] if precisions else precision
                text += port(len(inputs) + i, dims, kind_of if self.version >= 7 else "")
                made.append(Port(number, len(inputs) + i, tuple(dims), kind_of))
            lines.append(f"<output>{text}</output>")
        segments = "".join(self.segment(key, value) for key, value in (blobs or {}).items())
        if segments:
            lines.append(segments if legacy_blobs else f"<blobs>{segments}</blobs>")
        lines.append(body + "</layer>")
        self.layers.append("".join(lines) + "\n")
        for i, source in enumerate(inputs):
            self.edges.append(edge(source.layer, source.port, number, i))
        return made[0] if len(made) == 1 else made

    def segment(self, name: str, value: Any) -> str:
        """Add a segment of the .bin."""
        array = np.ascontiguousarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype == np.float32 and self.precision == "FP16":
            array = array.astype(np.float16)
        offset = len(self.blob)
        self.blob += array.tobytes()
        extra = ""
        if array.dtype == np.int32:
            extra = ' precision="I32"'
        return f'<{name} offset="{offset}" size="{array.nbytes}"{extra}/>'

    def xml(self, tag: str = "net") -> str:
        """Return the text of the .xml."""
        head = (
            f'<net name="net" version="{self.version}" batch="1" precision="{self.precision}">' if tag == "net" else "<body>"
        )
        return f"{head}\n{graph(self.layers, self.edges)}{self.extra}</{tag}>\n"

    def save(self, folder: Path) -> tuple[Path, Path]:
        """Write the .xml and the .bin."""
        xml, weights = folder / "net.xml", folder / "net.bin"
        xml.write_text('<?xml version="1.0" ?>\n' + self.xml(), encoding="utf-8")
        weights.write_bytes(bytes(self.blob))
        return xml, weights


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)
