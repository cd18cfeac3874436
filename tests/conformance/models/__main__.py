"""``python -m tests.conformance.models``: runs the networks of the table and writes docs/networks.md."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.models.kept import keep
from tests.conformance.models.network import Network
from tests.conformance.models.table import NETWORKS

PAGE = Path(__file__).parents[3] / "docs" / "networks.md"
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

{agree} of {total} architectures agree with OpenVINO's CPU in float32. Each is made small, with random weights, by the
library named; imported by OpenVINO and saved as OpenVINO saves it (weights in float16); converted once; and run at two
sizes, with the plugin's kernels and, where it has operators of the domain, without. Floats may part by 1e-3 of their
value and 1e-4, all else must be equal. *Error* is the largest relative distance (L2) of any output. Where a network
amplifies rounding, outputs may part by as much as OpenVINO's own do for inputs changed by 1e-6: the figure behind the
error.

{versions}
"""


class Gather:
    """A plugin of pytest's that keeps the tests' results, as they come from its processes."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the result of a network's test, or that it ended without."""
        for key, value in report.user_properties:
            if key == "network" and report.when == "call":
                self.results[value["name"]] = value
                mark = "agrees" if not value["problems"] else f"DIFFERS: {value['problems'][0]}"
                print(f"\n{value['name']}: {mark} ({value['error']:.1e})", flush=True)


def page(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The lines of docs/networks.md."""
    rows = [(network, results[network.name]) for network in NETWORKS if network.name in results]
    agree = sum(not result["problems"] for _, result in rows)
    yield _HEAD.format(agree=agree, total=len(rows), versions=_versions())
    for family in dict.fromkeys(network.family for network, _ in rows):
        yield f"\n## {family[0].upper()}{family[1:]}\n"
        yield "| architecture | library | layers | nodes | custom operators | agrees | error |"
        yield "|---|---|---|---|---|---|---|"
        for network, result in rows:
            if network.family == family:
                yield _row(network, result)


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
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.models", description=__doc__)
    parser.add_argument("words", nargs="*", help="run the networks whose name or family contains one of these; default: all")
    parser.add_argument("-n", default="2", help="processes (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="make the files of the kept networks anew, and run nothing")
    options = parser.parse_args()
    if options.keep:
        for network in NETWORKS:
            if network.kept and network.chosen(options.words):
                keep(network)
        return 0
    gather, started = Gather(), time.perf_counter()
    os.environ["PYTHONHASHSEED"] = "0"
    arguments = [str(Path(__file__).with_name("test_networks.py")), "-p", "no:cacheprovider", "-n", options.n, "--tb=line"]
    code = pytest.main(
        [*arguments, "-k", "test_network and not kept", f"--networks={','.join(options.words) or 'all'}"], [gather]
    )
    print(f"{len(gather.results)} networks in {(time.perf_counter() - started) / 60:.0f} minutes")
    if not options.words:
        PAGE.write_text("\n".join(page(gather.results)) + "\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
