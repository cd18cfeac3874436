"""Nodes that an opset cannot represent. All such nodes in a model are reported at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class UnsupportedNode:
    """A node that the target opset cannot represent.

    Attributes:
        node_name: the node's name, or that of an input or output of the model.
        message: the missing feature.
        least: the lowest opset that can represent it.
        origin: the layer or object that the node was emitted for.
    """

    node_name: str
    message: str
    least: int
    origin: object | None = None


class LoweringError(ValueError):
    """Some nodes cannot be represented in the target opset.

    Attributes:
        unsupported: all of them.
    """

    def __init__(self, unsupported: Iterable[UnsupportedNode]) -> None:
        self.unsupported = tuple(unsupported)
        super().__init__(
            "; ".join(f"{r.node_name}: {r.message} (supported from opset {r.least} on)" for r in self.unsupported)
        )
