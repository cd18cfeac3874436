"""Fuzz for a given time.

::

    python -m tests.fuzz ir --minutes 30            # changed IR files, converted
    python -m tests.fuzz networks --minutes 30      # the same of whole networks, with several options
    python -m tests.fuzz language --minutes 30      # the same of language models and tokenizers
    python -m tests.fuzz deep --minutes 300         # deep files and enormous sizes with each option, then mixtures
    python -m tests.fuzz nodes --minutes 30         # hostile nodes: the native kernels against the NumPy ones, and bodies
    python -m tests.fuzz sanitized --minutes 30     # the native kernels with AddressSanitizer and UndefinedBehaviorSanitizer
    python -m tests.fuzz python --minutes 30        # the NumPy kernels as custom ops of ONNX Runtime
    python -m tests.fuzz nodes --only Attention     # nodes of these operators alone
    python -m tests.fuzz ir --seed 1 --case 4711    # one case again
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from onnx_specops.domain import operators
from tests.fuzz import ir, language, networks, nodes
from tests.fuzz.deep import target as deep
from tests.fuzz.engine import Target, run, summary, until

_EVERY = 60.0
FILES = {"ir": ir.write, "networks": networks.FILES.write, "language": language.FILES.write, "deep": deep.write}
"""The targets that write files, and the functions that write a file."""


def main() -> int:
    files = {module.TARGET.name: (lambda module=module: module.TARGET) for module in (ir, networks, language, deep)}
    targets = {**files, **nodes.targets()}
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=list(targets))
    parser.add_argument("--minutes", type=float, default=30, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which cases (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where findings go (default: %(default)s)")
    parser.add_argument("--case", type=int, help="run only the case with this number")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="OPERATOR", help="the operators of the nodes (default: all)"
    )
    given = parser.parse_args()
    known = set() if given.target in FILES else {operator.name for operator in operators()}
    if unknown := sorted({*given.only} - known):
        parser.error(f"--only: {given.target} has no nodes of {', '.join(unknown)}")
    target = targets[given.target]()
    if given.only:
        target = replace(target, arguments=(tuple(given.only),))
    numbers = [given.case] if given.case is not None else until(given.first, given.minutes * 60)
    kinds: Counter[str] = Counter()
    started = said = time.monotonic()
    for outcome in run(target, given.seed, numbers, given.jobs):
        kinds[outcome.kind] += 1
        if outcome.wrong:
            print(f"-- {target.name}, seed {given.seed}, case {outcome.number}: {outcome.wrong}", flush=True)
            _keep(target, given.seed, outcome.number, outcome.wrong, given.keep)
        if time.monotonic() - said > _EVERY:
            said = time.monotonic()
            print(f"{time.strftime('%H:%M:%S')} {target.name}: {summary(kinds, started)}", flush=True)
    print(f"{target.name}: {summary(kinds, started)}")
    return kinds["lost"] + kinds["wrong"] > 0


def _keep(target: Target, seed: int, number: int, wrong: str, folder: Path) -> None:
    """Write the finding, and the file that shows it."""
    place = folder / f"{target.name}-{seed}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    only = "".join(f" --only {' '.join(names)}" for names in target.arguments)
    command = f"python -m tests.fuzz {target.name} --seed {seed} --case {number}{only}"
    (place / "finding.txt").write_text(f"{command}\n{wrong}\n")
    if target.name in FILES:
        FILES[target.name](seed, number, place / "model.xml")
    else:
        (place / "node.json").write_text(nodes.dump(nodes.node(seed, number, *target.arguments)))


if __name__ == "__main__":
    sys.exit(main())
