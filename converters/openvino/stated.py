"""Comparison of the element types, ranks and dimensions in a file with those that the operations imply.

OpenVINO infers them when it reads a file. The values in the file are used only if ONNX cannot infer them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from converters.errors import Malformed, Remarks, short
from converters.openvino.onnx_types import data_type, element_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Dims, Layer, OutputPort
from converters.openvino.reader.shapes import same_dims
from onnx_specops.building import Value


@dataclass(frozen=True)
class Corrections:
    """The types, dimensions and outputs of operations that the file states differently or omits. The graph keeps the file's.

    Attributes:
        types: the element types that differ from the file's.
        dims: the dimensions that are incompatible with the file's.
        omitted: the number of an operation's outputs that the file omits.
    """

    types: dict[OutputPort, ElementType] = field(default_factory=dict)
    dims: dict[OutputPort, Dims | None] = field(default_factory=dict)
    omitted: dict[Layer, int] = field(default_factory=dict)

    def type_of(self, port: OutputPort) -> ElementType:
        """Return the element type of a value."""
        return self.types.get(port, port.element_type)

    def dims_of(self, port: OutputPort) -> Dims | None:
        """Return the dimensions of a value."""
        return self.dims.get(port, port.dims)


def correct_element_type(port: OutputPort, value: Value, corrections: Corrections, remarks: Remarks) -> None:
    """Record the operation's element type if the file has another. OpenVINO ignores the one in the file."""
    known = corrections.type_of(port)
    if known is ElementType.DYNAMIC or value.dtype == data_type(known):
        return
    layer, given = port.layer, element_type(value.dtype)
    stated = f"{short(port.precision)} as the type of output {port.index} of {short(layer.type)}, which is {given}"
    remarks.add(stated, layer=layer)
    corrections.types[port] = given


def are_compatible(
    port: OutputPort, value: Value, stated: Dims | None, remarks: Remarks, *, sources: Collection[int] | None = None
) -> bool:
    """Return whether the dimensions in the file are compatible with those of the operation. OpenVINO uses the latter.

    A number is not compatible with a dynamic dimension of an input: somebody made it dynamic, and the file still has the
    previous dimensions of other values.

    Args:
        port: an output of a layer.
        value: the result of the operation.
        stated: the dimensions in the file.
        remarks: receives incompatible dimensions.
        sources: the numbers that the layer may combine with dynamic dimensions, because they are dimensions of its inputs;
            ``None`` if it may be any number.
    """
    if stated is None or value.dims is None:
        return True
    if same_dims(value.dims, stated) and (sources is None or not _fixes_dynamic(port, value, stated, sources)):
        return True
    remarks.add(f"the shape of an output of {short(port.layer.type)} that differs from the operation's", layer=port.layer)
    return False


def _fixes_dynamic(port: OutputPort, value: Value, stated: Dims, sources: Collection[int]) -> bool:
    """Return whether the file has a number that is not one of the sources for a dynamic dimension.

    A dynamic dimension has a name, or is that of two dynamic dimensions of which one is repeated.
    """
    repeats = port.layer.type in _REPEATING
    return any(
        isinstance(dim, ir.SymbolicDim) and (repeats or dim.value is not None) and size is not None and size not in sources
        for dim, size in zip(value.shape or (), stated, strict=True)
    )


_REPEATING = frozenset((
    "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Divide", "Equal", "FloorMod", "Greater", "GreaterEqual", "Less",
    "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mod", "Multiply", "NotEqual", "Power",
    "PRelu", "Select", "SquaredDifference", "Subtract",
))  # fmt: skip
"""Types of layers that repeat dimensions of 1, so that each dimension of the result is that of an input."""


def add_dims(value: Value, stated: Dims | None) -> None:
    """Add dimensions that only the file states to a value."""
    if stated is None or value.const_value is not None:
        return
    if value.shape is None:
        value.shape = ir.Shape(list(stated))
    elif not value.is_graph_input():
        value.shape = ir.Shape([b if b is not None else a for a, b in zip(value.shape, stated, strict=True)])


def check_argument(parameter: Layer, value: Value) -> None:
    """Raise `Malformed` if a body's Parameter has another type or shape than the value that feeds it."""
    port, dims = parameter.outputs[0], value.dims
    fits = port.dims is None or dims is None or same_dims(port.dims, dims)
    if fits and (port.element_type is ElementType.DYNAMIC or value.dtype in (None, data_type(port.element_type))):
        return
    kind, shape = "?" if value.dtype is None else value.dtype.name, "?" if dims is None else _shown(dims)
    raise Malformed(
        f'the Parameter "{parameter.name}" of its body does not match its input: {port.element_type.value} '
        f"{_shown(port.dims or ())} and {kind} {shape}"
    )


def _shown(dims: Sequence[int | None]) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
