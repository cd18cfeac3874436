"""IR as text, for files that OpenVINO's API does not write or rejects."""

from __future__ import annotations

from pathlib import Path

from tests.ir_elements import dims, edge, graph, port

__all__ = ["const", "dims", "edge", "graph", "layer", "net", "parameter", "result", "write"]


def layer(
    id,
    type,
    *,
    inputs=(),
    outputs=(),
    data=None,
    name=None,
    version="opset1",
    extra="",
    attributes="",
    precision="FP32",
):
    """Return a layer; inputs and outputs are shapes, and ports are numbered consecutively."""
    text = f'<layer id="{id}" name="{name or f"{type}_{id}"}" type="{type}" version="{version}"{attributes}>\n'
    if data is not None:
        text += f"<data {data}/>\n"
    if inputs:
        ports = "".join(f"{port(i, shape)}\n" for i, shape in enumerate(inputs))
        text += f"<input>{ports}</input>\n"
    if outputs:
        ports = "".join(f"{port(i, shape, precision)}\n" for i, shape in enumerate(outputs, len(inputs)))
        text += f"<output>{ports}</output>\n"
    return f"{text}{extra}</layer>\n"


def net(layers, edges, *, version=11, name="net", extra="") -> str:
    return f'<?xml version="1.0"?>\n<net name="{name}" version="{version}">\n{graph(layers, edges)}{extra}</net>\n'


def parameter(id=0, shape=(2,), element_type="f32", precision="FP32", text=None) -> str:
    shown = ",".join("?" if d is None else str(d) for d in shape) if text is None else text
    data = f'shape="{shown}" element_type="{element_type}"'
    return layer(id, "Parameter", outputs=[shape], data=data, precision=precision)


def result(id, shape=(2,)) -> str:
    return layer(id, "Result", inputs=[shape])


def const(id, element_type, shape, size, offset=0, precision="FP32") -> str:
    shown = ", ".join(map(str, shape))
    data = f'element_type="{element_type}" shape="{shown}" offset="{offset}" size="{size}"'
    return layer(id, "Const", outputs=[shape], data=data, precision=precision)


def write(folder: Path, text: str | bytes, weights: bytes | None = b"") -> Path:
    """Write the .xml and return its path; `weights` is the .bin, or ``None`` for none."""
    path = folder / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    bin_path = folder / "model.bin"
    if weights is None:
        bin_path.unlink(missing_ok=True)
    else:
        bin_path.write_bytes(weights)
    return path
