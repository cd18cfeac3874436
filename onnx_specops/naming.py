"""Names that no value of a model bears yet."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnx_specops.graphs import all_values


class Names:
    """The names that are taken.

    Args:
        taken: names that no new one may be; ``None`` among them does not count.
    """

    def __init__(self, taken: Iterable[str | None] = ()) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.reserve(taken)

    @classmethod
    def of(cls, *holders: ir.Graph | ir.Function) -> Names:
        """The names of the values of graphs and functions, of those in nested graphs too."""
        graphs = [holder.graph if isinstance(holder, ir.Function) else holder for holder in holders]
        return cls(value.name for graph in graphs for value in all_values(graph))

    def reserve(self, names: Iterable[str | None]) -> None:
        """Takes further names."""
        self._taken.update(name for name in names if name is not None)

    def unique(self, name: str) -> str:
        """``name``, or else ``name_1``, ``name_2`` ..., the first that is not taken; it is from now on."""
        candidate = name
        if name in self._taken:
            number = self._numbers.get(name, 0)  # of lower ones all are taken: many values may ask for one name
            while candidate in self._taken:
                number += 1
                candidate = f"{name}_{number}"
            self._numbers[name] = number
        self._taken.add(candidate)
        return candidate

    def register(self, graph: ir.Graph, value: ir.Value) -> None:
        """Makes ``value`` an initializer of ``graph``, under a name that is not taken."""
        value.name = self.unique(value.name or "constant")
        graph.register_initializer(value)
