"""Where the command writes: results on standard output, all else on standard error."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

out = Console()
err = Console(stderr=True)


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on one line."""
    typer.echo(json.dumps(document, allow_nan=False))


@contextlib.contextmanager
def progress(as_json: bool) -> Iterator[Callable[..., None]]:
    """A function that shows which step is under way, on a terminal that a person reads.

    It takes the step's name and, where that is known, how much is done and how much there is: from a second on, a bar.
    """
    if as_json or not err.is_terminal:
        yield lambda step, done=0, total=0: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task("", total=None, visible=False)
        started = time.monotonic()

        def show(step: str, done: int = 0, total: int = 0) -> None:
            late = time.monotonic() - started > _PATIENCE
            text = f"{step} {done} of {total}" if total else f"{step} ..."
            bars.update(task, description=text, completed=done, total=total or None, visible=late)

        waiting = threading.Timer(_PATIENCE, lambda: bars.update(task, visible=True))
        waiting.daemon = True
        waiting.start()
        try:
            yield show
        finally:
            waiting.cancel()


# What takes fewer seconds is over before anyone looks.
_PATIENCE = 1.0
