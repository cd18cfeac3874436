"""The tables of docs/pipelines.md and docs/language-models.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
_BEGIN, _END = "<!-- Made by `python -m tests.folders`. -->\n", "<!-- The end of what is made. -->\n"


def pages(rows: Sequence[dict[str, Any]]) -> dict[Path, list[dict[str, Any]]]:
    """Return the rows of each page. Rows about weights are for language models."""
    weights = [row for row in rows if row["host"] == "transformers"]
    return {DOCS / "language-models.md": weights, DOCS / "pipelines.md": [row for row in rows if row not in weights]}


def write_pages(rows: Sequence[dict[str, Any]]) -> None:
    """Write the tables into the pages."""
    for page, own in pages(rows).items():
        page.write_text(written(page.read_text(encoding="utf-8"), own), encoding="utf-8")


def written(text: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the page with its table replaced."""
    lines = ["| model | host | loaded by | compared | error |", "|---|---|---|---|---|"]
    for row in rows:
        error = f"{row['error']:.1e}" if row["agrees"] else f"**{row['error']:.1e}, differs**"
        lines.append(f"| {row['model']} | {row['host']} | `{row['loaded']}` | {row['compared']} | {error} |")
    head, rest = text.split(_BEGIN)
    _, tail = rest.split(_END)
    table = "\n".join(lines)
    return f"{head}{_BEGIN}\n{table}\n\n{_END}{tail}"
