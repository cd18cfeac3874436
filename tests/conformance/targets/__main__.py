"""The matrix of networks and consumers: ``python -m tests.conformance.targets FOLDER [--consumers A,B] [--networks A,B]``.

The folder contains the networks, an environment for each consumer, and ``results.json``. Several drivers may share it.
``python -m docs.make`` writes docs/targets.md from the copy next to this file, which ``--record`` updates.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from converters.validation.compare import Tolerance, compare
from tests.conformance.targets import networks
from tests.conformance.targets.consumers.table import CONSUMERS, Consumer, ConsumerError
from tests.conformance.targets.selection import EXPORTED, FILES, HELD_OUT
from tests.conformance.targets.sharing import add_results

RESULTS = Path(__file__).parent / "results.json"


def converted(folder: Path, form: str) -> Path:
    """Return the network's ONNX model for a target, or PyTorch's own export.

    Raises:
        ConsumerError: there is no model.
    """
    if form == "direct":
        path = folder / "direct.onnx"
        if not path.exists():
            reason = path.with_suffix(".txt")
            raise ConsumerError(reason.read_text() if reason.exists() else "no direct export")
        return path
    from converters.openvino import convert

    path = folder / f"{form}.onnx"
    if not path.exists():
        try:
            convert(folder / "model.xml", path, target=form)
        except Exception as error:
            text = " ".join(str(error).replace(f"{folder}/", "").split())
            raise ConsumerError(f"not converted: {text[:600]}") from error
    return path


def departure_of(folder: Path) -> str:
    """Return how OpenVINO's CPU plugin departs from the expected results of a network, if it does."""
    path = folder / networks.DEPARTURE
    return path.read_text() if path.exists() else ""


def judge(consumer: Consumer, folder: Path, form: str, environments: Path) -> str:
    """Return ``""`` if the consumer agrees with OpenVINO, otherwise the reason."""
    try:
        model = converted(folder, form)
    except ConsumerError as error:
        return str(error)
    proto = onnx.load(model, load_external_data=False)
    given, constants = np.load(folder / "inputs.npz"), {value.name for value in proto.graph.initializer}
    inputs = folder / f"{form}-{consumer.name}.npz"
    if form == "direct":  # an export omits unused inputs
        kept = {value.name for value in proto.graph.input}
        named = {f"input_{index}": given[name] for index, name in enumerate(given.files)}
        named = {name: array for name, array in named.items() if name in kept}
    else:
        names = [value.name for value in proto.graph.input if value.name not in constants]
        named = dict(zip(names, given.values(), strict=True))
    np.savez(inputs, **named)
    try:
        found = consumer.run(model, inputs, [value.name for value in proto.graph.output], environments)
    except ConsumerError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]
    files = [path for name in ("expected", "specified") if (path := folder / f"{name}.npz").exists()]
    reasons = [_difference(found, list(np.load(path).values()), consumer) for path in files]
    return "" if "" in reasons else reasons[0]


def _difference(found: list[np.ndarray], expected: list[np.ndarray], consumer: Consumer) -> str:
    """Return ``""`` if a consumer's outputs agree, otherwise the difference."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, not {len(expected)}"
    for index, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.size != b.size:
            return f"output {index} has the shape {list(a.shape)}, not {list(b.shape)}"
        a = a.reshape(b.shape)
        a = a.astype(b.dtype) if a.dtype.kind != b.dtype.kind or a.dtype.itemsize != b.dtype.itemsize else a
        outcome = compare(a, b, Tolerance(*consumer.error))
        if not outcome.agrees:
            return f"wrong: output {index}, largest error {outcome.max_absolute}"
    return ""


def main() -> None:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--consumers", default="", help="their names; by default all")
    parser.add_argument("--networks", default="", help="KEPT, a list of selection.py, or names of networks; by default all")
    parser.add_argument("--forms", default="", help="targets, or direct; by default the consumer's own target and direct")
    parser.add_argument("--record", action="store_true", help="write the results next to this file")
    arguments = parser.parse_args()
    lists = {"KEPT": networks.KEPT, "EXPORTED": EXPORTED, "FILES": FILES, "HELD_OUT": HELD_OUT}
    chosen = [n for word in arguments.networks.split(",") if word for n in lists.get(word, [word])]
    chosen = chosen or [n for names in lists.values() for n in names]
    wanted = arguments.consumers.split(",") if arguments.consumers else [c.name for c in CONSUMERS]
    path = arguments.folder / "results.json"
    results: dict[str, Any] = {}
    for consumer in (c for c in CONSUMERS if c.name in wanted):
        counts: Counter[str] = Counter()
        version = consumer.version(arguments.folder / "environments")
        results = add_results(path, {"versions": {consumer.name: version}})
        for name in chosen:
            try:
                folder = networks.make(name, arguments.folder / "networks")
            except Exception as error:  # an exception of the network's library
                print(f"{name}: {' '.join(str(error).split())[:200]}")
                continue
            add_results(path, {"departures": {name: departure_of(folder)}})
            for form in arguments.forms.split(",") if arguments.forms else (consumer.target, "direct"):
                if form == "direct" and name not in EXPORTED + HELD_OUT:
                    continue
                started = time.perf_counter()
                reason = judge(consumer, folder, form, arguments.folder / "environments")
                seconds = time.perf_counter() - started
                key = form if form != consumer.target else "target"
                results = add_results(path, {consumer.name: {key: {name: reason}}})
                counts[key] += not reason
                print(
                    f"{consumer.name:16} {form:12} {name:32} {seconds:5.1f} s  {reason[:300] or 'agrees'}",
                    flush=True,
                )
        print(consumer.name, dict(counts), "of", len(chosen), flush=True)
    if arguments.record:
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
