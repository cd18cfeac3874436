"""Random models by number, judged in separate processes, and the stored findings."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tests.conformance.oracle import Oracle, serve_again  # noqa: F401  (the process that `Loaded` starts runs it)
from tests.conformance.random import layers as _layers  # noqa: F401  (importing it registers the makers)
from tests.conformance.random import near
from tests.conformance.random.explain import explain
from tests.conformance.random.graph import Graph, with_dims
from tests.conformance.random.judge import SECONDS, Judge, save
from tests.conformance.random.near.networks import FOLDER
from tests.conformance.random.options import BY_NAME, of
from tests.conformance.random.recipe import Recipe, build
from tests.worker import Lost, Worker

Kind = Literal["grown", "near"]

MOST_LAYERS = 30
_COLLECTED = 100
"""The number of models between garbage collections."""
_PYTHON = 10
"""The number of models per model that also runs with Python kernels."""
_LIMIT = 300.0
_MEMORY = 4 << 30
"""The memory of a process in bytes. OpenVINO may give a Range a limit from uninitialized memory."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a model.

    Attributes:
        number: the model's.
        kind: that of `judge.Verdict`, or of `explain.Explanation` for a difference; ``"crashed"`` if our process ended.
        operations: the number of layers by operation.
        text: the model that shows the difference, and a description.
        small: that model, if it is to be stored.
    """

    number: int
    kind: str
    operations: Counter[str]
    text: str = ""
    small: Recipe | None = None

    @property
    def found(self) -> bool:
        return self.kind in ("found", "crashed")


def recipe(seed: int, number: int, kind: Kind = "grown") -> Recipe:
    """Return the model with that number; runs in OpenVINO's process, which infers its shapes.

    Args:
        seed: the seed of all numbers.
        number: the number of the model.
        kind: ``"grown"`` layer by layer, or ``"near"``, a changed piece of a network.
    """
    if kind == "near":
        return near.recipe(seed, number)
    rng = np.random.default_rng([seed, number])
    while True:
        graph = Graph(rng)
        graph.grow(int(rng.integers(1, MOST_LAYERS + 1)))
        results = graph.unused()
        if not results:
            continue
        made = graph.recipe(results)
        if graph.static:
            return made
        opened = with_dims(made, rng)
        try:
            build(opened)
        except Exception:  # OpenVINO cannot infer enough
            return made
        return opened


class Loaded(Oracle):
    """An oracle whose process has loaded this module before it forks, because OpenVINO crashes on one random model
    in ten.
    """

    serving = __name__, "serve_again"


@functools.cache
def _oracle() -> Oracle:
    """Return the oracle of the process, which inherits the limit of the process's memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    gc.collect()
    gc.freeze()  # loaded modules are not collected
    gc.disable()  # a conversion creates many objects and few cycles
    return Loaded(SECONDS)


_turns = itertools.count(1)


def judged(seed: int, number: int, kind: Kind = "grown", option: str = "default") -> Outcome:
    """Create and judge a model, converted with the named options, and explain differences."""
    judge = Judge(_oracle(), BY_NAME[option])
    if next(_turns) % _COLLECTED == 0:
        gc.collect()
    judge.oracle.timeout = _LIMIT / 2  # creating it takes longer, especially on a busy machine
    made: Recipe = judge.oracle.ask(recipe, seed, number, kind)
    judge.oracle.timeout = SECONDS
    python = number % _PYTHON == 0
    mended = judge.runnable(made)
    if mended is None or (python and mended is not made):
        # OpenVINO has no result, but the model must be rejected or run.
        verdict = judge.judge(made, python=python)
    if mended is not None and (mended is made or not python or not verdict.found):
        made, verdict = mended, judge.judge(mended, python=python)
    operations = Counter(layer.operation for layer in made.layers())
    if not verdict.suspect:
        return Outcome(number, verdict.kind, operations, verdict.text)
    explanation = explain(made, verdict, judge)
    names = "+".join(layer.operation for layer in explanation.recipe.layers())
    found = explanation.verdict
    text = f"{explanation.kind} ({option}): {names}\n{explanation.recipe}\n{found.kind}: {found.text}"
    return Outcome(number, explanation.kind, operations, text, explanation.recipe)


def run(
    seed: int,
    numbers: Iterable[int],
    jobs: int = 1,
    kind: Kind = "grown",
    options: Sequence[str] = (),
    idle: list[Worker] | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of each model, in any order, with the named options in turn, or those of its number.

    Each job has a worker, one of ``idle`` or a new one. At the end the workers are added to ``idle``, or closed
    if there is no such list.
    """
    local = threading.local()
    workers: list[Worker] = []

    def one(number: int) -> Outcome:
        if not hasattr(local, "worker"):
            local.worker = idle.pop() if idle else Worker(_LIMIT)
            workers.append(local.worker)
        try:
            option = options[number % len(options)] if options else of(seed, number).name
            return local.worker.ask(judged, seed, number, kind, option)
        except Lost as error:
            return Outcome(number, "crashed", Counter(), str(error))
        except Exception as error:  # an exception of OpenVINO, which ended while creating the model
            # The worker's OpenVINO process may be unusable, so the next model gets a new worker.
            local.worker.close()
            workers.remove(local.worker)
            del local.worker
            return Outcome(number, "unmade", Counter(), f"{type(error).__name__}: {error}")

    pool = ThreadPoolExecutor(jobs)
    try:
        yield from _mapped(pool, one, iter(numbers), 2 * jobs)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if idle is not None:
            idle += workers
        else:
            for worker in workers:
                worker.close()


def _mapped(
    pool: ThreadPoolExecutor, function: Callable[[int], Outcome], numbers: Iterator[int], ahead: int
) -> Iterator[Outcome]:
    """Map like ``pool.map``, with limited read-ahead, and in the order of completion."""
    from concurrent.futures import FIRST_COMPLETED, wait

    pending = set()
    while True:
        for number in numbers:
            pending.add(pool.submit(function, number))
            if len(pending) >= ahead:
                break
        if not pending:
            return
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def prefix(kind: Kind) -> str:
    """Return the prefix of the names of findings and records."""
    return "near-" if kind == "near" else ""


def keep(
    outcome: Outcome, seed: int, folder: Path, oracle: Oracle, kind: Kind = "grown", options: Sequence[str] = ()
) -> Path:
    """Write a finding: the small model as IR, its inputs, and the text."""
    place = folder / f"{prefix(kind)}{seed}-{outcome.number}"
    place.mkdir(parents=True, exist_ok=True)
    command = f"python -m tests.conformance.random{' --near' * (kind == 'near')} --seed {seed} --model {outcome.number}"
    if options:
        command += f" --options {options[outcome.number % len(options)]}"
    if kind == "near" and FOLDER in os.environ:
        command += f" --networks {os.environ[FOLDER]}"
    (place / "finding.txt").write_text(f"{command}\n{outcome.text}\n")
    if outcome.small is not None:
        oracle.ask(save, outcome.small, str(place / "model.xml"))
        np.savez(place / "inputs.npz", *outcome.small.arrays())
    return place


class Record:
    """The judged models of a seed with their outcomes: a text file that survives interruptions.

    Args:
        path: the file, created if missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.kinds = {int(number): kind for number, kind in (line.split() for line in lines)}
        self._file = path.open("a", buffering=1)

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self.kinds[outcome.number] = outcome.kind
        self._file.write(f"{outcome.number} {outcome.kind}\n")

    def close(self) -> None:
        self._file.close()


def summary(outcomes: Counter[str], operations: Counter[str], started: float) -> str:
    """Format the counts of outcomes, and the numbers of layers and operations."""
    counts = ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common())
    layers = f"{operations.total()} layers of {len(operations)} operations"
    return f"{outcomes.total()} models, {layers}, {time.monotonic() - started:.0f} s: {counts}"
