"""Where the command writes: results on standard output, all else on standard error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console

out = Console()
err = Console(stderr=True)


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on one line."""
    typer.echo(json.dumps(document, allow_nan=False))


@contextlib.contextmanager
def progress(as_json: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows which step is under way, on a terminal that a person reads."""
    if as_json or not err.is_terminal:
        yield lambda step: None
        return
    with err.status("") as status:
        yield lambda step: status.update(f"{step} ...")
