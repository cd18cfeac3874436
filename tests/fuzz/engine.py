"""Runs the cases of a target in processes of their own and says which of them failed."""

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
    """Something to be fuzzed.

    Attributes:
        name: its name on the command line.
        run: ``run(seed, number, *arguments)`` makes the case of that number and runs it; it returns the kind of its outcome,
            and raises `Finding` for one that is wrong.
        seconds: how long a case may take.
        memory: how many bytes a case may take; ``None`` where that cannot be told.
        environment: variables of the processes.
        arguments: what else ``run`` is given.
    """

    name: str
    run: Callable[..., str]
    seconds: float
    memory: int | None
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[Any, ...] = ()


class Finding(Exception):
    """A case whose outcome is wrong."""


@dataclass(frozen=True)
class Outcome:
    """What a case came to: its number, the kind of its outcome, or what is wrong."""

    number: int
    kind: str
    wrong: str = ""


def run(target: Target, seed: int, numbers: Iterable[int], jobs: int = 1) -> Iterator[Outcome]:
    """The outcomes of the cases, as they come."""
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
    """Numbers from the first one on, for so long."""
    end = time.monotonic() + seconds
    for number in count(first):
        if time.monotonic() >= end:
            return
        yield number


def summary(kinds: Counter[str], started: float) -> str:
    """How many cases came to what."""
    counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    return f"{kinds.total()} cases in {time.monotonic() - started:.0f} s: {counts}"
