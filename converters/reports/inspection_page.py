"""The page of an inspection: ``specops inspect MODEL.xml --report FILE.html``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from converters.inspection import Inspection
from converters.reports import plots
from converters.reports.page import write

_MAX_TYPES = 30
_LONGEST_TEXT = 300


def write_inspection(path: Path, inspection: Inspection) -> None:
    """Write the page."""
    held = inspection.contents
    counts: Counter[str] = Counter()
    for row in inspection.rows:
        counts[row.type] += row.count
    shown = counts.most_common(_MAX_TYPES)
    write(
        path,
        "inspection.html",
        inspection.files,
        title=f"{inspection.path.name}: {held.layers} layers",
        inspection=inspection,
        contents=held,
        information={name: value for name, value in held.information.items() if len(value) <= _LONGEST_TEXT},
        counts=plots.count_bars(shown, "layers", f"The number of layers of each of {len(shown)} types; the table has all"),
        weights=plots.count_bars(
            [(kind.element_type, kind.bytes / 2**20) for kind in held.weights],
            "MiB of weights",
            "The weights by element type; the table has all figures",
        )
        if held.weights
        else None,
    )
