"""Small IRs that reproduce properties of public files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.converters.openvino.reader import ir_text


@dataclass(frozen=True)
class Lesson:
    """An IR and the property that it reproduces.

    Attributes:
        name: the property.
        makers: the tools that wrote such files.
        build: returns the text of the .xml and the .bin.
        remarks: the expected notes, each once.
        inputs: arrays in order; random if there are none.
        tolerance: the tolerance of floats.
    """

    name: str
    makers: str
    build: Callable[[], tuple[str, bytes]]
    remarks: tuple[str, ...] = ()
    inputs: tuple[np.ndarray, ...] = ()
    tolerance: float = 1e-5

    def save(self, folder: Path) -> Path:
        """Write the files; return the path of the .xml."""
        text, weights = self.build()
        return ir_text.write(folder, text, weights)


class Net:
    """An IR under construction: a chain of layers, and consecutive constants."""

    def __init__(self, version: int = 10) -> None:
        self.version = version
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = b""
        self.extra = ""

    def parameter(self, shape: Sequence[int], kind: str = "f32", precision: str | None = None) -> tuple[int, int]:
        """Add an input; ``precision`` is that of its port, if it differs from its type."""
        precision = precision or _PRECISIONS[kind]
        self.layers.append(ir_text.parameter(len(self.layers), shape, kind, precision))
        return len(self.layers) - 1, 0

    def constant(self, array: np.ndarray, *, offset: int | None = None, pad: int = 0) -> tuple[int, int]:
        """Add a constant, with its bytes after the previous ones and ``pad`` more, or at ``offset``."""
        if offset is None:
            self.weights += bytes(pad)
            offset = len(self.weights)
            self.weights += array.tobytes()
        kind = _TYPES[array.dtype.name]
        text = ir_text.const(len(self.layers), kind, array.shape, array.nbytes, offset, _PRECISIONS[kind])
        self.layers.append(text)
        return len(self.layers) - 1, 0

    def layer(
        self,
        type: str,
        sources: Sequence[tuple[int, int]],
        shapes: Sequence[Sequence[int]],
        outputs: Sequence[Sequence[int]],
        data: str | None = None,
        *,
        version: str = "opset1",
        precision: str = "FP32",
        name: str | None = None,
        extra: str = "",
    ) -> tuple[int, int]:
        """Add a layer fed by ``sources``; return its first output."""
        number = len(self.layers)
        text = ir_text.layer(
            number,
            type,
            inputs=shapes,
            outputs=outputs,
            data=data,
            version=version,
            precision=precision,
            name=name,
            extra=extra,
        )
        self.layers.append(text)
        self.edges += [ir_text.edge(*source, number, port) for port, source in enumerate(sources)]
        return number, len(sources)

    def result(self, source: tuple[int, int], shape: Sequence[int]) -> Net:
        """Add an output."""
        self.layers.append(ir_text.result(len(self.layers), shape))
        self.edges.append(ir_text.edge(*source, len(self.layers) - 1, 0))
        return self

    def built(self) -> tuple[str, bytes]:
        """Return the text of the .xml and the .bin."""
        return ir_text.net(self.layers, self.edges, version=self.version, extra=self.extra), self.weights


def saved(model: Callable[[], Any], *changes: tuple[str, str], version: int = 11) -> Callable[[], tuple[str, bytes]]:
    """Return the IR that OpenVINO writes for a model, with parts of the .xml replaced."""

    def build() -> tuple[str, bytes]:
        import openvino as ov

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(model(), path, compress_to_fp16=False)
            text, weights = path.read_text(), path.with_suffix(".bin").read_bytes()
        for old, new in (*changes, ('version="11"', f'version="{version}"')):
            assert old in text, old
            text = text.replace(old, new)
        return text, weights

    return build


_TYPES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8",
}  # fmt: skip
_PRECISIONS = {
    "f16": "FP16", "f32": "FP32", "f64": "FP64", "i8": "I8", "i32": "I32", "i64": "I64", "u8": "U8", "boolean": "BOOL",
}  # fmt: skip
