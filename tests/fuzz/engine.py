"""Run the cases of a target in separate processes and report the failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from threading import local
from typing import Any

from tests.worker import Lost, Worker


@dataclass(frozen=True)
class Target:
    """A fuzz target.

    Attributes:
        name: its name on the command line.
        run: ``run(seed, number, *arguments)`` creates and runs the case with that number; it returns the kind of its
            outcome, and raises `Finding` for a failure.
        seconds: the time limit of a case.
        memory: the memory limit of a case in bytes; ``None`` if it cannot be measured.
        environment: environment variables of the processes.
        arguments: further arguments of ``run``.
    """

    name: str
    run: Callable[..., str]
    seconds: float
    memory: int | None
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[Any, ...] = ()


class Finding(Exception):
    """A case failed."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: its number, and the kind of its outcome or the failure."""

    number: int
    kind: str
    wrong: str = ""


def run(target: Target, seed: int, numbers: Iterable[int], jobs: int = 1) -> Iterator[Outcome]:
    """Yield the outcomes of the cases as they finish."""
    threads, workers = local(), []

    def one(number: int) -> Outcome:
        if not hasattr(threads, "worker"):
            threads.worker = Worker(target.seconds, target.memory, target.environment)
            workers.append(threads.worker)
        try:
            return Outcome(number, threads.worker.ask(target.run, seed, number, *target.arguments))
        except Lost as error:
            return Outcome(number, "lost", str(error))
        except Finding as error:
            return Outcome(number, "wrong", str(error))

    pending: set[Future[Outcome]] = set()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for number in numbers:
                pending.add(pool.submit(one, number))
                if len(pending) >= 2 * jobs:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            for future in pending:
                yield future.result()
        finally:
            for future in pending:
                future.cancel()
    for worker in workers:
        worker.close()


def until(first: int, seconds: float) -> Iterator[int]:
    """Yield numbers from ``first`` on for a given time."""
    end = time.monotonic() + seconds
    for number in count(first):
        if time.monotonic() >= end:
            return
        yield number


def summary(kinds: Counter[str], started: float) -> str:
    """Return the number of cases by outcome."""
    counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    return f"{kinds.total()} cases in {time.monotonic() - started:.0f} s: {counts}"
