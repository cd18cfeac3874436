"""The page of a validation: ``specops validate MODEL.xml --report FILE.html``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from converters.formats import format_of
from converters.reports import neighborhood, plots
from converters.reports.formats import dims, errors, number, shortened
from converters.reports.page import write
from converters.source import Layer
from converters.validation.compare import Comparison
from converters.validation.distributions import Distribution
from converters.validation.nodes import LayerNode
from converters.validation.times.measure import LayerTimes, Times
from converters.validation.validate import LayerDifference, Validation

_SLOWEST = 20
_SHORT = {"native": "native", "python": "Python", "none": "no plugin", "reference": "reference"}


@dataclass(frozen=True)
class _Row:
    """An output of a layer in the table."""

    anchor: str
    layer: LayerDifference
    cells: list[Comparison | None]
    nodes: list[_Node]


@dataclass(frozen=True)
class _Node:
    """A node of the conversion in the table, with the rows of the layers that it computes."""

    anchor: str
    node: LayerNode
    layers: list[_Row]


def write_validation(path: Path, validation: Validation) -> None:
    """Write the page.

    Args:
        path: the .html file.
        validation: a result with ``per_layer`` and, for the times, ``times``.
    """
    with format_of(validation.path).open(validation.path) as source:
        layers, files = source.layers, source.files
    runtimes = list(dict.fromkeys(row.runtime for row in validation.layers))
    rows = _rows(validation, runtimes)
    nodes = _with_nodes(rows, validation.nodes)
    times = validation.times
    write(
        path,
        "validation.html",
        files,
        title=f"{validation.path.name}: {'agrees' if validation.agrees else 'differs'}",
        validation=validation,
        names=validation.names,
        short=_SHORT,
        runtimes=runtimes,
        rows=rows,
        nodes=nodes,
        anchors={row.layer.layer_id: row.anchor for row in reversed(rows)},
        errors=_error_plot(rows, runtimes, validation.names) if rows else None,
        parting=_difference(layers, validation, rows),
        histograms=_histograms(validation),
        times=times,
        bars=_bars(times) if times else None,
        time_rows=sorted(times.layers, key=_slowness, reverse=True) if times else [],
        label=_label,
    )


def _rows(validation: Validation, runtimes: Sequence[str]) -> list[_Row]:
    found: dict[tuple[int, int], dict[str, LayerDifference]] = {}
    for row in validation.layers:
        found.setdefault((row.layer_id, row.output), {})[row.runtime] = row
    rows = []
    for (layer, output), by_runtime in found.items():
        cells = [by_runtime[name].comparison if name in by_runtime else None for name in runtimes]
        rows.append(_Row(f"layer-{layer}-{output}", next(iter(by_runtime.values())), cells, []))
    return rows


def _with_nodes(rows: Sequence[_Row], nodes: Sequence[LayerNode]) -> list[_Node]:
    """Return the nodes with the rows of their layers, and set the node of each row."""
    by_layer = {(row.layer.layer_id, row.layer.output): row for row in rows}
    found = []
    for place, node in enumerate(nodes):
        shown = _Node(f"node-{place}", node, [by_layer[layer] for layer in node.layers if layer in by_layer])
        for row in shown.layers:
            row.nodes.append(shown)
        found.append(shown)
    return found


def _error_plot(rows: Sequence[_Row], runtimes: Sequence[str], names: Mapping[str, str]) -> Markup:
    series = {
        names[name]: [
            plots.Point(x, row.anchor, _description(row.layer, cell), cell.relative_l2, cell.exact)
            for x, row in enumerate(rows)
            if (cell := row.cells[place]) is not None and cell.relative_l2 is not None
        ]
        for place, name in enumerate(runtimes)
    }
    worst = max((p.relative_l2 for points in series.values() for p in points), default=0.0)
    described = (
        f"The relative L2 error and the fraction of exact elements of {len(rows)} outputs of layers in {len(runtimes)} "
        f"runtimes, in the order of the network. The largest error is {number(worst)}. The table of layers has all figures."
    )
    return plots.error_plot(series, described, "layers in their order")


def _description(layer: LayerDifference, found: Comparison) -> str:
    return f"{layer.layer_name} ({layer.layer_type}), line {layer.line}: {errors(found.relative_l2, found.exact)}"


@dataclass(frozen=True)
class _Difference:
    """The first layer at which runtimes differ or, if none do, the one with the largest difference."""

    found: list[LayerDifference]
    graph: Markup


def _difference(layers: Sequence[Layer], validation: Validation, rows: Sequence[_Row]) -> _Difference | None:
    found = validation.first_differences
    if not found:
        worst = max(validation.worst, key=lambda one: one.of.comparison.relative_l2 or 0.0, default=None)
        if worst is None:
            return None
        found = [worst.of]
    places = {row.anchor: place for place, row in enumerate(rows)}
    center = min(found, key=lambda row: places[f"layer-{row.layer_id}-{row.output}"]).layer_id
    by_id = {layer.id: layer for layer in layers}
    kept = [layer for layer in layers if layer.kind != "constant"]
    before = {layer.id: [other for other in layer.before if by_id[other].kind != "constant"] for layer in kept}
    behind: dict[int, list[int]] = {layer.id: [] for layer in kept}
    for layer in kept:
        for other in before[layer.id]:
            behind[other].append(layer.id)
    shown = sorted(neighborhood.around(center, before, behind), key=list(by_id).index)
    by_layer: dict[int, list[_Row]] = {}
    for row in rows:
        by_layer.setdefault(row.layer.layer_id, []).append(row)
    nodes = {id_: _node(by_id[id_], by_layer.get(id_, []), id_ == center) for id_ in shown}
    edges = [(one, other) for other in shown for one in before[other]]
    names = ", ".join(f"{by_id[id_].name} ({by_id[id_].type})" for id_ in shown)
    return _Difference(found, neighborhood.drawing(nodes, edges, f"The layers around {by_id[center].name}: {names}"))


def _node(layer: Layer, rows: Sequence[_Row], center: bool) -> neighborhood.Node:
    cells = [cell for row in rows for cell in row.cells if cell is not None]
    worst = max((cell.relative_l2 for cell in cells if cell.relative_l2 is not None), default=None)
    lines = [shortened(layer.name, 30), layer.type + (f"  {dims(layer.dims[0])}" if layer.dims else "")]
    if worst is not None:
        lines.append(errors(worst, min(cell.exact for cell in cells), name="L2"))
    kind = "" if not cells else "good" if all(cell.agrees for cell in cells) else "bad"
    return neighborhood.Node(lines, f"{kind} center" if center else kind, rows[0].anchor if rows else "")


def _histograms(validation: Validation) -> list[tuple[Distribution[LayerDifference], Markup]]:
    baseline = validation.names[validation.baseline]
    drawn = []
    for one in validation.worst:
        described = f"Histograms of {one.of.layer_name}, output {one.of.output}: its values, and the sizes of its errors"
        drawn.append((one, plots.histograms(one, baseline, validation.names[one.of.runtime], described)))
    return drawn


def _slowness(row: LayerTimes) -> float:
    return (row.baseline or 0.0) + (row.onnxruntime or 0.0)


def _bars(times: Times) -> Markup | None:
    slowest = sorted(times.layers, key=_slowness, reverse=True)[:_SLOWEST]
    if not slowest:
        return None
    rows = [(_label(row.layers), row.baseline, row.onnxruntime) for row in slowest]
    described = (
        f"The times of the {len(rows)} slowest groups of layers in {times.title} and in ONNX Runtime. The table has all"
    )
    return plots.time_bars(rows, (times.title, "ONNX Runtime"), described)


def _label(layers: Sequence[Layer]) -> str:
    """Return a label for layers: the name of the last one, whose output they compute."""
    last = layers[-1]
    return last.name + (f" +{len(layers) - 1}" if len(layers) > 1 else "")
