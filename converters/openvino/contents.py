"""What an IR holds: its inputs and outputs, its weights by element type, the precision of its values."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from converters.openvino.information import information, layout
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Dims, InputPort, Layer, Model, OutputPort
from converters.openvino.walk import all_layers

LARGEST = 20
"""How many constants are named."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output of a model: its name, element type, dimensions (``None`` where not known) and layout."""

    name: str
    element_type: str
    dims: Dims | None
    layout: str


@dataclass(frozen=True)
class WeightsOfType:
    """The constants of one element type: how many there are, of how many elements and bytes."""

    element_type: str
    constants: int
    elements: int
    bytes: int


@dataclass(frozen=True)
class LargeConstant:
    """A constant: its name, element type, dimensions and bytes, and the layers that take it."""

    name: str
    element_type: str
    dims: tuple[int, ...]
    bytes: int
    taken_by: list[str]


@dataclass
class Contents:
    """What an IR holds.

    Attributes:
        version: the IR's version.
        layers: how many layers there are, those of nested bodies included.
        inputs, outputs: in their order.
        weights: the constants by element type, the most bytes first; those that share their bytes count once.
        precisions: element type -> how many values of it the layers compute, constants aside.
        largest: the largest constants.
        information: what the model says of itself (``rt_info``, ``meta_data``), names joined by blanks.
    """

    version: int
    layers: int
    inputs: list[Tensor]
    outputs: list[Tensor]
    weights: list[WeightsOfType]
    precisions: dict[str, int]
    largest: list[LargeConstant]
    information: dict[str, str] = field(default_factory=dict)

    @property
    def weights_bytes(self) -> int:
        """The bytes of all constants."""
        return sum(kind.bytes for kind in self.weights)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "weights_bytes": self.weights_bytes}


def contents(source: Model) -> Contents:
    """What the IR holds."""
    layers = list(all_layers(source))
    constants: dict[tuple[object, ElementType], tuple[Layer, Constant]] = {}
    for layer in layers:
        if layer.constant is not None:
            found = layer.constant
            place: object = id(layer) if found.offset is None else (found.offset, found.size)
            constants.setdefault((place, found.element_type), (layer, found))
    by_type: dict[str, list[tuple[int, int]]] = {}
    for _, found in constants.values():
        by_type.setdefault(str(found.element_type), []).append((found.count, found.size))
    weights = [
        WeightsOfType(name, len(sizes), sum(count for count, _ in sizes), sum(size for _, size in sizes))
        for name, sizes in by_type.items()
    ]
    largest = sorted(constants.values(), key=lambda entry: entry[1].size, reverse=True)[:LARGEST]
    precisions = Counter(
        str(port.element_type) for layer in layers if layer.type not in ("Const", "Result") for port in layer.outputs
    )
    return Contents(
        source.version,
        len(layers),
        [_tensor(names, layer.outputs[0]) for layer, names in zip(source.parameters, source.input_names, strict=True)],
        [
            _tensor(names, layer.inputs[0].source, layer.inputs[0])
            for layer, names in zip(source.results, source.output_names, strict=True)
        ],
        sorted(weights, key=lambda kind: kind.bytes, reverse=True),
        dict(precisions.most_common()),
        [
            LargeConstant(
                layer.name,
                str(found.element_type),
                found.shape,
                found.size,
                sorted({port.layer.type for port in layer.outputs[0].consumers}),
            )
            for layer, found in largest
        ],
        information(source),
    )


def _tensor(names: tuple[str, ...], port: OutputPort, *result: InputPort) -> Tensor:
    return Tensor(names[0], str(port.element_type), port.dims, layout(*result, port))
