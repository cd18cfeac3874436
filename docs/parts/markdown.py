"""Markdown for tables, links and docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table."""
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def source(module: str) -> str:
    """Return a module's name with a link to its file."""
    return f"[{module.rpartition('.')[2]}](../{module.replace('.', '/')}.py)" if module else ""


def as_markdown(doc: str) -> Iterator[str]:
    """Convert a docstring with indented lists (``name: what it is``) to Markdown lists."""
    previous = ""
    for line in doc.splitlines():
        entry = re.match(r" {4}(\w[\w, ]*?): (.*)", line)
        if entry:
            if previous and not previous.startswith("    "):
                yield ""
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield f"  {line.strip()}" if line.startswith(" ") else line
        previous = line
