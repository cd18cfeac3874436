"""The errors of the OpenVINO converter: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_MAX_NAME = 200


def _printable(text: str) -> str:
    """One line of text that a terminal can show, whatever the file held."""
    text = text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


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
            kind = f" ({_printable(', '.join(details))})" if details else ""
            text += f'layer "{_printable(self.layer_name)}"{kind}: '
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
