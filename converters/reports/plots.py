"""Plots as SVG with the colors of the page, for both themes."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from converters.reports.formats import duration, number, shortened
from converters.reports.page import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from converters.validation.distributions import Distribution

# The style sheet replaces these colors.
_INK, _LINE = "#101010", "#202020"
_SERIES = ("#300001", "#300002", "#300003", "#300004", "#300005")
_COLOURS = {_INK: "var(--ink)", _LINE: "var(--line)"} | {c: f"var(--series{i})" for i, c in enumerate(_SERIES)}
_MARKERS = ("o", "s", "^", "D", "v")
# Points at the same position all remain visible.
_SIZES = (30, 15, 7, 4, 3)
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "specops",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
# With more points, none of them is a link.
_MAX_LINKS = 6000
# A smaller range of errors may contain no power of ten as a label.
_DECADES = 100


@dataclass(frozen=True)
class Point:
    """The error of a value.

    Attributes:
        x: its position.
        anchor: its anchor on the page.
        title: its title.
        relative_l2: its relative L2 error.
        exact: its fraction of exact elements.
    """

    x: int
    anchor: str
    title: str
    relative_l2: float
    exact: float


def error_plot(series: Mapping[str, Sequence[Point]], described: str, xlabel: str) -> Markup:
    """Plot relative L2 errors and fractions of exact elements over the depth of a network.

    Args:
        series: the points of each runtime.
        described: the description for screen readers.
        xlabel: the meaning of the positions.
    """
    errors = [p.relative_l2 for points in series.values() for p in points if 0 < p.relative_l2 < math.inf]
    low, high = (min(errors), max(errors)) if errors else (1e-7, 1e-6)
    floor, ceiling = 10 ** (math.floor(math.log10(low)) - 0.7), 10 ** (math.ceil(math.log10(high) + 0.01) + 0.3)
    titles = {point.anchor: point.title for points in series.values() for point in points}
    linked = sum(map(len, series.values())) <= _MAX_LINKS
    with _figure(2, 1, (7.5, 3.8), sharex=True, height_ratios=(2, 1)) as (figure, (above, below)):
        for place, (name, points) in enumerate(series.items()):
            look: dict[str, Any] = {
                "s": _SIZES[place % len(_SIZES)] if len(series) > 1 else _SIZES[1],
                "color": _SERIES[place % len(_SERIES)],
                "marker": _MARKERS[place % len(_MARKERS)],
                "linewidths": 0,
                "alpha": 0.8,
            }
            xs = [point.x for point in points]
            shown = [min(max(point.relative_l2, floor * 1.5), ceiling / 1.5) for point in points]
            for axes, ys in ((above, shown), (below, [100 * point.exact for point in points])):
                drawn = axes.scatter(xs, ys, label=name, **look)
                if linked:
                    drawn.set_urls([f"anchor:{point.anchor}" for point in points])
        above.set(yscale="log", ylim=(floor, ceiling), ylabel="relative L2 error")
        above.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0, handletextpad=0.2)
        below.set(ylim=(-4, 104), ylabel="exact, %", xlabel=xlabel)
        return _svg(figure, described, titles)


def histograms(distribution: Distribution, expected: str, got: str, described: str) -> Markup:
    """Plot expected and actual values of a tensor, and the sizes of the errors."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    with _figure(1, 2, (7.2, 2.3)) as (figure, (values, errors)):
        for name, counts, color, width in (
            (expected, distribution.expected, _SERIES[0], 3.2),
            (got, distribution.got, _SERIES[1], 1.2),
        ):
            values.stairs(counts, distribution.edges, color=color, linewidth=width, label=name)
        values.set(title="values", ylabel="elements")
        values.set_yscale("symlog", linthresh=1)
        values.locator_params(axis="x", nbins=5)
        values.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=9, ncols=2, columnspacing=1)
        errors.stairs(distribution.errors, distribution.error_edges, color=_SERIES[1], fill=True)
        errors.set(title="absolute errors of those that differ", xscale="log")
        errors.xaxis.set_major_locator(LogLocator(numticks=5))
        errors.xaxis.set_minor_formatter(NullFormatter())
        if distribution.error_edges[-1] / (distribution.error_edges[0] or 1e-300) < _DECADES:
            errors.set_xticks([distribution.error_edges[0], distribution.error_edges[-1]])
            errors.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
        return _svg(figure, described)


def time_bars(rows: Sequence[tuple[str, float | None, float | None]], names: tuple[str, str], described: str) -> Markup:
    """Plot the times of two runtimes in seconds, for each row with its name."""
    with _figure(1, 1, (7.5, 0.7 + 0.34 * len(rows))) as (figure, axes):
        places = range(len(rows))
        for shift, name, color, seconds in (
            (-0.19, names[0], _SERIES[0], [row[1] for row in rows]),
            (0.19, names[1], _SERIES[1], [row[2] for row in rows]),
        ):
            lengths = [(time or 0.0) * 1e3 for time in seconds]
            bars = axes.barh([place + shift for place in places], lengths, 0.36, color=color, label=name)
            axes.bar_label(bars, [duration(time) or "nothing" for time in seconds], padding=3, fontsize=8)
        axes.set_yticks(list(places), [shortened(row[0], 44) for row in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.12, y=0.5 / max(len(rows), 1))
        axes.set_xlabel("ms of an inference")
        axes.legend(loc="lower right")
        return _svg(figure, described)


def count_bars(rows: Sequence[tuple[str, float]], label: str, described: str) -> Markup:
    """Plot a bar for each row: its name and a number."""
    with _figure(1, 1, (7.5, 0.7 + 0.22 * len(rows))) as (figure, axes):
        bars = axes.barh(range(len(rows)), [row[1] for row in rows], 0.7, color=_SERIES[0])
        axes.bar_label(bars, [number(row[1]) if row[1] < 10 else f"{row[1]:,.0f}" for row in rows], padding=3, fontsize=8)
        axes.set_yticks(range(len(rows)), [shortened(row[0], 44) for row in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.1, y=0.5 / max(len(rows), 1))
        axes.set_xlabel(label)
        return _svg(figure, described)


@contextmanager
def _figure(rows: int, columns: int, inches: tuple[float, float], **more: Any) -> Any:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=inches, layout="constrained")
        FigureCanvasSVG(figure)
        axes: Axes = figure.subplots(rows, columns, **more)
        yield figure, axes


_drawn = 0


def _svg(figure: Figure, described: str, titles: Mapping[str, str] | None = None) -> Markup:
    """Return a figure's SVG with unique ids and the page's colors. An element with the id ``anchor:x`` becomes a link."""
    global _drawn
    _drawn += 1
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="f{_drawn}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\1f{_drawn}-", text)
    text = re.sub(r'<a xlink:href="anchor:([^"]*)"[^>]*>', lambda found: _link(found[1], titles or {}), text)
    for drawn, shown in _COLOURS.items():
        text = text.replace(drawn, shown)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())  # type: ignore[union-attr]
    start = f'<svg role="img" aria-label="{escape(described)}" viewBox="0 0 {width} {height}"'
    return svg(re.sub(r"<svg[^>]*>", f'{start} style="--width: {width * 4 / 3:.0f}px">', text, count=1))


def _link(anchor: str, titles: Mapping[str, str]) -> str:
    return f'<a href="#{escape(anchor)}"><title>{escape(titles.get(anchor, ""))}</title>'
