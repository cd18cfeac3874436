"""The bias that a graph adds to the result of a MatMul or convolution."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir


def added_bias(value: ir.Value, axis: int, size: int, *, broadcast: bool = False) -> tuple[ir.Node, ir.Value] | None:
    """Return the Add of a per-channel constant to a value that has no other consumer.

    Args:
        value: the result of a MatMul or convolution.
        axis: the axis of the channels, which may be negative.
        size: the size of the axis.
        broadcast: whether the constant may be one element for all channels.

    Returns:
        The Add and its constant of 1 or ``size`` elements; ``None`` if there is none.
    """
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output() or value.shape is None:
        return None
    node, index = uses[0]
    producer = value.producer()
    if (node.op_type, node.domain) != ("Add", "") or (producer is not None and node.graph is not producer.graph):
        return None
    other, rank = node.inputs[1 - index], len(value.shape)
    if other is None or other.const_value is None or other.is_graph_input():
        return None
    dims = tuple(other.const_value.shape.numpy())
    whole = (*[1] * (rank - len(dims)), *dims)
    if len(whole) != rank or not rank or math.prod(whole) != whole[axis]:
        return None
    if whole[axis] != size and not (broadcast and whole[axis] == 1):
        return None
    if not dims and not broadcast:
        return None
    return node, other


def elements(bias: ir.Value, size: int) -> np.ndarray:
    """Return the elements of a bias that `added_bias` found, ``[size]``."""
    assert bias.const_value is not None
    return np.broadcast_to(bias.const_value.numpy().reshape(-1), (size,))
