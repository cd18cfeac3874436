"""Output of the command: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

out = Console()
err = Console(stderr=True)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    typer.echo(json.dumps(document, allow_nan=False))


@contextlib.contextmanager
def progress(as_json: bool) -> Iterator[Callable[..., None]]:
    """Yield a function that shows the current step if standard error is a terminal.

    The function takes the name of the step and, if known, the finished and total amounts. A bar appears after one second.
    """
    if as_json or not err.is_terminal:
        yield lambda step, done=0, total=0: None
        return
    with _Bar() as bar:
        yield bar.show


class _Bar(Progress):
    """One bar, which appears after one second."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=err, transient=True, get_time=clock)
        self.add_task("")

    def show(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show a step and, if ``total`` is known, its progress."""
        (task,) = self.tasks
        task.total = total or None  # `update` would keep the total of the previous step
        self.update(task.id, description=f"{step} {done} of {total}" if total else f"{step} ...", completed=done)

    def get_renderables(self) -> Iterable[RenderableType]:
        if any((task.elapsed or 0) > _DELAY_SECONDS for task in self.tasks):
            yield from super().get_renderables()


# Shorter steps do not need a bar.
_DELAY_SECONDS = 1.0

clock = time.monotonic
"""The clock that decides when a bar appears, in seconds."""
