"""The nodes that simplifiers remove from files: ``python -m tests.conformance.targets.simplifiers FOLDER FILE...``.

Each file is an IR, or a folder of IRs. It is converted for a target, by default the default target, and simplified by
onnxslim and onnxsim in an environment of FOLDER. The command prints the number of nodes of each file, without those that
compute with constants only, and the operators of all files that a simplifier removes or adds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

from converters.openvino import convert
from tests.conformance.targets.consumers.table import Consumer
from tests.conformance.targets.processes import Worker

SIMPLIFIERS = Consumer("simplifiers", "simplify.py", "onnxruntime", ("onnxslim", "onnxsim", "onnxruntime"))


def simplified(model: Path, tool: str, worker: Worker) -> tuple[Counter[str], Counter[str]]:
    """Return the operators of a file before and after a tool, without those that compute with constants only.

    Raises:
        RuntimeError: the tool does not simplify it.
    """
    results = model.with_suffix(".json")
    if error := worker.run(str(model), str(results), tool):
        raise RuntimeError(error[-200:])
    before, after, _ = json.loads(results.read_text())
    return Counter(before), Counter(after)


def main() -> None:
    """Count the nodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--tools", default="onnxslim,onnxsim")
    arguments = parser.parse_args()
    worker = Worker(SIMPLIFIERS, arguments.folder / "environments", timeout=300)
    files = [file for given in arguments.files for file in (sorted(given.rglob("*.xml")) if given.is_dir() else [given])]
    totals = {tool: [Counter[str](), Counter[str]()] for tool in arguments.tools.split(",")}
    with tempfile.TemporaryDirectory() as name, closing(worker):
        for file in files:
            model = Path(name) / "model.onnx"
            try:
                convert(file, model, target=arguments.target)
            except Exception as error:
                print(f"{file}: {' '.join(str(error).split())[:200]}")
                continue
            for tool, (removed, added) in totals.items():
                try:
                    before, after = simplified(model, tool, worker)
                except RuntimeError as error:
                    print(f"{file}: {tool}: {error}")
                    continue
                print(f"{file}: {tool}: {before.total()} -> {after.total()}", dict(before - after), dict(after - before))
                removed.update(before - after)
                added.update(after - before)
    for tool, (removed, added) in totals.items():
        print(f"{tool} removes {removed.total()}: {removed.most_common()}")
        print(f"{tool} adds {added.total()}: {added.most_common()}")


if __name__ == "__main__":
    main()
