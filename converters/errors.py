"""Conversion errors: problems, with their cause, location and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Protocol

_MAX_TEXT = 200
_MAX_PROBLEMS = 1000

SHOWN_PLACES = 8
"""The largest number of locations that a message lists for one problem."""

REPORT = (
    "this is a bug in onnx-specops: please report it with this message, the traceback that --debug prints and, if you "
    "can share it, the layer's part of the .xml"
)
"""The remedy of internal errors."""


def short(text: object) -> str:
    """Shorten a text from a file to one printable line for a message."""
    line = str(text)
    line = line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def not_enough_memory(error: MemoryError) -> str:
    """Return the message for an out-of-memory error."""
    return f"not enough memory: {error}" if str(error) else "not enough memory"


class Fault(StrEnum):
    """The cause of a problem."""

    UNSUPPORTED = "unsupported"
    """The file is valid, but this release cannot convert it."""

    MALFORMED = "malformed"
    """The file is damaged or contradicts itself. No release can convert it."""

    USAGE = "usage"
    """The arguments of the command are invalid."""

    INTERNAL = "internal"
    """The converter has a bug. The file may be valid."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a model, with its location and a remedy.

    Args:
        message: a description of the problem.
        file: the path of the file, as the caller specified it.
        line: the line in the file, counted from 1, or ``None`` if it is unknown.
        layer_name: the name of the layer, or ``None`` if the problem does not concern a layer.
        layer_type: the type of the layer, as written in the file.
        layer_id: the id of the layer in its graph.
        remedy: how to fix the problem, or an empty string.
        fault: the cause of the problem.
        cause: the exception that revealed the problem, or ``None``. Comparisons ignore it.
    """

    message: str
    file: str | None = None
    line: int | None = None
    layer_name: str | None = None
    layer_type: str | None = None
    layer_id: int | None = None
    remedy: str = ""
    fault: Fault = Fault.MALFORMED
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        text = f"{place}: " if place else ""
        if self.layer_name is not None:
            details = [self.layer_type] if self.layer_type else []
            if self.layer_id is not None:
                details.append(f"id {self.layer_id}")
            kind = f" ({short(', '.join(details))})" if details else ""
            text += f'layer "{short(self.layer_name)}"{kind}: '
        text += self.message
        return f"{text}; {self.remedy}" if self.remedy else text


class ConversionError(Exception):
    """A model cannot be converted. ``problems`` contains every problem that was found.

    Args:
        problems: one or more problems.
    """

    fault: ClassVar[Fault | None] = None
    problems: tuple[Problem, ...]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Return one line per problem. Identical problems share a line, which gives the first location."""
        return "\n".join(f"{places[0]}{_others(places[1:])}" for places in grouped(self.problems).values())

    @staticmethod
    def of(problems: Problem | Iterable[Problem]) -> ConversionError:
        """Return an error of the class of the most severe problem: internal, then malformed, then unsupported."""
        found = (problems,) if isinstance(problems, Problem) else tuple(problems)
        faults = {problem.fault for problem in found}
        kind = next((kind for kind in (InternalError, MalformedError) if kind.fault in faults), UnsupportedError)
        error = kind(found)
        error.__cause__ = next((p.cause for p in found if p.fault == kind.fault and p.cause is not None), None)
        return error


class MalformedError(ConversionError):
    """A file is not a valid model: it is not XML, it is damaged, or its content is invalid."""

    fault = Fault.MALFORMED


class UnsupportedError(ConversionError):
    """A model is valid, but this release cannot convert some of its layers."""

    fault = Fault.UNSUPPORTED


class InternalError(ConversionError):
    """The converter has a bug."""

    fault = Fault.INTERNAL


class LayerError(Exception):
    """A rule cannot convert its layer. The converter reports the error as a problem that names the layer.

    Args:
        message: a description of the problem.
        remedy: how to fix the problem.
    """

    fault: ClassVar[Fault]
    usual_remedy: ClassVar[str] = ""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy or self.usual_remedy


class Malformed(LayerError):
    """A layer contradicts the specification or itself. No release can convert it."""

    fault = Fault.MALFORMED
    usual_remedy = "check that the file is intact"


class Unsupported(LayerError):
    """A layer is valid, but this release cannot convert it."""

    fault = Fault.UNSUPPORTED


class LayerInfo(Protocol):
    """The properties of a layer that a problem reports."""

    name: str
    type: str
    id: int
    line: int


@dataclass(slots=True)
class Remark:
    """Content of a file that both its runtime and the converter ignore.

    Attributes:
        message: the content that is ignored, or read differently from the file.
        count: the number of occurrences.
        first: the location of the first occurrence.
    """

    message: str
    count: int
    first: Problem


class Remarks:
    """The ignored content of one file, one entry per kind.

    Args:
        file: the path of the file, as the caller specified it.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._by_message: dict[str, Remark] = {}

    def __iter__(self) -> Iterator[Remark]:
        return iter(self._by_message.values())

    def __len__(self) -> int:
        return len(self._by_message)

    def add(self, message: str, *, layer: LayerInfo | None = None, line: int | None = None) -> None:
        """Record that something is ignored, at a layer or a line."""
        known = self._by_message.get(message)
        if known is not None:
            known.count += 1
        elif len(self._by_message) < _MAX_PROBLEMS:
            self._by_message[message] = Remark(message, 1, _problem(message, self._file, layer, line))

    def problems(self) -> list[Problem]:
        """Return the remarks as problems, for ``strict`` conversions."""
        remedy = "to ignore it, convert without --strict"
        return [replace(remark.first, message=f"OpenVINO ignores {remark.message}", remedy=remedy) for remark in self]


class Problems:
    """All problems of one file.

    Args:
        file: the path of the file, as the caller specified it.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(
        self,
        message: str,
        remedy: str = "",
        *,
        layer: LayerInfo | None = None,
        line: int | None = None,
        fault: Fault = Fault.MALFORMED,
        cause: BaseException | None = None,
    ) -> None:
        """Record a problem, at a layer or a line.

        Raises:
            ConversionError: too many problems have been found to be useful.
        """
        problem = _problem(message, self.file, layer, line)
        self.found.append(replace(problem, remedy=remedy, fault=fault, cause=cause))
        if len(self.found) >= _MAX_PROBLEMS:
            raise self.error()

    def error(self) -> ConversionError:
        """Return the recorded problems as an exception."""
        return ConversionError.of(self.found)


def grouped(problems: Iterable[Problem]) -> dict[tuple[str, str], list[Problem]]:
    """Group problems by message and remedy."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.message, problem.remedy), []).append(problem)
    return groups


def _others(places: Sequence[Problem]) -> str:
    """Return the part of a line that counts the other locations."""
    if not places:
        return ""
    lines = [str(problem.line) for problem in places if problem.line is not None]
    shown = ", ".join(lines[:SHOWN_PLACES]) + (", ..." if len(lines) > SHOWN_PLACES else "")
    at = f", {'lines' if len(lines) > 1 else 'line'} {shown}" if lines else ""
    return f" (and {len(places)} more like it{at})"


def _problem(message: str, file: str, layer: LayerInfo | None, line: int | None) -> Problem:
    if layer is None:
        return Problem(message, file, line)
    return Problem(message, file, layer.line if line is None else line, layer.name, layer.type, layer.id)
