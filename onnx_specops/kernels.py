"""ONNX Runtime's kernel tables for CPU: the element types of each operator.

Older releases have kernels for fewer types. A converted file must not depend on the installed release, so the tables of two
releases are stored: kernels.json has the oldest supported one, newest_kernels.json the newest that was tested. A type counts
as supported only if both tables contain it. If the oldest release lacks the operator, only the newest table counts.

The kernel list of the installed package is not used, because reading it loads every execution provider. This fails for
onnxruntime-gpu on a machine without a GPU.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

Constraints = dict[str, frozenset[str]]
Table = dict[tuple[str, str], list[tuple[int, int, Constraints]]]

OLDEST = Path(__file__).with_name("kernels.json")
NEWEST = Path(__file__).with_name("newest_kernels.json")

# Types that a kernel is registered for but rejects at run time.
_UNFINISHED = {("", "GRU"): frozenset({"tensor(double)"}), ("", "LSTM"): frozenset({"tensor(double)"})}


def rows() -> list[dict[str, Any]]:
    """Return the table of the installed onnxruntime, which must be the package for CPUs."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return [
        {
            "domain": kernel.domain,
            "operator": kernel.op_name,
            "first": kernel.version_range[0],
            "last": kernel.version_range[1],
            "types": {name: sorted(types) for name, types in kernel.type_constraints.items()},
        }
        for kernel in state.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider"
    ]


def _table(kernels: list[dict[str, Any]]) -> Table:
    table: Table = defaultdict(list)
    for kernel in kernels:
        key = (kernel["domain"], kernel["operator"])
        lacking = _UNFINISHED.get(key, frozenset())
        types = {name: frozenset(types) - lacking for name, types in kernel["types"].items()}
        table[key].append((kernel["first"], kernel["last"], types))
    return dict(table)


@functools.cache
def _stored(path: Path) -> Table:
    """Return ``(domain, operator)`` -> ``(first opset, last opset, type variable -> types)`` of a stored release."""
    return _table(json.loads(path.read_text()))


def kernels(domain: str, operator: str, version: int, *, portable: bool) -> list[Constraints] | None:
    """Return the types of each kernel for a version of an operator; ``None`` for an operator without kernels.

    ``portable`` selects the types that both releases support, otherwise those of the newest.
    """
    newest = _of_version(_stored(NEWEST), domain, operator, version)
    if newest is None or not portable:
        return newest
    oldest = _of_version(_stored(OLDEST), domain, operator, version) or [{}]
    return [_both(some, others) for some in newest for others in oldest]


def _of_version(table: Table, domain: str, operator: str, version: int) -> list[Constraints] | None:
    found = table.get((domain, operator))
    if found is None:
        return None
    return [types for first, last, types in found if first <= version <= last or first == version]


def _both(some: Constraints, others: Constraints) -> Constraints:
    shared = {name: some[name] & others[name] for name in some.keys() & others.keys()}
    return {**some, **others, **shared}


def main() -> None:
    """Write the file of the command line, in an environment with its release. The script needs nothing else."""
    path = {"oldest": OLDEST, "newest": NEWEST}[sys.argv[1]]
    path.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows()) + "\n]\n")


if __name__ == "__main__":
    main()
