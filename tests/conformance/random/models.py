"""The random models by number, judged in processes of their own, and what is kept of those that part."""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tests.conformance.oracle import Oracle, serve_again  # noqa: F401  (the process that `_Loaded` starts runs it)
from tests.conformance.random import layers as _layers  # noqa: F401  (importing it registers the makers)
from tests.conformance.random import near
from tests.conformance.random.explain import explain
from tests.conformance.random.graph import Graph, with_dims
from tests.conformance.random.judge import SECONDS, Judge, save
from tests.conformance.random.options import BY_NAME, of
from tests.conformance.random.recipe import Recipe, build
from tests.worker import Lost, Worker

Kind = Literal["grown", "near"]

MOST_LAYERS = 30
_COLLECTED = 100
"""After so many models Python looks for cycles."""
_PYTHON = 10
"""Of so many models one is run with Python kernels, too."""
_LIMIT = 300.0


@dataclass(frozen=True)
class Outcome:
    """What became of a model.

    Attributes:
        number: the model's.
        kind: as of `judge.Verdict`, or of `explain.Explanation` where it parts; ``"crashed"`` where our process ended.
        operations: how many layers of each operation it has.
        text: the model that shows it, and how.
        small: that model, where it is to be kept.
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
    """The model of that number; in OpenVINO's process, for OpenVINO infers its shapes.

    Args:
        seed: of all numbers.
        number: of the model.
        kind: ``"grown"`` layer by layer, or ``"near"``, a piece of a network with a change or two.
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
        except Exception:  # OpenVINO knows too little then
            return made
        return opened


class _Loaded(Oracle):
    """An oracle whose process has loaded this module before it forks: OpenVINO crashes on one random model in ten."""

    serving = __name__, "serve_again"


@functools.cache
def _oracle() -> Oracle:
    """The process's own."""
    gc.collect()
    gc.freeze()  # what is loaded stays
    gc.disable()  # a conversion makes many objects, and few cycles
    return _Loaded(SECONDS)


_turns = itertools.count(1)


def judged(seed: int, number: int, kind: Kind = "grown", option: str = "default") -> Outcome:
    """Make and judge a model, converted with the options of that name, and explain what differs."""
    judge = Judge(_oracle(), BY_NAME[option])
    if next(_turns) % _COLLECTED == 0:
        gc.collect()
    judge.oracle.timeout = _LIMIT / 2  # to make it takes longer, and on a busy machine much longer
    made: Recipe = judge.oracle.ask(recipe, seed, number, kind)
    judge.oracle.timeout = SECONDS
    python = number % _PYTHON == 0
    mended = judge.runnable(made)
    if mended is None or (python and mended is not made):
        # OpenVINO has nothing to say to it; still it is to be refused, or to run.
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
    seed: int, numbers: Iterable[int], jobs: int = 1, kind: Kind = "grown", option: str | None = None
) -> Iterator[Outcome]:
    """The outcome of each model, in any order, converted with the options of that name, or those that its number has."""
    local = threading.local()
    workers: list[Worker] = []

    def one(number: int) -> Outcome:
        if not hasattr(local, "worker"):
            local.worker = Worker(_LIMIT)
            workers.append(local.worker)
        try:
            return local.worker.ask(judged, seed, number, kind, option or of(seed, number).name)
        except Lost as error:
            return Outcome(number, "crashed", Counter(), str(error))
        except Exception as error:  # of OpenVINO, which ended while it made the model
            # The worker's process of OpenVINO may be of no more use: the next model gets a new worker.
            local.worker.close()
            workers.remove(local.worker)
            del local.worker
            return Outcome(number, "unmade", Counter(), f"{type(error).__name__}: {error}")

    pool = ThreadPoolExecutor(jobs)
    try:
        yield from _mapped(pool, one, iter(numbers), 2 * jobs)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for worker in workers:
            worker.close()


def _mapped(
    pool: ThreadPoolExecutor, function: Callable[[int], Outcome], numbers: Iterator[int], ahead: int
) -> Iterator[Outcome]:
    """As ``pool.map``, but never far ahead, and in the order in which they are done."""
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
    """What the names of findings and records begin with."""
    return "near-" if kind == "near" else ""


def keep(outcome: Outcome, seed: int, folder: Path, oracle: Oracle, kind: Kind = "grown") -> Path:
    """Write what shows a finding: the small model as IR, its inputs, and the text."""
    place = folder / f"{prefix(kind)}{seed}-{outcome.number}"
    place.mkdir(parents=True, exist_ok=True)
    command = f"python -m tests.conformance.random{' --near' * (kind == 'near')} --seed {seed} --model {outcome.number}"
    (place / "finding.txt").write_text(f"{command}\n{outcome.text}\n")
    if outcome.small is not None:
        oracle.ask(save, outcome.small, str(place / "model.xml"))
        np.savez(place / "inputs.npz", *outcome.small.arrays())
    return place


class Record:
    """Which models of a seed were judged, and what became of them: a file of lines, which outlives an interruption.

    Args:
        path: of the file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.kinds = {int(number): kind for number, kind in (line.split() for line in lines)}
        self._file = path.open("a", buffering=1)

    def add(self, outcome: Outcome) -> None:
        """Write down an outcome."""
        self.kinds[outcome.number] = outcome.kind
        self._file.write(f"{outcome.number} {outcome.kind}\n")

    def close(self) -> None:
        self._file.close()


def summary(outcomes: Counter[str], operations: Counter[str], started: float) -> str:
    """Counts of the outcomes, and how many layers of how many operations."""
    counts = ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common())
    layers = f"{operations.total()} layers of {len(operations)} operations"
    return f"{outcomes.total()} models, {layers}, {time.monotonic() - started:.0f} s: {counts}"
