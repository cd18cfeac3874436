"""The typed graph of an IR, independent of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from converters.errors import Remarks
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType

Dims = tuple[int | None, ...]
"""Dimensions. ``None`` is a dynamic dimension."""


@dataclass(slots=True, eq=False, repr=False)
class OutputPort:
    """A value that a layer computes.

    Args:
        layer: the layer.
        id: the port's id in the file. Inputs and outputs of a layer share one numbering.
        index: its index among the layer's outputs, from 0.
        element_type: the type of the elements.
        dims: the dimensions, () for a scalar; ``None`` for an unknown rank.
        names: the value's tensor names, in the file's order.
        rt_info: run-time information, see `Layer.rt_info`.
        precision: the type in the port's spelling ("FP32"), which may be less accurate than `element_type`.
        consumers: the input ports that use the value, in the order of the edges.
    """

    layer: Layer
    id: int
    index: int
    element_type: ElementType
    dims: Dims | None
    names: tuple[str, ...] = ()
    rt_info: dict[str, Any] = field(default_factory=dict)
    precision: str = ""
    consumers: list[InputPort] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<output {self.index} of {self.layer!r}: {self.element_type} {_shape_text(self.dims)}>"


@dataclass(slots=True, eq=False, repr=False)
class InputPort:
    """An input of a layer.

    Args:
        layer: the layer.
        id: the port's id in the file.
        index: its index among the layer's inputs, from 0.
        source: the output port whose value it uses.
        declared_dims: the dimensions in the port itself, () if it has none.
        rt_info: run-time information, see `Layer.rt_info`.
        precision: the type in the port's spelling, or empty.
    """

    layer: Layer
    id: int
    index: int
    source: OutputPort
    declared_dims: Dims = ()
    rt_info: dict[str, Any] = field(default_factory=dict)
    precision: str = ""

    @property
    def element_type(self) -> ElementType:
        """The source's element type."""
        return self.source.element_type

    @property
    def dims(self) -> Dims | None:
        """The source's dimensions."""
        return self.source.dims

    def __repr__(self) -> str:
        return f"<input {self.index} of {self.layer!r} from {self.source!r}>"


@dataclass(slots=True, eq=False, repr=False)
class Layer:
    """One operation.

    Args:
        id: the layer's id in its graph.
        name: its friendly name, which need not be unique.
        type: the operation in the file's spelling ("Const", "ReLU", "MatMul").
        version: the opset that defines it ("opset1" ... or "extension", "experimental").
        attributes: the attributes of ``<data>``, unparsed.
        inputs: the inputs in order.
        outputs: the outputs in order.
        rt_info: run-time information by name: a text if there is only a value, else a dict (a list of dicts if a name is
            repeated).
        line: the line in the .xml.
        output_names: the names of a Result layer's tensor; ``None`` if the file has none.
        constant: the value of a Const layer.
        bodies: the sub-graphs by the names of their elements: "body", or "then_body" and "else_body".
        extra: attributes of ``<layer>`` other than id, name, type, version and output_names.
    """

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, str]
    inputs: list[InputPort]
    outputs: list[OutputPort]
    rt_info: dict[str, Any]
    line: int
    output_names: tuple[str, ...] | None = None
    constant: Constant | None = None
    bodies: dict[str, Body] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r} (id {self.id}, {self.version})>"


def producer_before(port: InputPort, types: Collection[str]) -> Layer:
    """Return the layer that computes an input, before layers of some types, which pass on their first input."""
    layer = port.source.layer
    while layer.type in types and layer.inputs:
        layer = layer.inputs[0].source.layer
    return layer


@dataclass(slots=True, eq=False)
class Graph:
    """Connected layers.

    Args:
        name: the graph's name; empty for bodies.
        layers: all layers, in topological order.
        parameters: the Parameter layers in the file's order, which are the inputs.
        results: the Result layers in the file's order, which are the outputs.
        rt_info: run-time information, see `Layer.rt_info`.
    """

    name: str
    layers: list[Layer]
    parameters: list[Layer]
    results: list[Layer]
    rt_info: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class PortMapInput:
    """The source of the value of a body's Parameter.

    Args:
        external: the input port of the outer layer; ``None`` if there is none (external_port_id -1).
        parameter: the body's Parameter layer.
        axis: the axis along which the outer value is sliced, one slice per iteration; ``None`` for the whole value.
        start: the first slice; negative numbers count from the end.
        end: the end of the slices; negative numbers count from the end.
        stride: the step between slices; negative for reverse order.
        part_size: the length of a slice along the axis.
        purpose: "current_iteration" for the Parameter that counts a Loop's iterations, else empty.
        line: the line in the .xml.
    """

    external: InputPort | None
    parameter: Layer
    axis: int | None
    start: int
    end: int
    stride: int
    part_size: int
    purpose: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class PortMapOutput:
    """The destination of the value of a body's Result.

    Args:
        external: the output port of the outer layer; ``None`` if there is none.
        result: the body's Result layer.
        axis: the axis along which the iterations' values are concatenated; ``None`` for the last iteration's value.
        start: see `PortMapInput`.
        end: see `PortMapInput`.
        stride: see `PortMapInput`; negative for reverse order.
        part_size: see `PortMapInput`.
        purpose: "execution_condition" for the Result that decides whether a Loop continues, else empty.
        line: the line in the .xml.
    """

    external: OutputPort | None
    result: Layer
    axis: int | None
    start: int
    end: int
    stride: int
    part_size: int
    purpose: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class BackEdge:
    """A value that is passed from one iteration to the next.

    Args:
        result: the body's Result layer that returns it.
        parameter: the body's Parameter layer that receives it.
        line: the line in the .xml.
    """

    result: Layer
    parameter: Layer
    line: int


@dataclass(slots=True, eq=False)
class Body(Graph):
    """The sub-graph of a TensorIterator, a Loop or an If. All outer values enter through its Parameters.

    Args:
        inputs: the sources of the Parameters, in the port map's order.
        outputs: the destinations of the Results, in the port map's order.
        back_edges: the values that are passed between iterations.
    """

    inputs: list[PortMapInput]
    outputs: list[PortMapOutput]
    back_edges: list[BackEdge]


@dataclass(slots=True, eq=False)
class Model(Graph):
    """A whole IR.

    Args:
        version: the IR's version, 10 or 11.
        meta: the origin of older files, by element ("meta_data", "quantization_parameters", "framework_meta", "statistics"),
            in the form of `Layer.rt_info`.
        attributes: attributes of ``<net>`` other than name and version.
        path: the .xml file.
        weights_path: the .bin file; ``None`` if there is none (and no constant needs it).
        weights: the .bin's bytes, a read-only view of the mapped file.
        check: raises `MalformedError` if the .bin has changed since it was read.
        remarks: content of the file that OpenVINO ignores, or understands differently.
        input_names: OpenVINO's tensor names of each input, in order; at least one.
        output_names: the same for each output.
        renamed: the names that a user gives to inputs (Parameter layers) and outputs (Result layers).
    """

    version: int
    meta: dict[str, dict[str, Any]]
    attributes: dict[str, str]
    path: Path
    weights_path: Path | None
    weights: memoryview
    remarks: Remarks
    check: Callable[[], None] = lambda: None
    input_names: list[tuple[str, ...]] = field(default_factory=list)
    output_names: list[tuple[str, ...]] = field(default_factory=list)
    renamed: dict[Layer, str] = field(default_factory=dict)

    @property
    def meta_data(self) -> dict[str, Any]:
        """The content of ``<meta_data>``; empty in newer files, which have it in `rt_info`."""
        return self.meta.get("meta_data", {})


def _shape_text(dims: Dims | None) -> str:
    return "[...]" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"
