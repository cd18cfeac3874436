"""Unique names for the values of a model."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnx_specops.graphs import all_values


class Names:
    """The set of names in use.

    Args:
        taken: names in use; ``None`` is ignored.
    """

    def __init__(self, taken: Iterable[str | None] = ()) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.reserve(taken)

    @classmethod
    def of(cls, *holders: ir.Graph | ir.Function) -> Names:
        """Return the names of the values of graphs and functions, including nested graphs."""
        graphs = [holder.graph if isinstance(holder, ir.Function) else holder for holder in holders]
        return cls(value.name for graph in graphs for value in all_values(graph))

    def reserve(self, names: Iterable[str | None]) -> None:
        """Add further names in use."""
        self._taken.update(name for name in names if name is not None)

    def unique(self, name: str) -> str:
        """Return ``name``, or the first of ``name_1``, ``name_2``, ... that is not in use, and mark it as used."""
        candidate = name
        if name in self._taken:
            number = self._numbers.get(name, 0)  # all lower numbers are in use; many values may request the same name
            while candidate in self._taken:
                number += 1
                candidate = f"{name}_{number}"
            self._numbers[name] = number
        self._taken.add(candidate)
        return candidate

    def register(self, graph: ir.Graph, value: ir.Value) -> None:
        """Make ``value`` an initializer of ``graph`` with a unique name."""
        value.name = self.unique(value.name or "constant")
        graph.register_initializer(value)
