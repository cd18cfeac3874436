"""docs/departures.md: differences between OpenVINO's CPU plugin and its specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from converters.openvino.coverage.departures import declared_departures
from converters.openvino.rule import EVERYWHERE, Departure
from docs.parts.markdown import source, table


def tables() -> Iterator[str]:
    """The differences of all operations, then those of each module of rules."""
    headings = ("where", "CPU plugin", "specification", "follows", "release")
    declared = declared_departures()
    yield f"There are {len(EVERYWHERE) + len(declared)} known differences."
    yield ""
    yield "## All operations"
    yield ""
    yield from table(headings, map(_cells, EVERYWHERE))
    for module, rows in groupby(declared, key=lambda one: one.module):
        yield ""
        yield f"## {source(module)}"
        yield ""
        cells = ((_versioned(row.versions), *_cells(row.departure)) for row in rows)
        yield from table(("operations", *headings), cells)


def _cells(departure: Departure) -> tuple[str, ...]:
    reference = f"*reference:* {departure.reference}" if departure.reference else ""
    other = "; ".join(filter(None, (departure.specification, reference)))
    cpu = f"with AVX-512, {departure.cpu}" if departure.avx512 else departure.cpu
    return departure.where, cpu, other, departure.follows.replace("cpu", "CPU plugin"), departure.release


def _versioned(versions: Mapping[str, Sequence[int]]) -> str:
    """Format operations with their versions: ``Gather-1, -7``."""
    return ", ".join(f"{name}{', '.join(f'-{number}' for number in numbers)}" for name, numbers in versions.items())
