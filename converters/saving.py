"""A converted model as a file: its weights embedded, copied beside it, or referred to where they lie already."""

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
from onnx_specops.mapped import MappedTensor

Weights = Literal["embed", "copy", "reference"]
"""Where the weights of a model are."""

EMBEDDED_BYTES = 1 << 30
"""The most bytes of weights that ``"auto"`` embeds."""

COPIED_BYTES = 4096
"""Tensors of less stay in the .onnx where the weights go into a file of their own."""

GROWTH = 8
"""How many times the size of the source's weights those of the model may have, where they are more than `GROWTH_BYTES`.

Any number of constants may share the same bytes of the source; more of them than this no model does that was not made to.
"""

GROWTH_BYTES = 1 << 26

# In a file of weights those that are copied begin as far from a multiple of it as they do in the source: a page's size.
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Source:
    """What a model was made of.

    Attributes:
        path: the file that errors name.
        content: the bytes of its weights, in which those of each `MappedTensor` lie.
        weights: the file that has them, if the model's may be referred to there.
        files: the source's files, which nothing is written over.
        check: raises an error where they are no longer what was read.
    """

    path: Path
    content: memoryview
    weights: Path | None
    files: tuple[Path, ...]
    check: Callable[[], None] = lambda: None

    def source_error(self, message: str, remedy: str) -> ConversionError:
        """An error that concerns the source as a whole."""
        return ConversionError.of(Problem(message, str(self.path), remedy=remedy, fault=Fault.UNSUPPORTED))


@dataclass(frozen=True)
class Saved:
    """A model as it was written.

    Attributes:
        proto: the model; embedded weights are in it only if they were asked for.
        weights: where they are.
        size: how many bytes of them there are.
    """

    proto: onnx.ModelProto
    weights: Weights
    size: int


@dataclass(frozen=True)
class _Placed:
    """Where the weights go: those with an offset into the file ``location``, the others into the .onnx."""

    weights: Weights
    location: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)


def save(model: ir.Model, onnx_path: Path | None, weights: str, source: Source, *, filled: bool = True) -> Saved:
    """Write the model; ``None`` for ``onnx_path`` writes nothing and embeds.

    The .onnx appears when it is whole, a file of weights just before; whatever fails leaves the earlier ones as they were.

    Args:
        model: its weights may lie in the source's file.
        onnx_path: the file to write.
        weights: ``"embed"``, ``"copy"``, ``"reference"``, or ``"auto"``: embed up to `EMBEDDED_BYTES`, above that refer
            where the source's weights lie beside the .onnx, else copy.
        source: what the model was made of.
        filled: whether the result has embedded weights.

    Raises:
        ConversionError: the weights cannot be where they should.
        OverInputError: a file would be written over one of the source's.
        OSError: a file cannot be written; ``filename`` is its path.
    """
    if weights not in ("auto", *get_args(Weights)):
        raise ValueError(f"weights must be 'auto', 'embed', 'copy' or 'reference', not {weights!r}")
    saving = _Saving(model, source)
    if onnx_path is None:
        saving.check_growth(saving.size, "embed")
        proto, inside = saving.message(_Placed("embed"))
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
        if placed.location != beside.name and _is_of(beside, onnx_path):
            outputs.remove(beside)
        source.check()
    if filled:
        fill(proto, inside)
    return Saved(proto, placed.weights, saving.size)


class _Saving:
    """A model on its way into files."""

    def __init__(self, model: ir.Model, source: Source) -> None:
        self.model, self.source = model, source
        self.tensors = {
            name: value.const_value
            for name, value in model.graph.initializers.items()
            if value.const_value is not None and value.const_value.dtype != ir.DataType.STRING
        }
        self.large = {name: tensor for name, tensor in self.tensors.items() if tensor.nbytes >= COPIED_BYTES}
        # What serialization would refer to, however small it is.
        self.mapped = {name: tensor for name, tensor in self.tensors.items() if isinstance(tensor, ir.ExternalTensor)}
        self.size = sum(tensor.nbytes for tensor in self.tensors.values())

    def message(self, placed: _Placed) -> tuple[onnx.ModelProto, dict[str, ir.TensorProtocol]]:
        """The model without the weights that are large or in the source's file, and those of them that shall be inside."""
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

    def place(self, weights: str, onnx_path: Path, outputs: Outputs) -> _Placed:
        """Where the weights go; they are there already, or under way, where they do not go into the .onnx."""
        if weights == "embed" or (weights == "auto" and self.size <= min(EMBEDDED_BYTES, self._most())):
            self.check_growth(self.size, "embed")
            return _Placed("embed")
        if weights != "copy":
            location = self._location(onnx_path, outputs, required=weights == "reference")
            if location is not None:
                mapped = {name: t.offset or 0 for name, t in self.tensors.items() if isinstance(t, MappedTensor)}
                return _Placed("reference", location, mapped)
        return self._copied(onnx_path, outputs)

    def _copied(self, onnx_path: Path, outputs: Outputs) -> _Placed:
        if not self.large:
            return _Placed("embed")
        layout = _Layout(self.large)
        self.check_growth(layout.size, "copy")
        path = _data_path(onnx_path)
        # An earlier conversion may have given the .bin this name.
        with outputs.open(path, linked=_is_of(path, onnx_path)) as file:
            for offset, content in layout.parts:
                file.seek(offset)
                if isinstance(content, slice):
                    write_bytes(file, self.source.content[content])
                else:
                    write_data(file, content)
        return _Placed("copy", path.name, layout.offsets)

    def _location(self, onnx_path: Path, outputs: Outputs, *, required: bool) -> str | None:
        """What the .onnx calls the source's file of weights; ``None`` (or an error) where it cannot refer to it."""
        weights = self.source.weights
        if weights is None:
            if required and any(isinstance(tensor, MappedTensor) for tensor in self.tensors.values()):
                raise self.source.source_error("its weights cannot be referred to", "use weights='copy'")
            return None if not required else ""
        folder, real = os.path.realpath(onnx_path.parent), Path(os.path.realpath(weights))
        if str(real.parent) == folder:
            return real.name
        if os.path.realpath(weights.parent) == folder:
            # Runtimes follow no link out of the model's folder; another name for the file is no link to them.
            path = _data_path(onnx_path)
            try:
                outputs.link(path, real)
            except OSError as error:
                if required:
                    message = f"{weights} is a link to {real}, to which no .onnx elsewhere can refer ({error.strerror})"
                    raise self.source.source_error(
                        message, f"write the .onnx to {real.parent}, or use weights='copy'"
                    ) from None
                return None
            return path.name
        if required:
            message = f"{onnx_path} cannot refer to {weights}, which is in another folder"
            raise self.source.source_error(message, "write the .onnx beside the .bin, or use weights='copy'")
        return None

    def _most(self) -> int:
        return max(GROWTH * len(self.source.content), GROWTH_BYTES)

    def check_growth(self, size: int, placement: Weights) -> None:
        """Refuses weights of a size that the source's do not account for."""
        if size > self._most():
            size_of_source = len(self.source.content)
            message = (
                f"its constants and states make {size:,} bytes, for which the .bin of {size_of_source:,} does not account"
            )
            remedy = "use weights='reference'"
            if placement == "embed":
                remedy = "use weights='copy', which stores shared bytes once"
            raise self.source.source_error(message, remedy)


class _Layout:
    """Where tensors are in a file of their own: bytes that several share once.

    Attributes:
        offsets: where each begins, by name.
        parts: the contents with their offsets, in order: parts of the source's weights, and other tensors.
        size: the bytes of all contents.
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


def _is_of(data_path: Path, onnx_path: Path) -> bool:
    """Whether there is a file of weights to which an earlier .onnx refers."""
    try:
        if not data_path.is_file():
            return False
        with onnx_path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(os.fsencode(data_path.name)) >= 0
    except (OSError, ValueError):  # there is no .onnx, or it is empty
        return False
