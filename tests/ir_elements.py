"""Elements of IR files of all versions, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr


def dims(shape: Sequence[int | None]) -> str:
    return "".join(f"<dim>{-1 if d is None else d}</dim>" for d in shape)


def port(number: int, shape: Sequence[int | None], precision: str = "") -> str:
    """Return a port; without ``precision``, that is not stated."""
    stated = f' precision="{precision}"' if precision else ""
    return f'<port id="{number}"{stated}>{dims(shape)}</port>'


def attributes(data: Mapping[str, Any], text: Callable[[Any], str]) -> str:
    """Return attributes, each after a space; ``text`` returns a value as the file states it."""
    return "".join(f" {key}={quoteattr(text(value))}" for key, value in data.items())


def edge(from_layer: int, from_port: int, to_layer: int, to_port: int) -> str:
    return f'<edge from-layer="{from_layer}" from-port="{from_port}" to-layer="{to_layer}" to-port="{to_port}"/>\n'


def graph(layers: Iterable[str], edges: Iterable[str]) -> str:
    return f"<layers>\n{''.join(layers)}</layers>\n<edges>\n{''.join(edges)}</edges>\n"
