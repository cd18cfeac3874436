"""The protocol of a source format. Conversion, validation, inspection, reports and folders depend only on it.

A `Format` is registered in `converters.formats`. It recognizes its files and opens a file as a `Source`. The source emits an
ONNX model, describes itself, and has a `Baseline`, the runtime that computes the expected values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from converters.errors import Problem, Remarks
    from converters.inspection import Inspection
    from converters.saving import Source as SavedSource
    from converters.variables import ExposedVariable

Dims = tuple[int | None, ...]
"""Dimensions. ``None`` is a dynamic dimension."""


@dataclass
class Emitted:
    """The ONNX model of a source, in opset 21, before the passes.

    Attributes:
        model: the model.
        values: ``(layer id, output index)`` -> the value of that output of a layer.
        becomes: ``(layer type, version)`` -> the ONNX operators of its layers, with counts.
        problems: everything that cannot be converted.
        variables: the model's variables.
        keep_float32: whether the source's runtime keeps intermediate 16-bit floats in float32.
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
    """An input or output of a model.

    Attributes:
        names: all of its names, beginning with the name of the ONNX model's value.
        dims: its dimensions; ``None`` if the rank is unknown.
        layout: its layout, such as ``[N,C,H,W]``, or empty.
        aliases: other names that users may use for it.
    """

    names: tuple[str, ...]
    dims: Dims | None
    layout: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layer:
    """A layer of a source, for comparisons and reports.

    Attributes:
        id: its number in the file.
        name: its name, which need not be unique.
        type: its type, as the file spells it.
        line: its line in the file.
        kind: whether it is computed.
        before: the ids of the layers whose outputs it uses.
        dims: the dimensions of each output.
        has_array: whether NumPy has a type for each output.
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
    """An output of a layer, for comparison."""

    layer: Layer
    index: int


class Source(Protocol):
    """An open model.

    Attributes:
        path: the file that errors name.
        files: the files of the model, which are never overwritten; empty for a model in memory.
        remarks: content of the file that the source's runtime ignores, or understands differently.
        inputs, outputs: in the order of the model.
        layers: the layers in topological order, without those of nested bodies.
        layer_types: layer type -> the number of layers, including those of nested bodies.
        information: the model's own metadata; nested names are joined by blanks.
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
        """Change the shapes of inputs, by name; -1 is a dynamic dimension.

        Raises:
            ConversionError: an input does not exist or cannot have the shape.
        """

    def choose(self, outputs: Sequence[str], names: Mapping[str, str]) -> None:
        """Select other outputs, and rename inputs and outputs.

        Raises:
            ConversionError: a name is unknown, ambiguous or already used.
        """

    def chosen(self) -> str:
        """Return the effect of `choose` as a text for `restore`."""

    def restore(self, chosen: str) -> None:
        """Repeat the selection of another conversion.

        Raises:
            ValueError: the text does not fit this model.
        """

    def emit(self) -> Emitted:
        """Emit the ONNX model.

        Raises:
            ConversionError: with everything that cannot be converted.
        """

    def describe(self, model: ir.Model, *, values: bool = True) -> None:
        """Add the source's metadata to the ONNX model and, with ``values``, to its inputs and outputs."""

    def weights(self, *, unchanged: bool) -> SavedSource:
        """Return the source's files and weights. With ``unchanged``, a file may refer to the weights."""

    def problems_of(self, error: Exception, opset: int) -> list[Problem]:
        """Return the problems of a `BodyError`, `LoweringError`, `TargetError` or `InvalidNodes` that the passes raised."""

    def baseline(self, folder: Path, extensions: Sequence[str] = ()) -> Baseline:
        """Return the runtime that computes the expected values.

        Args:
            folder: an empty folder for files.
            extensions: extensions that the source's runtime needs to run the model.
        """


def operator_name(node: ir.Node) -> str:
    """Return the operator of a node, prefixed by its domain unless that is ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


class BaselineError(RuntimeError):
    """A source's runtime rejected the model, failed, crashed or hung."""


@dataclass(frozen=True)
class Inference:
    """The results of a source's runtime.

    Attributes:
        outputs: for each run, the outputs in order.
        layers: the layers' values of the first run; ``None`` for a layer whose value the runtime does not expose.
        seconds: the duration of the last run's repetition, if requested.
    """

    outputs: list[list[np.ndarray]]
    layers: list[np.ndarray | None] = field(default_factory=list)
    seconds: float = 0.0


class Executed(NamedTuple):
    """An operation that a runtime executes.

    Attributes:
        layers: the names of the layers that it implements; empty if the runtime added it.
        type: its type.
        seconds: its mean duration per inference.
    """

    layers: tuple[str, ...]
    type: str
    seconds: float


class Baseline(Protocol):
    """A source's runtime with a model.

    Each method raises `BaselineError` if the runtime fails, and ``ModuleNotFoundError`` if it is not installed.

    Attributes:
        runtime: its key in results, such as "openvino".
        title: its name for users; the short name is before a comma.
        has_low_precision: whether it computes quantized layers in integers by default.
    """

    runtime: str
    title: str
    has_low_precision: bool

    def run(
        self, inputs: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), *, low_precision: bool = False
    ) -> Inference:
        """Run once for the outputs and layers, and again for the time."""

    def run_all(self, samples: Sequence[Sequence[np.ndarray]], *, low_precision: bool = False) -> list[list[np.ndarray]]:
        """Return the outputs of each sample."""

    def times(self, inputs: Sequence[np.ndarray]) -> tuple[float, list[Executed]]:
        """Return the median seconds of an inference, and the operations that it executes."""


class CoveredOperation(Protocol):
    """An operation of a format, and the result of its conversion."""

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
        name: its name in the help of the command.
        suffixes: the suffixes of its files, for searching folders.
    """

    name: str
    suffixes: tuple[str, ...]

    def load(self) -> None:
        """Register the format's own rules, which a user's rules can replace."""

    def recognizes(self, model: object) -> bool:
        """Return whether a path or an object in memory is of this format, by its content."""

    def open(
        self, model: Any, bin: str | Path | bytes | None = None, *, without_weights: bool = False
    ) -> AbstractContextManager[Source]:
        """Open a model.

        Args:
            model: a path or an object in memory.
            bin: the separate file of its weights, if any; by default the one that belongs to the model.
            without_weights: whether the weights may be missing. Such a model can be described, but not converted.

        Raises:
            MalformedError: a file cannot be read or is damaged.
        """

    def inspect(self, path: Path, bin: str | Path | None = None) -> Inspection:
        """Inspect how a model's layers would be converted, without writing anything.

        Raises:
            MalformedError: a file cannot be read or is damaged.
        """

    def coverage(self) -> tuple[str, Sequence[CoveredOperation]] | None:
        """Return the runtime and release that the conformance cases use, and the result of each operation.

        Returns ``None`` for a format without a list of operations.
        """


@runtime_checkable
class FormatWithSignatures(Protocol):
    """A format whose models can have several signatures, of which one is opened."""

    def signatures(self, path: Path) -> list[str]:
        """Return the names of a model's signatures."""

    def open(
        self,
        model: Any,
        bin: str | Path | bytes | None = None,
        *,
        without_weights: bool = False,
        signature: str | None = None,
    ) -> AbstractContextManager[Source]:
        """Open one signature of a model; see `Format.open`."""

    def inspect(self, path: Path, bin: str | Path | None = None, *, signature: str | None = None) -> Inspection:
        """Inspect one signature of a model; see `Format.inspect`."""
