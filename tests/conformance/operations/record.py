"""Record the conversion of the operations in conformance cases, and the number of cases that pass.

``specops inspect --all-operations`` and docs/operations.md show the result::

    python -m tests.conformance.operations.record          # all operations; some minutes
    python -m tests.conformance.operations.record Pad OneHot
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import openvino as ov

from converters.openvino.coverage.operations import Operation, operations
from converters.openvino.coverage.table import RECORD
from converters.openvino.reader.read import read
from converters.openvino.walk import emit
from onnx_specops.domain import DOMAIN
from tests.conformance.case import Case
from tests.conformance.check import check
from tests.conformance.operations.cases import CASES
from tests.conformance.oracle import Oracle

Entry = dict[str, bool | int | list[str]]


def cases_by_operation() -> dict[tuple[str, str], list[Case]]:
    """Return the cases of each operation and version, as the IR spells them."""
    found = defaultdict(list)
    for case in CASES:
        found[case.operation, case.version].append(case)
    return found


def becomes(case: Case, folder: Path) -> set[str]:
    """Return the domain's operators to which the tested layers are converted."""
    return {
        name.removeprefix(f"{DOMAIN}.")
        for (layer_type, version), names in emit(read(case.save(folder))).becomes.items()
        if (layer_type.lower(), version) == (case.operation.lower(), case.version)
        for name in names
        if name.startswith(f"{DOMAIN}.")
    }


def record(operation: Operation) -> Entry:
    """Run one operation's cases.

    Returns:
        ``"standard"``: whether some models only use standard ONNX; ``"custom"``: the domain's operators in others;
        ``"cases"`` and ``"passed"``: the numbers of cases compared with OpenVINO, and of those that agree.
    """
    cases = cases_by_operation()[operation.name, operation.version]
    operators, passed = [], 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            operators.append(becomes(case, Path(folder)))
            try:
                check(case, _oracle(), Path(folder))
                passed += 1
            except Exception as error:
                print(f"{case.id}: {error}", file=sys.stderr, flush=True)
    custom = sorted(set().union(*operators))
    return {"standard": not all(operators), "custom": custom, "cases": len(cases), "passed": passed}


_oracle = functools.cache(Oracle)
"""The oracle of the process."""


def main(names: Sequence[str]) -> None:
    """Record the operations called ``names``, or all."""
    path = Path(str(RECORD))
    entries = json.loads(path.read_text())["operations"] if names else {}
    chosen = [operation for operation in operations() if not names or operation.name in names]
    with ProcessPoolExecutor() as processes:
        for operation, entry in zip(chosen, processes.map(record, chosen), strict=True):
            entries[str(operation)] = entry
            print(operation, entry, flush=True)
    lines = [f"{json.dumps(str(o))}: {json.dumps(entries[str(o)])}" for o in operations() if str(o) in entries]
    version = json.dumps(ov.get_version().split("-")[0])
    path.write_text(f'{{"openvino": {version}, "operations": {{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
