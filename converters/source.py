"""What a source format gives, so that conversion, validation, inspection, reports and folders know no format.

A `Format` is registered in `converters.formats`. It recognises files of its own and opens one as a `Source`, which emits an
ONNX model, describes itself and has a `Baseline`: the runtime that computes what is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from converters.errors import Problem, Remarks
    from converters.inspection import Inspection
    from converters.saving import Source as SavedSource
    from converters.variables import ExposedVariable

Dims = tuple[int | None, ...]
"""Dimensions; ``None`` is one that is known at run time only."""


@dataclass
class Emitted:
    """The ONNX model of a source, in opset 21, before the passes.

    Attributes:
        model: the model.
        values: ``(layer id, output index)`` -> the value that holds that output of a layer.
        becomes: ``(layer type, version)`` -> the ONNX operators that its layers became, and how often.
        problems: what cannot be converted.
        variables: the model's variables.
        keep_float32: whether the source's runtime keeps 16-bit floats in float32 between computations.
        converted_unrounded: the types to which that runtime converts without rounding.
    """

    model: ir.Model
    values: Mapping[tuple[int, int], ir.Value]
    becomes: dict[tuple[str, str], Counter[str]]
    problems: list[Problem]
    variables: list[ExposedVariable]
    keep_float32: bool = False
    converted_unrounded: Collection[ir.DataType] = ()


@dataclass(frozen=True)
class Port:
    """An input or an output of a model.

    Attributes:
        names: all of its names; the first is that of the ONNX model's value.
        dims: its dimensions, ``None`` where their number is not known.
        layout: its layout, as ``[N,C,H,W]``, or empty.
        aliases: further names by which users may mean it.
    """

    names: tuple[str, ...]
    dims: Dims | None
    layout: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layer:
    """A layer of a source, as comparisons and reports name it.

    Attributes:
        id: its number in the file.
        name: its name, which need not be unique.
        type: its type, as the file spells it.
        line: its line in the file.
        kind: whether it computes anything.
        before: the ids of the layers whose outputs it takes.
        dims: the dimensions of each of its outputs.
        has_array: whether NumPy has a type for each of its outputs.
    """

    id: int
    name: str
    type: str
    line: int
    kind: Literal["input", "constant", "operation", "output"]
    before: tuple[int, ...]
    dims: tuple[Dims | None, ...]
    has_array: tuple[bool, ...]


@dataclass(frozen=True)
class LayerOutput:
    """An output of a layer, whose value is compared."""

    layer: Layer
    index: int


class Source(Protocol):
    """An opened model.

    Attributes:
        path: the file that errors name.
        files: the files that it is read from, which nothing is written over; none of a model that a program holds.
        remarks: what the source's runtime ignores in the file, and what it takes otherwise than the file says.
        inputs, outputs: in their order.
        layers: the layers, each after those that it takes values from; those of nested bodies are not among them.
        layer_types: layer type -> how many layers there are, those of nested bodies included.
        information: what the model says about itself, by names joined by blanks.
    """

    path: Path
    remarks: Remarks

    @property
    def files(self) -> tuple[Path, ...]: ...
    @property
    def inputs(self) -> Sequence[Port]: ...
    @property
    def outputs(self) -> Sequence[Port]: ...
    @property
    def layers(self) -> Sequence[Layer]: ...
    @property
    def layer_types(self) -> Mapping[str, int]: ...
    @property
    def information(self) -> Mapping[str, str]: ...

    def reshape(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Give inputs other dimensions, by name; -1 is an open dimension.

        Raises:
            ConversionError: an input does not exist or cannot have them.
        """

    def choose(self, outputs: Sequence[str], names: Mapping[str, str]) -> None:
        """Give the model other outputs, and its inputs and outputs other names.

        Raises:
            ConversionError: for names that nothing has, that several layers have, or that are taken.
        """

    def chosen(self) -> str:
        """What `choose` did, as a text for `restore`."""

    def restore(self, chosen: str) -> None:
        """Do again what another conversion's `choose` did.

        Raises:
            ValueError: the text does not concern this model.
        """

    def emit(self) -> Emitted:
        """The ONNX model.

        Raises:
            ConversionError: with all that cannot be converted.
        """

    def describe(self, model: ir.Model, *, values: bool = True) -> None:
        """Let the ONNX model say about itself what the source says and, with ``values``, its inputs and outputs too."""

    def weights(self, *, as_they_are: bool) -> SavedSource:
        """The source's files and weights; with ``as_they_are`` a file may refer to the weights."""

    def problems_of(self, error: Exception, opset: int) -> list[Problem]:
        """What is wrong, of a `BodyError`, `LoweringError`, `TargetError` or `InvalidNodes` that the passes raised."""

    def baseline(self, folder: Path, extensions: Sequence[str] = ()) -> Baseline:
        """What computes the expected values.

        Args:
            folder: an empty folder, for files.
            extensions: what the source's runtime needs to run the model.
        """


def operator_name(node: ir.Node) -> str:
    """The operator of a node, with its domain where that is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


class BaselineError(RuntimeError):
    """A source's runtime refused the model, failed, crashed or hung."""


@dataclass(frozen=True)
class Inference:
    """What a source's runtime computed.

    Attributes:
        outputs: for each run the outputs in order.
        layers: the layers' values of the first run; ``None`` where the runtime does not hand one out.
        seconds: the time of the last run's repetition, where one was asked for.
    """

    outputs: list[list[np.ndarray]]
    layers: list[np.ndarray | None] = field(default_factory=list)
    seconds: float = 0.0


class Executed(NamedTuple):
    """An operation that a runtime executes.

    Attributes:
        layers: the names of the layers that it stands for; none for one that the runtime added.
        type: its type.
        seconds: the mean time of an inference.
    """

    layers: tuple[str, ...]
    type: str
    seconds: float


class Baseline(Protocol):
    """A source's runtime, with a model.

    Each method raises `BaselineError` where the runtime gives no answer, ``ModuleNotFoundError`` where it is not installed.

    Attributes:
        runtime: its key in results, as "openvino".
        title: what users call it; before a comma its short name.
        has_low_precision: whether the runtime computes otherwise by default: quantised layers in integers.
    """

    runtime: str
    title: str
    has_low_precision: bool

    def run(
        self, inputs: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), *, low_precision: bool = False
    ) -> Inference:
        """Run once for the outputs and layers, and again for the time."""

    def run_all(self, samples: Sequence[Sequence[np.ndarray]], *, low_precision: bool = False) -> list[list[np.ndarray]]:
        """The outputs of each sample."""

    def times(self, inputs: Sequence[np.ndarray]) -> tuple[float, list[Executed]]:
        """The median seconds of an inference, and what is executed in it."""


class Covered(Protocol):
    """An operation of a format, and what becomes of it."""

    operation: Any
    has_rule: bool
    custom: Sequence[str]
    cases: int
    passed: int
    restrictions: str

    @property
    def passes(self) -> bool: ...
    @property
    def becomes(self) -> str: ...


class Format(Protocol):
    """A source format.

    Attributes:
        name: what users call it.
        suffixes: the ends of its files' names, where folders are searched.
    """

    name: str
    suffixes: tuple[str, ...]

    def load(self) -> None:
        """Register the format's own rules, in whose places a user's rules come."""

    def recognises(self, model: object) -> bool:
        """Whether a path, or an object that a program holds, is of this format, by its content."""

    def open(
        self, model: Any, bin: str | Path | bytes | None = None, *, valueless: bool = False
    ) -> AbstractContextManager[Source]:
        """Open a model.

        Args:
            model: a path, or what a program holds.
            bin: the file of its weights, if they have one of their own; by default the one that belongs to it.
            valueless: whether the weights may be missing: the model is described, and not converted.

        Raises:
            MalformedError: a file cannot be read or is damaged.
        """

    def inspect(self, path: Path, bin: str | Path | None = None) -> Inspection:
        """What a model's layers become, without writing anything.

        Raises:
            MalformedError: a file cannot be read or is damaged.
        """

    def coverage(self) -> tuple[str, Sequence[Covered]] | None:
        """The runtime and its release that conformance cases were compared with, and what becomes of each operation.

        ``None`` for a format that has no list of operations.
        """
