"""A graph that is being converted to integers: the quantized values, and the surroundings of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.layouts import channels_last
from converters.passes.quantized.affine import NEAR, Affine, is_scale
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, constant_array
from onnx_specops.replacing import replace_value

_MOVES = frozenset(("Identity", "Reshape", "Split", "Squeeze", "Transpose", "Unsqueeze"))


@dataclass(frozen=True)
class Quantized:
    """The integers of a value that a DequantizeLinear computes, or an Add of an offset after it.

    Attributes:
        integers: the integers.
        affine: their scale and zero point.
    """

    integers: ir.Value
    affine: Affine


class Arrangement:
    """The state of a graph that is being converted to integers.

    Attributes:
        contrib: whether the graph may contain ONNX Runtime's own operators.
        quantized: the results of DequantizeLinear with one scale.
        offset: the sums of these and an offset. Only `find` returns them, for code that uses `Affine.offset`.
        channels: value with a scale for each channel -> the value that is multiplied by the scales, and its scale and zero
            point.
        last: integers and a graph -> the same integers with the channels as the last dimension, for nodes of that graph. A
            branch cannot use values of another branch.
        divisions: the values that are divided by the scales of their channels before quantization with one scale.
        shifts: the values to which `Affine.shift` was added, before a division and quantization.
    """

    def __init__(self, graph: ir.Graph, contrib: bool) -> None:
        self.contrib = contrib
        self.quantized: dict[ir.Value, Quantized] = {}
        self.offset: dict[ir.Value, Quantized] = {}
        self.channels: dict[ir.Value, tuple[Value, Affine]] = {}
        self.last: dict[tuple[ir.Value, ir.Graph], Value] = {}
        self.divisions: dict[ir.Value, Affine] = {}
        self.shifts: dict[ir.Value, Affine] = {}
        self._root = Builder.of_existing(graph)

    def before(self, node: ir.Node) -> Builder:
        """Return a builder that emits before ``node``."""
        return Builder.before_node(node, self._root)

    def channels_last(self, op: Builder, integers: ir.Value, rank: int) -> Value:
        """Move the channels of integers from the second to the last dimension."""
        own = integers.graph
        if isinstance(own, ir.Graph) and (known := self.last.get((integers, own))) is not None:
            return known
        if (known := self.last.get((integers, op.graph))) is None:
            known = op.Transpose(integers, perm=channels_last(rank))
            self.last[integers, op.graph] = known
        return known

    def find(self, value: ir.Value | None) -> Quantized | None:
        """Return the integers of a value, perhaps with an offset."""
        return None if value is None else self.quantized.get(value, self.offset.get(value))

    def shifted(self, op: Builder, value: ir.Value, affine: Affine) -> ir.Value:
        """Add the shift of a quantization to a value, if it has one."""
        if affine.shift is None:
            return value
        result = op.Add(value, constant_value(affine.shift))
        result.shape = value.shape
        self.shifts[result] = affine
        return result

    def dequantized(
        self, op: Builder, value: ir.Value, integers: Value, affine: Affine, through: Sequence[ir.Value] = ()
    ) -> None:
        """Replace a value by its dequantized integers. For ``through`` see `onnx_specops.replacing.Rewriting`."""
        assert affine.is_per_tensor, "the consumers require one scale for all channels"
        pure = affine.without_offset()
        result = steps = pure.dequantize(op, integers)
        if affine.offset is not None:
            steps.shape = value.shape
            result = op.Add(steps, constant_value(np.asarray(affine.scale * affine.offset, np.float32)))
            self.offset[result] = Quantized(integers, affine)
        level = float(affine.scale.max())
        # With these limits, zero may not be exactly on a level.
        replace_value(value, result, tolerance=2 * NEAR * level, through=through, level=level)
        self.quantized[steps] = Quantized(integers, pure)

    def renew(self, integers: ir.Value) -> None:
        """Register integers that replaced others as the source of the DequantizeLinear nodes that use them."""
        for user in integers.consumers():
            if not is_node(user, "DequantizeLinear") or (known := self.quantized.get(user.outputs[0])) is None:
                continue
            self.quantized[user.outputs[0]] = Quantized(integers, known.affine)
            for following in user.outputs[0].consumers():
                if (known := self.offset.get(following.outputs[0])) is not None:
                    self.offset[following.outputs[0]] = Quantized(integers, known.affine)

    def replace_levels(self, quantizer: ir.Node, levels: Value) -> bool:
        """Replace the result of a QuantizeLinear by integers, in which a number halfway between two may round to either."""
        if not replace_value(quantizer.outputs[0], levels, tolerance=1e-3, level=1.0):
            return False
        self.renew(levels)
        remove(quantizer)
        return True

    def moved(self, value: Value, moves: Sequence[ir.Node]) -> Value:
        """Emit nodes that move the numbers of a value, in order, for another value of the same shape."""
        for move in moves:
            value = self.before(move).node(move.op_type, value, *move.inputs[1:], **attributes_of(move))
            value.shape = move.outputs[0].shape
        return value

    def replace(self, node: ir.Node, result: Value, old: ir.Value | None = None) -> None:
        """Replace the result of ``node``, or a value after it, by ``result``."""
        value = node.outputs[0] if old is None else old
        if value.shape is not None:
            result.shape = value.shape
        replace_value(value, result)
        remove(node)


def is_node(node: ir.Node | None, op_type: str, domain: str = "") -> bool:
    """Return whether a node exists and has the given operator."""
    return node is not None and (node.domain, node.op_type) == (domain, op_type)


def only_user(value: ir.Value) -> ir.Node | None:
    """Return the only consumer of a value; ``None`` if there are several."""
    users = list(value.consumers())
    return users[0] if len(users) == 1 and not value.is_graph_output() else None


def only_quantizers(value: ir.Value) -> list[ir.Node]:
    """Return the QuantizeLinear nodes of a value if it has no other consumers."""
    users = list(value.consumers())
    return users if not value.is_graph_output() and all(is_node(user, "QuantizeLinear") for user in users) else []


def factor_of(node: ir.Node, value: ir.Value) -> np.ndarray | None:
    """Return the float32 constant that a Mul multiplies a value by."""
    other = next((given for given in node.inputs if given is not value), None)
    factor = constant_array(other) if is_node(node, "Mul") else None
    return factor if factor is not None and factor.dtype == np.float32 else None


def one_factor_of(node: ir.Node, value: ir.Value) -> np.ndarray | None:
    """Return the one positive number that a Mul multiplies a value by, as ``[]``, if the product has the value's shape."""
    factor = factor_of(node, value)
    if factor is None or factor.size != 1 or value.shape is None or factor.ndim > len(value.shape):
        return None
    return factor.reshape(()) if is_scale(factor).all() else None


def has_levels(value: ir.Value | None) -> bool:
    """Return whether a value is the result of FakeQuantize with one range, or of a DequantizeLinear, after data movement."""
    node = None if value is None else value.producer()
    while node is not None and not node.domain and node.op_type in _MOVES and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is None or not is_node(node, "FakeQuantize", DOMAIN):
        return is_node(node, "DequantizeLinear")
    limits = [constant_array(limit) for limit in node.inputs[1:]]
    return all(limit is not None and limit.size == 1 for limit in limits)


def before_casts(value: ir.Value | None) -> tuple[ir.Value | None, list[ir.DataType | None]]:
    """Return the value before a sequence of Casts, and their types in order; the value itself if there are none."""
    types: list[ir.DataType | None] = []
    while value is not None and (node := value.producer()) is not None and is_node(node, "Cast"):
        types.insert(0, value.dtype)
        value = node.inputs[0]
    return value, types


def static_shape(value: ir.Value) -> list[int] | None:
    """Return the dimensions if all are known."""
    if value.shape is None:
        return None
    sizes = [dim for dim in value.shape if isinstance(dim, int)]
    return sizes if len(sizes) == len(value.shape) else None


def remove(node: ir.Node) -> None:
    """Remove a node whose results are unused."""
    if node.graph is not None and not any(value.uses() or value.is_graph_output() for value in node.outputs):
        node.graph.remove(node, safe=True)
