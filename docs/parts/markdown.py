"""Shared code of the parts: recorded results, and Markdown for tables, links and docstrings."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@functools.cache
def recorded(path: str) -> Any:
    """Return the content of a JSON file of the repository."""
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


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
    """Convert a docstring with indented lists (``name: description``) to Markdown lists."""
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
