"""Compare random models with OpenVINO.

::

    python -m tests.conformance.random --count 100000 --seed 1      # 100,000; findings are stored as files
    python -m tests.conformance.random --seed 1 --model 4711        # one of them again, in full
    python -m tests.conformance.random --file FOLDER                # a stored finding
    python -m tests.conformance.random --near --count 10000         # pieces of networks with a change or two
    python -m tests.conformance.random --near --target mnn          # the same in a target's spelling
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from tests.conformance.oracle import Oracle, OracleError
from tests.conformance.random.judge import Judge
from tests.conformance.random.models import Kind, Record, judged, keep, prefix, recipe, run, summary
from tests.conformance.random.near import OF_ONE
from tests.conformance.random.near.networks import FOLDER, check, names
from tests.conformance.random.options import BY_NAME, TARGETED, of

_EVERY = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.random", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many models (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which models (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument(
        "--keep", type=Path, default=Path("random-findings"), help="where findings go (default: %(default)s)"
    )
    parser.add_argument("--model", type=int, help="judge only the model with this number, and print it")
    parser.add_argument("--file", type=Path, help="judge a finding that was kept: the folder of model.xml and inputs.npz")
    parser.add_argument("--near", action="store_true", help="pieces of networks with a change or two, not grown models")
    parser.add_argument("--networks", type=Path, help="with --near: a folder of IR (.xml, .zip) instead of the tests' own")
    parser.add_argument("--options", choices=BY_NAME, help="convert with these (default: those that a model's number has)")
    parser.add_argument(
        "--target",
        choices=TARGETED,
        action="append",
        default=[],
        help="convert for this target, without its limits; can be given several times, for models in turn",
    )
    given = parser.parse_args()
    options = [TARGETED[name].name for name in given.target] or ([given.options] if given.options else [])
    if given.networks is not None:
        if not given.near:
            parser.error("--networks needs --near")
        os.environ[FOLDER] = str(given.networks)
    kind: Kind = "near" if given.near else "grown"
    if given.file is not None:
        return _file(given.file, options)
    if given.model is not None:
        return _model(given.seed, given.model, kind, options)
    return _many(given, kind, options)


def _file(folder: Path, options: Sequence[str]) -> int:
    with np.load(folder / "inputs.npz") as arrays, Oracle() as oracle:
        values = [arrays[f"arr_{k}"] for k in range(len(arrays.files))]
        verdict = Judge(oracle, BY_NAME[[*options, "default"][0]]).judge_file(folder / "model.xml", values, python=True)
    print(f"{verdict.kind}: {verdict.text}")
    return verdict.found


def _model(seed: int, number: int, kind: Kind, options: Sequence[str]) -> int:
    with Oracle() as oracle:
        print(oracle.ask(recipe, seed, number, kind))
    outcome = judged(seed, number, kind, options[number % len(options)] if options else of(seed, number).name)
    print(f"{outcome.kind}: {outcome.text}")
    return outcome.found


def _many(given: argparse.Namespace, kind: Kind, options: Sequence[str]) -> int:
    kinds: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    explained: Counter[str] = Counter()
    started = said = time.monotonic()
    record = Record(given.keep / f"{'-'.join([f'{prefix(kind)}{given.seed}', *given.target])}.txt")
    numbers = [n for n in range(given.first, given.first + given.count) if n not in record.kinds]
    with Oracle() as oracle, closing(record):
        if given.networks is not None and (unread := _unread(numbers, oracle)):
            print("\n".join(["Some networks cannot be read:", *unread]), file=sys.stderr)
            return 2
        for outcome in run(given.seed, numbers, given.jobs, kind, options):
            record.add(outcome)
            kinds[outcome.kind] += 1
            operations += outcome.operations
            if outcome.kind in ("departure", "noise"):
                explained[outcome.text.splitlines()[0]] += 1
            if outcome.found:
                place = keep(outcome, given.seed, given.keep, oracle, kind, options)
                print(f"-- model {outcome.number}, kept in {place}\n{outcome.text}", flush=True)
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                print(f"{time.strftime('%H:%M:%S')} {summary(kinds, operations, started)}", flush=True)
    print("\n".join(f"{count} {text}" for text, count in explained.most_common()))
    print(summary(kinds, operations, started))
    print(f"{len(record.kinds)} of seed {given.seed} so far: {dict(Counter(record.kinds.values()).most_common())}")
    return kinds["found"] + kinds["crashed"] > 0


def _unread(numbers: Sequence[int], oracle: Oracle) -> list[str]:
    """Return why OpenVINO does not run the networks from which these near misses are taken."""
    try:
        count = len(names())
    except ValueError as error:
        return [str(error)]
    said = []
    for number in sorted({(n // OF_ONE) % count for n in numbers}):
        try:
            said.append(oracle.ask(check, number))
        except OracleError as error:  # its process ended
            said.append(f"{names()[number][0]}: {error}")
    return [text for text in said if text]


if __name__ == "__main__":
    sys.exit(main())
