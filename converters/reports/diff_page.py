"""The page of a diff: ``specops diff A.onnx B.onnx --report FILE.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from markupsafe import Markup

from converters.reports import neighborhood, plots
from converters.reports.formats import errors, shortened
from converters.reports.page import write
from converters.validation.diff import Diff, ValueDifference
from converters.validation.onnx_model import files_of


def write_diff(path: Path, diff: Diff) -> None:
    """Write the page."""
    rows = sorted({row.name: row for row in (*diff.values, *diff.outputs)}.values(), key=lambda row: row.place)
    anchors = {row.name: f"value-{place}" for place, row in enumerate(rows)}
    write(
        path,
        "diff.html",
        [file for model in diff.paths for file in files_of(model)],
        title=f"{diff.paths[0].name} and {diff.paths[1].name}: {'agree' if diff.agrees else 'differ'}",
        diff=diff,
        rows=rows,
        anchors=anchors,
        errors=_error_plot(diff, rows, anchors) if rows else None,
        graph=_difference(diff, rows, anchors),
        histograms=[
            (
                one,
                plots.histograms(
                    one, diff.paths[0].name, diff.paths[1].name, f"Histograms of {one.of.name} and of its errors"
                ),
            )
            for one in diff.worst
        ],
    )


def _error_plot(diff: Diff, rows: Sequence[ValueDifference], anchors: dict[str, str]) -> Markup:
    points = [
        plots.Point(
            place,
            anchors[row.name],
            f"{row.name} ({row.operators[0]}): {errors(found.relative_l2, found.exact)}",
            found.relative_l2,
            found.exact,
        )
        for place, row in enumerate(rows)
        if (found := row.comparison).relative_l2 is not None
    ]
    described = f"The relative L2 error and the fraction of exact elements of {len(points)} values that both models have"
    return plots.error_plot({diff.paths[1].name: points}, described, "values in their order")


def _difference(diff: Diff, rows: Sequence[ValueDifference], anchors: dict[str, str]) -> Markup | None:
    """Return a drawing of the first model's nodes around the first value that differs."""
    if diff.first is None or diff.first.place < 0:
        return None
    nodes = onnx.load(diff.paths[0], load_external_data=False).graph.node
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    before = {place: [makers[name] for name in node.input if name in makers] for place, node in enumerate(nodes)}
    behind: dict[int, list[int]] = {}
    for place, sources in before.items():
        for source in sources:
            behind.setdefault(source, []).append(place)
    shown = sorted(neighborhood.around(diff.first.place, before, behind))
    by_place = {row.place: row for row in rows}
    drawn = {}
    for place in shown:
        row, node = by_place.get(place), nodes[place]
        lines = [shortened(node.output[0], 30), node.op_type]
        if row is not None:
            lines.append(errors(row.comparison.relative_l2, row.comparison.exact, name="L2"))
        kind = "" if row is None else "good" if row.comparison.agrees else "bad"
        kind += " center" if place == diff.first.place else ""
        drawn[place] = neighborhood.Node(lines, kind.strip(), anchors[row.name] if row else "")
    edges = [(source, place) for place in shown for source in before[place]]
    return neighborhood.drawing(drawn, edges, f"The nodes around {diff.first.name}")
