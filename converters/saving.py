"""Saving a converted model, with its weights embedded, copied into a file next to it, or referenced in the source's file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import onnx
import onnx_ir as ir

from converters.errors import ConversionError, Fault, Problem
from converters.outputs import Outputs
from converters.streaming import TooLargeError, fill, serialized, write_bytes, write_data, write_model
from onnx_specops.graphs import nested
from onnx_specops.mapped import MappedTensor

Weights = Literal["embed", "copy", "reference"]
"""The place of a model's weights."""

EMBEDDED_BYTES = 1 << 30
"""The maximum size of weights that ``"auto"`` embeds."""

COPIED_BYTES = 4096
"""Tensors smaller than this stay in the .onnx when the weights are in a separate file."""

GROWTH = 8
"""The maximum ratio of the model's weights to the source's, if the model's have more than `GROWTH_BYTES`.

Any number of constants may share the same bytes of the source. Only a malicious model exceeds this ratio.
"""

GROWTH_BYTES = 1 << 26

NESTED = 31
"""The maximum depth of graphs in nodes. Protobuf reads 100 nested messages: three for each, and those of a type."""

# The page size. Copied weights keep their offset in the source modulo this number.
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Source:
    """The origin of a model.

    Attributes:
        path: the file that errors name.
        content: the bytes that contain the data of each `MappedTensor`.
        weights: the file with these bytes, if the model may refer to it.
        files: the source's files, which are never overwritten.
        check: raises an error if they have changed since they were read.
    """

    path: Path
    content: memoryview
    weights: Path | None
    files: tuple[Path, ...]
    check: Callable[[], None] = lambda: None

    def source_error(self, message: str, remedy: str) -> ConversionError:
        """Return an error that concerns the source as a whole."""
        return ConversionError.of(Problem(message, str(self.path), remedy=remedy, fault=Fault.UNSUPPORTED))


@dataclass(frozen=True)
class Saved:
    """A saved model.

    Attributes:
        proto: the model. It contains embedded weights only if they were requested.
        weights: the place of the weights.
        size: their size in bytes.
    """

    proto: onnx.ModelProto
    weights: Weights
    size: int


@dataclass(frozen=True)
class _Placement:
    """The places of the weights: those with an offset are in the file ``location``, the others in the .onnx."""

    weights: Weights
    location: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)


def save(model: ir.Model, onnx_path: Path | None, weights: str, source: Source, *, with_weights: bool = True) -> Saved:
    """Save the model. With ``None`` for ``onnx_path``, write nothing and embed the weights.

    The .onnx appears when it is complete, directly after its file of weights. If anything fails, the previous files are
    unchanged.

    Args:
        model: the model, whose weights may be in the source's file.
        onnx_path: the path of the file.
        weights: ``"embed"``, ``"copy"``, ``"reference"``, or ``"auto"``: embed up to `EMBEDDED_BYTES`; above that, refer to
            the source's weights if they are next to the .onnx, otherwise copy them.
        source: the origin of the model.
        with_weights: whether the result contains embedded weights.

    Raises:
        ConversionError: the weights cannot be placed as requested.
        OverInputError: a file would overwrite one of the source's.
        OSError: a file cannot be written; ``filename`` is its path.
    """
    if weights not in ("auto", *get_args(Weights)):
        raise ValueError(f"weights must be 'auto', 'embed', 'copy' or 'reference', not {weights!r}")
    if (depth := _depth(model)) > NESTED:
        remedy = "convert a model whose bodies are nested less deeply"
        raise source.source_error(f"graphs are nested {depth} deep; protobuf reads at most {NESTED}", remedy)
    saving = _Saving(model, source)
    if onnx_path is None:
        saving.check_growth(saving.size, "embed")
        proto, inside = saving.message(_Placement("embed"))
        fill(proto, inside)
        return Saved(proto, "embed", saving.size)
    with Outputs(source.files) as outputs:
        placed = saving.place(weights, onnx_path, outputs)
        proto, inside = saving.message(placed)
        try:
            with outputs.open(onnx_path) as file:
                write_model(file, proto, inside)
        except TooLargeError as error:
            raise source.source_error(str(error), "use weights='reference' or 'copy'") from None
        beside = _data_path(onnx_path)
        if placed.location != beside.name and _belongs_to(beside, onnx_path):
            outputs.remove(beside)
        source.check()
    if with_weights:
        fill(proto, inside)
    return Saved(proto, placed.weights, saving.size)


def _depth(model: ir.Model) -> int:
    """Return the depth of graphs in nodes."""
    depth, graphs = 0, [model.graph, *model.functions.values()]
    while graphs := [inner for graph in graphs for node in graph for inner in nested(node)]:
        depth += 1
    return depth


class _Saving:
    """A model that is being saved."""

    def __init__(self, model: ir.Model, source: Source) -> None:
        self.model, self.source = model, source
        self.tensors = {
            name: value.const_value
            for name, value in model.graph.initializers.items()
            if value.const_value is not None and value.const_value.dtype != ir.DataType.STRING
        }
        self.large = {name: tensor for name, tensor in self.tensors.items() if tensor.nbytes >= COPIED_BYTES}
        # Serialization would refer to these tensors, however small they are.
        self.mapped = {name: tensor for name, tensor in self.tensors.items() if isinstance(tensor, ir.ExternalTensor)}
        self.size = sum(tensor.nbytes for tensor in self.tensors.values())

    def message(self, placed: _Placement) -> tuple[onnx.ModelProto, dict[str, ir.TensorProtocol]]:
        """Return the model without tensors that are large or in the source's file, and the data that belongs inside."""
        apart = self.large | self.mapped
        inside = {name: tensor for name, tensor in apart.items() if name not in placed.offsets}
        proto = serialized(self.model, inside | {name: self.tensors[name] for name in placed.offsets})
        for tensor in proto.graph.initializer:
            if tensor.name in placed.offsets:
                tensor.data_location = onnx.TensorProto.EXTERNAL
                offset, length = placed.offsets[tensor.name], self.tensors[tensor.name].nbytes
                for key, value in (("location", placed.location), ("offset", offset), ("length", length)):
                    tensor.external_data.add(key=key, value=str(value))
        return proto, inside

    def place(self, weights: str, onnx_path: Path, outputs: Outputs) -> _Placement:
        """Return the places of the weights. Weights outside the .onnx are written, or already present."""
        if weights == "embed" or (weights == "auto" and self.size <= min(EMBEDDED_BYTES, self._most())):
            self.check_growth(self.size, "embed")
            return _Placement("embed")
        if weights != "copy":
            location = self._location(onnx_path, outputs, required=weights == "reference")
            if location is not None:
                mapped = {name: t.offset or 0 for name, t in self.tensors.items() if isinstance(t, MappedTensor)}
                return _Placement("reference", location, mapped)
        return self._copied(onnx_path, outputs)

    def _copied(self, onnx_path: Path, outputs: Outputs) -> _Placement:
        if not self.large:
            return _Placement("embed")
        layout = _Layout(self.large)
        self.check_growth(layout.size, "copy")
        path = _data_path(onnx_path)
        # An earlier conversion may have used this name for the .bin.
        with outputs.open(path, linked=_belongs_to(path, onnx_path)) as file:
            for offset, content in layout.parts:
                file.seek(offset)
                if isinstance(content, slice):
                    write_bytes(file, self.source.content[content])
                else:
                    write_data(file, content)
        return _Placement("copy", path.name, layout.offsets)

    def _location(self, onnx_path: Path, outputs: Outputs, *, required: bool) -> str | None:
        """Return the relative path of the source's weights. If the .onnx cannot refer to them, return ``None`` or raise an
        error.
        """
        weights = self.source.weights
        if weights is None:
            if required and any(isinstance(tensor, MappedTensor) for tensor in self.tensors.values()):
                raise self.source.source_error(
                    "its weights cannot be referenced", "copy the weights (--weights copy, weights='copy')"
                )
            return None if not required else ""
        folder, real = os.path.realpath(onnx_path.parent), Path(os.path.realpath(weights))
        if str(real.parent) == folder:
            return real.name
        if os.path.realpath(weights.parent) == folder:
            # Runtimes do not follow links out of the model's folder, but they accept a hard link.
            path = _data_path(onnx_path)
            try:
                outputs.link(path, real)
            except OSError as error:
                if required:
                    message = (
                        f"{weights} is a link to {real}, which an .onnx in another folder cannot reference "
                        f"({error.strerror})"
                    )
                    raise self.source.source_error(
                        message, f"write the .onnx to {real.parent}, or copy the weights (--weights copy, weights='copy')"
                    ) from None
                return None
            return path.name
        if required:
            message = f"{onnx_path} cannot reference {weights}, which is in another folder"
            raise self.source.source_error(
                message, "write the .onnx next to the .bin, or copy the weights (--weights copy, weights='copy')"
            )
        return None

    def _most(self) -> int:
        return max(GROWTH * len(self.source.content), GROWTH_BYTES)

    def check_growth(self, size: int, placement: Weights) -> None:
        """Reject weights that are much larger than the source's."""
        if size > self._most():
            size_of_source = len(self.source.content)
            message = f"its constants and states need {size:,} bytes, but the .bin has {size_of_source:,}"
            remedy = "use weights='reference'"
            if placement == "embed":
                remedy = "copy the weights (--weights copy, weights='copy'), which stores shared bytes once"
            raise self.source.source_error(message, remedy)


class _Layout:
    """The layout of a file of weights. Bytes that several tensors share are stored once.

    Attributes:
        offsets: the offset of each tensor, by name.
        parts: the contents with their offsets, in order: ranges of the source's weights, and other tensors.
        size: the size of the file in bytes.
    """

    def __init__(self, tensors: Mapping[str, ir.TensorProtocol]) -> None:
        self.offsets: dict[str, int] = {}
        self.parts: list[tuple[int, slice | ir.TensorProtocol]] = []
        self.size = 0
        self._end = 0
        mapped = [(t.offset or 0, t.nbytes, name) for name, t in tensors.items() if isinstance(t, MappedTensor)]
        shared: list[tuple[int, str]] = []
        start = end = 0
        for offset, size, name in sorted(mapped):
            if offset >= end:
                self._add(slice(start, end), shared)
                start, end, shared = offset, offset, []
            end = max(end, offset + size)
            shared.append((offset - start, name))
        self._add(slice(start, end), shared)
        for name, tensor in tensors.items():
            if name not in self.offsets:
                self._append(tensor, tensor.nbytes, 0, [(0, name)])

    def _add(self, part: slice, shared: list[tuple[int, str]]) -> None:
        if shared:
            self._append(part, part.stop - part.start, part.start, shared)

    def _append(self, content: slice | ir.TensorProtocol, size: int, before: int, names: list[tuple[int, str]]) -> None:
        offset = self._end + (before - self._end) % _ALIGNMENT
        self.offsets |= {name: offset + within for within, name in names}
        self.parts.append((offset, content))
        self.size += size
        self._end = offset + size


def _data_path(onnx_path: Path) -> Path:
    return onnx_path.with_name(onnx_path.name + ".data")


def _belongs_to(data_path: Path, onnx_path: Path) -> bool:
    """Return whether the file contains the weights of an earlier .onnx."""
    try:
        if not data_path.is_file():
            return False
        with onnx_path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(os.fsencode(data_path.name)) >= 0
    except (OSError, ValueError):  # the .onnx does not exist, or is empty
        return False
