"""Drawings of parts of a network."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from markupsafe import Markup

from converters.reports.page import svg

Key = TypeVar("Key", bound=Hashable)

# The number of steps before and after a node, and the maximum number of nodes.
_STEPS, _MOST = 3, 24


@dataclass(frozen=True)
class Node:
    """A node of the drawing.

    Attributes:
        lines: its text.
        kind: its class in the style sheet: ``"center"``, ``"good"``, ``"bad"`` or ``""``.
        anchor: its anchor on the page, or empty.
    """

    lines: Sequence[str]
    kind: str = ""
    anchor: str = ""


def around(center: Key, before: Mapping[Key, Sequence[Key]], behind: Mapping[Key, Sequence[Key]]) -> list[Key]:
    """Return the center and its neighbors, nearest first, up to a limit.

    Args:
        center: a node.
        before, behind: the inputs and the consumers of each node.
    """
    found = {center: None}
    edges: tuple[list[Key], list[Key]] = ([center], [center])
    for _ in range(_STEPS):
        for side, (edge, neighbors) in enumerate(zip(edges, (before, behind), strict=True)):
            following: list[Key] = []
            for node in edge:
                for other in neighbors.get(node, ()):
                    if other not in found and len(found) < _MOST:
                        found[other] = None
                        following.append(other)
            edges[side][:] = following
    return list(found)


def drawing(nodes: Mapping[Key, Node], edges: Iterable[tuple[Key, Key]], described: str) -> Markup:
    """Return the SVG of a graph, laid out from top to bottom.

    Args:
        nodes: the nodes.
        edges: the edges; those with an end that is not a node are omitted.
        described: the description for screen readers.
    """
    import pygraphviz

    graph = pygraphviz.AGraph(directed=True)
    graph.graph_attr.update(bgcolor="transparent", nodesep="0.25", ranksep="0.35")
    graph.node_attr.update(shape="box", style="rounded", fontname="Arial", fontsize="11", margin="0.2,0.09")
    graph.edge_attr.update(arrowsize="0.6")
    names = {key: f"n{place}" for place, key in enumerate(nodes)}
    for key, node in nodes.items():
        graph.add_node(names[key], label="\n".join(_plain(line) for line in node.lines), **{"class": node.kind})
    for one, other in dict.fromkeys(edges):
        if one in names and other in names:
            graph.add_edge(names[one], names[other])
    text = graph.draw(format="svg", prog="dot").decode()
    text = text[text.index("<svg") :]
    anchors = {names[key]: node.anchor for key, node in nodes.items() if node.anchor}
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="\w+" class="edge ?">\s*<title>.*?</title>', '<g class="edge">', text, flags=re.DOTALL)
    text = re.sub(
        r'<g id="\w+" class="node ?([^"]*)">\s*<title>(\w+)</title>(.*?)</g>',
        lambda found: _linked(found[1], anchors.get(found[2], ""), found[3]),
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r'<g id="graph0"', "<g", text)
    text = re.sub(r"<title>.*?</title>", "", text, flags=re.DOTALL)
    text = re.sub(r' (font-family|stroke|fill)="[^"]*"', "", text)
    width, box = re.search(r'width="(\d+)pt"[^>]*?viewBox="([^"]*)"', text).groups()  # type: ignore[union-attr]
    start = f'<svg class="graph" role="img" aria-label="{escape(described)}" viewBox="{box}"'
    return svg(re.sub(r"<svg[^>]*>", f'{start} style="--width: {int(width) * 1.2:.0f}px">', text, count=1))


def _plain(line: str) -> str:
    return line.replace("\\", "\\\\")


def _linked(kind: str, anchor: str, content: str) -> str:
    inner = f'<a href="#{escape(anchor)}">{content}</a>' if anchor else content
    return f'<g class="node {kind}">{inner}</g>'
