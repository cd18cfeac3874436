"""``python -m tests.compatibility CACHE``; see the package's docstring."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import onnx

from onnx_specops.lowering import ir_version
from tests.compatibility import runner
from tests.compatibility.report import Results, table, written
from tests.compatibility.subjects import subjects, write_manifest

OPSETS = (11, 12, 13, 15, 17, 19, 21)
"""The tested opsets, except the newest."""

RELEASES = ("1.16", "1.18", "1.20", "1.22", "1.24", "newest")
NUMPY_1 = ("1.16", "1.17", "1.18")
"""Releases that were built with NumPy 1."""

REPORT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def python_of(release: str, cache: Path) -> Path:
    """Return the interpreter of a virtual environment with the release."""
    place = cache / "environments" / release
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (place / "complete").exists():
        venv.create(place, with_pip=True, clear=True)
        wanted = "onnxruntime" if release == "newest" else f"onnxruntime=={release}.*"
        numpy = "numpy<2" if release in NUMPY_1 else "numpy"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wanted, numpy], check=True)
        (place / "complete").touch()
    return python


def run(python: Path, entries: list[dict[str, Any]], folder: Path) -> tuple[str, dict[str, str]]:
    """Return the release and the fault of each entry's model, including crashes of the process."""
    faults: dict[str, str] = {}
    release, pending = "", list(entries)
    while pending:
        manifest = write_manifest(folder / "manifest.json", pending)
        done = subprocess.run([python, "-I", runner.__file__, manifest], capture_output=True, text=True)
        last = None
        for line in map(json.loads, done.stdout.splitlines()):
            release = line.get("release", release)
            last = line.get("key", last)
            if "fault" in line:
                faults[line["key"]] = line["fault"]
        if done.returncode and last is None:
            raise RuntimeError(done.stderr)
        if last is not None and last not in faults:
            faults[last] = f"the process ended with {done.returncode}"
        pending = [entry for entry in pending if entry["key"] not in faults]
    return release, faults


def probes(opsets: tuple[int, ...], folder: Path) -> list[dict[str, Any]]:
    """Return a model of one node for each opset, to test whether a release supports the opset at all."""
    entries: list[dict[str, Any]] = []
    for opset in opsets:
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Abs", ["x"], ["y"])], "probe", [value("x", 1, [1])], [value("y", 1, [1])]
        )
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=ir_version(opset)
        )
        path = folder / f"probe-{opset}.onnx"
        onnx.save(model, path)
        entries.append({"key": f"@{opset}", "model": str(path), "data": "", "rtol": 0, "atol": 0, "values": False})
    return entries


def newest_opset(cache: Path, folder: Path) -> int:
    """Return the newest opset that both the installed onnx and the newest release support."""
    candidates = tuple(range(max(OPSETS), onnx.defs.onnx_opset_version() + 1))
    _, faults = run(python_of("newest", cache), probes(candidates, folder), folder)
    return max(opset for opset in candidates if not faults[f"@{opset}"])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.compatibility", description=__doc__)
    parser.add_argument("cache", type=Path, help="the folder for the environments and the models")
    parser.add_argument("--releases", nargs="+", default=RELEASES, metavar="R", help="releases of ONNX Runtime")
    parser.add_argument("--opsets", nargs="+", type=int, metavar="N", help="default: 11 to the newest that is read")
    given = parser.parse_args()
    cache = given.cache.resolve()
    folder = cache / "models"
    folder.mkdir(parents=True, exist_ok=True)
    opsets = tuple(sorted(given.opsets or {*OPSETS, newest_opset(cache, folder)}))
    chosen = subjects(folder)
    results = Results(len(chosen), opsets)
    entries: dict[int, list[dict[str, Any]]] = {}
    for opset in opsets:
        converted = [(subject.name, subject.at(opset, folder)) for subject in chosen]
        entries[opset] = [entry for _, entry in converted if isinstance(entry, dict)]
        results.refused[opset] = {name: why for name, why in converted if isinstance(why, list)}
    for wanted in given.releases:
        python = python_of(wanted, cache)
        release, read = run(python, probes(opsets, folder), folder)
        readable = [opset for opset in opsets if not read[f"@{opset}"]]
        _, faults = run(python, [entry for opset in readable for entry in entries[opset]], folder)
        results.faults[release] = {
            opset: {key: why for key, why in faults.items() if key.endswith(f"@{opset}")} for opset in readable
        }
        print(table(results), flush=True)
    REPORT.write_text(written(results))


if __name__ == "__main__":
    main()
