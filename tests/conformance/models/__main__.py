"""``python -m tests.conformance.models``: run the networks of the table, and write results.json and docs/networks.md."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.models import reshaped, saved
from tests.conformance.models.comparing import Result
from tests.conformance.models.kept import keep
from tests.conformance.models.network import Network
from tests.conformance.models.table import NETWORKS
from tests.conformance.oracle import Oracle
from tests.conformance.random.options import ALL
from tests.conformance.random.options import BY_NAME as ALL_OPTIONS

PAGE = Path(__file__).parents[3] / "docs" / "networks.md"
RESULTS = Path(__file__).with_name("results.json")
"""The last result of each network, from which the page is generated."""

_PACKAGES = (
    "openvino",
    "onnxruntime",
    "torch",
    "transformers",
    "timm",
    "torchvision",
    "diffusers",
    "tensorflow-cpu",
    "keras",
    "nncf",
)
_HEAD = """\
# Whole networks

<!-- Made by `python -m tests.conformance.models`. -->

{agree} of {total} architectures agree with OpenVINO's CPU in float32{rest}. The library in the table builds each
network at a small size, with random weights. OpenVINO imports it and saves it with weights in float16. It is converted
once, and run at two sizes, with the plugin's kernels and, if it has operators of the domain, without. Floats may differ
by 1e-3 of their value plus 1e-4; everything else must be equal. *Error* is the largest relative distance (L2) of an
output. If a network amplifies rounding, its outputs may differ by as much as OpenVINO's outputs differ for inputs
changed by 1e-6: the second figure of the column.

{versions}
"""


class Gather:
    """A pytest plugin that merges the tests' results into the known ones, as they arrive from its processes."""

    def __init__(self, results: dict[str, dict[str, Any]]) -> None:
        self.results = results
        self.count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the result of a network's test, or that it ended without one."""
        name = report.nodeid.partition("[")[2][:-1]
        found = [value for key, value in report.user_properties if key == "network"]
        if report.when == "call" and found:
            result = found[0]
        elif report.failed:  # the process crashed or timed out
            result = asdict(Result(problems=[f"the test ended: {report.longreprtext.strip().splitlines()[-1]}"]))
        else:
            return
        del result["seconds"]
        self.results[name] = result | {"error": float(f"{result['error']:.1e}")}
        self.count += 1
        write(self.results)
        mark = f"DIFFERS: {result['problems'][0]}" if result["problems"] else "agrees"
        print(f"\n{name}: {mark} ({result['error']:.1e})", flush=True)


def write(results: dict[str, dict[str, Any]]) -> None:
    """Write results.json, one line per network in the table's order, and the page."""
    known = [network.name for network in NETWORKS if network.name in results]
    lines = [f"  {json.dumps(name)}: {json.dumps(results[name])}" for name in known]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text("\n".join(page(results)) + "\n")


def page(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Iterate over the lines of docs/networks.md."""
    rows = [(network, results[network.name]) for network in NETWORKS if network.name in results]
    agree = sum(not result["problems"] for _, result in rows)
    rest = len(NETWORKS) - len(rows)
    missing = f"; {rest} more are in the table and have not been run" if rest else ""
    yield _HEAD.format(agree=agree, total=len(rows), rest=missing, versions=_versions())
    for family in dict.fromkeys(network.family for network, _ in rows):
        yield f"\n## {family[0].upper()}{family[1:]}\n"
        yield "| architecture | library | layers | nodes | custom operators | agrees | error |"
        yield "|---|---|---|---|---|---|---|"
        for network, result in rows:
            if network.family == family:
                yield _row(network, result)


def agrees(result: dict[str, Any] | None) -> bool:
    """Return whether a network has been run and agrees."""
    return result is not None and not result["problems"]


def _row(network: Network, result: dict[str, Any]) -> str:
    error = f"{result['error']:.0e}" + (f" of {result['allowed']:.0e}" if result["allowed"] else "")
    agrees = "no: " + result["problems"][0].replace("|", "/")[:120] if result["problems"] else "yes"
    name = f"{network.name} ({network.note})" if network.note else network.name
    cells = [name, network.package, result["layers"], result["nodes"], ", ".join(result["custom"]), agrees, error]
    return f"| {' | '.join(map(str, cells))} |"


def _versions() -> str:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name).partition('+')[0]}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"Made with {', '.join(found)}."


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.models", description=__doc__)
    parser.add_argument("words", nargs="*", help="run the networks whose name or family contains one of these; default: all")
    parser.add_argument("-n", default="2", help="processes (default: %(default)s)")
    parser.add_argument("--missing", action="store_true", help="run those that do not agree, or have not been run")
    parser.add_argument("--keep", action="store_true", help="create the files of the stored networks again, and run nothing")
    parser.add_argument("--reshaped", action="store_true", help="run them at other sizes, with options of a conversion")
    parser.add_argument("--options", help='with --reshaped: names of options, or "all" (default: two by the seed)')
    parser.add_argument("--seed", type=int, default=1, help="with --reshaped: which options (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="with --reshaped: the folder of their IR (default: created again)")
    options = parser.parse_args()
    if options.reshaped:
        return _reshaped(options)
    if options.keep:
        for network in NETWORKS:
            if network.kept and network.chosen(options.words):
                keep(network)
        return 0
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    chosen = [
        network.name
        for network in NETWORKS
        if network.chosen(options.words) and not (options.missing and agrees(results.get(network.name)))
    ]
    gather, started = Gather(results), time.perf_counter()
    os.environ["PYTHONHASHSEED"] = "0"
    tests = [f"{Path(__file__).with_name('test_networks.py')}::test_network[{name}]" for name in chosen]
    code = pytest.main([*tests, "--networks=all", "-p", "no:cacheprovider", "-n", options.n, "--tb=line"], [gather])
    print(f"{gather.count} networks in {(time.perf_counter() - started) / 60:.0f} minutes")
    return int(code)


def _reshaped(given: argparse.Namespace) -> int:
    networks = [network for network in NETWORKS if network.chosen(given.words)]
    named = [ALL_OPTIONS[name] for name in given.options.split(",")] if given.options not in (None, "all") else list(ALL)
    problems = runs = 0
    with tempfile.TemporaryDirectory() as made, Oracle() as oracle:
        for network in networks:
            if find_spec(network.package) is None:
                continue
            folder = Path(given.folder or Path(made) / str(runs))
            options = named if given.options else reshaped.chosen(network, given.seed, 2)
            try:
                path = saved.saved(network, folder)
            except Exception as error:  # with another release of its library
                print(f"{network.name} cannot be made: {type(error).__name__}: {error}"[:300], flush=True)
                continue
            try:
                found = reshaped.check(network, path, oracle, options)
            except Exception as error:
                found = reshaped.Found(problems=[f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"])
            problems, runs = problems + len(found.problems), runs + found.runs
            print(reshaped.report(network, found), flush=True)
            if given.folder is None:
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(networks)} networks at {runs} sizes: {problems} problems")
    return problems > 0


if __name__ == "__main__":
    sys.exit(main())
