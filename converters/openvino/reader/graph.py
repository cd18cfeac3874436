"""The typed graph that an IR is read into. It knows nothing of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from converters.errors import Remarks
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType

Dims = tuple[int | None, ...]
"""Dimensions; None stands for one that is known at run time only."""


@dataclass(slots=True, eq=False, repr=False)
class OutputPort:
    """A value that a layer produces.

    Args:
        layer: the layer that it belongs to.
        id: the port's id in the file (inputs and outputs of a layer share one numbering).
        index: its place among the layer's outputs, from 0.
        element_type: type of the elements.
        dims: the dimensions, () for a scalar; None when the number of dimensions is not known.
        names: the value's tensor names, in the file's order.
        rt_info: run-time information, see `Layer.rt_info`.
        precision: the type as the port spells it ("FP32"); `element_type` may know better.
        consumers: the input ports that take the value, in the order of the edges.
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
    """A value that a layer takes.

    Args:
        layer: the layer that it belongs to.
        id: the port's id in the file.
        index: its place among the layer's inputs, from 0.
        source: the output port whose value it takes.
        declared_dims: the dimensions as the port itself writes them, () when it writes none.
        rt_info: run-time information, see `Layer.rt_info`.
        precision: the type as the port spells it, empty when it does not.
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
        name: its friendly name; not necessarily unique.
        type: the operation as the file spells it ("Const", "ReLU", "MatMul").
        version: the opset that defines it ("opset1" ... or "extension", "experimental").
        attributes: everything in ``<data>``, as it is written.
        inputs: the inputs in their order.
        outputs: the outputs in their order.
        rt_info: run-time information by name: a text where there is only a value, else a dict of what is said
            (a list of such where a name comes more than once).
        line: the line in the .xml.
        output_names: the names of a Result layer's tensor; None where the file says none.
        constant: the value, of a Const layer.
        bodies: the sub-graphs by the names of their elements: "body", or "then_body" and "else_body".
        extra: attributes of ``<layer>`` itself beyond id, name, type, version and output_names.
        left_out: how many outputs the operation has that the file leaves out; known once its rule has been applied.
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
    left_out: int = 0

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r} (id {self.id}, {self.version})>"


@dataclass(slots=True, eq=False)
class Graph:
    """Layers that are connected.

    Args:
        name: the graph's name; empty for bodies.
        layers: every layer, each after those that it takes values from.
        parameters: the Parameter layers in the file's order: the inputs.
        results: the Result layers in the file's order: the outputs.
        rt_info: run-time information, see `Layer.rt_info`.
    """

    name: str
    layers: list[Layer]
    parameters: list[Layer]
    results: list[Layer]
    rt_info: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class PortMapInput:
    """How a Parameter of a body gets its value.

    Args:
        external: the input port of the outer layer; None when there is none (external_port_id -1).
        parameter: the body's Parameter layer.
        axis: the axis along which the outer value is cut, a slice an iteration; None: the value as a whole.
        start: the first slice (negative: counted from the end).
        end: where the slices end (negative: counted from the end).
        stride: the step from slice to slice; negative walks backwards.
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
    """Where the value of a body's Result goes.

    Args:
        external: the output port of the outer layer; None when the value leaves through no port.
        result: the body's Result layer.
        axis: the axis along which the iterations' values are joined; None: the last iteration's value.
        start: see `PortMapInput`.
        end: see `PortMapInput`.
        stride: see `PortMapInput`; negative joins backwards.
        part_size: see `PortMapInput`.
        purpose: "execution_condition" for the Result that says whether a Loop goes on, else empty.
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
    """A value that one iteration hands to the next.

    Args:
        result: the body's Result layer that has it.
        parameter: the body's Parameter layer that takes it.
        line: the line in the .xml.
    """

    result: Layer
    parameter: Layer
    line: int


@dataclass(slots=True, eq=False)
class Body(Graph):
    """The sub-graph of a TensorIterator, a Loop or an If. All outer values come in through its Parameters.

    Args:
        inputs: what feeds the Parameters, in the port map's order.
        outputs: where the Results go, in the port map's order.
        back_edges: what goes from one iteration to the next.
    """

    inputs: list[PortMapInput]
    outputs: list[PortMapOutput]
    back_edges: list[BackEdge]


@dataclass(slots=True, eq=False)
class Model(Graph):
    """A whole IR.

    Args:
        version: the IR's version, 10 or 11.
        meta: what older files say of their making, by element ("meta_data", "quantization_parameters",
            "framework_meta", "statistics"), in the form of `Layer.rt_info`.
        attributes: attributes of ``<net>`` beyond name and version.
        path: the .xml file.
        weights_path: the .bin file; None when there is none (and no constant needs it).
        weights: the .bin's bytes: a read-only view into the mapped file.
        check: raises `MalformedError` where the .bin is no longer the file that was read.
        remarks: what OpenVINO passes over in the file, and what it takes otherwise than the file says.
        input_names: the tensor names by which OpenVINO knows each input, in order; one at least.
        output_names: the same of each output.
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
        """What ``<meta_data>`` says; empty in newer files, which say it in `rt_info`."""
        return self.meta.get("meta_data", {})


def _shape_text(dims: Dims | None) -> str:
    return "[...]" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"
