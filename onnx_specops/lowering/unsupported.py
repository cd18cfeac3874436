"""What an opset cannot say, for whoever wants to know all of it at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class UnsupportedNode:
    """A node that the opset aimed at cannot say.

    Attributes:
        node_name: the node's name, or that of an input or output of the model.
        message: what cannot be said.
        least: the least opset that can.
        origin: what the node was emitted for.
    """

    node_name: str
    message: str
    least: int
    origin: object | None = None


class LoweringError(ValueError):
    """Nodes that the opset aimed at cannot say.

    Attributes:
        unsupported: all of them.
    """

    def __init__(self, unsupported: Iterable[UnsupportedNode]) -> None:
        self.unsupported = tuple(unsupported)
        super().__init__("; ".join(f"{r.node_name}: {r.message} (opset {r.least} can)" for r in self.unsupported))
