"""All operations of OpenVINO's opsets.

The list (``operations.csv``) is generated from the headers in the ``openvino`` wheel::

    python -m converters.openvino.coverage.operations
"""

from __future__ import annotations

import csv
import functools
import importlib.resources
import re
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path

_TABLE = importlib.resources.files("converters.openvino.coverage") / "operations.csv"


@dataclass(frozen=True, order=True)
class Operation:
    """One version of an operation.

    Attributes:
        name: the operation, as its specification spells it.
        number: the version number, from the C++ namespace of the class (0 and 1 usually mean opset 1).
        version: the version of its layers in an IR: ``"opset1"``.
        first: the first opset that contains it.
        last: the last opset that contains it.
    """

    name: str
    number: int
    version: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.name}-{self.number}"


@functools.cache
def operations() -> tuple[Operation, ...]:
    """Return all operations of opset1 to opset17, sorted by name and version."""
    return tuple(
        Operation(row["name"], int(row["number"]), row["version"], int(row["first"]), int(row["last"]))
        for row in csv.DictReader(_TABLE.read_text(encoding="utf-8").splitlines())
    )


def read_headers(include: Path) -> tuple[Operation, ...]:
    """Return the operations that OpenVINO's C++ headers declare.

    Args:
        include: the folder of ``openvino/opsets`` and ``openvino/op``.
    """
    opsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for table in (include / "openvino" / "opsets").glob("opset*_tbl.hpp"):
        number = int(re.sub(r"\D", "", table.name))
        for name, version in re.findall(r"^_OPENVINO_OP_REG\((\w+), ov::op::v(\d+)\)", table.read_text(), re.MULTILINE):
            opsets[name, int(version)].append(number)
    versions = _versions(include / "openvino" / "op")
    return tuple(
        sorted(
            Operation(name, number, versions[name, number], min(found), max(found))
            for (name, number), found in opsets.items()
        )
    )


def _versions(folder: Path) -> dict[tuple[str, int], str]:
    """Return class name and namespace -> the version that the class declares for its layers."""
    versions = {}
    for header in sorted(folder.glob("*.hpp")):
        namespace, name = -1, ""
        for line in header.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"namespace (?:ov::op::)?v(\d+) \{", line):
                namespace = int(match[1])
            elif match := re.search(r"\bclass (?:OPENVINO_API )?(\w+)\b[^;]*$", line):
                name = match[1]
            elif match := re.search(r'\bOPENVINO_OP\("\w+",\s*"(\w+)"', line):
                versions[name, namespace] = match[1]
    return versions


def main() -> None:
    """Generate the table from the headers of the installed wheel."""
    import openvino

    found = read_headers(Path(openvino.__file__).parent / "include")
    columns = [field.name for field in fields(Operation)]
    with Path(str(_TABLE)).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([getattr(operation, column) for column in columns] for operation in found)
    print(f"{len(found)} operations")


if __name__ == "__main__":
    main()
