"""The tables of docs/pipelines.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
_BEGIN, _END = "<!-- Made by `python -m tests.folders`. -->\n", "<!-- The end of what is made. -->\n"


def write_page(rows: Sequence[dict[str, Any]]) -> None:
    """Put the table in its place."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def written(text: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page with the table of these rows in its place."""
    lines = ["| model | host | loaded by | compared | error |", "|---|---|---|---|---|"]
    for row in rows:
        error = f"{row['error']:.1e}" if row["agrees"] else f"**{row['error']:.1e}, differs**"
        lines.append(f"| {row['model']} | {row['host']} | `{row['loaded']}` | {row['compared']} | {error} |")
    head, rest = text.split(_BEGIN)
    _, tail = rest.split(_END)
    table = "\n".join(lines)
    return f"{head}{_BEGIN}\n{table}\n\n{_END}{tail}"
