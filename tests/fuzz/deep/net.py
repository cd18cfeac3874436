"""An IR under construction, as text. OpenVINO is not needed, and does not check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from tests.ir_elements import attributes, edge, graph, port

Shape = Sequence[int]
"""The dimensions; -1 is an unknown one."""

_TYPES = {
    "float32": "f32", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32", "uint8": "u8", "int8": "i8",
    "bool": "boolean",
}  # fmt: skip
_PRECISIONS = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}


@dataclass(frozen=True)
class Port:
    """An output of a layer."""

    layer: int
    port: int
    shape: tuple[int, ...]
    kind: str


@dataclass
class Net:
    """A graph under construction: a model, or a body if it has the ``blob`` of the model."""

    blob: bytearray = field(default_factory=bytearray)
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)

    def body(self) -> Net:
        """Return an empty body."""
        return Net(self.blob)

    def parameter(self, *shape: int, kind: str = "f32", name: str = "") -> Port:
        dims = ",".join("?" if d == -1 else str(d) for d in shape)
        return self.layer("Parameter", data={"shape": dims, "element_type": kind}, shape=shape, kind=kind, name=name)

    def const(self, value: Any, dtype: Any = np.float32) -> Port:
        array = np.asarray(value, dtype)
        kind, data = _TYPES[array.dtype.name], array.tobytes()
        return self.stored(kind, array.shape, data)

    def stored(self, kind: str, shape: Shape, data: bytes) -> Port:
        """Add a Const of any type, from its bytes."""
        self.blob += bytes(-len(self.blob) % 64)
        place = {"element_type": kind, "shape": ",".join(map(str, shape)), "offset": len(self.blob), "size": len(data)}
        self.blob += data
        return self.layer("Const", data=place, shape=shape, kind=kind)

    def result(self, *ports: Port) -> list[int]:
        """Add Results; return their ids."""
        for one in ports:
            self.layer("Result", one, shapes=[])
        return list(range(len(self.layers) - len(ports), len(self.layers)))

    def layer(
        self,
        type: str,
        *inputs: Port,
        data: dict[str, Any] | None = None,
        shape: Shape | None = None,
        shapes: Sequence[Shape] | None = None,
        kind: str | None = None,
        kinds: Sequence[str] = (),
        version: int | str = 1,
        name: str = "",
        extra: str = "",
    ) -> Any:
        """Add a layer; return its output, or its outputs if ``shapes`` is given.

        Without ``shape`` and ``kind``, the output has those of the first input.
        """
        number = len(self.layers)
        own = shapes if shapes is not None else [inputs[0].shape if shape is None else shape]
        kinds = kinds or [kind or inputs[0].kind] * len(own)
        version = version if isinstance(version, str) else f"opset{version}"
        text = f'<layer id="{number}" name={quoteattr(name or f"{type}_{number}")} type="{type}" version="{version}">\n'
        if data:
            text += f"<data{attributes(data, _text)}/>\n"
        if inputs:
            text += f"<input>{''.join(_port(k, given.shape, given.kind) for k, given in enumerate(inputs))}</input>\n"
        if own:
            ports = (_port(len(inputs) + k, *one) for k, one in enumerate(zip(own, kinds, strict=True)))
            text += f"<output>{''.join(ports)}</output>\n"
        self.layers.append(f"{text}{extra}</layer>\n")
        for k, given in enumerate(inputs):
            self.edges.append(edge(given.layer, given.port, number, k))
        found = [Port(number, len(inputs) + k, tuple(one), kinds[k]) for k, one in enumerate(own)]
        return found[0] if shapes is None else found

    def graph(self) -> str:
        return graph(self.layers, self.edges)

    def files(self) -> tuple[bytes, bytes]:
        """Return the .xml and the .bin."""
        return f'<?xml version="1.0"?>\n<net name="deep" version="11">\n{self.graph()}</net>\n'.encode(), bytes(self.blob)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _port(number: int, shape: Shape, kind: str) -> str:
    return port(number, shape, _PRECISIONS.get(kind, kind.upper()))
