"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known names that are similar to ``name``, or an empty text."""
    by_lower = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[found[0]]}?" if found else ""


def similar_file(path: Path) -> str:
    """Return the question for a missing file, with similar files of the same suffix in its folder."""
    try:
        names = [other.name for other in path.parent.iterdir() if other.suffix == path.suffix]
    except OSError:
        return ""
    return did_you_mean(path.name, names)
