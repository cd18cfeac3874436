"""The converters' errors: what is wrong, whose fault it is, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Protocol

_MAX_TEXT = 200
_MAX_PROBLEMS = 1000

SHOWN_PLACES = 8
"""Of how many places more texts tell that say the same of many."""

REPORT = (
    "this is a mistake in onnx-specops: please report it with this message, the traceback that --debug prints and, if it "
    "may be shown, the layer's part of the .xml"
)
"""The remedy of internal errors."""


def short(text: object) -> str:
    """A text from a file as one printable line of bounded length, fit for a message."""
    line = str(text)
    line = line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def not_enough_memory(error: MemoryError) -> str:
    """What a lack of memory says to a user."""
    return f"not enough memory: {error}" if str(error) else "not enough memory"


class Fault(StrEnum):
    """Whose fault a problem is."""

    UNSUPPORTED = "unsupported"
    """The file is right, but this release cannot convert what it asks for."""

    MALFORMED = "malformed"
    """The file is damaged or contradicts itself: no release could convert it."""

    USAGE = "usage"
    """The command's arguments do not fit together."""

    INTERNAL = "internal"
    """A mistake in the converter itself; the file may be right."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a model: the place, the finding, the remedy.

    Args:
        message: what is wrong.
        file: the file, as the user named it.
        line: the line in the file, from 1; None when the finding has none.
        layer_name: the layer's name; None when no layer is concerned.
        layer_type: the layer's type as it stands in the file.
        layer_id: the layer's id in its graph.
        remedy: what the user can do; empty when nothing useful can be said.
        fault: whose fault it is.
        cause: the exception that showed it, if one did; it counts for nothing when problems are compared.
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
    """A model that cannot be converted. Holds every problem that was found, not the first one only.

    Args:
        problems: one problem, or several; at least one.
    """

    fault: ClassVar[Fault | None] = None
    problems: tuple[Problem, ...]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """A line for each thing that is wrong, with its first place; what is wrong in several places alike is said once."""
        return "\n".join(f"{places[0]}{_others(places[1:])}" for places in grouped(self.problems).values())

    @staticmethod
    def of(problems: Problem | Iterable[Problem]) -> ConversionError:
        """The error of the kind that the worst of the problems asks for: internal before malformed before unsupported."""
        found = (problems,) if isinstance(problems, Problem) else tuple(problems)
        faults = {problem.fault for problem in found}
        kind = next((kind for kind in (InternalError, MalformedError) if kind.fault in faults), UnsupportedError)
        error = kind(found)
        error.__cause__ = next((p.cause for p in found if p.fault == kind.fault and p.cause is not None), None)
        return error


class MalformedError(ConversionError):
    """A file that is not a readable model: not XML, damaged, or not what a model may hold."""

    fault = Fault.MALFORMED


class UnsupportedError(ConversionError):
    """A model that is right, but holds what this release cannot convert."""

    fault = Fault.UNSUPPORTED


class InternalError(ConversionError):
    """A mistake in the converter itself."""

    fault = Fault.INTERNAL


class LayerError(Exception):
    """Raised by a rule for its layer; becomes a problem that names the layer.

    Args:
        message: what is wrong with the layer.
        remedy: what the user can do.
    """

    fault: ClassVar[Fault]
    usual_remedy: ClassVar[str] = ""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy or self.usual_remedy


class Malformed(LayerError):
    """A layer that no release could convert: what the file says of it contradicts the specification, or itself."""

    fault = Fault.MALFORMED
    usual_remedy = "check that the file is intact"


class Unsupported(LayerError):
    """A layer that is right, but that this release cannot convert."""

    fault = Fault.UNSUPPORTED


class Layered(Protocol):
    """What a problem says of the layer that it concerns."""

    name: str
    type: str
    id: int
    line: int


@dataclass(slots=True)
class Remark:
    """Something in a file that its own runtime passes over, and so the conversion: said once, however often it comes.

    Attributes:
        message: what is passed over, or taken otherwise than the file says.
        count: how often.
        first: the first place.
    """

    message: str
    count: int
    first: Problem


class Remarks:
    """What is passed over in one file, each kind once.

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

    def add(self, message: str, *, layer: Layered | None = None, line: int | None = None) -> None:
        """Notes that something is passed over, with a layer or at a line."""
        known = self._by_message.get(message)
        if known is not None:
            known.count += 1
        elif len(self._by_message) < _MAX_PROBLEMS:
            self._by_message[message] = Remark(message, 1, _problem(message, self._file, layer, line))

    def problems(self) -> list[Problem]:
        """The remarks as problems, for a conversion that is to refuse such files."""
        remedy = "convert without --strict to ignore it as well"
        return [replace(remark.first, message=f"OpenVINO ignores {remark.message}", remedy=remedy) for remark in self]


class Problems:
    """Everything that is found wrong with one file.

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
        layer: Layered | None = None,
        line: int | None = None,
        fault: Fault = Fault.MALFORMED,
        cause: BaseException | None = None,
    ) -> None:
        """Notes that something is wrong, with a layer or at a line.

        Raises:
            ConversionError: there are so many problems by now that no one reads on.
        """
        problem = _problem(message, self.file, layer, line)
        self.found.append(replace(problem, remedy=remedy, fault=fault, cause=cause))
        if len(self.found) >= _MAX_PROBLEMS:
            raise self.error()

    def error(self) -> ConversionError:
        """What has been found, as an exception."""
        return ConversionError.of(self.found)


def grouped(problems: Iterable[Problem]) -> dict[tuple[str, str], list[Problem]]:
    """The problems by what they say, message and remedy, however many places they say it of."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.message, problem.remedy), []).append(problem)
    return groups


def _others(places: Sequence[Problem]) -> str:
    """What a line says of further places."""
    if not places:
        return ""
    lines = [str(problem.line) for problem in places if problem.line is not None]
    shown = ", ".join(lines[:SHOWN_PLACES]) + (", ..." if len(lines) > SHOWN_PLACES else "")
    at = f", {'lines' if len(lines) > 1 else 'line'} {shown}" if lines else ""
    return f" (and {len(places)} more like it{at})"


def _problem(message: str, file: str, layer: Layered | None, line: int | None) -> Problem:
    if layer is None:
        return Problem(message, file, line)
    return Problem(message, file, layer.line if line is None else line, layer.name, layer.type, layer.id)
