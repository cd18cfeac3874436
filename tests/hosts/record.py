"""Record which of the domain's operators run as bodies in ONNX Runtime for Node and the web.

docs/operators.md shows the result::

    npm ci --ignore-scripts --prefix examples && apt-get install chromium
    python -m tests.hosts.record && python -m docs.make      # all operators, or those that are named
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hosts.javascript import faults, missing, version
from tests.hosts.subjects import Subject, subjects, with_bodies, write

RECORD = Path(__file__).with_name("operators.json")
HOSTS = ("node", "web")


def measured(host: str, found: Sequence[Subject], manifest: Path) -> dict[str, dict[str, Any]]:
    """Return, for each operator, the number of models that run and agree in a host, the total, and the faults of the
    others.
    """
    wrong = faults(host, manifest)
    entries: dict[str, dict[str, Any]] = {}
    for subject in found:
        entry = entries.setdefault(subject.operator, {"models": 0, "agree": 0, "faults": []})
        entry["models"] += 1
        fault = wrong.get(subject.key, "not tried: one before it ends the process")
        entry["agree"] += not fault
        entry["faults"] += [f"{subject.key}: {fault}"] if fault else []
    return entries


def main(names: Sequence[str]) -> int:
    if reasons := [reason for host in HOSTS if (reason := missing(host))]:
        print("\n".join(reasons), file=sys.stderr)
        return 1
    record: dict[str, Any] = {}
    known: Mapping[str, Any] = json.loads(RECORD.read_text()) if names else {}
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        models.mkdir()
        found = list(subjects(Path(folder) / "ir", names))
        manifest = write(found, models)
        for host in HOSTS:
            entries = {**known.get(host, {}).get("operators", {}), **measured(host, found, manifest)}
            ordered = {name: entries[name] for name in with_bodies() if name in entries}
            record[host] = {"runtime": version(host), "operators": ordered}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    for host in HOSTS:
        entries = record[host]["operators"]
        agreeing = sum(entry["agree"] == entry["models"] for entry in entries.values())
        print(f"{record[host]['runtime']}: {agreeing} of {len(entries)} operators")
        for fault in (fault for entry in entries.values() for fault in entry["faults"]):
            print(f"  {fault}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
