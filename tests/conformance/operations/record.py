"""Writes down what the operations of the conformance cases become, for ``specops inspect --all-operations`` and docs/.

python -m tests.conformance.operations.record          # all operations; some minutes
python -m tests.conformance.operations.record Pad OneHot
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from converters.openvino.conversion import emit
from converters.openvino.coverage import RECORD
from converters.openvino.ir import read
from converters.openvino.operations import operations
from onnx_specops.domain import DOMAIN
from tests.conformance.case import Case
from tests.conformance.operations.cases import CASES

Entry = dict[str, bool | list[str]]


def becomes(cases: Sequence[Case]) -> Entry:
    """What the layers under test become in the models of one operation's cases.

    Returns:
        ``"standard"``: whether there are models in which they become standard ONNX alone; ``"custom"``: the domain's
        operators that they become in others.
    """
    standard, custom = False, set()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            emitted = emit(read(case.save(Path(folder))))
            found = {
                name
                for (layer_type, version), names in emitted.becomes.items()
                if (layer_type.lower(), version) == (case.operation.lower(), case.version)
                for name in names
            }
            operators = {name.removeprefix(f"{DOMAIN}.") for name in found if name.startswith(f"{DOMAIN}.")}
            standard |= not operators
            custom |= operators
    return {"standard": standard, "custom": sorted(custom)}


def main(names: Sequence[str]) -> None:
    """Record the operations called ``names``, or all."""
    by_operation = defaultdict(list)
    for case in CASES:
        by_operation[case.operation, case.version].append(case)
    path = Path(str(RECORD))
    known = {str(operation): operation for operation in operations()}
    record = {name: entry for name, entry in json.loads(path.read_text()).items() if names and name in known}
    for name, operation in known.items():
        cases = by_operation[operation.name, operation.version]
        if cases and (not names or operation.name in names):
            record[name] = becomes(cases)
            print(name, record[name], flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(record[name])}" for name in known if name in record]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
