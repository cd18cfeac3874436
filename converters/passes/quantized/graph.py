"""A graph on its way to integers: which values these stand for, and what a node's surroundings are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from converters.passes.quantized.affine import NEAR, Affine
from onnx_specops.building import Builder, Value
from onnx_specops.replacing import replace_value


@dataclass(frozen=True)
class Quantized:
    """The integers of a value that a DequantizeLinear gives.

    Attributes:
        integers: the integers.
        affine: what they stand for.
    """

    integers: ir.Value
    affine: Affine


class Arrangement:
    """What is known of a graph on its way to integers.

    Attributes:
        contrib: whether the graph may hold ONNX Runtime's own operators.
        quantized: the values that a DequantizeLinear of a whole tensor gives.
        channels: the values whose channels have scales of their own: what is multiplied by these, and what that stands for.
        last: of integers whose channels are also there as the last dimension, these.
        divisions: the values that are divided by the scales of their channels to be quantised in whole.
    """

    def __init__(self, graph: ir.Graph, contrib: bool) -> None:
        self.contrib = contrib
        self.quantized: dict[ir.Value, Quantized] = {}
        self.channels: dict[ir.Value, tuple[Value, Affine]] = {}
        self.last: dict[ir.Value, Value] = {}
        self.divisions: dict[ir.Value, Affine] = {}
        self._root = Builder.of_existing(graph)

    def before(self, node: ir.Node) -> Builder:
        """A builder that emits before ``node``."""
        assert isinstance(node.graph, ir.Graph)
        op = Builder(node.graph, root=self._root, before=node)
        op.scope = node.name or node.op_type
        return op

    def channels_last(self, op: Builder, integers: ir.Value, rank: int) -> Value:
        """Integers with their channels, the second dimension, as the last one."""
        if (known := self.last.get(integers)) is None:
            known = op.Transpose(integers, perm=[0, *range(2, rank), 1])
            self.last[integers] = known
        return known

    def dequantized(
        self, op: Builder, value: ir.Value, integers: Value, affine: Affine, through: Sequence[ir.Value] = ()
    ) -> None:
        """Replace a value by its integers, dequantized; ``through`` as of `onnx_specops.replacing.Rewriting`."""
        assert affine.is_whole, "what follows reads one scale for all"
        result = affine.dequantize(op, integers)
        level = float(affine.scale.max())
        # The zero of the limits can be a little beside a level.
        replace_value(value, result, tolerance=2 * NEAR * level, through=through, level=level)
        self.quantized[result] = Quantized(integers, affine)

    def replace(self, node: ir.Node, result: Value, old: ir.Value | None = None) -> None:
        """Let ``result`` take the place of what ``node``, or what follows it, gives."""
        value = node.outputs[0] if old is None else old
        if value.shape is not None:
            result.shape = value.shape
        replace_value(value, result)
        remove(node)


def is_node(node: ir.Node | None, op_type: str, domain: str = "") -> bool:
    """Whether there is a node, and it is of this operator."""
    return node is not None and (node.domain, node.op_type) == (domain, op_type)


def only_user(value: ir.Value) -> ir.Node | None:
    """The one node that takes a value, if nothing else does."""
    users = list(value.consumers())
    return users[0] if len(users) == 1 and not value.is_graph_output() else None


def only_quantizers(value: ir.Value) -> list[ir.Node]:
    """The QuantizeLinear that take a value, where nothing else does."""
    users = list(value.consumers())
    return users if not value.is_graph_output() and all(is_node(user, "QuantizeLinear") for user in users) else []


def static_shape(value: ir.Value) -> list[int] | None:
    """The dimensions, where all are known."""
    if value.shape is None:
        return None
    sizes = [dim for dim in value.shape if isinstance(dim, int)]
    return sizes if len(sizes) == len(value.shape) else None


def remove(node: ir.Node) -> None:
    """Remove a node whose results nothing takes any more."""
    if node.graph is not None and not any(value.uses() or value.is_graph_output() for value in node.outputs):
        node.graph.remove(node, safe=True)
