"""What an inspection finds: what a model's layers become, what cannot be converted, and what the model holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from converters.errors import Problem, Remark
from converters.source import Dims


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


@dataclass(frozen=True)
class InspectedType:
    """The layers of one type and version in an IR, and what they become.

    Attributes:
        type: the layer type.
        version: its opset.
        count: how many layers there are.
        becomes: the ONNX operators that they become (``onnx_specops.`` before those of the domain).
        convertible: whether all of them convert.
    """

    type: str
    version: str
    count: int
    becomes: list[str]
    convertible: bool


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found.

    Attributes:
        files: the .xml and, where it has one, its .bin.
        rows: the layer types and versions.
        problems: all that cannot be converted.
        passed_over: all that is passed over.
        contents: what the IR holds.
        weights_missing: whether there is no .bin, although constants have their values in one. Then the layers' types are
            looked up alone: what they become also depends on values.
    """

    files: list[Path]
    rows: list[InspectedType]
    problems: list[Problem]
    passed_over: list[Remark]
    contents: Contents
    weights_missing: bool = False

    @property
    def path(self) -> Path:
        """The .xml."""
        return self.files[0]
