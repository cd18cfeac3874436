"""A sample of `tests.fuzz`, and its corpus."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_specops.domain import operators
from tests.fuzz import ir, language, networks, nodes
from tests.fuzz.deep import target as deep
from tests.fuzz.engine import Finding, Target, run
from tests.native import needs_library
from tests.worker import Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measures time and memory as on Linux")

SEED = 2026
NODES = Path(__file__).parent / "corpus" / "nodes"


def sample(target: Target, first: int, count: int) -> Counter[str]:
    """Return the number of cases by outcome; fail for a finding."""
    kinds: Counter[str] = Counter()
    for outcome in run(target, SEED, range(first, first + count)):
        assert not outcome.wrong, f"case {outcome.number}: {outcome.wrong}"
        kinds[outcome.kind] += 1
    return kinds


@pytest.mark.parametrize("part", range(2))
def test_changed_files(part: int) -> None:
    kinds = sample(ir.TARGET, 120 * part, 120)
    assert kinds["MalformedError"] > 40 and kinds["converted"] > 10, kinds


def test_changed_networks() -> None:
    kinds = sample(networks.TARGET, 0, 60)
    assert kinds["MalformedError"] > 20 and kinds["converted"] > 5, kinds


def test_changed_language_models_and_tokenizers() -> None:
    kinds = sample(language.TARGET, 0, 60)
    assert kinds["MalformedError"] > 10 and kinds["converted"] > 5, kinds


def test_deep_files() -> None:
    """The first cases are a random selection of the quick ones, the last ones have 700 layers, and mixtures follow them."""
    first, last = sample(deep.TARGET, 0, 30), sample(deep.TARGET, deep.count() - 2, 4)
    assert first["converted"] > 15 and last["converted"] > 1, (first, last)


@needs_library
@pytest.mark.parametrize("part", range(2))
def test_hostile_nodes(part: int) -> None:
    kinds = sample(nodes.targets()["nodes"](), 150 * part, 150)
    assert kinds["answered"] > 30 and kinds["refused"] > 30, kinds


def test_hostile_nodes_with_python_kernels() -> None:
    kinds = sample(nodes.targets()["python"](), 0, 60)
    assert kinds["answered"] > 10 and kinds["refused"] > 10, kinds


# -- previous findings -----------------------------------------------------------------------------------------------------

FILES, HOSTILE = sorted(ir.CORPUS.glob("*/model.xml")), sorted(NODES.glob("*.json"))


def test_the_corpus_exists() -> None:
    assert FILES and HOSTILE  # pytest would silently create no tests without files


@pytest.fixture(scope="module")
def worker() -> Iterator[Callable[[float, int | None], Worker]]:
    """Return a function that starts one process for all cases with the same limits."""
    with ExitStack() as stack:
        yield cache(lambda seconds, memory: stack.enter_context(Worker(seconds, memory)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_files_of_the_corpus(path: Path, tmp_path: Path, worker: Any) -> None:
    for file in path.parent.iterdir():
        shutil.copy(file, tmp_path)
    worker(ir.TARGET.seconds, ir.TARGET.memory).ask(ir.converted, tmp_path / "model.xml")


@needs_library
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.stem)
def test_nodes_of_the_corpus(path: Path, worker: Any) -> None:
    target = nodes.targets()["nodes"]()
    worker(target.seconds, target.memory).ask(nodes.try_native, nodes.load(path.read_text()))


# -- the fuzzer itself ------------------------------------------------------------------------------------------------------


def crash(seed: int, number: int) -> str:
    import ctypes

    return str(ctypes.string_at(0))


def hang(seed: int, number: int) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass
    return "late"


def hoard(seed: int, number: int) -> str:
    return str(np.ones(2**26).sum())  # 512 MiB


def fault(seed: int, number: int) -> str:
    if number == 1:
        raise Finding("that is wrong")
    return "well"


@pytest.mark.parametrize(
    ("function", "seconds", "said"),
    [
        (crash, 30, "crashed: SIGSEGV"),
        (hang, 1, "did not respond within 1 s"),
        (hoard, 30, "took 51"),
        (fault, 30, "that is wrong"),
    ],
)
def test_failures_are_found(function, seconds: float, said: str) -> None:
    (outcome,) = run(Target("probe", function, seconds, 2**28), SEED, [1])
    assert outcome.wrong.startswith(said)


def test_successes_are_counted() -> None:
    outcomes = list(run(Target("probe", fault, 10.0, 2**28), SEED, range(4), jobs=2))
    assert Counter(outcome.kind for outcome in outcomes) == {"well": 3, "wrong": 1}
    assert sorted(outcome.number for outcome in outcomes) == [0, 1, 2, 3]


def test_every_operator_is_fuzzed() -> None:
    assert set(nodes.valid_nodes(np.random.default_rng(0))) == {operator.name for operator in operators()}


@pytest.mark.parametrize("names", [("Attention",), ("Inverse", "StringSplit")])
def test_nodes_of_selected_operators(names: tuple[str, ...]) -> None:
    assert {nodes.node(SEED, number, names)[0] for number in range(40)} == set(names)


def test_nodes_as_text() -> None:
    for number in range(200):
        name, arrays, types, attributes = nodes.node(SEED, number)
        other = nodes.load(nodes.dump((name, arrays, types, attributes)))
        assert (other[0], other[2]) == (name, types)
        assert str(other[3]) == str(attributes)
        for one, another in zip(arrays, other[1], strict=True):
            assert (one is None) == (another is None)
            if one is not None and another is not None:
                assert (one.dtype, one.shape) == (another.dtype, another.shape)
                if one.dtype.kind in "fV":
                    one, another = one.astype(np.float64), another.astype(np.float64)
                np.testing.assert_array_equal(one, another)


def test_a_number_always_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        ir.write(SEED, 7, tmp_path / name / "model.xml")
    assert (tmp_path / "one" / "model.xml").read_bytes() == (tmp_path / "other" / "model.xml").read_bytes()
