"""The errors of the converters: the problem, its cause, its place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Protocol

_MAX_TEXT = 200
_MAX_PROBLEMS = 1000

SHOWN_PLACES = 8
"""The number of places that a text lists for one problem."""

REPORT = (
    "this is a bug in onnx-specops: please report it with this message, the traceback that --debug prints and, if you "
    "can share it, the layer's part of the .xml"
)
"""The remedy of internal errors."""


def short(text: object) -> str:
    """Return a text from a file as one printable line of bounded length, for messages."""
    line = str(text)
    line = line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def not_enough_memory(error: MemoryError) -> str:
    """Return the message for a lack of memory."""
    return f"not enough memory: {error}" if str(error) else "not enough memory"


class Fault(StrEnum):
    """The cause of a problem."""

    UNSUPPORTED = "unsupported"
    """The file is valid, but this release cannot convert it."""

    MALFORMED = "malformed"
    """The file is damaged or contradicts itself. No release can convert it."""

    USAGE = "usage"
    """The command's arguments contradict each other."""

    INTERNAL = "internal"
    """The converter is at fault. The file may be valid."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a model: its place, a message and a remedy.

    Args:
        message: the fault.
        file: the file, as the user named it.
        line: the line in the file, from 1; ``None`` if unknown.
        layer_name: the name of the layer; ``None`` if the problem does not concern a layer.
        layer_type: the type of the layer, as the file spells it.
        layer_id: the id of the layer in its graph.
        remedy: an instruction for the user; empty if there is none.
        fault: the cause of the problem.
        cause: the exception that revealed it, if any. Comparisons ignore it.
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
    """A model cannot be converted. The error has all problems that were found.

    Args:
        problems: at least one problem.
    """

    fault: ClassVar[Fault | None] = None
    problems: tuple[Problem, ...]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Return one line per problem, with its first place. Equal problems in several places share a line."""
        return "\n".join(f"{places[0]}{_others(places[1:])}" for places in grouped(self.problems).values())

    @staticmethod
    def of(problems: Problem | Iterable[Problem]) -> ConversionError:
        """Return the error class of the worst problem: internal before malformed before unsupported."""
        found = (problems,) if isinstance(problems, Problem) else tuple(problems)
        faults = {problem.fault for problem in found}
        kind = next((kind for kind in (InternalError, MalformedError) if kind.fault in faults), UnsupportedError)
        error = kind(found)
        error.__cause__ = next((p.cause for p in found if p.fault == kind.fault and p.cause is not None), None)
        return error


class MalformedError(ConversionError):
    """A file is not a readable model: not XML, damaged, or with content that a model cannot have."""

    fault = Fault.MALFORMED


class UnsupportedError(ConversionError):
    """A model is valid, but this release cannot convert all of it."""

    fault = Fault.UNSUPPORTED


class InternalError(ConversionError):
    """The converter is at fault."""

    fault = Fault.INTERNAL


class LayerError(Exception):
    """A rule cannot convert its layer. The walk turns the error into a problem that names the layer.

    Args:
        message: the fault of the layer.
        remedy: an instruction for the user.
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
    """The properties of a layer that a problem shows."""

    name: str
    type: str
    id: int
    line: int


@dataclass(slots=True)
class Remark:
    """Content of a file that its own runtime and the conversion ignore, with all its occurrences.

    Attributes:
        message: the content that is ignored, or understood differently from the file.
        count: the number of occurrences.
        first: the first place.
    """

    message: str
    count: int
    first: Problem


class Remarks:
    """The ignored content of one file, each kind once.

    Args:
        file: the file, as the user named it.
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
        remedy = "convert without --strict to ignore it as well"
        return [replace(remark.first, message=f"OpenVINO ignores {remark.message}", remedy=remedy) for remark in self]


class Problems:
    """All problems of one file.

    Args:
        file: the file, as the user named it.
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
    """Return the part of a line that counts the further places."""
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
