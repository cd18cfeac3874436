"""``python -m tests.hosts FOLDER``: all hosts of converted models, in environments with their packages below FOLDER.

python -m tests.hosts FOLDER                # all; writes tests/folders/results.json, and the tables in docs/
python -m tests.hosts FOLDER bert flux      # `tests.folders` for these words only
python -m tests.hosts FOLDER --sample       # a few; nothing is written, and hosts that cannot be installed are left out

`tests.folders` compares folders of models in optimum-onnx, sentence-transformers, diffusers, Transformers.js,
onnxruntime-genai and transformers. `pytest tests/hosts` runs the programs of examples/: Node, browsers, C++, Ray.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.folders import ALL_LEFT_OUT
from tests.hosts.environments import FOLDERS, RAY, SAMPLE, Environment, NotInstalled, install_javascript, python_of

ROOT = Path(__file__).parents[2]
JAVASCRIPT = (ROOT / "tests" / "folders", ROOT / "examples")
SAMPLES = ("bert-embedding", "latent-consistency", "llama-int4")
_NOT_EXPORTED = re.compile(r"^(\S+) is left out: ", re.MULTILINE)
_NOT_RUN = re.compile(r"^\S+: .* is left out: .*", re.MULTILINE)


def started(python: Path, *arguments: object) -> tuple[int, str]:
    """Return the exit status and the output of a Python program, which is also printed."""
    command = [str(python), *map(str, arguments)]
    settings = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", "HF_HUB_OFFLINE": "1"}
    run = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert run.stdout is not None
    printed = []
    for line in run.stdout:
        print(line, end="", flush=True)
        printed.append(line)
    return run.wait(), "".join(printed)


def reason_of(installed: Future[object]) -> str:
    """Print why an installation failed, and return the reason; ``""`` if it did not."""
    try:
        installed.result()
    except NotInstalled as error:
        print(f"not installed: {error}", file=sys.stderr, flush=True)
        return str(error)
    return ""


def sample(place: Path) -> int:
    """Run a few models; return the exit status."""
    with ThreadPoolExecutor() as pool:
        python = pool.submit(python_of, SAMPLE, place, 120)
        reason_of(pool.submit(install_javascript, JAVASCRIPT[0], 120))
        if reason_of(python):
            return 0
    status, _ = started(python.result(), "-m", "tests.folders", *SAMPLES, "--dry")
    return status


def folders(place: Path, environments: Sequence[Environment], words: Sequence[str]) -> list[str]:
    """Run `tests.folders` in the environments; return the faults. Each model runs in the first one that can export it."""
    faults, wanted = [], list(words)
    for number, environment in enumerate(environments):
        status, printed = started(python_of(environment, place, 1800), "-m", "tests.folders", *wanted)
        wanted = _NOT_EXPORTED.findall(printed)
        faults += _NOT_RUN.findall(printed)
        if status not in (0, ALL_LEFT_OUT):
            faults.append(f"tests.folders in {environment.name} ended with {status}")
        if not wanted:
            return faults
        if number + 1 == len(environments):
            faults.append(f"no environment exports {', '.join(wanted)}")
    return faults


def everything(place: Path, words: Sequence[str]) -> int:
    """Run all hosts, and print the faults; return the exit status."""
    for folder in JAVASCRIPT:
        install_javascript(folder, 600)
    faults = folders(place, FOLDERS, words)
    if not words:
        status, _ = started(python_of(RAY, place, 1800), "-m", "pytest", "-rs", "tests/hosts")
        faults += [f"pytest tests/hosts ended with {status}"] if status else []
    print("\n".join(faults or ["all agree"]))
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hosts")
    parser.add_argument("folder", type=Path, help="the folder of the environments, which can be used again")
    parser.add_argument("words", nargs="*", help="run the folders whose names contain one of these; all by default")
    parser.add_argument("--sample", action="store_true", help="run a few, and leave out hosts that cannot be installed")
    given = parser.parse_args()
    place = given.folder.resolve()
    place.mkdir(parents=True, exist_ok=True)
    return sample(place) if given.sample else everything(place, given.words)


if __name__ == "__main__":
    sys.exit(main())
