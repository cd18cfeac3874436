"""The name that a user probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names what is spelled like ``name``; empty where nothing is."""
    by_lower = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[found[0]]}?" if found else ""


def similar_file(path: Path) -> str:
    """The question for a file that does not exist, of those in its folder with the same suffix."""
    try:
        names = [other.name for other in path.parent.iterdir() if other.suffix == path.suffix]
    except OSError:
        return ""
    return did_you_mean(path.name, names)
