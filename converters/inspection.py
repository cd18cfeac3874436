"""The result of an inspection: the content of a model, the ONNX operators of its layers, and problems."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from converters.errors import Problem, Remark
from converters.source import Dims


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model: its name, element type, dimensions (``None`` if unknown) and layout."""

    name: str
    element_type: str
    dims: Dims | None
    layout: str


@dataclass(frozen=True)
class WeightsOfType:
    """The constants of one element type: their number, elements and bytes."""

    element_type: str
    constants: int
    elements: int
    bytes: int


@dataclass(frozen=True)
class LargeConstant:
    """A constant: its name, element type, dimensions, bytes and consumers."""

    name: str
    element_type: str
    dims: tuple[int, ...]
    bytes: int
    taken_by: list[str]


@dataclass
class Contents:
    """The content of an IR.

    Attributes:
        version: the IR's version.
        layers: the number of layers, including those of nested bodies.
        inputs, outputs: in the order of the model.
        weights: the constants by element type, largest first. Constants that share bytes count once.
        precisions: element type -> the number of values of this type that layers compute, without constants.
        largest: the largest constants.
        information: the model's own metadata (``rt_info``, ``meta_data``); nested names are joined by blanks.
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
        """Return the number of bytes of all constants."""
        return sum(kind.bytes for kind in self.weights)

    def as_data(self) -> dict[str, Any]:
        """Return the content as plain data."""
        return {**asdict(self), "weights_bytes": self.weights_bytes}


@dataclass(frozen=True)
class InspectedType:
    """The layers of one type and version in an IR, and the ONNX operators that they become.

    Attributes:
        type: the layer type.
        version: its opset.
        count: the number of layers.
        becomes: the ONNX operators, with the prefix ``onnx_specops.`` for those of the domain.
        convertible: whether all layers can be converted.
    """

    type: str
    version: str
    count: int
    becomes: list[str]
    convertible: bool


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`.

    Attributes:
        files: the .xml and, if present, its .bin.
        rows: the layer types and versions.
        problems: everything that cannot be converted.
        passed_over: everything that is ignored.
        contents: the content of the IR.
        weights_missing: whether the .bin of the constants is missing. The rows then depend on the layer types only; a
            conversion also depends on values.
    """

    files: list[Path]
    rows: list[InspectedType]
    problems: list[Problem]
    passed_over: list[Remark]
    contents: Contents
    weights_missing: bool = False

    @property
    def path(self) -> Path:
        """Return the path of the .xml."""
        return self.files[0]
