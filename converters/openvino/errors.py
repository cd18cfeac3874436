"""The errors of the OpenVINO converter: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

_MAX_TEXT = 200
_MAX_PROBLEMS = 1000


def short(text: object) -> str:
    """A text from a file as one printable line of bounded length, fit for a message."""
    line = str(text)
    line = line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a model: the place, the finding, the remedy.

    Args:
        message: what is wrong.
        file: the file, as the user named it.
        line: the line in the .xml, from 1; None when the finding has none.
        layer_name: the layer's name; None when no layer is concerned.
        layer_type: the layer's type as it stands in the file.
        layer_id: the layer's id in its graph.
        remedy: what the user can do; empty when nothing useful can be said.
    """

    message: str
    file: str | None = None
    line: int | None = None
    layer_name: str | None = None
    layer_type: str | None = None
    layer_id: int | None = None
    remedy: str = ""

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

    problems: tuple[Problem, ...]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class IRError(ConversionError):
    """A file that is not a readable IR: not XML, damaged, or not what an IR may hold."""


class Layered(Protocol):
    """What a problem says of the layer that it concerns."""

    name: str
    type: str
    id: int
    line: int


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

    def add(self, message: str, remedy: str = "", *, layer: Layered | None = None, line: int | None = None) -> None:
        """Notes that something is wrong, with a layer or at a line.

        Raises:
            IRError: there are so many problems by now that no one reads on.
        """
        if layer is None:
            problem = Problem(message, self.file, line, remedy=remedy)
        else:
            place = layer.line if line is None else line
            problem = Problem(message, self.file, place, layer.name, layer.type, layer.id, remedy)
        self.found.append(problem)
        if len(self.found) >= _MAX_PROBLEMS:
            raise IRError(self.found)
