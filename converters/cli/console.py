"""Where the command writes: results on standard output, all else on standard error."""

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
    with _Bar() as bar:
        yield bar.show


class _Bar(Progress):
    """One bar, which appears once it has been there for a second."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=err, transient=True, get_time=clock)
        self.add_task("")

    def show(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show a step and, where ``total`` is known, how much of it is done."""
        (task,) = self.tasks
        task.total = total or None  # `update` would keep that of the step before
        self.update(task.id, description=f"{step} {done} of {total}" if total else f"{step} ...", completed=done)

    def get_renderables(self) -> Iterable[RenderableType]:
        if any((task.elapsed or 0) > _DELAY_SECONDS for task in self.tasks):
            yield from super().get_renderables()


# What takes fewer seconds is over before anyone looks.
_DELAY_SECONDS = 1.0

clock = time.monotonic
"""The seconds by which a bar appears."""
