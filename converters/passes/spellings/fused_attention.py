"""Attention that OpenCV fuses into one layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder
from onnx_specops.graphs import all_nodes, constant_array, producer_of
from onnx_specops.replacing import replace_value


@dataclass(frozen=True)
class FusedAttention:
    """An attention whose queries, keys and values are projections that nothing else uses.

    Attributes:
        projections: the multiplications by constant matrices.
        biased: whether each of them has a bias.
        masked: the Add of the mask to the scores; ``None`` without a mask.
        scores: the position of the scores in its inputs.
    """

    projections: tuple[ir.Node, ...]
    biased: tuple[bool, ...]
    masked: ir.Node | None
    scores: int

    @property
    def mask(self) -> ir.Value | None:
        """The mask; ``None`` without one."""
        return None if self.masked is None else self.masked.inputs[1 - self.scores]


def fused_attentions(graph: ir.Graph) -> Iterator[FusedAttention]:
    """Yield each Softmax of scaled scores whose queries, keys and values are projections."""
    for node in all_nodes(graph):
        if node.domain or node.op_type != "Softmax":
            continue
        masked = _sole_producer(node.inputs[0], "Add")
        for position in (0, 1) if masked is not None else (0,):
            found = _projections(node, node.inputs[0] if masked is None else masked.inputs[position])
            if found is not None:
                projections, biased = zip(*found, strict=True)
                yield FusedAttention(projections, biased, masked, position)
                break


def _projections(softmax: ir.Node, scores: ir.Value | None) -> list[tuple[ir.Node, bool]] | None:
    """Return the projections to queries, keys and values, and whether each has a bias; ``None`` if one of them is not a
    projection.
    """
    weighted = [node for node in softmax.outputs[0].consumers() if not node.domain and node.op_type == "MatMul"]
    products = _sole_producer(_unscaled(scores), "MatMul")
    if products is None or len(weighted) != 1:
        return None
    found = [_projection(_unscaled(value)) for value in (*products.inputs, weighted[0].inputs[1])]
    return None if None in found else [one for one in found if one is not None]


def _unscaled(value: ir.Value | None) -> ir.Value | None:
    """Return a value before its multiplication or division by one constant number."""
    for operator in ("Div", "Mul"):
        node = _sole_producer(value, operator)
        for one, other in () if node is None else (tuple(node.inputs), tuple(reversed(node.inputs))):
            factor = constant_array(other)
            if factor is not None and factor.size == 1:
                return one
    return value


def _projection(heads: ir.Value | None) -> tuple[ir.Node, bool] | None:
    """Return the multiplication that heads were split from, and whether it has a bias."""
    split = _sole_producer(heads, "Transpose")
    rows = None if split is None else _sole_producer(split.inputs[0], "Reshape")
    if rows is None or len(rows.outputs[0].shape or ()) != len("BSHD"):
        return None
    value = rows.inputs[0]
    added = _sole_producer(value, "Add")
    if added is not None:
        value = next((one for one in added.inputs if constant_array(one) is None), None)
    product = _sole_producer(value, "MatMul")
    weights = None if product is None else constant_array(product.inputs[1])
    return None if product is None or weights is None or weights.ndim != 2 else (product, added is not None)


def _sole_producer(value: ir.Value | None, operator: str) -> ir.Node | None:
    """Return the standard node that computes a value if only one node uses it."""
    if value is None or value.is_graph_output() or len(value.consumers()) != 1:
        return None
    return producer_of(value, operator)


class BiasedAttention(InPlacePass):
    """Add zero biases to the projections of attention, and make the mask the second operand of its Add.

    OpenCV (5.0.0) fuses attention into one layer, which requires biases, and assumes that the second operand is the
    mask.
    """

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for attention in list(fused_attentions(model.graph)):
            if attention.masked is not None and attention.scores == 1:
                scores, mask = attention.masked.inputs[1], attention.masked.inputs[0]
                attention.masked.replace_input_with(0, scores)
                attention.masked.replace_input_with(1, mask)
                count += 1
            for product, biased in zip(attention.projections, attention.biased, strict=True):
                result, weights = product.outputs[0], constant_array(product.inputs[1])
                if biased or weights is None or not isinstance(product.graph, ir.Graph):
                    continue
                root = root or Builder.of_existing(model.graph)
                op = Builder.before_node(product, root)
                zeros = np.zeros(weights.shape[1], weights.dtype)
                replace_value(result, op.place(op.Add(op.MatMul(*product.inputs), zeros)))
                product.graph.remove(product, safe=True)
                count += 1
        return PassResult(model, modified=count > 0)
